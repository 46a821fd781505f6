"""Readers of a state folder for assertions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from mimikit.conversation import history
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import InboxItem, Record
from mimikit.protocol.results import TaskResult
from mimikit.tasks import ledger

if TYPE_CHECKING:
    from tests.crash.driver import Client

R = TypeVar("R", bound=Record)


def transcript(files: Files) -> list[tuple[str, str]]:
    """(role, text) of every message."""
    return [(m.role, m.text) for m in history.page(files, limit=1000).messages]


def record(files: Files, path: str, kind: type[R]) -> R:
    """The record at a path, which must be there."""
    found = files.load(path, kind)
    assert found is not None, f"expected a record at {path}, got none"
    return found


def result(files: Files, task_id: str) -> TaskResult:
    """A Worker's result."""
    return record(files, paths.result("worker", task_id), TaskResult)


def results(files: Files) -> dict[str, str]:
    """Worker results: id → status."""
    names = files.names("worker/results")
    return {n.removesuffix(".json"): result(files, n.removesuffix(".json")).status for n in names}


def slots(files: Files, trigger_id: str) -> list[dict[str, Any]]:
    """The recorded slots of a trigger."""
    return [line for line in ledger.events_of(files, trigger_id) if line["event"] == "slot"]


def loaded(files: Files, path: str) -> Any:
    """A JSON file; None when there is none."""
    data = files.read(path)
    return None if data is None else json.loads(data)


def unanswered(files: Files) -> list[InboxItem]:
    """What lies in the inbox, oldest first."""
    items = files.load_all(paths.INBOX, InboxItem)
    return sorted(items, key=lambda item: (item.created_at, item.id))


def fired(client: Client, trigger_id: str = "g1") -> int:
    """How often a trigger has run."""
    return sum(line["state"] == "ran" for line in slots(client.files, trigger_id))


def at(client: Client, seconds: float) -> None:
    """Let time pass until then, and all work be done."""
    client.at(seconds)
    client.product.idle()


def cond(kind: str, **params: Any) -> dict[str, Any]:
    """A condition as it stands in a trigger's file."""
    return {"type": kind, "params": params}
