"""What runs of minds have used, as it lies on disk: a line of each end, and the sums of past days.

`usage/YYYY-MM-DD.jsonl` has the lines of a day, by the user's calendar: one before a run begins,
one after it, under one id. `usage/months/YYYY-MM.json` has the sums of each day that is over.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from mimikit.protocol.models import Id, Instant, Record, Role, Usage

RunUsageState: TypeAlias = Literal["began", "used", "none"]
"""none: it used nothing, as its engine turned it away."""


class RunUsage(Record):
    """One line: a run of a mind begins, or is over. The last one of an id holds."""

    id: Id
    """Of this very run: an attempt that costs none has its number again."""
    at: Instant
    state: RunUsageState
    run_id: Id
    """The task's or the turn's."""
    attempt: int
    role: Role
    profile: str = ""
    """Of a Worker."""
    engine: str
    model: str = ""
    trigger_id: Id | None = None
    reserved: int = 0
    usage: Usage = Usage()
    estimated: bool = False
    """Its engine told nothing, or not all of it."""


class UsageSum(Record):
    """What a day's runs of one kind have used together."""

    engine: str
    model: str = ""
    role: Role
    profile: str = ""
    trigger_id: Id | None = None
    runs: int = 0
    estimated: int = 0
    """So many of them are estimated."""
    usage: Usage = Usage()


class UsageMonth(Record):
    """The sums of each day of a month that is over, by the day: `2026-11-23`."""

    schema_version: int = 1
    days: dict[str, list[UsageSum]] = Field(default_factory=dict[str, list[UsageSum]])
