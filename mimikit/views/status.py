"""How the whole is doing: the consumer, its seats, queues, engines."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from mimikit import __version__
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.models import Health, Instant, RuntimeState
from mimikit.views.base import View
from mimikit.views.consumer import Consumer, PageState

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

    consumer: PageState
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
    consumer: PageState


def status_view(files: ReadOnlyFiles, consumer: Consumer, usage: UsageView) -> StatusView:
    health, runs = consumer.health, list(consumer.live.values())
    teller = next((run for run in runs if run.role == "teller"), None)
    planner = next((run for run in runs if run.role == "planner"), None)
    ticked = health and health.beat_at - timedelta(seconds=health.tick_age_s)
    return StatusView(
        consumer=consumer.on_page,
        beat_age_s=None if consumer.age_s is None else round(consumer.age_s, 1),
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
        engines={n: it.text for n, it in health.engines.items()} if health else {},
        paused=is_paused(files, consumer.current),
        question=files.exists(paths.PENDING_QUESTION),
        degraded=consumer.current.degraded if consumer.current else None,
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
