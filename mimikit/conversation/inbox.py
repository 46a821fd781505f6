"""The inbox: one file for each thing the Teller has not answered, created exclusively."""

from __future__ import annotations

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import InboxItem


def put(files: Files, item: InboxItem) -> bool:
    """Accept an item; False when it is there already. Once this returns it is on disk."""
    return files.save_new(paths.inbox(item.id), item)


def waiting(files: Files) -> list[InboxItem]:
    """Everything unanswered, oldest first."""
    items = files.load_all(paths.INBOX, InboxItem)
    return sorted(items, key=lambda item: (item.created_at, item.id))


def take_out(files: Files, item_id: str) -> None:
    """Remove an item whose turn is committed and applied."""
    files.remove(paths.inbox(item_id))
