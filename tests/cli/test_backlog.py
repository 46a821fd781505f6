"""`mimikit backlog`: list and change items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli


def items(cli: Cli, *options: str) -> list[tuple[str, bool]]:
    result = cli("backlog", "list", "--json", *options)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return [(item["text"], item["done"]) for item in found["items"]]


@pytest.fixture
def listed(cli: Cli, tmp_path: Path) -> Path:
    cli("init")
    path = tmp_path / ".mimikit" / "backlog.md"
    path.write_text("# Mine\n\n- [ ] buy milk\n- [x] buy Bread\n\nSome text.\n* [ ] 7\n")
    return path


def test_items_are_added_ticked_opened_and_removed(cli: Cli, listed: Path) -> None:
    assert cli("backlog", "add", "water", "the", "plants").stdout == (
        "On the backlog: water the plants\n"
    )
    assert cli("backlog", "done", "plants").stdout == "Done: water the plants\n"
    assert ("water the plants", True) in items(cli)
    assert cli("backlog", "undone", "water the plants").stdout == "Open again: water the plants\n"
    assert ("water the plants", False) in items(cli)
    assert cli("backlog", "remove", "buy bread").stdout == "Off the backlog: buy Bread\n"
    assert [text for text, _ in items(cli)] == ["buy milk", "7", "water the plants"]
    assert listed.read_text().startswith("# Mine\n\n- [ ] buy milk\n\nSome text.\n* [ ] 7\n")


@pytest.mark.usefixtures("listed")
def test_an_item_is_named_by_its_number_unless_that_is_its_text(cli: Cli) -> None:
    assert cli("backlog", "done", "1").stdout == "Done: buy milk\n"
    assert cli("backlog", "done", "7").stdout == "Done: 7\n"
    assert cli("backlog", "remove", "3").stdout == "Off the backlog: 7\n"
    assert cli("backlog", "remove", "3").exit_code == 2
    refused = cli("backlog", "add", "\udcc4\udce3")
    assert (refused.exit_code, "expected text in UTF-8" in refused.stderr) == (2, True)


@pytest.mark.usefixtures("listed")
def test_the_list_is_shown_with_numbers_that_can_be_used(cli: Cli) -> None:
    text = cli("backlog", "list").stdout
    assert [line.split(maxsplit=2) for line in text.splitlines()[1:]] == [
        ["1", "open", "buy milk"],
        ["2", "done", "buy Bread"],
        ["3", "open", "7"],
    ]
    assert "buy Bread" not in cli("backlog", "list", "--open").stdout
    assert items(cli, "--open") == [("buy milk", False), ("7", False)]


def test_an_empty_list_suggests_a_first_command(cli: Cli) -> None:
    cli("init")
    assert "`mimikit backlog add TEXT`" in cli("backlog", "list").stdout
    assert items(cli) == []
    result = cli("backlog", "done", "x")
    assert result.exit_code == 2
    assert "which is empty" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add"], "expected TEXT..., got nothing"),
        (["add", "x" * 2001], "got 2001 characters"),
        (["done", "eggs"], "expected one of the backlog (buy milk; buy Bread; 7), got 'eggs'"),
        (["remove", "buy"], "which matches buy milk; buy Bread"),
    ],
)
def test_a_wrong_call_is_reported_in_one_line_and_changes_nothing(
    cli: Cli, listed: Path, arguments: list[str], said: str
) -> None:
    before = listed.read_text()
    result = cli("backlog", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert listed.read_text() == before


def test_chat_and_command_share_one_backlog(on_busy: Cli) -> None:
    assert "putting it on the backlog" in on_busy("chat", "add walk the dog to my backlog").stdout
    assert "已记到待办清单" in on_busy("chat", "把買牛奶加到待辦清單").stdout
    assert items(on_busy) == [("walk the dog", False), ("買牛奶", False)]
    assert "ticking it off" in on_busy("chat", "backlog done dog").stdout
    assert "expected one of the backlog" in on_busy("chat", "backlog remove: eggs").stdout
    assert "已从待办清单里删除：買牛奶" in on_busy("chat", "从待办里删除买牛奶").stdout
    assert items(on_busy) == [("walk the dog", True)]
    assert "- [x] walk the dog" in on_busy("chat", "待办").stdout
