"""Jobs: what came of one request, or all runs of one trigger. Pure; records stay one each.

The ledger says what was asked and how it ended, the queues what waits and runs. A plan is a state
of its job, no step of its own, unless nothing came of it but its failure.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from mimikit.protocol.models import EndStatus, QueueName, parse_time
from mimikit.tasks.ledger import Line
from mimikit.tasks.queue import TaskSnapshot, TaskState

JobState: TypeAlias = Literal[
    "asked", "planning", "running", "waiting", "done", "failed", "canceled"
]
JobKind: TypeAlias = Literal["request", "trigger"]
STATES: tuple[JobState, ...] = get_args(JobState)
LIVE: tuple[JobState, ...] = ("running", "planning", "asked", "waiting")
"""In the order of lists."""
MAX_RECENT = 12
"""Ended runs that a trigger's job has of its past."""
ENDED: tuple[EndStatus, ...] = ("done", "failed", "canceled")


@dataclass(frozen=True)
class JobStep:
    """One task of a job, as the ledger or a queue knows it."""

    id: str
    title: str
    state: TaskState
    seat: QueueName
    at: datetime
    """When it ended; else when it was queued."""
    failure_reason: str | None = None
    retry_of: str | None = None
    pending: bool = False
    """It waits for other steps; its id is that of the trigger that will queue it."""


@dataclass(frozen=True)
class Job:
    id: str
    """The trace; of runs of a trigger the trigger."""
    kind: JobKind
    asked_at: datetime
    message_id: str | None = None
    """The message that asked for it."""
    title: str = ""
    steps: dict[str, JobStep] = field(default_factory=dict[str, JobStep])
    """By id, those that ended in order; of a trigger only the newest of them."""
    runs: int = 0
    failures: int = 0
    newest_run: str = ""
    ended_runs: tuple[JobStep, ...] = ()
    """Of a trigger: the newest that ended, oldest first."""
    part_of: str = ""
    """Of a trigger that is a step of a plan: the job of the plan."""

    @cached_property
    def main(self) -> JobStep | None:
        """The step that stands for the job: what runs, waits, failed, or ended last."""
        again = {step.retry_of for step in self.steps.values()}
        steps = [it for it in self.steps.values() if it.id not in again and not it.pending]
        if any(step.seat == "worker" for step in steps):  # the plans that led to work are over
            steps = [step for step in steps if step.seat == "worker" or step.state != "done"]
        for state in ("running", "asking", "queued", "failed", "canceled", "done"):
            found = [step for step in steps if step.state == state]
            if found:
                return found[0] if state == "queued" else found[-1]
        return None

    @cached_property
    def state(self) -> JobState | None:
        """None: nothing came of it that is work."""
        step = self.main
        if step is None or (step.seat == "planner" and step.state == "done"):
            return None
        if step.state == "queued":
            return "asked" if step.seat == "planner" else "waiting"
        if step.state == "asking" or (step.state == "done" and self.is_pending):
            return "waiting"
        return "planning" if step.seat == "planner" and step.state == "running" else step.state

    @property
    def is_pending(self) -> bool:
        return any(step.pending for step in self.steps.values())

    @property
    def shown(self) -> list[JobStep]:
        """Its steps without plans that led to them, pending ones last."""
        steps = sorted(self.steps.values(), key=lambda step: step.pending)
        return [it for it in steps if it.seat == "worker" or it.state in ("failed", "canceled")]

    @property
    def recent(self) -> list[JobStep]:
        """Of a trigger: its newest runs, oldest first, those in progress last."""
        ended = {step.id for step in self.ended_runs}
        live = [step for step in self.steps.values() if step.id not in ended]
        return [*self.ended_runs, *live][-MAX_RECENT:]

    @cached_property
    def ended_at(self) -> datetime | None:
        if self.state is None or self.state in LIVE:
            return None
        return max(step.at for step in self.steps.values())

    def without(self, step_id: str | None) -> dict[str, JobStep]:
        return {id_: step for id_, step in self.steps.items() if id_ != step_id}

    def after(self, step: JobStep, trigger_id: str | None = None) -> Job:
        """The job once a step has ended, which this trigger queued."""
        if self.kind == "request":
            return dataclasses.replace(self, steps={**self.without(trigger_id), step.id: step})
        if step.id in self.steps:  # a crash had written its line twice
            return self
        return dataclasses.replace(
            self,
            steps={step.id: step},
            failures=self.failures + (step.state == "failed"),
            ended_runs=(*self.ended_runs, step)[-MAX_RECENT:],
        )


def fold(jobs: dict[str, Job], line: Line) -> None:
    """Take a line of the ledger into the jobs, by id."""
    id_ = str(line.get("id"))
    if (at := parse_time(line.get("at"))) is None:
        return
    match line.get("event"):
        case "queued" | "ended":
            trigger_id = _text(line, "sourceTriggerId")
            key, kind = _place(jobs, trigger_id, _text(line, "traceId") or id_)
            job = jobs.get(key) or Job(key, kind, at)
            if job.message_id is None and (message_id := _text(line, "messageId")):
                job = dataclasses.replace(job, message_id=message_id)
            step = _ended_step(line, id_, at)
            jobs[key] = job.after(step, trigger_id) if step else job
        case "slot" | "ordered" if task_id := _text(line, "taskId"):
            job = jobs.get(id_) or Job(id_, "trigger", at)
            if task_id != job.newest_run:  # a crash may have written the line twice
                title, runs = _text(line, "title") or job.title, job.runs + 1
                job = dataclasses.replace(job, title=title, runs=runs, newest_run=task_id)
            jobs[id_] = job
        case "trigger_created" if trace := _text(line, "stepOf"):
            jobs[id_] = Job(id_, "trigger", at, part_of=trace)
            job = jobs.get(trace) or Job(trace, "request", at)
            step = JobStep(id_, _text(line, "title") or "", "queued", "worker", at, pending=True)
            jobs[trace] = dataclasses.replace(job, steps={**job.steps, id_: step})
        case "trigger_removed" if job := jobs.get(_place(jobs, id_, "")[0]):
            jobs[job.id] = dataclasses.replace(job, steps=job.without(id_))
        case _:
            return


def _place(jobs: Mapping[str, Job], trigger_id: str | None, trace_id: str) -> tuple[str, JobKind]:
    """Id and kind of the job that a task belongs to, which this trigger queued."""
    if trigger_id is None:
        return trace_id, "request"
    trigger = jobs.get(trigger_id)
    whole = trigger.part_of if trigger else ""
    return (whole, "request") if whole else (trigger_id, "trigger")


def _ended_step(line: Line, id_: str, at: datetime) -> JobStep | None:
    status: EndStatus | None = next((one for one in ENDED if one == line.get("status")), None)
    if status is None:
        return None
    return JobStep(
        id=id_,
        seat="planner" if line.get("seat") == "planner" else "worker",
        state=status,
        at=at,
        title=_text(line, "title") or "",
        failure_reason=_text(line, "failureReason"),
        retry_of=_text(line, "retryOf"),
    )


def _text(line: Line, key: str) -> str | None:
    value = line.get(key)
    return value if isinstance(value, str) and value else None


def with_live(jobs: Mapping[str, Job], live: Iterable[TaskSnapshot]) -> dict[str, Job]:
    """The jobs with the tasks that wait and run now."""
    found = dict(jobs)
    for snapshot in live:
        task = snapshot.task
        key, kind = _place(found, task.source_trigger_id, task.trace_id)
        job = found.get(key) or Job(key, kind, task.created_at)
        if task.id not in job.steps:  # else it has ended meanwhile
            at, again = task.created_at, task.retry_of
            step = JobStep(task.id, task.title, snapshot.state, task.role, at, retry_of=again)
            before = job.without(task.source_trigger_id)
            found[key] = dataclasses.replace(job, steps={**before, task.id: step})
    return found


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """Jobs in progress, those that run first; then ended ones, newest first."""
    shown = [(job, state) for job in jobs if (state := job.state)]
    live = [(LIVE.index(state), job.asked_at, job) for job, state in shown if state in LIVE]
    live.sort(key=lambda entry: entry[:2])
    ended = [job for job, state in shown if state not in LIVE]
    ended.sort(key=lambda job: (job.ended_at or job.asked_at, job.id), reverse=True)
    return [*(job for *_, job in live), *ended]


def totals(jobs: Iterable[Job]) -> dict[JobState, int]:
    """How many jobs are in each state; a trigger with its runs is one."""
    counts = Counter(job.state for job in jobs)
    return {state: counts[state] for state in STATES}


def title_of(job: Job) -> str:
    """Empty where its records have none."""
    work = [step for step in job.steps.values() if step.seat == "worker"]
    plan = next((it.title for it in job.steps.values() if it.seat == "planner" and it.title), "")
    own = next((step.title for step in work if step.title), "")
    return job.title or (plan if len(work) != 1 else own) or own or plan
