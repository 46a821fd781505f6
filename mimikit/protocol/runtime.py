"""State of the consumer and the web processes; its loss costs time, never data."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Literal, Self

from pydantic import Field

from mimikit.language.phrases import Words
from mimikit.protocol.ids import boot_id, is_alive, own_start_time
from mimikit.protocol.models import EngineStatus, Id, Instant, LiveRun, Record


class BudgetNote(Record):
    """The day and caps of a token budget that is used up."""

    day: str
    caps: dict[str, int | None]


class BudgetStatus(Record):
    """The caps, today's usage, and the work that waits for the budget. Units: tokens."""

    daily_tokens: int | None = None
    per_task_tokens: int | None = None
    per_trigger_daily_tokens: int | None = None
    used: int = 0
    until: Instant | None = None
    """When the budget resets, while work waits."""
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
    asking: Id | None = None
    """The run that evaluates `llm_eval` conditions, set before it is queued."""
    engines: dict[str, EngineStatus] = Field(default_factory=dict[str, EngineStatus])
    """By name, model engines that were ready once: after that the built-in one is no fallback."""
    budget: BudgetNote | None = None


class Improvement(Record):
    """A run of self-awake, in progress or ended."""

    id: Id
    """Also the end of its branch's name."""
    item: str
    started_at: Instant
    plan: Id
    """Its Planner's task."""
    end: Literal["committed", "proposed", "nothing", "dropped"] | None = None
    reason: str = ""
    branch: str | None = None
    asked: bool = False
    """By the owner, so that it goes on while self-awake is off."""


class SelfAwakeState(Record):
    """`self_awake.json`."""

    schema_version: int = 1
    run: Improvement | None = None
    taken: dict[str, Instant] = Field(default_factory=dict[str, datetime])
    """When each item was taken last."""
    past: list[Improvement] = Field(default_factory=list[Improvement])
    """The newest last."""


class ProcessRecord(Record):
    """What a process writes about itself; it tells a later process with the same pid apart."""

    pid: int
    process_started: str
    boot_id: str
    started_at: Instant

    @classmethod
    def own(cls, now: datetime, **more: object) -> Self:
        me = {"pid": os.getpid(), "process_started": own_start_time(), "boot_id": boot_id()}
        return cls.model_validate({**me, "started_at": now, **more})

    @property
    def is_alive(self) -> bool:
        return is_alive(self.pid, self.process_started, self.boot_id)


class TurnAttempt(ProcessRecord):
    """A running attempt of a turn: its process and its frozen inputs."""

    turn_id: Id
    attempt: int
    inputs: list[Id]
    stopped: bool = False


class LockHolder(ProcessRecord):
    """`consumer.json`: the process with the consumer lock."""

    host: str


class PageAddress(ProcessRecord):
    """`pages/{id}.json`: the address of one web process; removed by others once it is dead."""

    host: str
    port: int
    local: bool


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
    by_engine: dict[str, EngineStatus] = Field(default_factory=dict[str, EngineStatus])
    """By name: engines that were used, and the work waiting for each."""
    budget: BudgetStatus | None = None
    self_awake: Words = Field(default_factory=dict[str, str])
    """Why no improvement begins now."""
    degraded: str | None = None
