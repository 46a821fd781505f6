"""The jobs of a state folder: found by id, listed, and kept up with."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TypeVar
from zoneinfo import ZoneInfo

from mimikit.language.plain_text import plain
from mimikit.language.reasons import reason_words
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import LiveRun, Task
from mimikit.protocol.records import whole_lines
from mimikit.tasks import queue
from mimikit.tools import world
from mimikit.views import tasks
from mimikit.views.job_index import (
    EndedFirings,
    EndedJob,
    EndedTask,
    JobIndex,
    JobPlace,
    LiveJobs,
    LiveTasks,
    firings_back,
)
from mimikit.views.jobs import (
    MOST_STEPS,
    JobCounts,
    JobList,
    JobMember,
    JobState,
    JobView,
    StepView,
    clip,
    firing_job,
    request_job,
    state_of_live,
    trigger_job,
)
from mimikit.views.tasks import TaskView
from mimikit.views.waiting_steps import WaitingSteps

T = TypeVar("T")

FIRST_LIVE = 20
FIRST_ENDED = 12
"""Jobs that a page begins with; it asks for more."""
_NEWEST = "9999-12.jsonl@0"
"""The place after every line of the ledger."""
MOST_LINES = 3
_LINE = 200
_TAIL_BYTES = 8192
_MOST_KEPT = 2000
_ERROR = 300
_MOST_READ = 100
"""Of a job, ended tasks whose files are read; of those before the ledger tells."""
_MOST_LIVE = 100
"""Of a job, tasks that wait or run."""
_OUTPUT = frozenset({"output", "delta", "message"})


@dataclass(frozen=True, slots=True)
class JobScene:
    """What is at work at one moment: the tasks by job, the live runs by id."""

    live: LiveJobs
    runs: dict[str, LiveRun]
    now: datetime


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are asked for."""

    states: frozenset[JobState] = frozenset()
    """None: all of them."""
    text: str = ""
    """It stands in their title, in whatever case."""

    def takes(self, state: str) -> bool:
        return not self.states or state in self.states

    def fits(self, title: str) -> bool:
        return self.text.casefold() in title.casefold()


class JobReader:
    """The jobs of a state folder."""

    def __init__(self, files: ReadOnlyFiles, zone: ZoneInfo) -> None:
        self._files, self._zone = files, zone
        self._index = JobIndex(files, zone, self._stays)
        self._live = LiveTasks(files, self.job_of)
        self._waiting = WaitingSteps(files)
        self._lock = threading.Lock()
        self._ended: dict[str, JobMember] = {}
        self._job_ids: dict[str, str | None] = {}

    # ---- what belongs to what -----------------------------------------------------------------

    def job_of(self, task: Task) -> str:
        """The job of a task: its trace, or the trigger whose firing it is."""
        return queue.job_of(task, self._stays)

    def job_id(self, task_id: str) -> str | None:
        """The job of a task by its id; None when nothing is known of that task any more."""
        with self._lock:
            if task_id in self._job_ids:
                return self._job_ids[task_id]
        found = queue.find(self._files, task_id)
        if found is None or found.task.internal:
            return None
        job_id = self.job_of(found.task)
        with self._lock:
            _keep(self._job_ids, task_id, job_id)
        return job_id

    def _stays(self, trigger_id: str) -> bool:
        trigger, _ = world.active(self._files, trigger_id)
        return trigger is not None and trigger.stays

    # ---- views --------------------------------------------------------------------------------

    def scene(self, runs: dict[str, LiveRun], now: datetime) -> JobScene:
        """What is at work now. Live tasks first: one that ends meanwhile is in both, not lost."""
        live = self._live.look()
        self._index.keep_up()
        for trace_id in self._waiting.by_trace():
            if isinstance(self._index.find(trace_id), EndedJob):
                live.add_waiting(trace_id)
        return JobScene(live, runs, now)

    def find(self, job_id: str, here: JobScene, most: int = MOST_STEPS) -> JobView | None:
        """One job with its last steps, at `most`; None when there is none of this id."""
        ended, live = self._index.find(job_id), self._live_members(job_id, here)
        if ended is None and live and all(one.trigger_id == job_id for one in live):
            ended = EndedFirings(job_id)
        if isinstance(ended, EndedFirings):
            last = self._ended_member(ended.last) if ended.last else None
            trigger, _ = world.active(self._files, job_id)
            today = here.now.astimezone(self._zone).date()
            return trigger_job(ended, live, last, trigger, today=today, lines=self._lines)
        known = self._ended_members(list(ended.tasks)) if ended else []
        ids = {one.id for one in known}
        members = known + [one for one in live if one.id not in ids]
        if len(known) <= _MOST_READ:
            members.sort(key=lambda one: one.created_at)
        if not members:
            return None
        return request_job(
            job_id, members, self._waiting.by_trace().get(job_id, []), most, self._lines
        )

    def of_task(self, task_id: str, here: JobScene, most: int = MOST_STEPS) -> JobView | None:
        """The job of a task; None for what is not shown as work."""
        job_id = self.job_id(task_id)
        return self.find(job_id, here, most) if job_id else None

    def of_step(self, trigger_id: str, here: JobScene) -> JobView | None:
        """The job in which a trigger is, or was, a step that waits."""
        trace_id = self._waiting.trace_of(trigger_id)
        return self.find(trace_id, here) if trace_id else None

    def first(self, here: JobScene, named: Collection[str]) -> list[JobView]:
        """What a page begins with: jobs at work, those that ended last, and those named."""
        begun = [id_ for id_, ids in here.live.tasks.items() if not here.live.begun.isdisjoint(ids)]
        live = [*begun, *list(here.live.tasks)[:FIRST_LIVE]]
        newest = (job.id for job in self._index.newest() if job.id not in here.live.tasks)
        ids = dict.fromkeys([*live, *islice(newest, FIRST_ENDED), *named])
        return [job for id_ in ids if (job := self.find(id_, here))]

    def listed(self, here: JobScene, wanted: JobFilter, before: str, limit: int) -> JobList:
        """Jobs at work, then ended ones, newest end first.

        before: `l` and the place of the last that was given of those at work, `e` and that of the
            last that had ended; else from the first on.
        """
        states = {id_: self._live_state(id_, here) for id_ in here.live.tasks}
        ended = [job for job in self._index.newest() if job.id not in states]
        counts = Counter(states.values())
        if wanted.text:
            states = {id_: it for id_, it in states.items() if wanted.fits(self._title(id_, here))}
            ended = [job for job in ended if wanted.fits(job.title)]
            counts = Counter(states.values())
        counts.update(job.state for job in ended)
        live = [id_ for id_, state in states.items() if wanted.takes(state)]
        live.sort(key=here.live.place)
        upto = sys.maxsize
        if before.startswith("e"):
            live, upto = [], int(before[1:])
        elif before:
            last = JobPlace.parse(before[1:])
            live = [id_ for id_ in live if here.live.place(id_) > last]
        ids = live[:limit]
        rest = [job for job in ended if job.seq < upto and wanted.takes(job.state)]
        shown = rest[: limit - len(ids)]
        cursor = None
        if len(live) > limit or len(shown) < len(rest):
            cursor = f"e{shown[-1].seq}" if shown else f"l{here.live.place(ids[-1])}"
        ids += [job.id for job in shown]
        return JobList(
            jobs=[job for id_ in ids if (job := self.find(id_, here))],
            before=cursor,
            total=sum(count for state, count in counts.items() if wanted.takes(state)),
            counts=JobCounts(**counts),
        )

    def firings(
        self, trigger_id: str, here: JobScene, wanted: JobFilter, before: str, limit: int
    ) -> JobList:
        """The firings of a trigger, each alone: those at work, then those that ended, newest first.

        before: the name and the place in the ledger of the last that was given.
        """
        known = self._index.find(trigger_id)
        live = self._live_members(trigger_id, here)
        counts = Counter(state_of_live([one]) or "waiting" for one in live)
        counts.update(known.counts if isinstance(known, EndedFirings) else {})
        jobs = [] if before else [firing_job(one, self._lines) for one in live]
        jobs = [job for job in jobs if wanted.takes(job.state)]
        begin, _, offset = (before or _NEWEST).rpartition("@")
        cursor, last = None, before or _NEWEST
        given = {one.id for one in live}  # one that ends meanwhile is in both
        for name, place, end in firings_back(self._files, trigger_id, (begin, int(offset))):
            if len(jobs) >= limit:
                cursor = last
                break
            if end.id not in given and wanted.takes(end.status):
                jobs.append(firing_job(self._ended_member(end), self._lines))
            last = f"{name}@{place}"
        return JobList(
            jobs=jobs,
            before=cursor,
            total=sum(count for state, count in counts.items() if wanted.takes(state)),
            counts=JobCounts(**counts),
        )

    def counts(self, here: JobScene) -> JobCounts:
        """Jobs by state, all there are."""
        counts = self._index.counts()
        for job_id in here.live.tasks:
            counts[self._live_state(job_id, here)] += 1
            if ended := self._index.find(job_id):
                counts[ended.state] -= ended.is_shown
        return JobCounts(**counts)

    def _live_state(self, job_id: str, here: JobScene) -> JobState:
        ids = here.live.tasks[job_id]
        if here.live.begun.isdisjoint(ids):
            return "waiting"
        job = self.find(job_id, here)
        return job.state if job else "running"

    def _title(self, job_id: str, here: JobScene) -> str:
        ended = self._index.find(job_id)
        return ended.title if ended else here.live.title(job_id)

    def _live_members(self, job_id: str, here: JobScene) -> list[JobMember]:
        ids = here.live.tasks.get(job_id, [])[:_MOST_LIVE]
        found = (tasks.find_view(self._files, id_) for id_ in ids)
        runs = dict(here.runs)
        return [
            self._member(known.task, tasks.task_view(self._files, known, runs), here.now)
            for known in found
            if known is not None
        ]

    def _ended_members(self, ends: list[EndedTask]) -> list[JobMember]:
        """Tasks that ended, oldest end first; of very many the files of those shown are read."""
        failed = next((end for end in reversed(ends) if end.status == "failed"), None)
        read = {end.id for end in (ends[0], *ends[-_MOST_READ:], failed) if end}
        return [self._ended_member(end) if end.id in read else _told_member(end) for end in ends]

    def _ended_member(self, end: EndedTask) -> JobMember:
        """A task that ended; of one whose files are gone what the ledger tells."""
        with self._lock:
            if end.id in self._ended:
                return self._ended[end.id]
        known = tasks.find_view(self._files, end.id)
        if known is None:
            member = _told_member(end)
        elif known.completed_at is None:  # its line stands, its record is on its way
            return _told_member(end)
        else:
            member = self._member(known.task, tasks.task_view(self._files, known, {}))
        with self._lock:
            _keep(self._ended, end.id, member)
        return member

    def _member(self, task: Task, view: TaskView, now: datetime | None = None) -> JobMember:
        error = view.error and clip(view.error, _ERROR)
        step = StepView(
            id=task.id,
            kind="plan" if view.seat == "planner" else "work",
            title=view.title,
            state=view.state,
            started_at=view.started_at,
            ended_at=view.completed_at,
            error=error,
            why=reason_words(error),
            failure_reason=view.failure_reason,
            waits_for=view.waits_for if view.state == "queued" else None,
        )
        waits = now and view.state == "queued" and view.not_before and view.not_before > now
        return JobMember(
            step,
            created_at=task.created_at,
            trigger_id=task.source_trigger_id if self.job_of(task) != task.trace_id else None,
            retry_of=task.retry_of,
            headline=view.headline,
            not_before=view.not_before if waits else None,
        )

    def _lines(self, member: JobMember) -> list[str]:
        """The last lines that a running task has written."""
        return last_lines(self._files, member.id) if member.step.state == "running" else []


def _told_member(end: EndedTask) -> JobMember:
    step = StepView(
        id=end.id,
        kind="plan" if end.seat == "planner" else "work",
        title=end.title or end.id,
        state=end.status,
        started_at=None,
        ended_at=end.at,
        error=None,
        why=None,
        failure_reason=None,
        waits_for=None,
    )
    return JobMember(step, end.at, retry_of=end.retry_of)


def last_lines(files: ReadOnlyFiles, run_id: str) -> list[str]:
    """The last lines of what a run wrote, oldest first; without those that say nothing."""
    path = paths.run_output(run_id)
    stat = files.stat(path)
    if stat is None:
        return []
    begin = max(0, stat.size - _TAIL_BYTES)
    data = files.part(path, begin, _TAIL_BYTES)
    data = data[data.find(b"\n") + 1 :] if begin else data
    text, kind = "", ""
    for _, line in whole_lines(data):
        if line.get("type") in _OUTPUT:
            is_new = line.get("type") != kind and text
            kind = str(line.get("type"))
            text += ("\n" if is_new else "") + str(line.get("text") or "")
    said = [line.strip() for line in plain(text).splitlines()]
    return [clip(line, _LINE) for line in said if line][-MOST_LINES:]


def _keep(kept: dict[str, T], key: str, value: T) -> None:
    """Remember a few things, the newest."""
    if len(kept) >= _MOST_KEPT:
        del kept[next(iter(kept))]
    kept[key] = value
