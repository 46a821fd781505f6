"""How much of what goes into a prompt. Pure. Units: tokens, characters where named so."""

from __future__ import annotations

import re
from collections.abc import Callable

from mimikit.protocol.models import Message

CUT_CHARACTERS = 500
AGENT_CUT_CHARACTERS = 200
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")


def estimate_tokens(text: str) -> int:
    """A calibrated estimate: about 4 bytes of English, or 0.8 of a Chinese character, a token."""
    wide = len(_CJK.findall(text))
    return (len(text) - wide + 3) // 4 + (wide * 5 + 3) // 4


def cut(text: str, characters: int, mark: str = "… [truncated]") -> str:
    """At most `characters` of a text, with a mark where it was cut."""
    return text if len(text) <= characters else text[:characters].rstrip() + mark


def cut_tokens(text: str, tokens: int, count: Callable[[str], int] = estimate_tokens) -> str:
    """At most `tokens` of a text."""
    if count(text) <= tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "… [truncated]"


def fit(
    messages: list[Message],
    budget_tokens: int,
    *,
    most: int = 20,
    least: int = 5,
    count: Callable[[str], int] = estimate_tokens,
) -> list[Message]:
    """The newest messages that fit, oldest first; long ones cut, duplicates dropped.

    Source: spec 5, budgets for injection.
    """
    newest = _unique(messages)[-most:]
    kept = [m.but(text=cut(m.text, CUT_CHARACTERS)) for m in newest]
    if _sum(kept, count) > budget_tokens:
        kept = [
            m.but(text=cut(m.text, AGENT_CUT_CHARACTERS)) if m.role != "user" else m for m in kept
        ]
    while len(kept) > least and _sum(kept, count) > budget_tokens:
        kept = kept[1:]
    return kept


def fit_parts(
    parts: list[str], budget_tokens: int, count: Callable[[str], int] = estimate_tokens
) -> list[str]:
    """The first parts that fit together; at least one, cut if it must be."""
    kept: list[str] = []
    left = budget_tokens
    for part in parts:
        cost = count(part)
        if cost > left:
            break
        kept.append(part)
        left -= cost
    return kept or [cut_tokens(part, budget_tokens, count) for part in parts[:1]]


def _sum(messages: list[Message], count: Callable[[str], int]) -> int:
    return sum(count(m.text) for m in messages)


def _unique(messages: list[Message]) -> list[Message]:
    seen: dict[str, Message] = {}
    for message in messages:
        seen.setdefault(message.id, message)
    return list(seen.values())
