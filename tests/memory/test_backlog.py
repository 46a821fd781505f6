"""The backlog is changed item by item; the rest of the user's file is unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.errors import Conflict
from mimikit.memory import notes
from mimikit.memory.notes import backlog_items, changed_backlog
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from tests.support.memory_disk import MemoryDisk

BOM = "\ufeff"
FILE = """\
# Backlog

What is *left*.

- [ ] sweep <!-- b-1 -->
  under the bed, too
* [x] cook
    - [X] buy   rice
1. [ ] 打扫厨房
- a plain point
- [] none
- [ ]none

```sh
- [ ] code
```
<!--
- [ ] away
-->
> - [ ] quoted

Thanks.
"""


def names(text: str) -> list[tuple[str, bool]]:
    return [(item.text, item.done) for item in backlog_items(text)]


def test_every_kind_of_checkbox_is_an_item() -> None:
    assert names(FILE) == [
        ("sweep", False),
        ("cook", True),
        ("buy rice", True),
        ("打扫厨房", False),
        ("quoted", False),
    ]
    assert [FILE.split("\n")[item.line - 1] for item in backlog_items(FILE)][
        2
    ] == "    - [X] buy   rice"


@pytest.mark.parametrize(
    ("action", "item", "old", "new"),
    [
        ("done", "sweep", "- [ ] sweep <!-- b-1 -->", "- [x] sweep <!-- b-1 -->"),
        ("undone", "cook", "* [x] cook", "* [ ] cook"),
        ("add", " cook\n", "* [x] cook", "* [ ] cook"),
        ("done", "打扫厨房", "1. [ ] 打扫厨房", "1. [x] 打扫厨房"),
        ("remove", "cook", "* [x] cook\n", ""),
        ("add", "new", "> - [ ] quoted\n", "> - [ ] quoted\n- [ ] new\n"),
    ],
)
def test_a_change_touches_the_lines_of_its_item_alone(action, item, old, new) -> None:
    assert changed_backlog(FILE, action, item) == FILE.replace(old, new)


@pytest.mark.parametrize("action", ["done", "undone", "remove"])
@pytest.mark.parametrize("item", ["code", "away", "none", "a plain point", "nobody's", "", " \n"])
def test_unknown_items_change_nothing(action, item: str) -> None:
    assert changed_backlog(FILE, action, item) == FILE


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("", "- [ ] new\n"),
        ("# Backlog", "# Backlog\n\n- [ ] new\n"),
        ("- [ ] a\n\n## Later\n", "- [ ] a\n- [ ] new\n\n## Later\n"),
        ("- [ ] a\r\n\r\nEnd\r\n", "- [ ] a\r\n- [ ] new\r\n\r\nEnd\r\n"),
        ("- [ ] a\n```\n\nx\n```\nend\n", "- [ ] a\n```\n\nx\n```\n- [ ] new\nend\n"),
        ("```\nnever closed\n", "- [ ] new\n```\nnever closed\n"),
        ("\ufeff# Backlog\n", "\ufeff# Backlog\n\n- [ ] new\n"),
    ],
)
def test_a_new_item_stands_after_the_last_one(text: str, new: str) -> None:
    assert changed_backlog(text, "add", "new") == new


lines = st.sampled_from(
    [
        *("- [ ] a", "- [x] a", "* [X]  b", "  - [ ] a <!-- i -->", "1) [ ] b", "> - [x] c"),
        *(
            "", "text", "```", "````", "~~~", "<!--", "-->", "# h", "  more", "\t", "- [ ] ",
            "\ufeff",
        ),
    ]
) | st.text(max_size=12)  # fmt: skip
files_ = st.lists(lines, max_size=12).map("\n".join) | st.lists(lines).map("\r\n".join)
item_texts = st.sampled_from(
    ["a", "b", "- [ ] a", "<!-- x -->", "```", "a <!-- b", "\ud800", "\x00a"]
)
all_items = item_texts | st.text(max_size=12)
actions: Any = st.sampled_from(["add", "done", "undone", "remove"])


@given(text=files_, action=actions, item=all_items)
def test_a_change_is_idempotent(text: str, action: Any, item: str) -> None:
    name = notes.plain_item(item)
    after = changed_backlog(text, action, item)
    assert changed_backlog(after, action, item) == after
    if not name:
        assert after == text
        return
    mine = [it.done for it in backlog_items(after) if it.text == name]
    was = [it.done for it in backlog_items(text) if it.text == name]
    if action == "add":
        assert mine
        assert not any(mine)
    elif action == "remove":
        assert mine == []
    else:
        assert mine == [action == "done"] * len(was)


@given(text=files_, action=actions, item=all_items)
def test_a_change_keeps_every_other_line(text: str, action: Any, item: str) -> None:
    name = notes.plain_item(item)
    after_text = changed_backlog(text, action, item)
    assert after_text.startswith(BOM) == text.startswith(BOM)
    before, after = _without(name, text), _without(name, after_text)
    if action == "add" and name and not any(it.text == name for it in backlog_items(text)):
        # A new line at most, an empty one before it and the end of the last.
        assert [line for line in after if line.strip()] == [line for line in before if line.strip()]
    else:
        assert after == before or (after == [""] and before == [])


def _without(name: str, text: str) -> list[str]:
    """The lines of a text without those of the item, and without a BOM."""
    own = {it.line for it in backlog_items(text) if it.text == name}
    lines = text.removeprefix(BOM).split("\n")
    return [line for number, line in enumerate(lines, 1) if number not in own]


@pytest.fixture
def files() -> Files:
    made = Files(MemoryDisk())
    made.make_folders()
    return made


def test_a_change_of_an_older_list_is_refused(files: Files) -> None:
    old = notes.change_backlog(files, "add", "a")
    files.write(paths.BACKLOG, b"\xef\xbb\xbf- [ ] a\r\n- [ ] b\xff\r\n")
    with pytest.raises(Conflict, match="changed meanwhile"):
        notes.change_backlog(files, "done", "a", old.hash)
    now = notes.load_backlog(files)
    assert [item.done for item in notes.change_backlog(files, "done", "a", now.hash).items] == [
        True,
        False,
    ]
    assert files.read(paths.BACKLOG) == b"\xef\xbb\xbf- [x] a\r\n- [ ] b\xff\r\n"
