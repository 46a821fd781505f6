"""How the whole is doing: the consumer's heartbeat, seats, queues, engines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from mimikit import __version__
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.models import Health, Instant, LiveRun, RuntimeState
from mimikit.views.base import View

ConsumerState = Literal["ok", "hung", "down"]
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
    def live(self) -> dict[str, LiveRun]:
        """Live runs by id; none when the consumer is down."""
        if self.health is None or self.state == "down":
            return {}
        return {run.id: run for run in self.health.live}


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
        queues=_queues(files, beat),
        engines={n: it.text for n, it in health.engines.items()} if health else {},
        paused=is_paused(files, beat),
        question=files.exists(paths.PENDING_QUESTION),
        degraded=health.degraded if health and beat.state != "down" else None,
        quarantined=len(files.names(paths.CORRUPT, suffix=_REASON)),
        last_tick=ticked,
        usage=usage,
        version=__version__,
    )


def _queues(files: ReadOnlyFiles, beat: Heartbeat) -> dict[str, int]:
    """Tasks that wait: as the consumer counts them, or counted here while it is down."""
    if beat.health is not None and beat.state != "down":
        return {seat: beat.health.queued.get(seat, 0) for seat in paths.QUEUES}
    return {seat: len(files.names(f"{seat}/queue")) for seat in paths.QUEUES}


def is_paused(files: Files, beat: Heartbeat) -> bool:
    """Whether the queues are: as the consumer says, or as it left them."""
    if beat.health is not None and beat.state != "down":
        return beat.health.paused
    runtime = files.peek(paths.RUNTIME, RuntimeState)
    return runtime is not None and runtime.paused
