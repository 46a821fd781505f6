"""Work in the terminal: what belongs together as one, its steps below it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from mimikit.cli import client, terminal
from mimikit.protocol.models import LiveRun, Message
from mimikit.state import ReadOnlyState
from mimikit.tasks.usage import held_for
from mimikit.views.job_reader import JobFilter, JobReader
from mimikit.views.jobs import JobCounts, JobList, JobState, JobView, StepView

_AT_WORK: dict[str | None, frozenset[JobState]] = {
    None: frozenset({"planning", "waiting", "running", "asking"}),
    "queued": frozenset({"waiting"}),
    "running": frozenset({"planning", "running"}),
    "asking": frozenset({"asking"}),
}
_ENDED: dict[str | None, frozenset[JobState]] = {
    None: frozenset({"done", "failed", "canceled"}),
    "done": frozenset({"done"}),
    "failed": frozenset({"failed"}),
    "canceled": frozenset({"canceled"}),
}
"""By the state of a task that is asked for."""
_MOST_AT_WORK = 200
_NEWS_TITLE = 60
_MOST_NAMED = 20
Row = tuple[str, str, str, str]


def listed_jobs(
    state: ReadOnlyState, runs: dict[str, LiveRun], only: str | None, limit: int
) -> JobList:
    """The jobs at work, and so many of those that ended last; `total` counts the others, too."""
    reader = JobReader(state.files, state.settings.zone)
    here = reader.scene(runs, state.clock.now())
    parts = [
        reader.listed(here, JobFilter(states), "", most)
        for states, most in ((_AT_WORK.get(only), _MOST_AT_WORK), (_ENDED.get(only), limit))
        if states is not None
    ]
    jobs = [job for part in parts for job in part.jobs]
    total = sum(part.total for part in parts)
    return JobList(jobs=jobs, before=None, total=total, counts=parts[0].counts)


def find_job(state: ReadOnlyState, given: str, *, of_task: bool = False) -> str | None:
    """A job by its whole id, or by that of a task of it; None when there is none."""
    reader = JobReader(state.files, state.settings.zone)
    here = reader.scene(client.look_at_consumer(state).live, state.clock.now())
    job = reader.of_task(given, here) if of_task else reader.find(given, here)
    return job.id if job else None


def job_lines(found: JobList, now: datetime, empty: str) -> list[str]:
    """A table of jobs, and how many there are beyond it."""
    rows = [row for job in found.jobs for row in _rows(job, now)]
    lines = terminal.table(("ID", "STATE", "WHEN", "WHAT"), rows, empty)
    if more := found.total - len(found.jobs):
        lines.append(terminal.dim(f"… and {more:,} more: -n shows as many as you like"))
    return lines


def _rows(job: JobView, now: datetime) -> Iterator[Row]:
    short = terminal.room() is not None
    what = f"{job.title}: {job.headline}" if job.headline else job.title
    if job.kind == "trigger":
        what = f"{what} · {firing_words(job)}"
    id_ = client.short_id(job.task_id) if short else job.task_id
    yield id_, terminal.state(job.state), when(job, now), terminal.one_line(what)
    if job.total > 1:
        for step in job.steps:
            id_ = client.short_id(step.id) if short else step.id
            title = terminal.one_line(f"plan: {step.title}" if step.kind == "plan" else step.title)
            yield f"  {id_}", terminal.state(step.state), _step_when(step, now), f"  {title}"


def when(job: JobView, now: datetime) -> str:
    """Since when it waits or runs, or when it ended."""
    if job.state == "waiting":
        return waiting_words(job.waits_for, job.not_before, job.created_at, now)
    if job.state == "asking":
        return "waits for an answer"
    if job.state in ("running", "planning"):
        return running_words(job.started_at, now)
    return terminal.ago(job.ended_at or job.created_at, now)


def _step_when(step: StepView, now: datetime) -> str:
    if step.state in ("queued", "asking"):
        return ""
    if step.ended_at is None:
        return running_words(step.started_at, now)
    return terminal.ago(step.ended_at, now)


def waiting_words(
    waits_for: str | None, not_before: datetime | None, since: datetime, now: datetime
) -> str:
    """What something waits for, or for how long it has waited."""
    if waits_for:
        return f"waits for {'tokens' if held_for(waits_for) else waits_for}"
    if not_before and not_before > now:
        return f"starts {terminal.ago(not_before, now)}"
    return f"waits {terminal.short_span((now - since).total_seconds())}"


def running_words(since: datetime | None, now: datetime) -> str:
    return f"for {terminal.short_span((now - since).total_seconds())}" if since else "now"


def firing_words(job: JobView) -> str:
    """How often a trigger fired today, and what came of it."""
    counts = job.counts
    number = counts.done + counts.failed + counts.canceled
    parts = [f"{number:,} today"]
    parts += [f"{job.changed:,} changed"] if job.changed else []
    parts += [f"{counts.failed:,} failed"] if counts.failed else []
    return ", ".join(parts)


def work_words(counts: JobCounts | None) -> str:
    """How much work there is, by its state; "" where there never was any, or nobody knows."""
    found = counts.model_dump() if counts else {}
    return ", ".join(f"{number:,} {state}" for state, number in found.items() if number)


class JobNews:
    """Says in a line each when work that a conversation speaks of begins and ends."""

    def __init__(self, state: ReadOnlyState) -> None:
        self._state = state
        self._reader = JobReader(state.files, state.settings.zone)
        self._named: list[str] = []
        """Tasks of which nothing is known yet."""
        self._said: dict[str, JobState | None] = {}
        """By job of which something is still to be said: the state that was said last."""

    def hear(self, message: Message) -> None:
        """From now on the work that this speaks of is followed, if it goes on."""
        if message.reminder is None and message.trigger_id is None:
            self._named = [*self._named, *message.task_ids][-_MOST_NAMED:]

    def lines(self) -> Iterator[str]:
        """What has changed since they were asked for last."""
        # A reply is written down before the task that it names.
        found = {id_: job_id for id_ in self._named if (job_id := self._reader.job_id(id_))}
        self._named = [id_ for id_ in self._named if id_ not in found]
        for job_id in found.values():
            self._said.setdefault(job_id, None)
        if not self._said:
            return
        runs = client.look_at_consumer(self._state).live
        here = self._reader.scene(runs, self._state.clock.now())
        for job_id, said in list(self._said.items()):
            job = self._reader.find(job_id, here)
            is_over = job is None or job.ended_at is not None
            if is_over:
                del self._said[job_id]
            elif job is not None:
                self._said[job_id] = job.state
            is_new = job is not None and job.state != said and not (is_over and said is None)
            if job is not None and is_new and job.state in _SAID:
                yield _news(job)


_SAID = frozenset({"running", "done", "failed", "canceled"})


def _news(job: JobView) -> str:
    took = ""
    if job.ended_at is not None and job.started_at is not None:
        took = f", {terminal.span((job.ended_at - job.started_at).total_seconds())}"
    why = f": {job.error}" if job.error else ""
    title = terminal.clip(terminal.one_line(job.title), _NEWS_TITLE)
    word = terminal.coloured(job.state, job.state)
    return terminal.dim(f"· {title} — ") + word + terminal.dim(terminal.one_line(f"{took}{why}"))
