"""The plain search for when the index has nothing or is not there: words as they stand. Pure.

It also finds what no index of words has: a part of a word, a stop word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mimikit.memory.corpus import Window
from mimikit.memory.passages import Passage
from mimikit.memory.ranking import Match
from mimikit.memory.text import folded, has_wide, terms

_MOST = 32


def wanted(query: str) -> list[str]:
    """The words to look for, in lower case: those that say something, else all."""
    words = [word for word in folded(query).split() if terms(word)] or folded(query).split()
    parts = [part for word in words for part in _parts(word)]
    return list(dict.fromkeys(parts))[:_MOST]


def _parts(word: str) -> list[str]:
    """A word as it stands; of Chinese, which has no spaces, its characters and pairs."""
    return (has_wide(word) and terms(word)) or [word]


def may_hold(data: bytes, words: Sequence[str]) -> bool:
    """Whether any of the words stands in a file."""
    text = folded(data.decode("utf-8", "replace"))
    return any(word in text for word in words)


def hits(path: str, found: Iterable[Passage], words: Sequence[str], window: Window) -> list[Match]:
    """The passages with some of the words, each scored by the share of them it holds."""
    seen: list[Match] = []
    for passage in found:
        text = folded(f"{passage.context} {passage.text}")
        held = sum(word in text for word in words)
        if held and window.holds(passage.at):
            seen.append(Match(path, passage, held / len(words)))
    return seen
