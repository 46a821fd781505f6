"""The backlog as a list of items."""

from __future__ import annotations

from mimikit.memory.notes import BacklogList
from mimikit.views.base import View


class BacklogItem(View):
    text: str
    done: bool
    due: str | None
    """In the workspace's time: `2026-12-01 09:00`."""


class BacklogView(View):
    """Every item, in the file's order."""

    items: list[BacklogItem]
    hash: str


def backlog_view(found: BacklogList, *, only_open: bool = False) -> BacklogView:
    items = [
        BacklogItem(text=item.text, done=item.done, due=item.due)
        for item in found.items
        if not (only_open and item.done)
    ]
    return BacklogView(items=items, hash=found.hash)
