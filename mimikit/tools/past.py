"""What a role is answered when it asks about the past: bounded, and how to have the rest. Pure."""

from __future__ import annotations

from mimikit.memory.budget import cut
from mimikit.protocol.models import Hit, Message, time_text

MOST_ANSWERED = 20_000
"""Characters of one answer; more is had by asking again."""
MOST_BETWEEN = 200
"""Messages between two times that one call looks at."""
_MESSAGE = 2000
_HIT = 1000


def recent(messages: list[Message], count: int, offset: int) -> str:
    """The last messages, and how to ask for those of them that did not fit."""
    shown = _newest_that_fit(messages)
    older = len(messages) - len(shown)
    next_ = f"count={count - len(shown)}, offset={offset + len(shown)}"
    return _told(shown, f"{older} older left out: call again with {next_}" if older else "")


def between(messages: list[Message]) -> str:
    """Messages of a time, and how to ask for the older ones of it."""
    shown = _newest_that_fit(messages)
    if len(shown) == len(messages) < MOST_BETWEEN:
        return _told(shown, "")
    before = time_text(shown[0].created_at)
    return _told(shown, f"older ones left out: call again with before={before}")


def found(hits: list[Hit]) -> str:
    """What a search has found, best first."""
    lines = [f"[{hit.source}] {_indented(cut(hit.text, _HIT))}" for hit in hits]
    kept = _that_fit(lines)
    if left_out := len(lines) - len(kept):
        kept = [*kept, f"({left_out} more left out: ask for fewer, or in other words)"]
    return "\n".join(kept) or "nothing found"


def _newest_that_fit(messages: list[Message]) -> list[Message]:
    """The newest of some messages; none of them as old as one that is left out."""
    first = len(messages) - len(_that_fit([_line(message) for message in reversed(messages)]))
    if first == 0:
        return messages
    rest = messages[first - 1].created_at
    later = (n for n in range(first, len(messages)) if messages[n].created_at > rest)
    return messages[next(later, first) :]


def _that_fit(lines: list[str]) -> list[str]:
    """The first of some lines that make one answer together."""
    left = MOST_ANSWERED
    for number, line in enumerate(lines):
        left -= len(line) + 1
        if left < 0:
            return lines[:number]
    return lines


def _told(messages: list[Message], more: str) -> str:
    lines = [f"({more})"] if more else []
    return "\n".join([*lines, *map(_line, messages)]) or "none"


def _line(message: Message) -> str:
    at = time_text(message.created_at)
    return f"{at} {message.role}: {_indented(cut(message.text, _MESSAGE))}"


def _indented(text: str) -> str:
    """A text whose further lines can not be taken for messages or hits of their own."""
    return text.replace("\n", "\n  ")
