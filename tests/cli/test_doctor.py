"""`mimikit init`, `status`, `token` and `doctor`: what they show, find and repair."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
import tomllib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mimikit import config
from mimikit.cli import doctor, up
from mimikit.clock import SystemClock
from mimikit.config import Settings, known_keys
from mimikit.protocol import paths
from mimikit.protocol.models import EngineStatus, Question
from mimikit.protocol.runtime import Health
from mimikit.sandbox.worker import WorkerSandbox
from mimikit.state import open_state
from mimikit.supervisor import consumer_lock
from tests.cli.conftest import Cli

NOW = SystemClock().now()
PLAIN = EngineStatus(engine="builtin", reason="codex: not there")


@pytest.fixture(autouse=True)
def no_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the sandbox check, which starts processes."""
    others = [check for check in doctor.CHECKS if check is not doctor.sandbox]
    monkeypatch.setattr(doctor, "CHECKS", others)


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


def test_init_keeps_existing_files(cli: Cli, state: Path) -> None:
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
    text = "max_concurrency = 5\r\n[web]\r\nport = 9000\r\n"  # as editors of Windows write it
    (state / "config.toml").write_text(text, "utf-8-sig", newline="")
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


# ---- the box


@pytest.mark.parametrize(
    ("mode", "reason", "told"),
    [
        ("on", None, [("sandbox", "ok")]),
        ("off", None, [("sandbox", "warning")]),
        ("on", "expected bubblewrap", [("sandbox", "warning")]),
    ],
)
def test_the_state_of_the_sandbox_is_reported(
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    reason: str | None,
    told: list[tuple[str, str]],
) -> None:
    monkeypatch.setenv("MIMIKIT_SANDBOX__MODE", mode)
    monkeypatch.setattr(WorkerSandbox, "unavailable", lambda _box: reason)
    monkeypatch.setattr(WorkerSandbox, "why_unsafe", lambda *_: None)
    opened = open_state(state, state.parent, create=False)
    found = [(found.area, found.level) for found in doctor.sandbox(opened) if found.level != "note"]
    assert found == told


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
    """Write a heartbeat of a consumer on another machine, which is judged by its age."""
    now = SystemClock().now()
    health = Health(
        pid=1,
        version="0",
        started_at=now - timedelta(hours=2),
        beat_at=now - timedelta(seconds=age_s),
        **facts,
    )
    (state / paths.HEALTH).write_bytes(health.to_json())


def test_status_fits_one_screen(cli: Cli, state: Path) -> None:
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
        "none  paused: `mimikit resume` lets them go on",
        "No model connected. Connect one: `mimikit engine add`",
        "Which colour?",
        "[1] red  [2] blue",
        "1 file quarantined as unreadable: see `mimikit doctor`",
    ):
        assert piece in text
    assert "\x1b" not in text
    assert len(text.splitlines()) <= 24


# ---- doctor -----------------------------------------------------------------------------------


def test_a_fresh_folder_is_in_order(cli: Cli, state: Path) -> None:
    result = cli("doctor")
    assert result.exit_code == 0
    assert "✗" not in result.stdout
    assert findings(cli, "mimikit")[0]["mend"] == "`mimikit up` starts it"


def test_no_folder_is_found_and_made(cli: Cli, tmp_path: Path) -> None:
    result = cli("doctor")
    assert result.exit_code == 1
    assert "`mimikit init` makes one (`mimikit doctor --fix` does it)" in result.stdout
    assert cli("doctor", "--fix").exit_code == 0
    assert (tmp_path / ".mimikit" / "inbox").is_dir()


def test_open_rights_and_missing_folders_are_mended(cli: Cli, state: Path) -> None:
    state.chmod(0o755)
    (state / "corrupt").rmdir()
    result = cli("doctor")
    assert result.exit_code == 1
    for piece in ("got 0755", "chmod 700", "got none at corrupt"):
        assert piece in result.stdout
    mended = cli("doctor", "--fix")
    assert mended.exit_code == 0, mended.output
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert (state / "corrupt").is_dir()


def test_bad_settings_are_a_finding_not_the_end_of_the_examination(cli: Cli, state: Path) -> None:
    (state / "config.toml").write_text("durabilty = 'fast'\n")
    result = cli("doctor")
    assert result.exit_code == 1
    assert "did you mean durability?" in result.stdout
    assert "python" in result.stdout


def test_quarantined_files_are_listed_with_their_reason(cli: Cli, state: Path) -> None:
    (state / "corrupt" / "ab-inbox_x.json").write_text("{")
    (state / "corrupt" / "ab-inbox_x.json.reason.txt").write_text("inbox/x.json\nnot JSON\n")
    (found,) = findings(cli, "corrupt")
    assert found["text"] == "inbox/x.json: not JSON"
    assert "corrupt/ab-inbox_x.json" in found["mend"]


@pytest.mark.parametrize(
    "make", [Path.mkdir, lambda path: path.write_bytes("You are".encode("utf-16"))]
)
def test_an_unreadable_template_is_replaced_by_the_shipped_one(
    cli: Cli, state: Path, make: Callable[[Path], object]
) -> None:
    make(state / "prompts" / "teller.md")
    told = findings(cli, "prompts")
    assert [finding["level"] for finding in told] == ["warning"]
    assert "prompts/teller.md" in told[0]["text"]
    assert "the shipped one is used" in told[0]["text"]
    assert "broken" not in {finding["level"] for finding in findings(cli, "mimikit")}


def test_a_configured_engine_that_is_unavailable_is_broken(
    cli: Cli, state: Path, tmp_path: Path
) -> None:
    (state / "config.toml").write_text(
        f'[roles.teller]\nengine = "codex"\n[codex]\npath = "{tmp_path}/no-codex"\n'
    )
    levels = {finding["level"] for finding in findings(cli, "models")}
    assert "broken" in levels
    assert cli("doctor").exit_code == 1


def test_a_lock_held_by_a_program_that_is_no_consumer_is_found(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_lock, "MAX_LOOKS", 1)
    with (state / "consumer.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (found,) = findings(cli, "mimikit")
    assert found["level"] == "broken"
    assert "is locked by a program that is not mimikit" in found["text"]


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("history.json", '{"schemaVersion": 99, "messages": []}', "use the newer mimikit"),
        ("prompts/planner.md", "{{nobody}}", "expected placeholders among"),
        ("config.toml", "[limits", "config.toml"),
    ],
    ids=["a newer state", "a template", "the settings"],
)
def test_errors_that_end_a_consumer_at_start_are_found(
    cli: Cli, state: Path, path: str, content: str, said: str
) -> None:
    (state / path).write_text(content)
    result = cli("doctor", "--json")
    assert result.exit_code == 1
    found = [f["text"] for f in json.loads(result.stdout)["findings"] if f["level"] == "broken"]
    assert any(said in text for text in found), found


def test_a_folder_that_cannot_be_written_to_is_found(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, access = state / "worker" / "queue", os.access
    monkeypatch.setattr(
        doctor.os, "access", lambda path, mode: path != closed and access(path, mode)
    )
    (found,) = findings(cli, "folders")
    assert (found["level"], found["text"].endswith(f"at {closed}")) == ("broken", True)


@pytest.mark.parametrize(("free_mb", "level"), [(10, "broken"), (100, "warning"), (900, "ok")])
def test_a_disk_that_is_nearly_full_is_found(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch, free_mb: int, level: str
) -> None:
    usage = SimpleNamespace(free=free_mb * 2**20)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _path: usage)
    (found,) = findings(cli, "disk")
    assert found["level"] == level


def test_a_port_that_another_program_has_is_found(cli: Cli, state: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        (state / "config.toml").write_text(f"[web]\nport = {other.getsockname()[1]}\n")
        (found,) = findings(cli, "port")
    assert (found["level"], "to be free" in found["text"]) == ("warning", True)


def contents(state: Path) -> dict[Path, tuple[int, int]]:
    """Every file and folder with its time and size."""
    found = [state, *state.rglob("*")]
    return {path: (path.lstat().st_mtime_ns, path.lstat().st_size) for path in found}


@pytest.mark.parametrize("lived", [False, True], ids=["fresh", "used"])
def test_doctor_writes_nothing(cli: Cli, state: Path, *, lived: bool) -> None:
    if lived:
        assert cli("enqueue", "paint").exit_code == 0
        (state / "huey").rmdir()
        (state / "consumer.lock").touch()
    before = contents(state)
    assert cli("doctor").exit_code == int(lived), "a folder is missing"
    assert contents(state) == before


# ---- the time zone


@pytest.mark.parametrize(
    ("variable", "timezone", "localtime", "zone"),
    [
        ("Asia/Tokyo", "Europe/Berlin", None, "Asia/Tokyo"),
        ("CST-8", None, None, "Etc/GMT-8"),
        ("EST5EDT,M3.2.0,M11.1.0", None, None, None),
        ("", "Europe/Berlin\n", None, "Europe/Berlin"),
        ("", None, "Asia/Kolkata", "Asia/Kolkata"),
        ("", None, None, None),
    ],
)
def test_the_zone_of_the_machine_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    timezone: str | None,
    localtime: str | None,
    zone: str | None,
) -> None:
    """`localtime` is a plain file with the content of that zone's, as containers have it."""
    monkeypatch.setenv("TZ", variable)
    if timezone:
        (tmp_path / "timezone").write_text(timezone)
    if localtime:
        (tmp_path / "localtime").write_bytes(Path("/usr/share/zoneinfo", localtime).read_bytes())
    assert config.find_system_zone(tmp_path) == zone


def test_a_machine_without_a_zone_is_told_so(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "find_system_zone", lambda: None)
    (finding,) = findings(cli, "time zone")
    assert "UTC is assumed" in finding["text"]
    (state / "config.toml").write_text('timezone = "Asia/Shanghai"\n')
    assert findings(cli, "time zone") == []
