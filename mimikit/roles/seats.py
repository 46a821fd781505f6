"""What a pool thread does with a claimed task, and a Teller's thread with a turn."""

from __future__ import annotations

import queue as queues
import threading
from collections.abc import Callable
from datetime import datetime

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.models import Seat, Task
from mimikit.roles import briefs
from mimikit.roles.planner import run_plan
from mimikit.roles.run import Office
from mimikit.roles.teller import TurnJob, TurnOutcome, take_turn
from mimikit.roles.worker import run_task
from mimikit.tasks import queue
from mimikit.tasks.after_run import Finish, result_of


def work(office: Office, seat: Seat, claimed: Task) -> bool:
    """Carry out one claimed task; True when it ended, False when it goes back for another try."""
    now = office.clock.now()
    cancel = office.live.start(claimed.id, seat, claimed.title or claimed.prompt, now)
    office.feed.tell("task", id=claimed.id, seat=seat)
    try:
        task = _begun(office, seat, claimed)
        if seat == "planner":
            brief = office.insist(lambda: briefs.planner_brief(office, task, now))
            return run_plan(office, task, brief, cancel)
        brief = office.insist(lambda: briefs.worker_brief(office, task, now))
        return run_task(office, task, brief, cancel)
    except Exception as error:
        if isinstance(error, StorageError) and office.stopping.is_set():
            raise  # recovery decides
        office.log.write("error", "run_fault", taskId=claimed.id, error=repr(error))
        _fail(office, seat, claimed, f"a fault of mimikit's own: {error}", now)
        return True
    finally:
        office.live.end(claimed.id)


def _fail(office: Office, seat: Seat, task: Task, error: str, started: datetime) -> None:
    """Write that the task failed: whatever goes wrong, no claimed task is left without an end."""
    end = Finish("failed", "error", task.attempts + 1)
    result = result_of(task.but(role=seat), end, started, office.clock.now(), error=error)
    office.insist(lambda: queue.finish(office.files, result))


def _begun(office: Office, seat: Seat, task: Task) -> Task:
    """The task without the mark of its release, which would hide that this attempt began.

    Crash: before it is gone, no engine was started, and recovery brings the task back uncounted.
    """
    if not task.released:
        return task
    begun = task.but(released=False)
    office.insist(lambda: office.files.save(paths.running(seat, task.id), begun))
    return begun


class TellerThread:
    """The one seat of the Teller: a thread that takes turns, one at a time."""

    def __init__(self, office: Office, ring: Callable[[], None]) -> None:
        """`ring` wakes the supervisor when a turn ended."""
        self._office, self._ring = office, ring
        self._jobs: queues.SimpleQueue[TurnJob | None] = queues.SimpleQueue()
        self._done: queues.SimpleQueue[TurnOutcome] = queues.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="teller", daemon=True)
        self._thread.start()

    def start(self, job: TurnJob) -> None:
        """Take this turn as soon as the seat is free."""
        self._jobs.put(job)

    def outcomes(self) -> list[TurnOutcome]:
        """What ended since the last look."""
        found: list[TurnOutcome] = []
        while not self._done.empty():
            found.append(self._done.get())
        return found

    def close(self, timeout_s: float) -> None:
        """End the thread after the turn in progress."""
        self._jobs.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._done.put(outcome_of(self._office, job))
            self._ring()


def outcome_of(office: Office, job: TurnJob) -> TurnOutcome:
    """Take a turn; whatever goes wrong is an outcome."""
    try:
        return take_turn(office, job)
    except Exception as error:  # noqa: BLE001 - the Teller's thread must outlive any fault
        office.log.write("error", "turn_fault", turnId=job.id, error=repr(error))
        return TurnOutcome(job, None, str(error), "error")
