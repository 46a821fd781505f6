"""What the consumer and the page keep of themselves; losing it costs time, never data."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from mimikit.protocol.models import EngineStatus, Id, Instant, LiveRun, Record


class BudgetNote(Record):
    """Something is held: on which day, under which caps. In `runtime.json`."""

    day: str
    caps: dict[str, int | None]


class BudgetStatus(Record):
    """How today stands, and what waits for tokens. In `health.json`."""

    daily_tokens: int | None = None
    per_task_tokens: int | None = None
    per_trigger_daily_tokens: int | None = None
    used: int = 0
    until: Instant | None = None
    """While something waits: when the day is over."""
    messages: int = 0
    tasks: int = 0


class RuntimeState(Record):
    """`runtime.json`: the few facts no folder shows. Losing it costs time, never data."""

    last_archive_at: Instant | None = None
    last_flush_at: Instant | None = None
    last_retention_at: Instant | None = None
    seen_at: Instant | None = None
    clock_jumped_at: Instant | None = None
    paused: bool = False
    starts: list[Instant] = Field(default_factory=list[datetime])
    """Recent starts that did not end cleanly: three within five minutes make tasks wait."""
    asking: Id | None = None
    """The run that asks a model about conditions, from before it is queued."""
    engines: dict[str, EngineStatus] = Field(default_factory=dict[str, EngineStatus])
    """By name: each mind that was ready here once, and how it was last. Where one ever was, no code
    takes its place."""
    budget: BudgetNote | None = None
    """While something waits for tokens, or did."""


class LockHolder(Record):
    """`consumer.json`: who holds the consumer lock; for the message of the one refused."""

    pid: int
    process_started: str
    boot_id: str
    host: str
    started_at: Instant


class PageAddress(Record):
    """`pages/{id}.json`: where one page really listens, whatever the settings or another page say.

    Each process of the web writes its own, and removes those of processes that are gone.
    """

    host: str
    port: int
    local: bool
    """Whether only this machine can reach it."""
    pid: int
    process_started: str
    boot_id: str
    started_at: Instant


class Health(Record):
    """`health.json`: the consumer's heartbeat, at most every 5 s and at each change of seats."""

    pid: int
    version: str
    started_at: Instant
    beat_at: Instant
    tick_age_s: float = 0
    queued: dict[str, int] = Field(default_factory=dict[str, int])
    live: list[LiveRun] = Field(default_factory=list[LiveRun])
    worker_seats: int = 0
    paused: bool = False
    engines: dict[str, EngineStatus] = Field(default_factory=dict[str, EngineStatus])
    """By role or profile."""
    minds: dict[str, EngineStatus] = Field(default_factory=dict[str, EngineStatus])
    """By name: those that served here, and what waits for each."""
    budget: BudgetStatus | None = None
    degraded: str | None = None
