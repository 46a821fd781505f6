# `make up` runs mimikit; everything else is for those who work on it (docs/contributing.md).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SIZE ?= 20

# A stamp tells that the environment holds what the lock names: to run, or to run and test.
CAN_RUN := $(VENV)/.can-run
CAN_TEST := $(VENV)/.can-test

CHECKS := format lint types layers test

# Tests start hundreds of processes: what the first has compiled the others shall find.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: up venv check checks $(CHECKS) docs figures bench nightly soak lock clean
.DELETE_ON_ERROR:

up: $(CAN_RUN)
	@exec $(BIN)/mimikit up $(ARGS)

venv: $(CAN_TEST)

check: $(CHECKS)

# The stages of `check`, for a program that times them.
checks:
	@echo $(CHECKS)

format: $(CAN_TEST)
	$(BIN)/ruff format --check

lint: $(CAN_TEST)
	$(BIN)/ruff check

types: $(CAN_TEST)
	$(BIN)/basedpyright

layers: $(CAN_TEST)
	$(BIN)/lint-imports --no-logo

# Files side by side, the long ones first (tests/conftest.py); `make test JOBS=0` runs them one by one.
JOBS ?= 4
test: $(CAN_TEST)
	$(BIN)/python -m pytest --numprocesses=$(JOBS) --dist=loadfile --no-loadscope-reorder $(ARGS)

# docs/http.md and the page's types, made anew from routes and models.
docs: $(CAN_TEST)
	$(BIN)/python scripts/make_http_docs.py

# Sizes of modules, classes and functions, and what the layout forbids; ARGS=--list names the places.
figures: $(CAN_TEST)
	@$(BIN)/python scripts/figures.py $(ARGS)

# `make bench`, `make bench ARGS=queue`; with question sets for the search: `make bench DATA=FOLDER`.
bench: $(CAN_TEST)
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA)) $(ARGS)

# The long tests at SIZE times their usual work: `make nightly SIZE=100`.
nightly: $(CAN_TEST)
	$(BIN)/python -m pytest -m "slow or nightly" --size=$(SIZE) --timeout=0 $(ARGS)

# Simulated days with kills, suspends and clock jumps: `make soak DAYS=730`.
DAYS ?= 30
soak: $(CAN_TEST)
	$(BIN)/python -m pytest tests/soak --size=$$((($(DAYS) + 2) / 3)) --timeout=0 $(ARGS)

# Pins every package for everyone: `make lock`, or `make lock ARGS=--upgrade`.
LOCK := CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --generate-hashes \
	--allow-unsafe --strip-extras --annotation-style line --build-deps-for editable \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options
lock: | $(BIN)/python
	@$(BIN)/python -c "import piptools" 2>/dev/null || $(PIP) install pip-tools
	$(LOCK) --extra codex --extra test --extra dev $(ARGS) \
		--output-file requirements.lock pyproject.toml
	$(LOCK) --constraint requirements.lock --output-file requirements-run.lock pyproject.toml

clean:
	rm -rf build dist test-results .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

$(BIN)/python:
	@sh scripts/make-venv.sh $(PYTHON) $(VENV)

$(CAN_RUN): requirements-run.lock pyproject.toml | $(BIN)/python
	@echo "Installing what mimikit needs into $(VENV) …"
	@$(PIP) install --require-hashes --requirement requirements-run.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(CAN_TEST): requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing what mimikit and its tests need into $(VENV) …"
	@$(PIP) install --require-hashes --requirement requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $(CAN_RUN) $@
