"""How the whole is doing: the consumer, its seats, queues, engines; all of it on one screen.

Whether the consumer lives and works is one rule, for page, terminal and API.
"""

from __future__ import annotations

import socket
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Field

from mimikit import __version__
from mimikit.config import Settings
from mimikit.conversation import inbox
from mimikit.errors import StorageError
from mimikit.language.reasons import reason_words
from mimikit.log import log_tails
from mimikit.protocol import ids, paths, schema
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.models import EngineStatus, Instant, LiveRun, Question, time_text
from mimikit.protocol.runtime import Health, LockHolder, RuntimeState
from mimikit.triggers.explain import ExplanationContext
from mimikit.views import triggers
from mimikit.views.base import View, Words
from mimikit.views.job_reader import JobFilter, JobReader
from mimikit.views.jobs import JobCounts, JobList, JobView
from mimikit.views.messages import RESULTS
from mimikit.views.triggers import TriggerView
from mimikit.views.usage import UsageReader, UsageTodayView

ConsumerState = Literal["running", "starting", "stuck", "down"]
PageState = Literal["ok", "hung", "down"]
"""The same in the words of the page: one that starts serves nobody yet."""
BEAT_LATE = timedelta(seconds=15)
TICK_LATE_S = 10.0
_ON_PAGE: dict[ConsumerState, PageState] = {
    "running": "ok",
    "starting": "down",
    "stuck": "hung",
    "down": "down",
}
_LOG_TAIL_BYTES = 2**18
_LOGS_LOOKED_AT = 2
"""Files of the log: a new one is begun each day."""
_ERRORS_SHOWN = 3
_FAILED_SHOWN = 3
_RECENT = timedelta(hours=24)


class Consumer(View):
    """The consumer's process, and its heartbeat. Units: seconds."""

    state: ConsumerState
    pid: int | None
    beat_age_s: float | None
    health: Health | None
    """The last one, whoever wrote it."""
    holder: LockHolder | None = Field(exclude=True)

    @property
    def is_there(self) -> bool:
        return self.state != "down"

    @property
    def on_page(self) -> PageState:
        return _ON_PAGE[self.state]

    @property
    def who(self) -> str:
        if self.holder is None:
            return "another process"
        here = self.holder.host == socket.gethostname()
        return f"process {self.holder.pid} on {'this machine' if here else self.holder.host}"

    @property
    def current(self) -> Health | None:
        """What it says; None when it is down."""
        return self.health if self.is_there else None

    @property
    def live(self) -> dict[str, LiveRun]:
        """Live runs by id; none when it is down."""
        return {run.id: run for run in self.current.live} if self.current else {}


def look_at_consumer(files: Files, now: datetime) -> Consumer:
    """Find out without touching its lock: a lock taken to look could keep a starting one out.

    On this machine its process tells; from elsewhere the heartbeat does, and one from the future
    counts as a late one.
    """
    holder = files.peek(paths.CONSUMER_HOLDER, LockHolder)
    health = files.peek(paths.HEALTH, Health)
    age = now - health.beat_at if health else None
    if holder is not None and holder.host == socket.gethostname():
        lives = ids.is_alive(holder.pid, holder.process_started, holder.boot_id)
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


# ---- for page and API


class TellerStatus(View):
    state: Literal["idle", "replying"]
    since: Instant | None
    headline: str
    turn_id: str | None


class PlannerStatus(View):
    state: Literal["idle", "planning"]
    since: Instant | None
    headline: str


class WorkersStatus(View):
    busy: int
    seats: int


class SeatEngine(EngineStatus):
    """The engine that serves a role or profile, as it is shown."""

    why: Words | None = None
    """The reason in each language, where code has said it."""

    @classmethod
    def of(cls, status: EngineStatus) -> Self:
        return cls.model_validate(vars(status) | {"why": reason_words(status.reason)})


class StatusView(View):
    """One object that says how it goes."""

    consumer: PageState
    beat_age_s: float | None
    teller: TellerStatus
    planner: PlannerStatus
    workers: WorkersStatus
    queues: dict[str, int]
    """Tasks that wait, by queue."""
    jobs: JobCounts | None
    """All there are, by state; None while one of their folders is none."""
    engines: dict[str, SeatEngine]
    """By role or profile: what serves it."""
    minds: dict[str, SeatEngine]
    """By name: each that served here, and what waits for it."""
    paused: bool
    question: bool
    """Whether one waits for its answer."""
    degraded: str | None
    degraded_words: Words | None
    """The same in each language, where code has said it."""
    quarantined: int
    last_tick: Instant | None
    usage: UsageTodayView
    version: str


class HealthzView(View):
    """Whether web and consumer work."""

    ok: bool
    consumer: PageState


def status_view(
    files: ReadOnlyFiles, consumer: Consumer, usage: UsageTodayView, jobs: JobCounts | None
) -> StatusView:
    health, runs = consumer.health, list(consumer.live.values())
    teller = next((run for run in runs if run.role == "teller"), None)
    planner = next((run for run in runs if run.role == "planner"), None)
    degraded = (consumer.current and consumer.current.degraded) or schema.why_newer(files)
    minds = consumer.current.minds if consumer.current else {}
    ticked = health and health.beat_at - timedelta(seconds=health.tick_age_s)
    return StatusView(
        consumer=consumer.on_page,
        beat_age_s=None if consumer.beat_age_s is None else round(consumer.beat_age_s, 1),
        teller=TellerStatus(
            state="replying" if teller else "idle",
            since=teller and teller.started_at,
            headline=teller.headline if teller else "",
            turn_id=teller and teller.id,
        ),
        planner=PlannerStatus(
            state="planning" if planner else "idle",
            since=planner and planner.started_at,
            headline=planner.headline if planner else "",
        ),
        workers=WorkersStatus(
            busy=sum(run.role == "worker" for run in runs),
            seats=health.worker_seats if health else 0,
        ),
        queues=queue_counts(files, consumer.current),
        jobs=jobs,
        engines={k: SeatEngine.of(one) for k, one in health.engines.items()} if health else {},
        minds={k: SeatEngine.of(one) for k, one in minds.items()},
        paused=is_paused(files, consumer.current),
        question=files.exists(paths.PENDING_QUESTION),
        degraded=degraded,
        degraded_words=reason_words(degraded),
        quarantined=quarantined(files),
        last_tick=ticked,
        usage=usage,
        version=__version__,
    )


def queue_counts(files: ReadOnlyFiles, current: Health | None) -> dict[str, int]:
    """Tasks that wait: as the consumer counts them, or counted here while it is down."""
    if current is not None:
        return {seat: current.queued.get(seat, 0) for seat in paths.QUEUES}
    return {seat: len(files.names(f"{seat}/queue")) for seat in paths.QUEUES}


def quarantined(files: ReadOnlyFiles) -> int:
    """How many files could not be read and were set aside."""
    return len(files.names(paths.CORRUPT, suffix=paths.REASON))


def is_paused(files: Files, current: Health | None) -> bool:
    """Whether the queues are: as the consumer says, or as it left them."""
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
    """Everything that matters, at one moment."""

    version: str
    workspace: str
    consumer: Consumer
    queues: dict[str, int]
    """Tasks that wait, by queue."""
    jobs: JobCounts | None
    """All there are, by state; None while one of their folders is none."""
    paused: bool
    unanswered: int
    orders_waiting: int
    triggers: TriggerCounts
    question: Question | None
    quarantined: int
    errors: list[dict[str, Any]]
    """Lines of the log of the last day, newest last."""
    failed: list[JobView]
    """Jobs that failed within the last day, newest first."""
    listed: list[TriggerView] = Field(exclude=True)
    usage: UsageTodayView
    """Of today."""
    now: datetime = Field(exclude=True)
    zone: ZoneInfo = Field(exclude=True)


def overview(
    files: ReadOnlyFiles,
    consumer: Consumer,
    here: ExplanationContext,
    *,
    workspace: str,
    settings: Settings,
) -> StateOverview:
    """Look at everything at the moment of `here`."""
    listed = triggers.listed(files, here)
    recent = here.now - _RECENT
    errors = [
        line
        for lines in reversed([*islice(log_tails(files, _LOG_TAIL_BYTES), _LOGS_LOOKED_AT)])
        for line in lines
        if line.get("type") == "error" and str(line.get("timestamp", "")) >= time_text(recent)
    ]
    failed = _failed_jobs(files, consumer, here)
    return StateOverview(
        version=__version__,
        workspace=workspace,
        consumer=consumer,
        queues=queue_counts(files, consumer.current),
        jobs=failed.counts if failed else None,
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
        failed=[it for it in failed.jobs if it.ended_at and it.ended_at >= recent]
        if failed
        else [],
        listed=listed,
        usage=UsageReader(files, settings).today(here.now, consumer.current),
        now=here.now,
        zone=here.zone,
    )


def _failed_jobs(
    files: ReadOnlyFiles, consumer: Consumer, here: ExplanationContext
) -> JobList | None:
    """With the counts of all; None where something else is in the place of a folder of theirs."""
    jobs = JobReader(files, here.zone)
    try:
        scene = jobs.scene(consumer.live, here.now)
        return jobs.listed(scene, JobFilter(frozenset({"failed"})), "", _FAILED_SHOWN)
    except StorageError:
        return None


class SettingView(View):
    key: str
    value: Any
    origin: str
    """`default`, `config.toml` or the variable's name."""


class FindingView(View):
    level: Literal["ok", "note", "warning", "broken"]
    area: str
    text: str
    mend: str | None
    fixable: bool
    """Whether `--fix` mends it."""


class DoctorReport(View):
    settings: list[SettingView]
    findings: list[FindingView]
    mended: list[str]
    """What `--fix` has done, finding by finding."""
    not_mended: list[str]
    """What it could not do, with the reason."""
