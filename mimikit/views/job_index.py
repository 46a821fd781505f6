"""Which tasks belong together: what ended, as the ledger tells, and what waits or runs now.

A request's tasks are one job, by its trace; the firings of a trigger that stays are another, by
the trigger's id. Of those only counts are held. The ledger is read once, then followed.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple, Protocol, TypeVar
from zoneinfo import ZoneInfo

from mimikit.language.plain_text import first_line
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.json import Json, dump_line
from mimikit.protocol.models import EndStatus, QueueName, Task, to_utc
from mimikit.tasks import ledger, queue

_MOST_LOOKED_AT = 500
"""Files of a long queue that are read at one look; those of before are remembered."""
_MOST_BYTES = 128 * 2**20
"""Of the ledger: some 400,000 tasks."""
_MOST_TASKS = 1000
_TITLE = 100

R = TypeVar("R", bound="RepeatableTask")


class EndedTask(NamedTuple):
    """How a task ended, as its line of the ledger has it."""

    id: str
    status: EndStatus
    seat: QueueName
    at: datetime
    title: str
    retry_of: str | None


@dataclass(slots=True)
class EndedJob:
    """What has ended of a request. `seq` moves on with each end that the ledger tells."""

    id: str
    seq: int = 0
    state: EndStatus = "done"
    tasks: list[EndedTask] = field(default_factory=list[EndedTask])
    """Of very many the first, and the newest."""

    @property
    def title(self) -> str:
        return self.tasks[0].title

    @property
    def is_shown(self) -> bool:
        """Not if it was a plan that went well and began no work of its own, as for a trigger."""
        return self.state != "done" or any(one.seat == "worker" for one in self.tasks)

    def add(self, end: EndedTask) -> None:
        if self.tasks and self.tasks[-1].id == end.id:  # a crash had its line written twice
            return
        if len(self.tasks) >= _MOST_TASKS:
            del self.tasks[1]
        self.tasks.append(end)
        if len(self.tasks) > 1:
            self.state = state_of((self.state, end.status))
        else:
            self.state = end.status
        if end.retry_of is not None:
            self.state = state_of(one.status for one in folded(self.tasks))


@dataclass(slots=True)
class EndedFirings:
    """What has ended of a trigger's firings: counts, the newest one, and those of its last day."""

    id: str
    seq: int = 0
    began: datetime | None = None
    last: EndedTask | None = None
    last_failed: EndedTask | None = None
    """The newest one that failed, unless one succeeded after it."""
    counts: Counter[str] = field(default_factory=Counter[str])
    day: date | None = None
    of_day: Counter[str] = field(default_factory=Counter[str])
    """By state, and `changed`."""

    @property
    def title(self) -> str:
        return self.last.title if self.last else ""

    @property
    def state(self) -> EndStatus:
        return self.last.status if self.last else "done"

    @property
    def is_shown(self) -> bool:
        return True

    def add(self, end: EndedTask, zone: ZoneInfo, *, changed: bool) -> None:
        if self.last is not None and self.last.id == end.id:  # a crash had its line written twice
            return
        day = end.at.astimezone(zone).date()
        if day != self.day:
            self.day, self.of_day = day, Counter()
        self.began, self.last = self.began or end.at, end
        if end.status != "canceled":
            self.last_failed = end if end.status == "failed" else None
        self.counts[end.status] += 1
        self.of_day.update([end.status, *(["changed"] if changed else [])])


class RepeatableTask(Protocol):
    """A task, and which one it repeats."""

    @property
    def id(self) -> str: ...
    @property
    def retry_of(self) -> str | None: ...


def folded(tasks: Iterable[R]) -> list[R]:
    """Of each task and its repetitions the newest; the tasks are given oldest first."""
    roots: dict[str, str] = {}
    newest: dict[str, R] = {}
    for one in tasks:
        root = roots.get(one.retry_of, one.retry_of) if one.retry_of else one.id
        roots[one.id] = root
        newest[root] = one
    return list(newest.values())


def state_of(states: Iterable[EndStatus]) -> EndStatus:
    """The end of a whole: failed with one of its parts, done with all of them."""
    found = set(states)
    if "failed" in found:
        return "failed"
    return "canceled" if "canceled" in found else "done"


class JobIndex:
    """Every job that has something ended, the one that had an end last last. Thread-safe."""

    def __init__(
        self, files: ReadOnlyFiles, zone: ZoneInfo, is_standing: Callable[[str], bool]
    ) -> None:
        """`is_standing` tells of a trigger, where a line of an earlier version does not."""
        self._files, self._zone, self._is_standing = files, zone, is_standing
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._file, self._offset, self._seq = "", 0, 0
        self._jobs: dict[str, EndedJob | EndedFirings] = {}
        self._counts: Counter[str] = Counter()

    def counts(self) -> Counter[str]:
        """How many of those that are shown ended how, as far as they have ended."""
        with self._lock:
            return +self._counts

    def find(self, job_id: str) -> EndedJob | EndedFirings | None:
        """What has ended of a job; it goes on to change."""
        with self._lock:
            return self._jobs.get(job_id)

    def newest(self) -> list[EndedJob | EndedFirings]:
        """All that are shown, the one that had an end last first."""
        with self._lock:
            return [job for job in reversed(self._jobs.values()) if job.is_shown]

    def keep_up(self) -> None:
        """Read what the ledger has more than at the last look."""
        with self._lock:
            names = self._files.names(paths.LEDGER, suffix=".jsonl")
            stat = self._files.stat(f"{paths.LEDGER}/{self._file}") if self._file else None
            is_newest = names[-1:] == [self._file]
            if stat is None or stat.size < self._offset or names[-1:] < [self._file]:
                self._forget()  # nothing was read yet, or that was before a backup came back
                self._file = self._first(names)
            elif stat.size == self._offset and is_newest:
                return
            for name, offset, line in ledger.lines(self._files, self._file, self._offset):
                self._file, self._offset = name, offset
                if line.get("event") == "ended" and not line.get("internal"):
                    self._learn(line)

    def _first(self, names: Sequence[str]) -> str:
        """The file from which on the ledger is read: all of it, of a huge one the last months."""
        left, first = _MOST_BYTES, ""
        for name in reversed(names):
            stat = self._files.stat(f"{paths.LEDGER}/{name}")
            left -= stat.size if stat else 0
            if left < 0 and first:
                break
            first = name
        return first

    def _learn(self, line: dict[str, Json]) -> None:
        end = _ended_task(line)
        if end is None:
            return
        self._seq += 1
        trigger_id, trace_id = line.get("sourceTriggerId"), line.get("traceId")
        job_id = trace_id if isinstance(trace_id, str) and trace_id != end.id else end.id
        is_firing = isinstance(trigger_id, str) and self._is_firing(line, trigger_id)
        if is_firing and isinstance(trigger_id, str):
            job_id = trigger_id
        job = self._jobs.pop(job_id, None)
        if job is not None:
            self._counts[job.state] -= job.is_shown
        if isinstance(job, EndedFirings) or is_firing:
            # In a trigger's own trace what came of a firing counts as one, too.
            job = job if isinstance(job, EndedFirings) else EndedFirings(job_id)
            job.add(end, self._zone, changed=line.get("changed") is True)
        else:
            job = job or EndedJob(job_id)
            job.add(end)
        job.seq = self._seq
        self._jobs[job_id] = job
        self._counts[job.state] += job.is_shown

    def _is_firing(self, line: dict[str, Json], trigger_id: str) -> bool:
        told = line.get("firing")
        return told if isinstance(told, bool) else self._is_standing(trigger_id)


def firings_back(
    files: ReadOnlyFiles, trigger_id: str, before: tuple[str, int]
) -> Iterator[tuple[str, int, EndedTask]]:
    """A trigger's runs that ended, newest first, each with the file and place of its line.

    before: such a place, from which to go on.
    """
    needle = dump_line({"sourceTriggerId": trigger_id})[1:-2]
    name_of, upto = before
    for name in reversed(files.names(paths.LEDGER, suffix=".jsonl")):
        if name > name_of:
            continue
        most = upto if name == name_of else sys.maxsize
        for offset, line in files.lines_back(f"{paths.LEDGER}/{name}", upto=most, holding=needle):
            end = _ended_task(line) if line.get("event") == "ended" else None
            if end is not None and line.get("sourceTriggerId") == trigger_id:
                yield name, offset, end


def _ended_task(line: dict[str, Json]) -> EndedTask | None:
    """The end that a line tells of; None for one that tells of none."""
    status, id_ = line.get("status"), line.get("id")
    if status not in ledger.ENDED or not isinstance(id_, str):
        return None
    try:
        at = to_utc(datetime.fromisoformat(str(line.get("at"))))
    except ValueError:
        return None
    retry_of, title = line.get("retryOf"), line.get("title")
    return EndedTask(
        id=id_,
        status="done" if status == "done" else "failed" if status == "failed" else "canceled",
        seat="planner" if line.get("seat") == "planner" else "worker",
        at=at,
        title=title[:_TITLE] if isinstance(title, str) else "",
        retry_of=retry_of if isinstance(retry_of, str) else None,
    )


# ---- what waits or runs


class LiveTask(NamedTuple):
    """What is remembered of a task in a queue: it stays so, wherever the task goes."""

    job_id: str
    internal: bool
    order: int
    created: str
    """These, and its id: as `order_of` has them. Flat, as there may be very many."""
    title: str


class JobPlace(NamedTuple):
    """Where a job stands among those at work; it means the same whoever ends or comes meanwhile."""

    rank: int
    """0: begun, 1: in a queue, 2: only a step of it waits."""
    order: int
    by_user: bool
    created: str
    id: str
    """These: of its first task, as `order_of` has them."""

    def __str__(self) -> str:
        return "~".join((str(self.rank), str(self.order), str(+self.by_user), *self[3:]))

    @classmethod
    def parse(cls, text: str) -> JobPlace:
        """What `str` made."""
        rank, order, by_user, created, id_ = text.split("~")
        return cls(int(rank), int(order), by_user == "1", created, id_)


class LiveJobs(NamedTuple):
    """Which tasks wait, run or ask now."""

    tasks: dict[str, list[str]]
    """Their ids by job, those that are begun first, then in the order they are taken."""
    begun: set[str]
    """Those tasks of them that do not only wait in a queue."""
    known: Mapping[str, LiveTask]
    """By task, as far as its file was read."""

    def add_waiting(self, job_id: str) -> None:
        """A job of which only a step waits, behind the others."""
        self.tasks.setdefault(job_id, [])

    def title(self, job_id: str) -> str:
        """As the first of its tasks tells; empty where none does."""
        known = self.known.get(next(iter(self.tasks.get(job_id, [])), ""))
        return known.title if known else ""

    def place(self, job_id: str) -> JobPlace:
        """Of a job that is at work: that of the first of its tasks."""
        if not (ids := self.tasks[job_id]):
            return JobPlace(2, 0, True, "", job_id)
        return place_of(ids[0], self.known, is_begun=ids[0] in self.begun)


def place_of(id_: str, known: Mapping[str, LiveTask], *, is_begun: bool) -> JobPlace:
    """Of a task, as far as it is known."""
    rank, it = int(not is_begun), known.get(id_)
    if it is None:
        return JobPlace(rank, 1, True, "", id_)
    return JobPlace(rank, it.order, not it.internal, it.created, id_)


class LiveTasks:
    """The tasks that wait, run or ask; the file of each is read once. Thread-safe."""

    def __init__(self, files: ReadOnlyFiles, job_of: Callable[[Task], str]) -> None:
        self._files, self._job_of = files, job_of
        self._lock = threading.Lock()
        self._known: dict[str, LiveTask] = {}

    def look(self) -> LiveJobs:
        """Of a queue that grew by very many at once, some are jobs of their own until read."""
        # In the order of their way, and back: one that moves meanwhile is met again.
        queued = self._names("queue")
        begun = self._names("running")
        names = self._files.names("planner/results")  # plans whose question waits
        begun |= dict.fromkeys((name.removesuffix(queue.SUFFIX) for name in names), "planner")
        queued |= self._names("queue")
        with self._lock:
            here = begun | queued
            self._learn(here, begun)
            found: dict[str, list[str]] = {}
            known, only_begun = self._known, begun.keys() - queued.keys()

            def place(id_: str) -> JobPlace:
                return place_of(id_, known, is_begun=id_ in only_begun)

            for id_ in sorted(here, key=place):
                it = known.get(id_)
                if it is None or not it.internal:
                    found.setdefault(it.job_id if it else id_, []).append(id_)
            return LiveJobs(found, only_begun, known)

    def _names(self, folder: str) -> dict[str, QueueName]:
        return {
            name.removesuffix(queue.SUFFIX): seat
            for seat in paths.QUEUES
            for name in self._files.names(f"{seat}/{folder}")
        }

    def _learn(self, here: Mapping[str, QueueName], begun: Container[str]) -> None:
        self._known = {id_: known for id_, known in self._known.items() if id_ in here}
        left = _MOST_LOOKED_AT
        for id_, seat in here.items():
            if id_ in self._known or not (left > 0 or id_ in begun):
                continue
            left -= 1
            if found := queue.find(self._files, id_, seats=(seat,)):
                task = found.task
                title = sys.intern((task.title or first_line(task.prompt))[:_TITLE])  # many alike
                order, _, created, _ = queue.order_of(task)
                job_id = self._job_of(task)
                self._known[id_] = LiveTask(job_id, task.internal, order, created, title)
