"""What every built-in operation writes with. One per consumer; the supervisor thread's alone."""

from __future__ import annotations

import contextlib
import queue
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from mimikit.clock import A_DAY, Clock
from mimikit.config import Settings
from mimikit.conversation.deliveries import DeliveryIndex
from mimikit.conversation.history import HistoryStore
from mimikit.errors import UnsafeFile
from mimikit.log import ChangeFeed, EventLog
from mimikit.notifications.events import event_of_end
from mimikit.notifications.ledger import NotificationLedger
from mimikit.protocol import paths, schema
from mimikit.protocol.files import Files
from mimikit.protocol.models import REMINDER, QueueName, Task
from mimikit.protocol.records import written_at
from mimikit.protocol.results import TaskResult
from mimikit.protocol.runtime import RuntimeState
from mimikit.protocol.triggers import EndIntent, PlanResult
from mimikit.protocol.watch import WakeBell
from mimikit.roles.run import LiveRuns
from mimikit.tasks import queue as task_queue
from mimikit.tasks import reminders
from mimikit.tasks.ledger import Ledger

T = TypeVar("T")
MOST_AHEAD, _MOST_TAKEN = 3, 64 * 2**20


class EventQueue(Generic[T]):
    """What other threads tell the supervisor; each entry wakes it."""

    def __init__(self, bell: WakeBell) -> None:
        self._bell = bell
        self._waiting: queue.SimpleQueue[T] = queue.SimpleQueue()

    def put(self, entry: T) -> None:
        self._waiting.put(entry)
        self._bell.ring()

    def take(self) -> list[T]:
        """All that was put in since."""
        return [self._waiting.get() for _ in range(self._waiting.qsize())]


class SupervisorEvents:
    def __init__(self) -> None:
        self.bell = WakeBell()
        self.ended_runs = EventQueue[tuple[QueueName, str]](self.bell)
        self.changed_triggers = EventQueue[str | None](self.bell)
        """Definitions that were made, edited or removed, or are to be looked at again; None: any
        may have changed or gone."""
        self.changed_files = EventQueue[set[str]](self.bell)
        """Triggers: files that these look at have changed."""


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
    deliveries: DeliveryIndex
    runtime: RuntimeState
    notifications: NotificationLedger
    events: SupervisorEvents = field(default_factory=SupervisorEvents)
    canceling: set[str] = field(default_factory=set[str])
    """Tasks whose cancel this process began and the disk cut short: to be taken up again."""
    stopping_turns: set[str] = field(default_factory=set[str])
    """Turns that are to stop, and of which no attempt is under way."""

    @classmethod
    def open(
        cls, files: Files, settings: Settings, clock: Clock, *, live: LiveRuns, log: EventLog
    ) -> Store:
        """Read what is needed before the first operation.

        Raises:
            NewerState: a newer version wrote here; nothing was changed.
        """
        schema.check_not_newer(files)  # before anything is set aside that it could not read
        conversation, ledger = HistoryStore(files, clock), Ledger(files, clock)
        ledger.load()
        runtime = files.load(paths.RUNTIME, RuntimeState) or RuntimeState()
        if take_back(files, runtime, clock.now()):
            conversation, ledger = HistoryStore(files, clock), Ledger(files, clock)
            ledger.load()
        return cls(
            files=files,
            settings=settings,
            clock=clock,
            log=log,
            feed=ChangeFeed(files, clock),
            live=live,
            ledger=ledger,
            conversation=conversation,
            deliveries=DeliveryIndex(files),
            runtime=runtime,
            notifications=NotificationLedger(files, settings.notify),
        )

    def submit(self, task: Task, *, planned_at: datetime | None = None, missed: int = 0) -> bool:
        """Have a task begin; False when it had before.

        A reminder comes to its end at once: no pool is to be free for it. `planned_at`, `missed`:
        of its slot.
        """
        if task.profile == REMINDER and task.role == "worker":
            is_new = reminders.tell(self.files, task, planned_at, missed)
            if is_new:
                self.events.ended_runs.put((task.role, task.id))
        else:
            is_new = task_queue.submit(self.files, task)
        self.feed.tell("task", id=task.id, seat=task.role)
        return is_new

    def notify_end(self, task: Task, outcome: TaskResult | PlanResult, end: EndIntent) -> None:
        """Have the end of a run told outside of the page as well, where that is to be.

        Crash: whoever brings the run to its end does so again; the event's id follows from its.
        """
        settings, zone = self.notifications.settings, self.settings.zone
        if settings.channels:
            self.notifications.add(event_of_end(task, outcome, end, settings, zone))

    def save_runtime(self, **changes: object) -> None:
        self.runtime = self.runtime.but(**changes)
        self.files.save(paths.RUNTIME, self.runtime)

    def believed(self, now: datetime) -> datetime:
        """So late it certainly is, while the clock shows `now`."""
        doubt = self.runtime.clock_doubt
        return doubt.believed if doubt else now

    def trigger_changed(self, trigger_id: str) -> None:
        """A definition was written or removed here: to be looked at again, and shown."""
        self.events.changed_triggers.put(trigger_id)
        self.feed.tell("trigger", id=trigger_id)


def take_back(files: Files, runtime: RuntimeState, now: datetime) -> bool:
    """Take what stands under a day or month to come into the newest file before it; whether any.

    Where the clock may be wrong, as many such names say, only one ahead of its file's time counts.
    Crash: a file that the other one ends with was taken in; it only has to go.
    """
    is_sure, taken = runtime.clock_doubt is None and (runtime.seen_at or now) <= now, False
    for folder, size in ((paths.TRANSCRIPT, 10), (paths.LEDGER, 7)):
        names, limit = files.names(folder, suffix=".jsonl"), (now + A_DAY).isoformat()[:size]
        far = [name for name in names if name[:size] > limit]
        into = f"{folder}/" + max(
            [f"{now.isoformat()[:size]}.jsonl", *names[: len(names) - len(far)]]
        )
        for path in (f"{folder}/{name}" for name in far if len(far) <= MOST_AHEAD):
            stat = files.stat(path)
            own = written_at(stat) + A_DAY if stat else now
            with contextlib.suppress(UnsafeFile):  # what is not ours is set aside by who writes it
                if is_sure or path > f"{folder}/{own.isoformat()[:size]}.jsonl":
                    more, held = (files.read(one, most=_MOST_TAKEN) or b"" for one in (path, into))
                    if not held.endswith(more):
                        files.write(into, held + b"\n" * (held[-1:] not in b"\n") + more)
                    taken = files.remove(path) or taken
    return taken
