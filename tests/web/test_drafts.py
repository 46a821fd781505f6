"""A reply is rendered block by block while it streams, each block once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from mimikit.language.drafts import DraftSplitter
from mimikit.language.plain_text import utf16_length
from mimikit.web import markdown
from mimikit.web.markdown import render
from tests.web.conftest import live_run

FENCE = "```python\ndef f():\n\n    return 1\n```\n"
LETTER = f"""# Title

Para with `code`.
goes on

- a
- b

- c

  more

Next:
{FENCE}After it:

| a | b |
|---|---|
| 1 | 2 |

> quote
lazy

> other

1. one

2. two

       code?

Setext
===

    indented

    code

~~~~
``` inside

~~~
~~~~

***

last 😀 line"""
LINES = (
    *("", "", "text", "- item", "1. item", "  more", "    code", "> quote", "```", "~~~"),
    *("# head", "---", "===", "| a | b |", "|---|---|", "*", "\t tab", "  ", "x\r", "**中文😀**"),
)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is coloured however busy the machine is."""
    monkeypatch.setattr(markdown, "_HIGHLIGHT_S", 60.0)


def pieces(text: str, sizes: list[int], seed: int = 0) -> Iterator[str]:
    dice = random.Random(seed)
    while text:
        size = dice.choice(sizes)
        yield text[:size]
        text = text[size:]


def cut(parts: Iterator[str]) -> tuple[list[str], str]:
    splitter, text, blocks = DraftSplitter(), "", list[str]()
    for part in parts:
        text += part
        if block := splitter.feed(part):
            assert block[0] == utf16_length("".join(blocks))
            blocks.append(block[1])
    return blocks, text.replace("\r", " ")[len("".join(blocks)) :]


def test_a_text_cut_anywhere_gives_the_same_blocks() -> None:
    blocks, rest = cut(pieces(LETTER, [1]))
    assert (len(blocks), rest.strip()) == (13, "last 😀 line")
    for at in range(len(LETTER)):
        whole, left = cut(iter([LETTER[:at], LETTER[at:]]))
        assert ("".join(whole), left) == ("".join(blocks), rest)


@pytest.mark.parametrize("seed", range(40))
def test_blocks_rendered_one_by_one_are_the_whole_text_rendered(seed: int) -> None:
    text = "\n".join(random.Random(seed).choices(LINES, k=15)) if seed else LETTER
    text = text.replace("\r", " ")
    blocks, rest = cut(pieces(text, [1, 2, 5, 40], seed))
    assert "".join(blocks) + rest == text
    assert "".join(map(render, blocks)) + render(rest) == render(text)


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("para", 0), ("para\n", 0), ("para\n\n", 1), ("para\n---", 0), ("para\n- item\n", 0),
        ("- a\n\n", 0), ("- a\n\n-", 0), ("- a\n\nt\n", 1), ("- a\n\n9. b\n", 0), ("- a\n```\n", 0),
        ("| a |\n|---|\n| 1 |\n", 0), ("| a |\n|---|\n| 1 |\n\n", 1), ("    code\n\n", 0),
        (FENCE[:-1], 0), (FENCE, 1), (f"x\n{FENCE}", 1), (FENCE[:-5], 0), ("[a]: http://b.c\n", 0),
    ],
)  # fmt: skip
def test_a_block_is_complete_once_nothing_can_change_it(text: str, completed: int) -> None:
    assert len(cut(pieces(text, [1]))[0]) == len(cut(iter([text]))[0]) == completed


def test_pages_get_each_block_once_wherever_they_come_in(web) -> None:
    web.beat(live=[live_run("turn-1", "teller")])
    cursors: list[str] = []
    drafts_seen: list[dict[str, Any]] = []
    end = 0
    for attempt in ("Another\n\ntext.\n\n" + LETTER, LETTER):
        end, splitter = 0, DraftSplitter()
        web.feed.publish("delta", turnId="turn-1", text="", offset=0, reset=True)
        for part in pieces(attempt, [7, 60]):
            snapshot = web.get("/api/snapshot")
            cursors.append(snapshot["cursor"])
            drafts_seen.append(snapshot["draft"])
            block = splitter.feed(part)
            blocks = [block] if block else []
            web.feed.publish("delta", turnId="turn-1", text=part, offset=end, blocks=blocks)
            end += utf16_length(part)
            web.get("/api/changes", since=cursors[-1])
    blocks, _ = cut(pieces(LETTER, [7, 60]))
    for cursor, draft in zip(cursors, drafts_seen, strict=True):
        seen = {(b["start"], b["html"]) for b in draft["blocks"]}
        count, at = len(seen), draft["end"]
        for change in web.get("/api/changes", since=cursor)["events"]:
            if change["kind"] == "status":
                continue
            if change["offset"] == 0:
                seen, count, at = set[Any](), 0, 0
            assert change["offset"] == at
            at += utf16_length(change["text"])
            seen |= {(b["start"], b["html"]) for b in change["blocks"]}
            count += len(change["blocks"])
        assert (at, len(seen), count) == (end, len(blocks), len(blocks))
        assert [html for _, html in sorted(seen)] == [render(block) for block in blocks]
