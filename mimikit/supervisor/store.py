"""What every built-in operation writes with. One per consumer; the supervisor thread's alone."""

from __future__ import annotations

import queue
from dataclasses import dataclass, field
from typing import TypeVar

from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.conversation.history import HistoryStore
from mimikit.errors import NewerState
from mimikit.log import ChangeFeed, EventLog
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import History, QueueName, RuntimeState, StatusCheckpoint
from mimikit.protocol.watch import WakeBell
from mimikit.roles.run import LiveRuns
from mimikit.tasks.ledger import Ledger

T = TypeVar("T")


class EventQueue:
    """What other threads tell the supervisor; each call wakes it."""

    def __init__(self) -> None:
        self.bell = WakeBell()
        self._ended: queue.SimpleQueue[tuple[QueueName, str]] = queue.SimpleQueue()
        self._triggers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._files: queue.SimpleQueue[set[str]] = queue.SimpleQueue()

    def run_ended(self, seat: QueueName, task_id: str) -> None:
        self._ended.put((seat, task_id))
        self.bell.ring()

    def trigger_changed(self, trigger_id: str) -> None:
        """This definition was made, edited or removed, or is to be looked at again."""
        self._triggers.put(trigger_id)
        self.bell.ring()

    def triggers_unsure(self) -> None:
        """Some definition may have changed or gone."""
        self._triggers.put(None)
        self.bell.ring()

    def files_changed(self, trigger_ids: set[str]) -> None:
        """Files that these triggers look at have changed."""
        self._files.put(trigger_ids)
        self.bell.ring()

    def ended(self) -> list[tuple[QueueName, str]]:
        return _drained(self._ended)

    def changed_triggers(self) -> list[str | None]:
        """Take out the definitions that changed; None: any may have."""
        return _drained(self._triggers)

    def changed_files(self) -> list[set[str]]:
        return _drained(self._files)


def _drained(waiting: queue.SimpleQueue[T]) -> list[T]:
    return [waiting.get() for _ in range(waiting.qsize())]


@dataclass
class Store:
    """The state folder with what is kept of it in memory."""

    files: Files
    settings: Settings
    clock: Clock
    log: EventLog
    feed: ChangeFeed
    live: LiveRuns
    ledger: Ledger
    conversation: HistoryStore
    runtime: RuntimeState
    events: EventQueue = field(default_factory=EventQueue)
    canceling: set[str] = field(default_factory=set[str])
    """Tasks whose cancel this process began and the disk cut short: to be taken up again."""

    @classmethod
    def open(
        cls, files: Files, settings: Settings, clock: Clock, *, live: LiveRuns, log: EventLog
    ) -> Store:
        """Read what is needed before the first operation.

        Raises:
            NewerState: a newer version wrote here; nothing was changed.
        """
        for path, model in ((paths.HISTORY, History), (paths.TASK_STATUS, StatusCheckpoint)):
            found = files.peek(path, model)
            known = model.model_fields["schema_version"].default
            if found is not None and found.schema_version > known:
                raise NewerState(
                    f"{path}: expected schemaVersion {known} or older, got {found.schema_version}; "
                    "use the newer mimikit that wrote it"
                )
        ledger = Ledger(files)
        ledger.load()
        return cls(
            files=files,
            settings=settings,
            clock=clock,
            log=log,
            feed=ChangeFeed(files, clock),
            live=live,
            ledger=ledger,
            conversation=HistoryStore(files),
            runtime=files.load(paths.RUNTIME, RuntimeState) or RuntimeState(),
        )

    def save_runtime(self, **changes: object) -> None:
        self.runtime = self.runtime.but(**changes)
        self.files.save(paths.RUNTIME, self.runtime)

    def trigger_changed(self, trigger_id: str) -> None:
        """A definition was written or removed here: to be looked at again, and shown."""
        self.events.trigger_changed(trigger_id)
        self.feed.tell("trigger", id=trigger_id)
