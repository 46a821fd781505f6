"""How the whole is doing: the consumer's heartbeat, seats, queues, engines."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from mimikit import __version__
from mimikit.protocol import paths, process_id
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.models import Health, Instant, LiveRun, LockHolder, RuntimeState
from mimikit.views.base import View

ConsumerState = Literal["ok", "hung", "down"]
ProcessState = Literal["running", "starting", "stuck", "down"]
BEAT_LATE = timedelta(seconds=15)
TICK_LATE_S = 10.0
_REASON = ".reason.txt"


class UsageView(View):
    """Tokens of the conversation since midnight UTC."""

    input_tokens: int = 0
    output_tokens: int = 0


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


class StatusView(View):
    """One object that says how it goes."""

    consumer: ConsumerState
    beat_age_s: float | None
    teller: TellerStatus
    planner: PlannerStatus
    workers: WorkersStatus
    queues: dict[str, int]
    """Tasks that wait, by queue."""
    engines: dict[str, str]
    """Role or profile → the engine that serves it and, if it can not, why."""
    paused: bool
    question: bool
    """Whether one waits for its answer."""
    degraded: str | None
    quarantined: int
    last_tick: Instant | None
    usage: UsageView
    version: str


class HealthzView(View):
    """Whether web and consumer work."""

    ok: bool
    consumer: ConsumerState


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The consumer's last heartbeat and what to make of it."""

    health: Health | None
    state: ConsumerState
    age_s: float | None

    @property
    def current(self) -> Health | None:
        """What the consumer says; None when it is down."""
        return None if self.state == "down" else self.health

    @property
    def live(self) -> dict[str, LiveRun]:
        """Live runs by id; none when the consumer is down."""
        return {run.id: run for run in self.current.live} if self.current else {}


def take_heartbeat(files: Files, now: datetime) -> Heartbeat:
    health = files.peek(paths.HEALTH, Health)
    age = None if health is None else round((now - health.beat_at).total_seconds(), 1)
    return Heartbeat(health, consumer_state(health, now), age)


def consumer_state(health: Health | None, now: datetime) -> ConsumerState:
    """Whether the consumer lives and moves; a beat from the future counts as a late one."""
    if health is None or abs(now - health.beat_at) > BEAT_LATE:
        return "down"
    return "hung" if health.tick_age_s > TICK_LATE_S else "ok"


def status_view(files: ReadOnlyFiles, beat: Heartbeat, usage: UsageView) -> StatusView:
    health, runs = beat.health, list(beat.live.values())
    teller = next((run for run in runs if run.role == "teller"), None)
    planner = next((run for run in runs if run.role == "planner"), None)
    ticked = health and health.beat_at - timedelta(seconds=health.tick_age_s)
    return StatusView(
        consumer=beat.state,
        beat_age_s=beat.age_s,
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
        queues=queue_counts(files, beat.current),
        engines={n: it.text for n, it in health.engines.items()} if health else {},
        paused=is_paused(files, beat.current),
        question=files.exists(paths.PENDING_QUESTION),
        degraded=health.degraded if health and beat.state != "down" else None,
        quarantined=len(files.names(paths.CORRUPT, suffix=_REASON)),
        last_tick=ticked,
        usage=usage,
        version=__version__,
    )


def queue_counts(files: ReadOnlyFiles, current: Health | None) -> dict[str, int]:
    """Tasks that wait: as the consumer counts them, or counted here while it is down."""
    if current is not None:
        return {seat: current.queued.get(seat, 0) for seat in paths.QUEUES}
    return {seat: len(files.names(f"{seat}/queue")) for seat in paths.QUEUES}


def is_paused(files: Files, current: Health | None) -> bool:
    """Whether the queues are: as the consumer says, or as it left them."""
    if current is not None:
        return current.paused
    runtime = files.peek(paths.RUNTIME, RuntimeState)
    return runtime is not None and runtime.paused


# ---- the consumer's process, of which a late heartbeat alone does not tell


@dataclass(frozen=True, slots=True)
class Consumer:
    """The consumer's process, and its heartbeat. Units: seconds."""

    state: ProcessState
    holder: LockHolder | None
    health: Health | None
    """The last one, whoever wrote it."""
    age_s: float | None

    @property
    def is_there(self) -> bool:
        return self.state != "down"

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
    """Find out without touching its lock: a lock taken to look could keep a starting one out."""
    holder = files.peek(paths.CONSUMER_HOLDER, LockHolder)
    health = files.peek(paths.HEALTH, Health)
    age = now - health.beat_at if health else None
    if holder is not None and holder.host == socket.gethostname():
        lives = process_id.is_alive(holder.pid, holder.process_started, holder.boot_id)
    else:
        lives = age is not None and abs(age) < BEAT_LATE
    state: ProcessState = "running"
    if not lives:
        state = "down"
    elif age is None or health is None or (holder is not None and health.pid != holder.pid):
        state = "starting"
    elif age > BEAT_LATE:
        state = "stuck"
    return Consumer(state, holder, health, age.total_seconds() if age is not None else None)
