"""The backlog with its items."""

from __future__ import annotations

from pydantic import Field

from mimikit.memory.notes import BacklogList
from mimikit.views.base import View


class BacklogItem(View):
    number: int = Field(exclude=True)
    """Its position in the file, from 1."""
    text: str
    done: bool


class BacklogView(View):
    items: list[BacklogItem]
    hash: str


def backlog_view(backlog: BacklogList, *, only_open: bool = False) -> BacklogView:
    items = [
        BacklogItem(number=number, text=item.text, done=item.done)
        for number, item in enumerate(backlog.items, 1)
        if not (only_open and item.done)
    ]
    return BacklogView(items=items, hash=backlog.hash)
