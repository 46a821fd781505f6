"""What the tools answer with: messages, hits and the backlog in words. Pure.

Every answer is bounded; one that is cut says how to have the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from mimikit.errors import BadInput
from mimikit.memory.backlog import Action, BacklogEntry, changed, items, plain
from mimikit.memory.terms import folded
from mimikit.memory.tokens import cut
from mimikit.protocol.models import Hit, Message, time_text

MOST_ANSWERED = 20_000
"""Characters of one answer; more is had by asking again."""
MOST_BETWEEN = 200
"""Messages between two times that one call looks at."""
_MESSAGE = 2000
_HIT = 1000
_MOST_LISTED = 100
_MOST_NAMED = 10


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


# ---- the backlog


def backlog_after(text: str, changes: Sequence[tuple[Action, str]]) -> list[BacklogEntry]:
    """The items of a list once some changes are made."""
    for action, item in changes:
        text = changed(text, action, item)
    return items(text)


def backlog_lines(known: Sequence[BacklogEntry]) -> str:
    """The list in words: what is open first, then what is done."""
    ordered = [item for item in known if not item.done] + [item for item in known if item.done]
    lines = [f"- [{'x' if item.done else ' '}] {item.text}" for item in ordered[:_MOST_LISTED]]
    if len(ordered) > _MOST_LISTED:
        lines.append(f"- … and {len(ordered) - _MOST_LISTED} more")
    return "\n".join(lines) or "nothing"


def backlog_item(known: Sequence[BacklogEntry], given: str, action: Action) -> str:
    """The item that is named, by its text or a part that only it has.

    Capital letters, accents and traditional characters make no difference.

    Raises:
        BadInput: none is, or several are.
    """
    name = folded(plain(given))
    texts = list(dict.fromkeys(item.text for item in known))
    same = [text for text in texts if text == plain(given)]
    alike = [text for text in texts if folded(text) == name]
    holding = [text for text in texts if name and name in folded(text)]
    found = same or alike or holding
    if len(found) > 1 and action in ("done", "undone"):
        changing = {item.text for item in known if item.done == (action == "undone")}
        found = [text for text in found if text in changing] or found
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInput(f"item: expected one, got {given!r}, which fits {_some(found)}")
    raise BadInput(f"item: expected one of the backlog ({_some(texts)}), got {given!r}")


def _some(texts: Sequence[str]) -> str:
    named = "; ".join(texts[:_MOST_NAMED])
    return (f"{named}; and more" if len(texts) > _MOST_NAMED else named) or "it is empty"
