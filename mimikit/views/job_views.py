"""Jobs as page, terminal and API show them, read from the ledger, the queues and the results."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection

from mimikit.language import phrases
from mimikit.language.plain_text import without_printed
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import Instant, LiveRun, time_text
from mimikit.protocol.results import TaskResult
from mimikit.tasks import ledger
from mimikit.tasks.queue import TaskSnapshot, TaskState
from mimikit.triggers import registry
from mimikit.views import jobs, tasks
from mimikit.views.base import Render, Title, View
from mimikit.views.jobs import Job, JobKind, JobState
from mimikit.views.triggers import RecentRun

RESULT_SHOWN = 1200
_TAIL_BYTES, _TAIL_LINES, _TAIL_SHOWN = 8192, 4, 400
_PRINTED = frozenset({"output", "line", "delta", "message"})


class JobStepView(View):
    """One task of a job."""

    id: str
    title: Title
    state: TaskState
    pending: bool
    """It waits for other steps; its id is a trigger's."""


class JobOutcome(View):
    """How a job, or the last run of a trigger, ended: its result, or why it failed, said once."""

    task_id: str
    state: str
    text: str
    """At most the beginning; of a failure the end."""
    cut: int
    """Characters that are not in `text`."""
    html: str | None
    """Null without a text."""
    error: str
    """Without what `text` or `exit_code` says."""
    exit_code: int | None
    failure_reason: str | None


class JobView(View):
    """One request and what came of it, or a trigger and its runs."""

    id: str
    kind: JobKind
    title: Title
    state: JobState
    message_id: str | None
    """The message that asked for it."""
    task_id: str
    """The task that stands for it: to open, cancel or retry."""
    profile: str
    asked_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    not_before: Instant | None
    waits_for: str | None
    failure_reason: str | None
    headline: str
    tail: str
    """The last lines that a running job printed."""
    steps: list[JobStepView]
    runs: int
    """Of a trigger: how often it fired."""
    changes: int
    """Of a trigger: how many runs ended otherwise than the one before."""
    failures: int
    outcome: JobOutcome | None
    """Of an ended job, where it was asked for in full, and of the last run of a trigger."""


class JobPage(View):
    """Jobs in progress, then ended ones, newest first; and how many there are in each state."""

    jobs: list[JobView]
    totals: dict[JobState, int]
    found: int
    """How many fit the filter."""
    before: str | None
    """The cursor of the next page; null after the very first job."""


class JobReader:
    """Reads the ledger on from where it was. Thread-safe."""

    def __init__(self, files: ReadOnlyFiles, render: Render | None = None) -> None:
        self._files, self._render = files, render
        self._lock = threading.Lock()
        self._ended: dict[str, Job] = {}
        self._place = ("", 0)

    def all(self) -> dict[str, Job]:
        with self._lock:
            live = tasks.live_snapshots(self._files)  # first: the ledger has what ends meanwhile
            for name, offset, line in ledger.lines(self._files, *self._place):
                self._place = (name, offset)
                jobs.fold(self._ended, line)
            return jobs.with_live(self._ended, live)

    def recent_runs(self) -> Callable[[str], list[RecentRun]]:
        """Looks up the newest runs of triggers; the ledger is read on once, at the first."""
        found = functools.cache(self.all)

        def runs_of(trigger_id: str) -> list[RecentRun]:
            job = found().get(trigger_id)
            return [RecentRun.of(step) for step in job.recent] if job else []

        return runs_of

    def totals(self, found: dict[str, Job] | None = None) -> dict[JobState, int]:
        """A task beyond those of a queue that are read counts as one waiting job."""
        counts = jobs.totals((self.all() if found is None else found).values())
        for name in paths.QUEUES:
            unread = len(self._files.names(f"{name}/queue")) - tasks.MAX_LIVE
            counts["waiting"] += max(0, unread)
        return counts

    def page(
        self,
        live: dict[str, LiveRun],
        *,
        q: str = "",
        states: Collection[str] = (),
        kind: JobKind | None = None,
        before: str = "",
        limit: int = 50,
        most_live: int = 2 * tasks.MAX_LIVE,
    ) -> JobPage:
        """Jobs that fit, from a cursor on; those in progress are on the first page."""
        found = self.all()
        words = q.casefold().split()
        fit = [
            job
            for job in jobs.in_order(found.values())
            if (not states or job.state in states)
            and kind in (None, job.kind)
            and all(word in f"{jobs.title_of(job)} {job.id}".casefold() for word in words)
        ]
        ended = [job for job in fit if job.state not in jobs.LIVE]
        running = [] if before else fit[: len(fit) - len(ended)][:most_live]
        rest = [job for job in ended if not before or _cursor(job) < before]
        shown = rest[:limit]
        return JobPage(
            jobs=[view for job in (*running, *shown) if (view := self.view(job, live))],
            totals=self.totals(found),
            found=len(fit),
            before=_cursor(shown[-1]) if len(rest) > len(shown) else None,
        )

    def runs(self, trigger_id: str, live: dict[str, LiveRun], before: str, limit: int) -> JobPage:
        """The ended runs of one trigger, newest first, each as a job."""
        shown: list[Job] = []
        for line in ledger.runs_of(self._files, trigger_id):
            one: dict[str, Job] = {}
            jobs.fold(one, {**line, "sourceTriggerId": None, "traceId": line["id"]})
            job = next(iter(one.values()))
            if (not before or _cursor(job) < before) and job.state:
                shown.append(job)
            if len(shown) > limit:
                break
        views = [view for job in shown[:limit] if (view := self.view(job, live))]
        more = _cursor(shown[limit - 1]) if len(shown) > limit else None
        return JobPage(jobs=views, totals=self.totals(), found=len(views), before=more)

    def cards(self, about: Collection[str], live: dict[str, LiveRun]) -> list[JobView]:
        """In full: the jobs that these messages asked for, and these triggers."""
        asked = [it for it in self.all().values() if it.id in about or it.message_id in about]
        return [view for job in asked if (view := self.view(job, live, in_full=True))]

    def find(self, job_id: str, live: dict[str, LiveRun]) -> JobView | None:
        """In full; None also while nothing came of it."""
        found = self.all()
        job = found.get(job_id)
        job = found.get(job.part_of, job) if job else None
        return job and self.view(job, live, in_full=True)

    def view(self, job: Job, live: dict[str, LiveRun], *, in_full: bool = False) -> JobView | None:
        state, step = job.state, job.main
        if state is None or step is None:
            return None
        snapshot = tasks.find_snapshot(self._files, step.id)
        record = tasks.task_view(self._files, snapshot, live) if snapshot else None
        is_trigger = job.kind == "trigger"
        end = snapshot if state not in jobs.LIVE else None
        if is_trigger and end is None and job.ended_runs:
            end = tasks.find_snapshot(self._files, job.ended_runs[-1].id)
        return JobView(
            id=job.id,
            kind=job.kind,
            title=jobs.title_of(job) or (record.title if record else step.id),
            state=state,
            message_id=job.message_id,
            task_id=step.id,
            profile=record.profile if record else "",
            asked_at=job.asked_at,
            started_at=record.started_at if record else None,
            ended_at=job.ended_at,
            not_before=record.not_before if record else None,
            waits_for=record.waits_for if record else None,
            failure_reason=step.failure_reason,
            headline=record.headline if record else "",
            tail=self._tail(step.id) if in_full and step.state == "running" else "",
            steps=[JobStepView.of(one) for one in job.shown] if in_full else [],
            runs=job.runs,
            changes=registry.state(self._files, job.id).changes if is_trigger else 0,
            failures=job.failures if is_trigger else 0,
            outcome=self._outcome(end) if end and (in_full or is_trigger) else None,
        )

    def _outcome(self, snapshot: TaskSnapshot) -> JobOutcome | None:
        found = tasks.result_of(snapshot)
        if found is None:
            return None
        is_output = snapshot.task.profile == "command" and isinstance(snapshot.outcome, TaskResult)
        error = without_printed(found.error or "", found.text)
        if found.exit_code is not None:
            error = error.removeprefix(f"exit code {found.exit_code}").lstrip()
        text = "" if found.text == found.error else found.text.strip("\n")
        shown = text[-RESULT_SHOWN:] if found.error else text[:RESULT_SHOWN]
        written = phrases.fence(shown) if is_output or found.error else shown
        rendered = self._render(written) if shown and self._render else None
        return JobOutcome(
            task_id=snapshot.task.id,
            state=found.status,
            text=shown,
            cut=len(text) - len(shown),
            html=rendered,
            error=error,
            exit_code=found.exit_code,
            failure_reason=found.failure_reason,
        )

    def _tail(self, task_id: str) -> str:
        stat = self._files.stat(paths.run_output(task_id))
        begin = max(0, stat.size - _TAIL_BYTES) if stat else 0
        events, _, _ = tasks.output(self._files, task_id, begin)
        printed = "".join(event.text for event in events if event.type in _PRINTED)
        lines = [line for line in printed.splitlines() if line.strip()]
        return "\n".join(lines[-_TAIL_LINES:])[-_TAIL_SHOWN:]


def _cursor(job: Job) -> str:
    return f"{time_text(job.ended_at or job.asked_at)}|{job.id}"
