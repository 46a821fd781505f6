"""The backlog as roles see and name it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from mimikit.errors import BadInput
from mimikit.memory.backlog import Action, Item, changed, items, plain
from mimikit.memory.text import folded

_MOST_LISTED = 100
_MOST_NAMED = 10


def after(text: str, changes: Sequence[tuple[Action, str]]) -> list[Item]:
    """The items of a list once some changes are made."""
    for action, item in changes:
        text = changed(text, action, item)
    return items(text)


def told(known: Sequence[Item]) -> str:
    """The list in words: what is open first, then what is done."""
    ordered = [item for item in known if not item.done] + [item for item in known if item.done]
    lines = [f"- [{'x' if item.done else ' '}] {item.text}" for item in ordered[:_MOST_LISTED]]
    if len(ordered) > _MOST_LISTED:
        lines.append(f"- … and {len(ordered) - _MOST_LISTED} more")
    return "\n".join(lines) or "nothing"


def meant(known: Sequence[Item], given: str, action: Action) -> str:
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
