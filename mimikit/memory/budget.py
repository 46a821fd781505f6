"""How much of what goes into a prompt. Pure. Units: tokens, characters where named so."""

from __future__ import annotations

from collections.abc import Callable

from mimikit.memory import tokens as counter
from mimikit.protocol.models import Message

CUT_CHARACTERS = 500
AGENT_CUT_CHARACTERS = 200
_SEEN_PER_TOKEN = 4
"""Characters that are looked at first for each token that may stay."""
_CLOSE = 256
"""A cut is found to so many parts of the text before it."""

Count = Callable[[str], int]


def cut(text: str, characters: int, mark: str = "… [truncated]") -> str:
    """At most `characters` of a text, with a mark where it was cut."""
    return text if len(text) <= characters else text[:characters].rstrip() + mark


def cut_tokens(text: str, tokens: int, count: Count = counter.count) -> str:
    """At most `tokens` of a text, with a mark where it was cut.

    Only about as much of the text is counted as stays, however long it is.
    """
    low, high = 0, min(len(text), max(tokens, 1) * _SEEN_PER_TOKEN)
    while count(text[:high]) <= tokens:
        if high == len(text):
            return text
        low, high = high, min(len(text), 2 * high)
    while high - low > max(1, high // _CLOSE):
        middle = (low + high) // 2
        if count(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle
    return text[:low].rstrip() + "… [truncated]"


def fit(
    messages: list[Message],
    budget_tokens: int,
    *,
    most: int = 20,
    least: int = 5,
    count: Count = counter.count,
) -> list[Message]:
    """The newest messages that fit, oldest first; long ones cut, duplicates dropped.

    Source: spec 5, budgets for injection.
    """
    newest = _unique(messages)[-most:]
    kept = [m.but(text=cut(m.text, CUT_CHARACTERS)) for m in newest]
    costs = [count(m.text) for m in kept]
    if sum(costs) > budget_tokens:
        kept = [
            m.but(text=cut(m.text, AGENT_CUT_CHARACTERS)) if m.role != "user" else m for m in kept
        ]
        costs = [count(m.text) for m in kept]
    first, left = 0, sum(costs)
    while len(kept) - first > least and left > budget_tokens:
        left -= costs[first]
        first += 1
    return kept[first:]


def fit_parts(parts: list[str], budget_tokens: int, count: Count = counter.count) -> list[str]:
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


def _unique(messages: list[Message]) -> list[Message]:
    seen: dict[str, Message] = {}
    for message in messages:
        seen.setdefault(message.id, message)
    return list(seen.values())
