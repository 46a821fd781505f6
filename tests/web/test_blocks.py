"""Markdown that grows is cut into blocks that stay, wherever the pieces of it end."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.web import markdown
from mimikit.web.blocks import MarkdownSplitter
from mimikit.web.markdown import render


@pytest.fixture(scope="module", autouse=True)
def unhurried() -> Iterator[None]:
    """Code has its colours however busy the machine is: else the same text would not look so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markdown, "_HIGHLIGHT_S", 60.0)
        yield


LETTER = """# Title

Para one with `code`.
goes on

- a
- b

- c

  more

Next para

```python
def f():

    return 1
```
After the fence, and **a table**:

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

* * *

last 😀 line"""

LINES = st.sampled_from(
    ["", "", "text", "- item", "1. item", "  more", "    code", "> quote", "```", "~~~", "# head",
     "---", "===", "| a | b |", "|---|---|", "*", "+ x", "\t tab", "  ", "[a](https://b.c)",
     "- ```", "  ```"]
)  # fmt: skip


def cut(text: str, seed: int) -> tuple[list[tuple[str, int]], str]:
    """The blocks of a text that comes in pieces, each with where it was known; and the rest."""
    dice, splitter = random.Random(seed), MarkdownSplitter()
    found: list[tuple[str, int]] = []
    at = begin = 0
    while begin < len(text):
        end = begin + dice.choice([1, 1, 2, 5, 40, 400])
        for block in splitter.feed(text[begin:end]):
            at += len(block.text)
            assert at + len(block.known) <= end
            found.append((block.text, at + len(block.known)))
        begin = end
    return found, splitter.rest


def rendered(text: str, seed: int = 0) -> str:
    blocks, rest = cut(text, seed)
    return "".join(render(block) for block, _ in blocks) + render(rest)


def test_a_letter_is_cut_the_same_however_it_comes() -> None:
    whole = cut(LETTER, 0)
    assert all(cut(LETTER, seed) == whole for seed in range(500))
    assert len(whole[0]) == 14


def test_blocks_rendered_one_by_one_are_the_letter_rendered() -> None:
    assert rendered(LETTER) == render(LETTER)


@given(st.lists(LINES, max_size=25).map("\n".join), st.integers(0, 100))
@settings(max_examples=150, deadline=None)
def test_whatever_is_written_its_blocks_are_those_of_the_whole(text: str, seed: int) -> None:
    text = text.lstrip()
    assert cut(text, seed) == cut(text, seed + 1)
    assert rendered(text, seed) == render(text)


@pytest.mark.parametrize(
    "text",
    [
        "a line\n\n" * 4000,
        "- an item\n\n" * 4000,
        "```\n" + "code\n\n" * 8000,
        "> quote\n" * 4000,
        "one long line " * 6000,
        "- ```\n" + "  code\n\n" * 4000,
    ],
    ids=["paragraphs", "a list", "a fence", "a quote", "a line", "a fence in a list"],
)
def test_a_long_reply_is_parsed_about_as_much_as_at_once(text: str) -> None:
    class Counting(MarkdownSplitter):
        parsed = 0

        def _cut(self, upto: int, *, whole_line: bool) -> int:
            cut = super()._cut(upto, whole_line=whole_line)
            self.parsed += upto if self._parsed in (0, upto) else 0
            return cut

    splitter = Counting()
    for begin in range(0, len(text), 30):
        for _ in splitter.feed(text[begin : begin + 30]):
            pass
    assert splitter.parsed < 12 * len(text)
