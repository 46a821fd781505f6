"""The consumer's health, the queues and the engines."""

from __future__ import annotations

import dataclasses
import socket
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from mimikit import __version__
from mimikit.config import Settings
from mimikit.conversation import inbox
from mimikit.log import log_tails
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.models import EngineStatus, Instant, LiveRun, Question, time_text
from mimikit.protocol.runtime import Health, LockHolder, RuntimeState
from mimikit.tasks import ledger
from mimikit.tools import world
from mimikit.triggers.explain import ExplanationContext
from mimikit.views import tasks, triggers
from mimikit.views.base import View
from mimikit.views.job_views import JobReader
from mimikit.views.jobs import JobState
from mimikit.views.messages import RESULTS
from mimikit.views.tasks import TaskView
from mimikit.views.triggers import TriggerView
from mimikit.views.usage import UsageReader, UsageTodayView

ConsumerState = Literal["running", "starting", "stuck", "down"]
PageState = Literal["ok", "hung", "down"]
"""The same for the page; a starting consumer counts as down."""
BEAT_LATE = timedelta(seconds=15)
TICK_LATE_S = 10.0
_ON_PAGE: dict[ConsumerState, PageState] = {"running": "ok", "stuck": "hung"}
_LOG_TAIL_BYTES = 2**18
_LOG_FILES = 2
_ERRORS_SHOWN = 3
_RECENT = timedelta(hours=24)


class Consumer(View):
    """The consumer's process and heartbeat. Units: seconds."""

    state: ConsumerState
    pid: int | None
    beat_age_s: float | None
    health: Health | None
    """The last heartbeat, perhaps of an earlier process."""
    holder: LockHolder | None = Field(exclude=True)

    @property
    def is_up(self) -> bool:
        return self.state != "down"

    @property
    def page_state(self) -> PageState:
        return _ON_PAGE.get(self.state, "down")

    @property
    def who(self) -> str:
        if self.holder is None:
            return "another process"
        is_local = self.holder.host == socket.gethostname()
        return f"process {self.holder.pid} on {'this machine' if is_local else self.holder.host}"

    @property
    def current(self) -> Health | None:
        """The heartbeat; None when it is down."""
        return self.health if self.is_up else None

    @property
    def live(self) -> dict[str, LiveRun]:
        return {run.id: run for run in self.current.live} if self.current else {}


def read_consumer(files: Files, now: datetime) -> Consumer:
    """Find out whether a consumer runs, without its lock: that could block a starting consumer.

    On this machine the process is checked, elsewhere the age of the heartbeat.
    """
    holder = files.peek(paths.CONSUMER_HOLDER, LockHolder)
    health = files.peek(paths.HEALTH, Health)
    age = now - health.beat_at if health else None
    if holder is not None and holder.host == socket.gethostname():
        lives = holder.is_alive
    else:
        lives = age is not None and abs(age) <= BEAT_LATE
    state: ConsumerState = "running"
    if not lives:
        state = "down"
    elif age is None or health is None or (holder is not None and health.pid != holder.pid):
        state = "starting"
    elif age > BEAT_LATE or health.tick_age_s > TICK_LATE_S:
        state = "stuck"
    return Consumer(
        state=state,
        pid=holder.pid if holder else None,
        beat_age_s=age.total_seconds() if age is not None else None,
        health=health,
        holder=holder,
    )


def situation(
    files: ReadOnlyFiles,
    consumer: Consumer,
    *,
    now: datetime,
    zone: ZoneInfo,
    jobs: JobReader | None = None,
) -> ExplanationContext:
    current = consumer.current
    known = world.situation(
        files,
        now=now,
        zone=zone,
        paused=is_paused(files, current),
        consumer_up=consumer.is_up,
        model_missing=triggers.model_missing(current.engines if current else {}),
    )
    return dataclasses.replace(known, runs_of=(jobs or JobReader(files)).recent_runs())


# ---- for page and API


class RoleStatus(View):
    state: Literal["idle", "replying", "planning"]
    since: Instant | None
    headline: str
    turn_id: str | None


class WorkersStatus(View):
    busy: int
    seats: int


class StatusView(View):
    consumer: PageState
    beat_age_s: float | None
    teller: RoleStatus
    planner: RoleStatus
    workers: WorkersStatus
    queues: dict[str, int]
    """Number of queued tasks, by queue."""
    engines: dict[str, EngineStatus]
    """By role or profile."""
    by_engine: dict[str, EngineStatus]
    """By engine: each that was used, and what waits for it."""
    paused: bool
    question: bool
    """Whether a question is open."""
    degraded: str | None
    quarantined: int
    last_tick: Instant | None
    usage: UsageTodayView
    version: str


class HealthzView(View):
    ok: bool
    consumer: PageState
    disk: Literal["ok", "full"]


def status_view(files: ReadOnlyFiles, consumer: Consumer, usage: UsageTodayView) -> StatusView:
    health, runs = consumer.health, list(consumer.live.values())
    ticked = health and health.beat_at - timedelta(seconds=health.tick_age_s)
    return StatusView(
        consumer=consumer.page_state,
        beat_age_s=None if consumer.beat_age_s is None else round(consumer.beat_age_s, 1),
        teller=_role_status(runs, "teller", "replying"),
        planner=_role_status(runs, "planner", "planning"),
        workers=WorkersStatus(
            busy=sum(run.role == "worker" for run in runs),
            seats=health.worker_seats if health else 0,
        ),
        queues=queue_counts(files, consumer.current),
        engines=health.engines if health else {},
        by_engine=consumer.current.by_engine if consumer.current else {},
        paused=is_paused(files, consumer.current),
        question=files.exists(paths.PENDING_QUESTION),
        degraded=consumer.current.degraded if consumer.current else None,
        quarantined=quarantined(files),
        last_tick=ticked,
        usage=usage,
        version=__version__,
    )


def _role_status(
    runs: list[LiveRun], role: str, busy: Literal["replying", "planning"]
) -> RoleStatus:
    run = next((run for run in runs if run.role == role), None)
    if run is None:
        return RoleStatus(state="idle", since=None, headline="", turn_id=None)
    return RoleStatus(state=busy, since=run.started_at, headline=run.headline, turn_id=run.id)


def queue_counts(files: ReadOnlyFiles, current: Health | None) -> dict[str, int]:
    """Number of queued tasks, from the heartbeat or, while the consumer is down, counted."""
    if current is not None:
        return {name: current.queued.get(name, 0) for name in paths.QUEUES}
    return {name: len(files.names(f"{name}/queue")) for name in paths.QUEUES}


def quarantined(files: ReadOnlyFiles) -> int:
    return len(files.names(paths.CORRUPT, suffix=paths.REASON))


def is_paused(files: Files, current: Health | None) -> bool:
    if current is not None:
        return current.paused
    runtime = files.peek(paths.RUNTIME, RuntimeState)
    return runtime is not None and runtime.paused


# ---- for the terminal


class TriggerCounts(View):
    total: int
    active: int
    broken: int


class StateOverview(View):
    version: str
    workspace: str
    consumer: Consumer
    queues: dict[str, int]
    jobs: dict[JobState, int]
    paused: bool
    unanswered: int
    orders_waiting: int
    triggers: TriggerCounts
    question: Question | None
    quarantined: int
    errors: list[dict[str, Any]]
    failed: list[TaskView]
    listed: list[TriggerView] = Field(exclude=True)
    usage: UsageTodayView


def overview(
    files: ReadOnlyFiles,
    consumer: Consumer,
    context: ExplanationContext,
    *,
    workspace: str,
    settings: Settings,
) -> StateOverview:
    listed = triggers.listed(files, context)
    recent = context.now - _RECENT
    errors = [
        line
        for lines in reversed([*islice(log_tails(files, _LOG_TAIL_BYTES), _LOG_FILES)])
        for line in lines
        if line.get("type") == "error" and str(line.get("timestamp", "")) >= time_text(recent)
    ]
    failed = (tasks.find(files, id_, {}) for id_ in ledger.ended_ids(files, 3, ["failed"]))
    return StateOverview(
        version=__version__,
        workspace=workspace,
        consumer=consumer,
        queues=queue_counts(files, consumer.current),
        jobs=JobReader(files).totals(),
        paused=is_paused(files, consumer.current),
        unanswered=sum(not name.startswith(RESULTS) for name in files.names(paths.INBOX)),
        orders_waiting=len(files.names(paths.COMMANDS)),
        triggers=TriggerCounts(
            total=len(listed),
            active=sum(trigger.enabled for trigger in listed),
            broken=sum(trigger.broken is not None for trigger in listed),
        ),
        question=inbox.pending_question(files),
        quarantined=quarantined(files),
        errors=errors[-_ERRORS_SHOWN:],
        failed=[it for it in failed if it and it.completed_at and it.completed_at >= recent],
        listed=listed,
        usage=UsageReader(files, settings).today(context.now, consumer.current),
    )
