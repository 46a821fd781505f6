"""The state shared by all operations. Not thread-safe: for the supervisor's thread only."""

from __future__ import annotations

import queue
from datetime import datetime
from typing import Generic, TypeVar

from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.conversation.history import HistoryStore
from mimikit.log import ChangeFeed, EventLog
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import REMINDER, QueueName, Task
from mimikit.protocol.runtime import RuntimeState
from mimikit.protocol.watch import WakeBell
from mimikit.roles.run import LiveRuns
from mimikit.state import check_schema
from mimikit.tasks import queue as task_queue
from mimikit.tasks.ledger import Ledger

T = TypeVar("T")

SLICE_S = 0.05
"""Time limit per pass for ending runs, and for evaluating triggers."""


class EventQueue(Generic[T]):
    """Events from other threads; each wakes the supervisor."""

    def __init__(self, bell: WakeBell) -> None:
        self._bell = bell
        self._waiting: queue.SimpleQueue[T] = queue.SimpleQueue()

    def put(self, entry: T) -> None:
        self._waiting.put(entry)
        self._bell.ring()

    def take(self) -> list[T]:
        return [self._waiting.get() for _ in range(self._waiting.qsize())]


class SupervisorEvents:
    def __init__(self) -> None:
        self.bell = WakeBell()
        self.ended_runs = EventQueue[tuple[QueueName, str]](self.bell)
        self.changed_triggers = EventQueue[str | None](self.bell)
        """Triggers whose definition may have changed; None: any."""
        self.changed_files = EventQueue[set[str]](self.bell)

    def trigger_files_changed(self, names: list[str] | None) -> None:
        """Note changed files of definitions; None: any may have changed."""
        changed = [name.removesuffix(".json") for name in names or () if name.endswith(".json")]
        # A name that is no id is set aside by reading the whole folder.
        if names is None or not all(map(is_id, changed)):
            self.changed_triggers.put(None)
        for trigger_id in filter(is_id, changed):
            self.changed_triggers.put(trigger_id)


class Store:
    def __init__(
        self, files: Files, settings: Settings, clock: Clock, *, live: LiveRuns, log: EventLog
    ) -> None:
        """Read what is needed before the first operation.

        Raises:
            NewerState: a newer version wrote here; nothing was changed.
        """
        self.files, self.settings, self.clock = files, settings, clock
        self.live, self.log, self.feed = live, log, ChangeFeed(files, clock)
        self.conversation, self.ledger = HistoryStore(files), Ledger(files)
        check_schema(paths.HISTORY, self.conversation.schema_version)
        check_schema(paths.TASK_STATUS, self.ledger.load())
        self.runtime = files.load(paths.RUNTIME, RuntimeState) or RuntimeState()
        self.events = SupervisorEvents()
        self.unreleased: dict[str, Task] = {}
        """Tasks claimed to change their wait, not released yet because of a storage error."""
        self.canceling = set[str]()
        """Tasks whose cancel was interrupted by a storage error, to be repeated."""

    def submit(self, task: Task, *, planned_at: datetime | None = None, missed: int = 0) -> bool:
        """Queue a task, or end a reminder, which no pool runs; False: it was submitted before.

        planned_at, missed: of its slot.
        """
        if task.profile == REMINDER and task.role == "worker":
            is_new = task_queue.end_reminder(self.files, task, planned_at, missed)
            if is_new:
                self.events.ended_runs.put((task.role, task.id))
        else:
            is_new = task_queue.submit(self.files, task)
        self.feed.publish("task", id=task.id, seat=task.role)
        return is_new

    def save_runtime(self, **changes: object) -> None:
        self.runtime = self.runtime.but(**changes)
        self.files.save(paths.RUNTIME, self.runtime)

    def trigger_changed(self, trigger_id: str) -> None:
        self.events.changed_triggers.put(trigger_id)
        self.feed.publish("trigger", id=trigger_id)
