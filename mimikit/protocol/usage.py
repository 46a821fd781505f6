"""What engines have used, as it lies on disk: a line per attempt, and the sums of past days.

`usage/YYYY-MM-DD.jsonl` has the lines of a day, by the user's calendar, each written when its
attempt ended. `usage/months/YYYY-MM.json` has the sums of each day that is over.
"""

from __future__ import annotations

from pydantic import Field

from mimikit.protocol.models import Id, Instant, Record, Role, Usage


class RunUsage(Record):
    """One line: an attempt that an engine made. Lines of one id count once."""

    id: Id
    at: Instant
    """When it ended."""
    run_id: Id
    """The task's or the turn's."""
    attempt: int
    role: Role
    profile: str = ""
    """Of a Worker."""
    engine: str
    model: str = ""
    trigger_id: Id | None = None
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
