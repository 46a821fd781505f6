"""State of the consumer and the page; losing it costs time, never data."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from mimikit.protocol.models import EngineStatus, Id, Instant, LiveRun, Record


class BudgetNote(Record):
    """Work is held back by the token budget: on which day, under which caps."""

    day: str
    caps: dict[str, int | None]


class BudgetStatus(Record):
    """Tokens used today, and the work that waits for tokens."""

    daily_tokens: int | None = None
    per_task_tokens: int | None = None
    per_trigger_daily_tokens: int | None = None
    used: int = 0
    until: Instant | None = None
    """While work waits: when the day ends."""
    messages: int = 0
    tasks: int = 0


class RuntimeState(Record):
    """`runtime.json`."""

    last_archive_at: Instant | None = None
    last_flush_at: Instant | None = None
    last_retention_at: Instant | None = None
    seen_at: Instant | None = None
    clock_jumped_at: Instant | None = None
    paused: bool = False
    starts: list[Instant] = Field(default_factory=list[datetime])
    """Recent starts without a clean end: three within five minutes make tasks wait."""
    asking: Id | None = None
    """The run that evaluates `llm_eval` conditions, from before it is queued."""
    engines: dict[str, EngineStatus] = Field(default_factory=dict[str, EngineStatus])
    """By name, every model engine that was ready once: then code is no fallback any more."""
    budget: BudgetNote | None = None


class LockHolder(Record):
    """`consumer.json`: the process that holds the consumer lock."""

    pid: int
    process_started: str
    boot_id: str
    host: str
    started_at: Instant


class PageAddress(Record):
    """`pages/{id}.json`: where one web process listens. Removed by others once it is dead."""

    host: str
    port: int
    local: bool
    """Only this machine can reach it."""
    pid: int
    process_started: str
    boot_id: str
    started_at: Instant


class Health(Record):
    """`health.json`: the consumer's heartbeat, every 5 s and when runs change."""

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
    """By name: engines that were used here, and what waits for each."""
    budget: BudgetStatus | None = None
    degraded: str | None = None
