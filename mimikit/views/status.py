"""How the whole is doing: the consumer's heartbeat, seats, queues, engines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from mimikit import __version__
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.models import Health, LiveRun, RuntimeState, time_text

ConsumerState = Literal["ok", "hung", "down"]
BEAT_LATE = timedelta(seconds=15)
TICK_LATE_S = 10.0
_REASON = ".reason.txt"


@dataclass(frozen=True, slots=True)
class Vitals:
    """The consumer's heartbeat and what to make of it."""

    health: Health | None
    state: ConsumerState
    age_s: float | None

    @property
    def live(self) -> dict[str, LiveRun]:
        """Live runs by id; none when the consumer is down."""
        if self.health is None or self.state == "down":
            return {}
        return {run.id: run for run in self.health.live}


def take_vitals(files: Files, now: datetime) -> Vitals:
    """Read the heartbeat."""
    health = files.peek(paths.HEALTH, Health)
    age = None if health is None else round((now - health.beat_at).total_seconds(), 1)
    return Vitals(health, consumer_state(health, now), age)


def consumer_state(health: Health | None, now: datetime) -> ConsumerState:
    """Whether the consumer lives and moves; a beat from the future counts as a late one."""
    if health is None or abs(now - health.beat_at) > BEAT_LATE:
        return "down"
    return "hung" if health.tick_age_s > TICK_LATE_S else "ok"


def status(files: ReadOnlyFiles, vitals: Vitals, usage: dict[str, int]) -> dict[str, Any]:
    """One object that says how it goes."""
    health, runs = vitals.health, list(vitals.live.values())
    planner = next((run for run in runs if run.role == "planner"), None)
    return {
        "consumer": vitals.state,
        "beatAgeS": vitals.age_s,
        "teller": _teller(runs),
        "planner": {
            "state": "planning" if planner else "idle",
            "since": time_text(planner.started_at) if planner else None,
            "headline": planner.headline if planner else "",
        },
        "workers": {
            "busy": sum(run.role == "worker" for run in runs),
            "seats": health.worker_seats if health else 0,
        },
        "queues": _queues(files, vitals),
        "engines": {name: engine.text for name, engine in health.engines.items()} if health else {},
        "paused": is_paused(files, vitals),
        "question": files.exists(paths.PENDING_QUESTION),
        "degraded": health.degraded if health and vitals.state != "down" else None,
        "quarantined": len(files.names(paths.CORRUPT, suffix=_REASON)),
        "lastTick": _last_tick(health),
        "usage": usage,
        "version": __version__,
    }


def _teller(runs: list[LiveRun]) -> dict[str, Any]:
    run = next((run for run in runs if run.role == "teller"), None)
    return {
        "state": "replying" if run else "idle",
        "since": time_text(run.started_at) if run else None,
        "headline": run.headline if run else "",
        "turnId": run.id if run else None,
    }


def _queues(files: ReadOnlyFiles, vitals: Vitals) -> dict[str, int]:
    """Tasks that wait: as the consumer counts them, or counted here while it is down."""
    if vitals.health is not None and vitals.state != "down":
        return {seat: vitals.health.queued.get(seat, 0) for seat in paths.QUEUES}
    return {seat: len(files.names(f"{seat}/queue")) for seat in paths.QUEUES}


def is_paused(files: Files, vitals: Vitals) -> bool:
    """Whether the queues are: as the consumer says, or as it left them."""
    if vitals.health is not None and vitals.state != "down":
        return vitals.health.paused
    runtime = files.peek(paths.RUNTIME, RuntimeState)
    return runtime is not None and runtime.paused


def _last_tick(health: Health | None) -> str | None:
    if health is None:
        return None
    return time_text(health.beat_at - timedelta(seconds=health.tick_age_s))
