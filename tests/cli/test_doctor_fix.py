"""`mimikit doctor --fix`: what it mends, what it leaves to its user, and what it never touches."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mimikit import app
from mimikit.cli import checks, state_checks
from mimikit.cli.checks import Finding
from mimikit.clock import SystemClock
from mimikit.protocol import paths, schema
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task
from mimikit.protocol.results import StatusCheckpoint
from mimikit.state import State, make_search, open_state
from mimikit.tasks.ledger import Ledger
from tests.cli.conftest import Cli

NOW = SystemClock().now()
DEAD = "99999999-1-deadbeef-abc"
"""A writer that lives no more."""
OLD = (1, 1)


@pytest.fixture
def state(cli: Cli, tmp_path: Path) -> Path:
    assert cli("init").exit_code == 0
    return tmp_path / ".mimikit"


@pytest.fixture
def opened(state: Path) -> Iterator[State]:
    found = open_state(state, state.parent)
    yield found
    found.files.fs.close()  # pyright: ignore[reportAttributeAccessIssue]


def ended(files: Files, *ids: str) -> None:
    """Ends of tasks, as the consumer writes them down; the index tells of them."""
    book = Ledger(files)
    book.load()
    for id_ in ids:
        facts: dict[str, Any] = {"status": "done", "completedAt": NOW, "traceId": "t"}
        book.write("ended", id_, NOW, seat="worker", **facts)
    book.checkpoint()


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and folder with its mode and bytes."""
    return {
        str(path.relative_to(folder)): (
            stat.S_IMODE(path.lstat().st_mode),
            path.read_bytes() if path.is_file() else b"",
        )
        for path in folder.rglob("*")
    }


# ---- one by one: the finding, what its fix does, and that then there is none


def leave_a_half_made_file(state: Path) -> Path:
    folder = state / "backups" / "2026-from-1"
    folder.mkdir(parents=True, mode=0o700)
    left = folder / f".tmp-{DEAD}"
    left.write_text("{")
    os.utime(left, OLD)
    return left


def leave_an_import(state: Path) -> Path:
    left = state.with_name(f".mimikit-import-{DEAD}")
    (left / "inbox").mkdir(parents=True)
    return left


def leave_a_reason(state: Path) -> Path:
    left = state / paths.CORRUPT / "ab-x.json.reason.txt"
    left.write_text("inbox/x.json\nnot JSON\n")
    os.utime(left, OLD)
    return left


@pytest.mark.parametrize("leave", [leave_a_half_made_file, leave_an_import, leave_a_reason])
def test_what_is_left_of_the_dead_is_removed(
    state: Path, opened: State, leave: Callable[[Path], Path]
) -> None:
    def found() -> list[Finding]:
        looks = state_checks.leftovers(state, opened.files, NOW)
        return [*looks, *state_checks.unreadable(state, opened.files, NOW)]

    assert found() == []
    left = leave(state)
    (finding,) = found()
    assert (finding.level, left.name in finding.text) == ("note", True)
    assert finding.fix is not None
    finding.fix()
    assert not left.exists()
    assert found() == []


def test_what_somebody_writes_just_now_is_left_to_them(state: Path, opened: State) -> None:
    own = opened.files._temp_owner
    (state / "inbox" / f".tmp-{own}-abc").write_text("{")
    os.utime(state / "inbox" / f".tmp-{own}-abc", OLD)
    (state / paths.CORRUPT / "ab-x.json.reason.txt").write_text("inbox/x.json\nnot JSON\n")
    assert [*state_checks.leftovers(state, opened.files, NOW)] == []
    assert [*state_checks.unreadable(state, opened.files, SystemClock().now())] == []


def test_what_was_set_aside_stays_and_the_line_that_puts_it_back_is_told(
    state: Path, opened: State
) -> None:
    opened.files.write("inbox/m 1.json", b"{")
    opened.files.quarantine("inbox/m 1.json", "not JSON")
    (found,) = state_checks.unreadable(state, opened.files, NOW)
    (kept,) = (one for one in (state / "corrupt").iterdir() if not one.name.endswith(".txt"))
    assert found.fix is None
    assert f"`mv {kept} '{state}/inbox/m 1.json'`" in (found.mend or "")


def test_rights_are_closed_and_a_script_can_still_be_run(state: Path, opened: State) -> None:
    script, token = state / "skills" / "one" / "run.sh", state / paths.TOKEN
    script.parent.mkdir(mode=0o755)
    for path, mode in ((script, 0o755), (token, 0o644)):
        path.write_text("x")
        path.chmod(mode)
    (found,) = (f for f in state_checks.inside(state, opened.files) if f.area == "rights")
    assert "3 files and folders are open to others" in found.text
    assert found.fix is not None
    found.fix()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (script.parent, script, token)]
    assert modes == [0o700, 0o700, 0o600]
    assert {f.level for f in state_checks.inside(state, opened.files)} == {"ok"}


def test_a_file_in_a_folders_place_is_set_aside_and_a_link_is_its_users_matter(
    state: Path, opened: State, tmp_path: Path
) -> None:
    (state / "pages").rmdir()
    (state / "pages").write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (state / "runs").rmdir()
    (state / "runs").symlink_to(tmp_path / "elsewhere")
    found = {f.text: f for f in state_checks.inside(state, opened.files) if f.area == "folders"}
    assert found["expected a folder at runs, got something else"].fix is None
    fix = found["expected a folder at pages, got a file"].fix
    assert fix is not None
    fix()
    assert (state / "pages").is_dir()
    (kept,) = (state / "corrupt").glob("*-pages")
    assert kept.read_text() == "mine"
    assert (state / "runs").is_symlink()


DAMAGED = {
    "cut short": b'{"schemaVersion": 1, "entr',
    "ahead of its ledger": StatusCheckpoint(
        ledger_file=f"{NOW:%Y-%m}.jsonl", ledger_offset=10**6
    ).to_json(),
}


@pytest.mark.fault("i")
@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_the_index_of_ends_is_made_anew_from_the_ledger(opened: State, data: bytes) -> None:
    ended(opened.files, "t1", "t2")
    assert [*state_checks.remade(opened)] == []
    opened.files.write(paths.TASK_STATUS, data)
    (found,) = state_checks.remade(opened)
    assert (found.area, found.alone) == ("ledger", True)
    assert found.fix is not None
    found.fix()
    made = opened.files.peek(paths.TASK_STATUS, StatusCheckpoint)
    assert made is not None
    assert sorted(made.entries) == ["t1", "t2"]
    assert [*state_checks.remade(opened)] == []
    (kept,) = (opened.path / "corrupt").glob("*.json")
    assert kept.read_bytes() == data


@pytest.mark.parametrize("how", ["unreadable", "half made"])
def test_the_index_of_memory_is_made_anew_from_the_files(opened: State, how: str) -> None:
    opened.files.write(paths.MEMORY, b"- the key is under the blue pot\n")
    search = make_search(opened)
    search.refresh()
    assert [*state_checks.remade(opened)] == []
    folder = opened.path / "cache" / "search"
    if how == "unreadable":
        (folder / "manifest.json").write_text("{")
    else:
        (folder / "unfinished").touch()
    (found,) = state_checks.remade(opened)
    assert (found.area, found.alone) == ("search", True)
    assert found.fix is not None
    found.fix()
    assert [*state_checks.remade(opened)] == []
    assert [hit.source for hit in make_search(opened).find("blue pot")] == [paths.MEMORY]


@pytest.mark.parametrize("path", [paths.CONSUMER_HOLDER, paths.RUNTIME, paths.SCHEMA])
def test_a_hint_that_can_not_be_read_is_set_aside(opened: State, path: str) -> None:
    opened.files.write(path, b'{"pid": "x')
    (found,) = state_checks.remade(opened)
    assert (found.area, found.alone, path in found.text) == ("records", True, True)
    assert found.fix is not None
    found.fix()
    assert not opened.files.exists(path)
    assert [*state_checks.remade(opened)] == []


@pytest.mark.fault(25)
def test_what_the_next_start_will_rewrite_is_told(
    opened: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "STEPS", (schema.MigrationStep(to=2), schema.MigrationStep(to=3)))
    monkeypatch.setattr(schema, "STATE_SCHEMA", 3)
    (found,) = checks.start(opened)
    assert (found.level, found.fix) == ("note", None)
    assert found.text == "an older mimikit wrote the state: version 1 of 3"
    assert "as it was it stays in backups/" in (found.mend or "")


# ---- as a whole


def spoil(state: Path, opened: State) -> set[str]:
    """A little of everything; gives the areas of what is found then."""
    ended(opened.files, "t1")
    opened.files.write(paths.TASK_STATUS, b"{")
    opened.files.write(paths.CONSUMER_HOLDER, b"{")
    task = Task(id="t2", prompt="x", created_at=NOW, trace_id="r", origin="cli")
    opened.files.save(paths.queued("worker", "t2"), task)
    (state / "usage" / "months").rmdir()
    (state / "inbox").chmod(0o755)
    state.chmod(0o755)
    (state.parent / ".git").mkdir()
    (state / ".gitignore").unlink()
    leave_a_half_made_file(state)
    leave_a_reason(state)
    return {"ledger", "records", "folders", "rights", "state", "git", "leftovers", "corrupt"}


def report(cli: Cli, *options: str) -> tuple[int, dict[str, Any]]:
    result = cli("doctor", "--json", *options)
    return result.exit_code, json.loads(result.stdout)


def fixable(told: dict[str, Any]) -> set[str]:
    return {finding["area"] for finding in told["findings"] if finding["fixable"]}


def test_it_tells_first_mends_each_once_and_finds_nothing_the_second_time(
    cli: Cli, state: Path, opened: State
) -> None:
    spoiled = spoil(state, opened)
    before = tree(state)
    code, told = report(cli)
    assert (code, fixable(told) >= spoiled, told["mended"]) == (1, True, [])
    assert tree(state) == before
    code, told = report(cli, "--fix")
    assert (code, len(told["mended"]), told["notMended"]) == (0, len(spoiled), [])
    assert fixable(told) == set()
    mended = tree(state)
    lost = {path for path in before.keys() - mended.keys() if ".tmp-" not in path}
    assert lost == {"consumer.json", "corrupt/ab-x.json.reason.txt"}
    assert mended["worker/queue/t2.json"] == before["worker/queue/t2.json"]
    code, told = report(cli, "--fix")
    assert (code, told["mended"], told["notMended"]) == (0, [], [])
    assert tree(state) == mended


def test_while_a_consumer_runs_its_indexes_are_left_alone_and_that_is_said(
    cli: Cli, state: Path, opened: State
) -> None:
    ended(opened.files, "t1")
    (state / "inbox").chmod(0o755)
    lock = app.take_consumer_lock(opened)
    opened.files.write(paths.TASK_STATUS, b"{")
    try:
        result = cli("doctor", "--fix")
    finally:
        lock.release()
    assert result.exit_code == 1
    assert "Not mended: " in result.stderr
    assert "is its consumer" in result.stderr
    assert "does it, while no consumer runs" in result.stdout
    assert (state / paths.TASK_STATUS).read_bytes() == b"{"
    assert stat.S_IMODE((state / "inbox").stat().st_mode) == 0o700


@pytest.mark.fault(24)
def test_a_state_of_a_newer_version_is_mended_by_nobody_here(
    cli: Cli, state: Path, opened: State
) -> None:
    spoil(state, opened)
    opened.files.write(paths.SCHEMA, b'{"schemaVersion": 99, "ofThen": true}')
    before = tree(state)
    code, told = report(cli, "--fix")
    assert (code, fixable(told), told["mended"]) == (1, set(), [])
    assert any("use the newer mimikit" in one["text"] for one in told["findings"])
    assert tree(state) == before


def test_what_can_not_be_mended_is_told_and_the_rest_is_mended(
    cli: Cli, state: Path, tmp_path: Path
) -> None:
    (state / "usage" / "months").rmdir()
    (state / "usage").rmdir()
    (tmp_path / "elsewhere").mkdir()
    (state / "usage").symlink_to(tmp_path / "elsewhere")
    (state / "inbox").chmod(0o755)
    code, told = report(cli, "--fix")
    assert code == 1
    assert [one.endswith(": it is still so") for one in told["notMended"]] == [True]
    assert "usage/months" in told["notMended"][0]
    assert len(told["mended"]) == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []
