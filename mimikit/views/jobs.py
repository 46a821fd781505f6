"""Work as it is shown: what came of one request is one job, the firings of a trigger another.

The records stay one each; page, terminal and API show them alike. Here are the models, and what
makes a job of its members; pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from mimikit.protocol.models import EndStatus, Instant
from mimikit.protocol.triggers import Trigger
from mimikit.tasks.queue import TaskState
from mimikit.tools import world
from mimikit.views.base import Title, View, Words
from mimikit.views.job_index import EndedFirings, folded, state_of
from mimikit.views.waiting_steps import WaitingStep

JobState = Literal["planning", "waiting", "running", "asking", "done", "failed", "canceled"]
JobKind = Literal["request", "trigger", "firing"]
"""A firing is shown alone where one asks for those of its trigger."""
MOST_STEPS = 20


class StepView(View):
    """A part of a job: a plan, or a piece of work; what was tried again is shown once."""

    id: str
    """Of its task that was begun last; of one that waits for others, of what will begin it."""
    kind: Literal["plan", "work"]
    title: Title
    state: TaskState
    started_at: Instant | None
    ended_at: Instant | None
    error: str | None
    why: Words | None
    """The error in each language, where code has said it."""
    failure_reason: str | None
    waits_for: str | None
    """The engine that it waits for."""


class StepCounts(View):
    """Steps by state; of a trigger its firings of the local day."""

    queued: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    canceled: int = 0


class JobView(View):
    """One job as it stands now."""

    id: str
    """The trace of a request; the trigger whose firings it is."""
    kind: JobKind
    title: Title
    state: JobState
    """Of the whole; waiting: queued, for an engine or its time, or for what comes before."""
    created_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    headline: str
    """What runs does now."""
    lines: list[str]
    """The last lines of output of what runs now."""
    waits_for: str | None
    """The engine that it waits for."""
    not_before: Instant | None
    """The time that it waits for."""
    steps: list[StepView]
    """The last ones, oldest first; none of a trigger."""
    total: int
    """Of a trigger: all its firings that are known."""
    counts: StepCounts
    changed: int
    """Of a trigger: how often today a firing came out otherwise than the one before."""
    last_at: Instant | None
    """Of a trigger: when a firing ended last."""
    task_id: str
    """The task to open, cancel or retry: what runs, else what failed last, else the last."""
    failed_task_id: str | None
    """The one that failed last: of a trigger, today, and none has succeeded since."""
    error: str | None
    """Of a job that failed: why, in one line."""


class JobCounts(View):
    """Jobs by state: all there are."""

    planning: int = 0
    waiting: int = 0
    running: int = 0
    asking: int = 0
    done: int = 0
    failed: int = 0
    canceled: int = 0


class JobList(View):
    """Some jobs: those at work in the order they are taken, then those that ended last."""

    jobs: list[JobView]
    before: str | None
    """The cursor of those that come after them in this order."""
    total: int
    """How many there are under what was asked for."""
    counts: JobCounts
    """The same by state, whichever state was asked for."""


@dataclass(frozen=True, slots=True)
class JobMember:
    """A task of a job, with what the whole takes from it."""

    step: StepView
    created_at: datetime
    trigger_id: str | None = None
    retry_of: str | None = None
    headline: str = ""
    not_before: datetime | None = None

    @property
    def id(self) -> str:
        return self.step.id

    @property
    def is_over(self) -> bool:
        return self.step.ended_at is not None


def firing_job(member: JobMember, lines: Callable[[JobMember], list[str]]) -> JobView:
    """One firing, alone."""
    whole = request_job(member.id, [member], [], 0, lines)
    return whole.model_copy(update={"kind": "firing"})


def trigger_job(
    ended: EndedFirings,
    live: Sequence[JobMember],
    last: JobMember | None,
    trigger: Trigger | None,
    *,
    today: date,
    lines: Callable[[JobMember], list[str]],
) -> JobView | None:
    """The firings of a trigger; None before the first one.

    last: the one that ended last. today: the local day, of which the counts are.
    """
    begun = next((one for one in live if one.step.state != "queued"), None)
    at_it = begun or (live[0] if live else None)
    shown = at_it or last
    if shown is None:
        return None
    of_day = ended.of_day if ended.day == today else Counter[str]()
    failed = ended.last_failed if of_day["failed"] else None
    states = [one.step.state for one in live]
    return JobView(
        id=ended.id,
        kind="trigger",
        title=world.title(trigger) if trigger else shown.step.title,
        state=state_of_live(live) or ended.state,
        created_at=trigger.created_at if trigger else ended.began or shown.created_at,
        started_at=shown.step.started_at,
        ended_at=shown.step.ended_at,
        headline=shown.headline,
        lines=lines(begun) if begun else [],
        waits_for=shown.step.waits_for,
        not_before=shown.not_before,
        steps=[],
        total=sum(ended.counts.values()) + len(live),
        counts=StepCounts(
            queued=states.count("queued"),
            running=len(states) - states.count("queued"),
            done=of_day["done"],
            failed=of_day["failed"],
            canceled=of_day["canceled"],
        ),
        changed=of_day["changed"],
        last_at=ended.last.at if ended.last else None,
        task_id=shown.id,
        failed_task_id=failed.id if failed else None,
        error=why(shown) if shown.step.state == "failed" else None,
    )


def request_job(
    job_id: str,
    members: Sequence[JobMember],
    waiting: Sequence[WaitingStep],
    most: int,
    lines: Callable[[JobMember], list[str]],
) -> JobView:
    """The job of a request: its tasks, and the steps that wait for them; `lines` of what runs."""
    found = folded(members)
    live = [one for one in found if not one.is_over]
    begun = next((one for one in live if one.step.state != "queued"), None)
    failed = _newest(one for one in found if one.step.state == "failed")
    at_it = begun or (live[0] if live else None)
    is_over = not live and not waiting
    steps = [one.step for one in found] + [_waiting_step(one) for one in waiting]
    states = [step.state for step in steps]
    started = [one.step.started_at for one in found if one.step.started_at]
    ended = [one.step.ended_at for one in found if one.step.ended_at]
    return JobView(
        id=job_id,
        kind="request",
        title=members[0].step.title,
        state=state_of_live(live)
        or ("waiting" if waiting else state_of([ended_state(one.step.state) for one in found])),
        created_at=members[0].created_at,
        started_at=min(started, default=None),
        ended_at=max(ended, default=None) if is_over else None,
        headline=at_it.headline if at_it else "",
        lines=lines(begun) if begun else [],
        waits_for=at_it.step.waits_for if at_it else None,
        not_before=at_it.not_before if at_it else None,
        steps=steps[-most:] if most else [],
        total=len(steps),
        counts=StepCounts(
            queued=states.count("queued"),
            running=states.count("running") + states.count("asking"),
            done=states.count("done"),
            failed=states.count("failed"),
            canceled=states.count("canceled"),
        ),
        changed=0,
        last_at=None,
        task_id=(at_it or failed or _newest(found) or found[-1]).id,
        failed_task_id=failed.id if failed else None,
        error=why(failed) if failed and is_over else None,
    )


def why(failed: JobMember) -> str:
    """Why a task failed, in one line."""
    return " ".join((failed.step.error or failed.step.failure_reason or "").split())


def state_of_live(live: Iterable[JobMember]) -> JobState | None:
    """The state of a whole of which something is not over; None when nothing is."""
    kinds = {(one.step.state, one.step.kind) for one in live}
    states = {state for state, _ in kinds}
    if "asking" in states:
        return "asking"
    if ("running", "work") in kinds:
        return "running"
    if "running" in states:
        return "planning"
    return "waiting" if states else None


def ended_state(state: TaskState) -> EndStatus:
    return state if state in ("done", "failed", "canceled") else "done"


def _waiting_step(step: WaitingStep) -> StepView:
    return StepView(
        id=step.id,
        kind="work",
        title=step.title,
        state="queued",
        started_at=None,
        ended_at=None,
        error=None,
        why=None,
        failure_reason=None,
        waits_for=None,
    )


def _newest(members: Iterable[JobMember]) -> JobMember | None:
    return max(members, key=lambda one: one.step.ended_at or one.created_at, default=None)


def clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
