"""A queue of the product for tests: its files hold a rank."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from mimikit.errors import BadRecord
from mimikit.hueyfiles.folder import QueueEntry
from mimikit.protocol.files import Files
from mimikit.runner.queues import TaskStorage


def by_rank(name: str, data: bytes, seen_at: datetime) -> QueueEntry:
    """The entries of the tests' queues: `{"rank": 1, "at": null}`; whatever is no JSON is bad."""
    try:
        given = json.loads(data)
        return QueueEntry((given["rank"], name), given.get("at"))
    except (ValueError, KeyError, TypeError) as error:
        raise BadRecord(f"expected a rank, got {error}") from None


def task_storage(files: Files, **options: Any) -> TaskStorage:
    """The Worker's queue, which never waits and watches nothing."""
    given: dict[str, Any] = {"inspect": by_rank, "blocking": False, "settle_s": 0.05, **options}
    return TaskStorage("worker", files, **given)
