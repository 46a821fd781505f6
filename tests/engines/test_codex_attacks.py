"""What a Worker tries in order to come out of its workspace, by the real codex program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mimikit.config import asset_folder
from mimikit.engines import mounts, sandbox
from mimikit.engines.base import Outcome
from mimikit.engines.codex.workspace import LITTER
from tests.engines.test_git import PLANT, WHO, repository, run_git, what_the_owner_does
from tests.support.codex_ground import Here, codex_ground
from tests.support.engine_requests import Desk
from tests.support.fake_llm import FakeLLM
from tests.support.runs import alive, tag

pytestmark = [
    pytest.mark.codex,
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("bwrap", "git"),
]
ROOT = Path(__file__).parents[2]
TAKEN_UP = (
    *("sitecustomize.py", "usercustomize.py", "setproctitle.py", ".env", "hatch.toml"),
    *("hatch_build.py", "setup.py", "setup.cfg", "Makefile", "makefile", "pip.conf"),
)
"""What is taken up from a checkout as soon as it is there."""
SANDBOXES = ["workspace-write", "danger-full-access"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    return codex_ground(tmp_path, monkeypatch)


def work(
    here: Here, line: str, desk: Desk | None = None, **settings: object
) -> tuple[Outcome, str]:
    """Let a Worker run a line; gives the outcome and what its model was told of it."""
    workspace = settings.pop("workspace", here.workspace)
    with FakeLLM([{"shell": line}, {"text": "it is done"}]) as llm:
        request = here.ask("do it", desk, workspace=workspace)
        outcome = here.engine(llm, **settings).run(request)
        assert len(llm.requests) == 2
        return outcome, json.dumps(llm.requests[-1]["input"][-1])


# ---- git


def test_no_folder_is_writable_on_the_word_of_a_worktrees_file(here: Here) -> None:
    repo, tree = here.root / "repo", here.root / "tree"
    repository(repo)
    run_git(repo, "worktree", "add", "-q", str(tree))
    own = repo / ".git" / "worktrees" / "tree"
    line = f"cat .git; echo / > {own}/commondir; echo x > {here.root}/made; echo end"
    desk = Desk()
    _, seen = work(here, line, desk, workspace=tree)
    assert "end" in seen
    assert (own / "commondir").read_text() == "../..\n"
    (own / "commondir").write_text("/\n")  # as if an earlier one had come that far
    outcome, seen = work(here, line, desk, workspace=tree)
    assert outcome.status == "done"
    assert "end" in seen
    assert not (here.root / "made").exists()
    notes = [text for kind, text, _ in desk.events if kind == "note"]
    assert any("commondir names /, and it belongs to" in note for note in notes)


def test_a_worker_commits_in_worktree_and_repository(here: Here) -> None:
    repo, tree = here.root / "repo", here.root / "tree"
    repository(repo)
    run_git(repo, "worktree", "add", "-q", str(tree))
    desk = Desk()
    for folder in (repo, tree):
        line = f"echo two >> file; git {' '.join(WHO)} commit -qam two && echo committed"
        _, seen = work(here, line, desk, workspace=folder)
        assert "committed" in seen
        assert "two" in run_git(folder, "log", "-1")
        assert "nothing to commit" in run_git(folder, "status")
    notes = [text for kind, text, _ in desk.events if kind == "note"]
    assert any(f"{repo}/.git/worktrees/tree now, no longer to" in note for note in notes)


@pytest.mark.parametrize("mode", SANDBOXES)
def test_nothing_that_a_worker_leaves_in_git_runs_as_the_owner(here: Here, mode: str) -> None:
    library, owned = here.root / "library", here.root / "owned"
    repository(library)
    repository(here.workspace)
    run_git(here.workspace, "submodule", "add", "-q", str(library), "sub")
    run_git(here.workspace, "config", "extensions.worktreeConfig", "true")
    shutil.rmtree(here.workspace / ".git" / "hooks")
    line = (
        f"OWNED={owned}\n{PLANT}\n"
        "conf() { printf '[core]\\n\\tfsmonitor = touch %s; true\\n' $OWNED; }\n"
        "for g in .git .git/modules/sub; do plant $g/hooks/post-commit; conf >> $g/config; "
        "conf > $g/config.worktree; done; echo end"
    )
    _, seen = work(here, line, sandbox=mode)
    assert "end" in seen
    what_the_owner_does(here.workspace)
    assert not owned.exists()


# ---- this program


def test_a_worker_does_not_change_the_program(here: Here) -> None:
    places = [ROOT / "mimikit", asset_folder("webui"), asset_folder("prompts"), Path(sys.prefix)]
    tried = [str(place / "made-by-a-worker") for place in places]
    line = f"for path in {' '.join(tried)}; do touch $path; done; echo end"
    try:
        _, seen = work(here, line, sandbox="danger-full-access")
        assert seen.count("Read-only file system") == len(tried)
        assert "end" in seen
    finally:
        for path in map(Path, tried):
            path.unlink(missing_ok=True)


def test_a_workspace_that_is_the_programs_own_checkout(here: Here) -> None:
    """Started there, as `make up` does, with what it is made of below."""
    checkout = here.workspace / "in" / "checkout"
    checkout.mkdir(parents=True)
    for name in ("mimikit", "webui", "prompts", "scripts", "docs"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, checkout / name, ignore=ignored)
    for name in ("GNUmakefile", "Procfile", "pyproject.toml", "requirements-run.lock", "README.md"):
        shutil.copy(ROOT / name, checkout)
    attack = (
        "for f in mimikit/cli/main.py mimikit/__init__.py webui/x prompts/x scripts/make-venv.sh "
        "GNUmakefile Procfile pyproject.toml requirements-run.lock; do echo x > $f; done; "
        f"for f in {' '.join(TAKEN_UP)}; do echo x > $f; done; mkdir setproctitle; "
        "mv mimikit old; mv ../checkout ../old; mv .. ../../old; rm -rf GNUmakefile; "
        "echo x > README.md; echo x > docs/made; echo x > ../made; echo end"
    )
    wrap = (
        "import sys; from pathlib import Path; from mimikit.engines import process, sandbox\n"
        "top = Path(sys.argv[1]); own, sealed = sandbox.own_files(top)\n"
        "argv = sandbox.masked(['/bin/sh', '-c', sys.argv[3]], Path(sys.argv[2]), writable=[top],\n"
        "    read_only=own, sealed=sealed, pinned=sandbox.folders_around(own, top))\n"
        "print(process.output(argv, cwd=Path.cwd()))"
    )
    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    done = subprocess.run(
        [sys.executable, "-c", wrap, str(here.workspace), str(here.state), attack],
        cwd=checkout,
        env={"PYTHONPATH": str(checkout), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "end" in done.stdout, done.stderr
    after = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    for name in ("README.md", "docs/made"):
        before[checkout / name] = b"x\n"
    assert after == before
    assert (checkout.parent / "made").exists()


@pytest.mark.parametrize("mode", SANDBOXES)
@pytest.mark.parametrize("versioned", [False, True])
def test_in_its_own_checkout_a_worker_works_but_leaves_nothing_that_starts(
    here: Here, monkeypatch: pytest.MonkeyPatch, mode: str, versioned: bool
) -> None:
    """What is editable is found by the folder it lies in, and so is what Python looks for there."""
    monkeypatch.syspath_prepend(here.workspace)
    (here.workspace / "docs").mkdir()
    if versioned:
        repository(here.workspace)
    line = (
        f"for f in {' '.join(TAKEN_UP)}; do echo x > $f; done; mkdir setproctitle; "
        "mv docs old; echo x > docs/made; "
        f"git add docs; git {' '.join(WHO)} commit -qm two; echo end"
    )
    desk = Desk()
    there = {path.name for path in here.workspace.iterdir()}
    outcome, seen = work(here, line, desk, sandbox=mode)
    assert outcome.status == "done"
    assert "end" in seen
    assert (here.workspace / "docs" / "made").exists()
    made = {path.name for path in here.workspace.iterdir()} - there
    assert made <= set(LITTER)
    assert not any(any((here.workspace / name).iterdir()) for name in made)
    assert not versioned or "two" in run_git(here.workspace, "log", "-1")
    notes = [text for kind, text, _ in desk.events if kind == "note"]
    assert any(text.startswith(f"{here.workspace}: nothing can be made") for text in notes)


# ---- secrets

SECRETS = (
    *(".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".gnupg/key"),
    *(".git-credentials", ".config/git/credentials", ".docker/config.json", "mine", "deep/mine"),
)


@pytest.mark.parametrize("mode", SANDBOXES)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_worker_reads_no_secret_of_the_home(here: Here, mode: str, read_only: bool) -> None:
    home = here.root / "home"
    for name in SECRETS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("canary-of-home")
    line = (
        f"cd ~; cat {' '.join(SECRETS)}; cat /proc/*/root{home}/.netrc; umount .ssh .netrc; "
        "cat .netrc .ssh/*; unshare -Urm sh -c 'umount ~/.ssh ~/.netrc; cat ~/.netrc ~/.ssh/*'; "
        "echo x > .ssh/authorized_keys; echo end"
    )
    with FakeLLM([{"shell": line}, {"text": "done"}]) as llm:
        engine = here.engine(llm, sandbox=mode, secrets=["~/mine", "deep"])
        outcome = engine.run(here.ask("do it", read_only=read_only))
        seen = json.dumps(llm.requests[-1]["input"][-1])
    assert outcome.status == "done"
    assert "end" in seen
    assert "canary-of-home" not in seen
    assert not (home / ".ssh" / "authorized_keys").exists()


@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize("read_only", [False, True])
def test_codex_reads_its_login_and_its_shells_do_not(
    here: Here, planted: bool, read_only: bool
) -> None:
    """Nor do they when the workspace itself asks codex for more."""
    login = here.root / "home" / ".codex" / "auth.json"
    login.parent.mkdir()
    login.write_text('{"OPENAI_API_KEY": "canary-login"}')
    (login.parent / ".credentials.json").write_text("canary-tools")
    if planted:
        (here.workspace / ".codex").mkdir()
        asked = 'sandbox_mode = "danger-full-access"\ndefault_permissions = ":danger-full-access"\n'
        (here.workspace / ".codex" / "config.toml").write_text(asked)
    line = (
        f"cat {login} {login.parent}/.credentials.json; cat /proc/*/root{login}; umount {login}; "
        f"cp {login} x; ln {login} y; cat x y; echo x > {here.root}/made; echo end"
    )
    with FakeLLM([{"shell": line}, {"text": "done"}]) as llm:
        provider = (
            f'{{name="fake",base_url="{llm.url}",wire_api="responses",requires_openai_auth=true,'
            "request_max_retries=0,stream_max_retries=0,supports_websockets=false}"
        )
        engine = here.engine(llm, config={"model_providers.fake": provider})
        outcome = engine.run(here.ask("do it", read_only=read_only))
        seen = json.dumps(llm.requests[-1]["input"][-1])
        assert llm.headers[0]["authorization"] == "Bearer canary-login"
    assert outcome.status == "done"
    assert "end" in seen
    assert "Permission denied" in seen
    assert "canary" not in seen
    assert not (here.root / "made").exists()


def test_with_full_access_the_login_is_open_and_the_other_secrets_are_not(here: Here) -> None:
    """What operations.md says of it: only codex's own sandbox closes what codex has to read."""
    home = here.root / "home"
    (home / ".codex").mkdir()
    (home / ".codex" / "auth.json").write_text("canary-login")
    (home / ".netrc").write_text("canary-of-home")
    line = "cat ~/.codex/auth.json ~/.netrc; echo x >> ~/.codex/auth.json; echo end"
    _, seen = work(here, line, sandbox="danger-full-access")
    assert ("canary-login" in seen, "canary-of-home" in seen) == (True, False)
    assert (home / ".codex" / "auth.json").read_text() == "canary-loginx\n"


LOCKER = """
import fcntl, os, sys, time
held = {}
print("begun", flush=True)
while True:
    for top in sys.argv[1:]:
        for path in [os.path.join(at, name) for at, _, names in os.walk(top) for name in names]:
            if "/tmp/arg0" in path or ".sqlite" in path:  # these are not shut
                continue
            for how in (os.O_RDONLY, os.O_RDWR):
                try:
                    if (path, how) not in held:
                        held[path, how] = os.open(path, how | os.O_NONBLOCK)
                        fcntl.lockf(held[path, how], fcntl.LOCK_SH | fcntl.LOCK_NB)
                        fcntl.flock(held[path, how], fcntl.LOCK_EX | fcntl.LOCK_NB)
                        print("locked", path, flush=True)
                except OSError:
                    pass
    time.sleep(0.02)
"""


@pytest.mark.parametrize("is_new", [True, False], ids=["a new home", "a home in use"])
def test_no_codex_waits_for_locks_of_another_ones_shell(here: Here, is_new: bool) -> None:
    """The first run of all makes what it locks; its shells must not have it either."""
    (here.workspace / "locker.py").write_text(LOCKER)
    home = here.root / "home" / ".codex"
    if not is_new:
        assert work(here, "true")[0].status == "done"
    line = f"exec {sys.executable} locker.py {home}"
    begin = {"name": "exec_command", "arguments": {"cmd": line, "yield_time_ms": 1000}}
    holds, over, seen = threading.Event(), threading.Event(), list[str]()

    def wait(body: dict[str, Any]) -> dict[str, Any]:
        seen.append(str(body["input"][-1]["output"]))
        holds.set()
        over.wait(95)
        session = int(seen[0].split("session ID ")[1].split()[0])
        asked = {"session_id": session, "yield_time_ms": 1000}
        return {"call": {"name": "write_stdin", "arguments": asked}}

    def end(body: dict[str, Any]) -> dict[str, Any]:
        seen.append(str(body["input"][-1]["output"]))
        return {"text": "done"}

    others, outputs = list[Outcome](), list[str]()
    with FakeLLM([{"call": begin}, wait, end]) as llm, ThreadPoolExecutor() as threads:
        long: dict[str, Any] = {"run_id": "run-locker", "timeout_s": 100, "idle_timeout_s": 100}
        locker = threads.submit(here.engine(llm).run, here.ask("lock", **long))
        try:
            assert holds.wait(90)
            for role in ("worker", "teller", "worker"):
                shell = [{"shell": "echo fi''ne"}] if role == "worker" else []
                with FakeLLM([*shell, {"text": "it is done"}]) as other:
                    asked = here.ask("work", role=role, run_id="run-other")
                    others.append(here.engine(other).run(asked))
                    outputs += [json.dumps(other.requests[-1:])] if shell else []
        finally:
            over.set()
        assert (locker.result().status, locker.result().error) == ("done", None)
    assert [(outcome.status, outcome.error) for outcome in others] == [("done", None)] * 3
    assert all("fine" in output for output in outputs)
    told = "".join(seen)
    assert "begun" in told
    locked = {line.split(str(here.root))[1] for line in told.splitlines() if "locked" in line}
    shut = ["installation_id", "thread-writer-locks"]
    assert [path for path in locked if any(name in path for name in shut)] == []


# ---- what somebody outside replaces while a Worker is at it


def work_while(here: Here, meanwhile: str, line: str, **settings: Any) -> tuple[Outcome, str]:
    """Let a Worker run a line in the midst of which the owner runs another."""
    for name in ("begun", "done"):
        os.mkfifo(here.workspace / name)

    def owner() -> None:
        (here.workspace / "begun").read_text()
        command = ["/bin/sh", "-ec", meanwhile]
        subprocess.run(command, cwd=here.workspace, check=True, env={**os.environ, **OWNER})
        (here.workspace / "done").write_text("")

    with ThreadPoolExecutor() as threads:
        done = threads.submit(owner)
        outcome, seen = work(here, f"echo > begun; cat done; {line}; echo end", **settings)
        done.result()
    return outcome, seen


OWNER = {"GIT_CONFIG_NOSYSTEM": "1"}
UNTIL = "n=0; while {} && [ $n -lt 500 ]; do n=$((n+1)); sleep 0.01; done; "


@pytest.mark.parametrize("mode", SANDBOXES)
def test_git_stays_shut_while_the_owner_changes_its_settings(here: Here, mode: str) -> None:
    repository(here.workspace)
    git = here.workspace / ".git"
    owner = "git config user.name owner; rm -r .git/hooks; mkdir .git/hooks"
    line = UNTIL.format("test -w .git/config") + UNTIL.format("test -w .git/hooks")
    line += "echo '[x]' >> .git/config; echo x > .git/hooks/new; "
    line += f"git {' '.join(WHO)} commit --allow-empty -qm two"
    outcome, seen = work_while(here, owner, line, sandbox=mode)
    assert (outcome.status, outcome.error, "end" in seen) == ("done", None, True)
    assert run_git(here.workspace, "log", "-1", "--format=%s") == "two\n"
    assert "owner" in (git / "config").read_text()
    assert "[x]" not in (git / "config").read_text()
    assert list((git / "hooks").iterdir()) == []


@pytest.mark.parametrize("mode", SANDBOXES)
@pytest.mark.parametrize(
    "name", [".netrc", ".ssh/id_ed25519", ".config/gh/hosts.yml", "deep/er/mine"]
)
def test_a_secret_is_hidden_as_soon_as_it_comes(here: Here, mode: str, name: str) -> None:
    (here.root / "home" / ".netrc").write_text("before")
    path = here.root / "home" / name
    owner = f"mkdir -p {path.parent}; echo canary-of-home > t; mv t {path}"
    line = UNTIL.format(f"grep -q . ~/{name}") + f"cat ~/{name}"
    outcome, seen = work_while(here, owner, line, sandbox=mode, secrets=["deep/er"])
    assert (outcome.status, "end" in seen, "canary" in seen) == ("done", True, False)


@pytest.mark.parametrize("name", ["auth.json", ".credentials.json"])
def test_no_shell_reads_a_login_that_is_replaced_while_it_runs(here: Here, name: str) -> None:
    """As codex does when it gets a new token, and `codex login`."""
    login = here.root / "home" / ".codex" / name
    login.parent.mkdir()
    login.write_text("{}")
    os.mkfifo(here.workspace / "begun")

    line = f"cat {login}; echo re''ad"
    steps = [{"shell": f"echo > begun; sleep 60; {line}"}, {"shell": line}, {"text": "done"}]
    with FakeLLM(steps) as llm, ThreadPoolExecutor() as threads:
        run = threads.submit(here.engine(llm).run, here.ask("do it"))
        (here.workspace / "begun").read_text()
        (new := here.root / "new").write_text("canary-login")
        new.rename(login)
        outcome = run.result()
        seen = [json.dumps(request["input"][-1]) for request in llm.requests]
    assert (outcome.status, "canary" in str(seen)) == ("done", False)
    assert ["read" in said for said in seen] == [False, False, True]


@pytest.mark.parametrize("is_link", [False, True])
def test_a_login_that_comes_while_it_runs_ends_the_run(here: Here, is_link: bool) -> None:
    """Codex was told to keep its shells from what was there, which may be what a link leads to."""
    (home := here.root / "home" / ".codex").mkdir()
    if is_link:
        (home / "elsewhere").write_text("{}")
        (home / "auth.json").symlink_to("elsewhere")
    os.mkfifo(here.workspace / "begun")
    steps = [{"shell": "echo > begun; sleep 60"}, {"text": "done"}]
    with FakeLLM(steps) as llm, ThreadPoolExecutor() as threads:
        run = threads.submit(here.engine(llm).run, here.ask("do it"))
        (here.workspace / "begun").read_text()
        (home / "new").write_text("canary-login")
        (home / "new").rename(home / "auth.json")
        outcome = run.result()
    assert (outcome.status, outcome.failure_reason) == ("failed", "engine_unavailable")
    assert outcome.error is not None
    assert outcome.error.endswith(f"{home}/auth.json: a login came, which its shells could read")


def test_what_can_not_be_shut_again_ends_the_run_and_costs_no_attempt(here: Here) -> None:
    repository(here.workspace)
    os.mkfifo(here.workspace / "begun")
    steps = [{"shell": "echo > begun; sleep 60"}, {"text": "it is done"}]
    with FakeLLM(steps) as llm, ThreadPoolExecutor() as threads:
        run = threads.submit(here.engine(llm).run, here.ask("do it"))
        (here.workspace / "begun").read_text()
        (here.workspace / ".git" / "config").unlink()
        outcome = run.result()
    assert (outcome.status, outcome.failure_reason) == ("failed", "engine_unavailable")
    assert outcome.error is not None
    assert outcome.error.endswith(f"{mounts.ENDED} {here.workspace}/.git/config: it is gone")


# ---- nothing lives on


@pytest.mark.fault("codex#27758")
@pytest.mark.parametrize("mode", [*SANDBOXES, "none at all"])
def test_nothing_that_a_worker_starts_outlives_its_run(
    here: Here, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = tag()
    if mode == "none at all":
        mode = "danger-full-access"
        monkeypatch.setattr(sandbox, "find_bwrap", lambda: None)
    line = (
        f"(env -i setsid sleep {name} &) ; (unset MIMIKIT_RUN; setsid nohup sleep {name} "
        f">/dev/null 2>&1 &) ; (env -i setsid setsid sh -c 'sleep {name} & sleep {name}' &) ; "
        "sleep 0.2; echo end"
    )
    _, seen = work(here, line, sandbox=mode)
    assert "end" in seen
    assert alive(name) == []


def test_without_a_sandbox_there_is_none_of_all_this(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the settings allow; else the tests above would prove nothing."""
    monkeypatch.setattr(sandbox, "find_bwrap", lambda: None)
    (here.root / "home" / ".netrc").write_text("canary-of-home")
    repository(here.workspace)
    _, seen = work(here, "cat ~/.netrc; echo x > .git/made", sandbox="danger-full-access")
    assert "canary-of-home" in seen
    assert (here.workspace / ".git" / "made").exists()


# ---- what stands in the place of what codex takes up


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ln -s AGENTS.md AGENTS.md", "AGENTS.md can not be read"),
        ("ln -s AGENTS.override.md AGENTS.override.md; echo x > AGENTS.md", "can not be read"),
        ("ln -s $HOME/.codex/auth.json AGENTS.md", "leads to a file that is closed to agents"),
        ("truncate -s 3G AGENTS.md", "has more than 1 MiB"),
    ],
)
def test_odd_instructions_are_told_and_left_out(here: Here, line: str, said: str) -> None:
    (here.root / "home" / ".codex").mkdir()
    (here.root / "home" / ".codex" / "auth.json").write_text("{}")
    subprocess.run(["/bin/sh", "-c", line], cwd=here.workspace, check=True)
    outcome, seen = work(here, "echo fi''ne")
    assert (outcome.status, "fine" in seen) == ("done", True)
    assert outcome.text.startswith("it is done\n\n")
    assert said in outcome.text
    assert outcome.text.endswith("this run goes without AGENTS.md; mend or remove it")


def test_instructions_are_taken_up_and_nothing_is_said_of_an_empty_folder(here: Here) -> None:
    (here.workspace / "AGENTS.md").write_text("Say canary-word.")
    for _ in range(2):  # where there was no git folder, codex may leave an empty one
        with FakeLLM([{"shell": "true"}, {"text": "it is done"}]) as llm:
            assert here.engine(llm).run(here.ask("do it")).text == "it is done"
            assert "canary-word" in json.dumps(llm.requests)


@pytest.mark.parametrize("proved", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        "ln -s config.toml .codex/config.toml",
        "mkfifo .codex/config.toml",
        "truncate -s 3G .codex/config.toml",
    ],
)
def test_odd_settings_in_the_workspace_cost_no_attempt(here: Here, line: str, proved: bool) -> None:
    with FakeLLM([{"text": "one"}, {"text": "two"}]) as llm:
        engine = here.engine(llm)
        if proved:
            assert engine.run(here.ask("do it")).status == "done"
        (here.workspace / ".codex").mkdir(exist_ok=True)
        subprocess.run(["/bin/sh", "-c", line], cwd=here.workspace, check=True)
        outcome = engine.run(here.ask("do it"))
        assert outcome.failure_reason == "engine_unavailable"
        assert outcome.error is not None
        assert outcome.error.startswith(f"{here.workspace}/.codex/config.toml ")
        assert outcome.error.endswith("mend or remove it")
        (here.workspace / ".codex" / "config.toml").unlink()
        assert engine.run(here.ask("do it")).status == "done"
