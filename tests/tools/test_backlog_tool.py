"""`update_backlog`: what is noted, which item is meant, what is refused."""

from __future__ import annotations

import pytest

from mimikit.config import Settings
from mimikit.protocol.files import Files
from mimikit.tools.reader import RoleReader
from mimikit.tools.session import TellerSession, ToolCaller
from tests.support.memory_disk import MemoryDisk
from tests.support.searching import plain_search
from tests.tools.test_past import NOW

LIST = """# Things

- [ ] buy milk
- [x] buy Bread
* [ ] call Ann about the bread
- [ ] 修好打印机
"""


@pytest.fixture
def files() -> Files:
    made = Files(MemoryDisk())
    made.make_folders()
    made.write("backlog.md", LIST.encode())
    return made


def desk(files: Files) -> TellerSession:
    return TellerSession(
        ToolCaller("turn-1", "trace-1", NOW), RoleReader(files, plain_search(files)), Settings()
    )


def changes(here: TellerSession) -> list[tuple[str, str]]:
    return [(change.action, change.item) for change in here.close().backlog]


def call(here: TellerSession, action: str, item: str | None = None) -> str:
    given = {"action": action} if item is None else {"action": action, "item": item}
    reply = here.call("update_backlog", given)
    return reply.text if reply.ok else f"REFUSED {reply.text}"


def test_the_list_shows_what_is_open_first(files: Files) -> None:
    here = desk(files)
    assert call(here, "list") == (
        "- [ ] buy milk\n- [ ] call Ann about the bread\n- [ ] 修好打印机\n- [x] buy Bread"
    )
    assert changes(here) == []


def test_an_empty_list_is_said_to_be_so() -> None:
    empty = Files(MemoryDisk())
    empty.make_folders()
    assert call(desk(empty), "list") == "nothing"
    assert "it is empty" in call(desk(empty), "done", "milk")


@pytest.mark.parametrize(
    ("action", "given", "meant"),
    [
        ("done", "buy milk", "buy milk"),
        ("done", "MILK", "buy milk"),
        ("remove", "打印机", "修好打印机"),
        ("done", "bread", "call Ann about the bread"),
        ("add", "water the\nplants", "water the\nplants"),
    ],
)
def test_an_item_is_named_by_its_text_or_a_part_only_it_has(
    files: Files, action: str, given: str, meant: str
) -> None:
    here = desk(files)
    assert call(here, action, given) == f"noted, {action}: {' '.join(meant.split())}"
    assert changes(here) == [(action, meant)]


@pytest.mark.parametrize(
    ("action", "given", "said"),
    [
        ("done", "eggs", "expected one of the backlog (buy milk; buy Bread; call Ann"),
        ("remove", "b", "which matches buy milk; buy Bread; call Ann about the bread"),
        ("add", None, "expected what is to be changed, got nothing"),
        ("clear", "milk", "action"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_noted_nowhere(
    files: Files, action: str, given: str | None, said: str
) -> None:
    here = desk(files)
    answer = call(here, action, given)
    assert answer.startswith("REFUSED")
    assert said in answer
    assert changes(here) == []


def test_a_change_of_this_turn_counts_for_the_next(files: Files) -> None:
    here = desk(files)
    call(here, "add", "water the plants")
    call(here, "remove", "milk")
    assert call(here, "done", "plants") == "noted, done: water the plants"
    assert call(here, "done", "milk").startswith("REFUSED")
    assert "- [x] water the plants" in call(here, "list")
    assert "milk" not in call(here, "list")
