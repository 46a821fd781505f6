"""Token usage and costs by day, engine, model, role, task, trigger or message.

Past days are read from monthly sums; of the current day only new lines are read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Literal, TypeAlias

from pydantic import Field

from mimikit.config import Settings
from mimikit.language.plain_text import first_line
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import TurnRecord, Usage
from mimikit.protocol.results import RunUsage, UsageMonth, UsageSum
from mimikit.protocol.runtime import BudgetStatus, Health
from mimikit.protocol.triggers import Trigger
from mimikit.tasks.usage import (
    day_of,
    days_with_lines,
    read_lines,
    runs_of_day,
    sums_of,
    usage_of_run,
)
from mimikit.views.base import Title, View
from mimikit.views.tasks import find_snapshot

UsageBy: TypeAlias = Literal["day", "engine", "model", "role", "task", "trigger", "message"]
DAYS = 30
MAX_ROWS = 100


class TokenCounts(View):
    runs: int = 0
    estimated: int = 0
    """Runs whose engine did not report all tokens."""
    input_tokens: int = 0
    cached_input_tokens: int = 0
    """Included in the input."""
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    """Included in the output."""
    cost: dict[str, float] = Field(default_factory=dict[str, float])
    """By currency, for engines with a price."""


class UsageRow(TokenCounts):
    key: str
    """The day, engine, model, role or id; empty for no trigger and the engine's default model."""
    title: Title
    """Of a task, trigger or message."""


class UsageReport(View):
    by: UsageBy
    since: str
    """The first day."""
    today: TokenCounts
    total: TokenCounts
    rows: list[UsageRow]
    """By day in order, else by tokens, most first."""
    budget: BudgetStatus


class UsageTodayView(TokenCounts):
    """Usage of today, in the user's time zone."""

    budget: BudgetStatus


@dataclass
class _DayTail:
    """The part of a day's file that was read."""

    day: str
    offset: int = 0
    runs: dict[str, RunUsage] = field(default_factory=dict[str, RunUsage])


class UsageReader:
    """Reads the usage ledger. Thread-safe."""

    def __init__(self, files: ReadOnlyFiles, settings: Settings) -> None:
        self._files, self._settings = files, settings
        self._lock = threading.Lock()
        self._tail = _DayTail("")

    def today(self, now: datetime, health: Health | None) -> UsageTodayView:
        counts = self._count(sums_of(self._runs(self._day(now))))
        return UsageTodayView.of(counts, budget=self._budget(counts, health))

    def report(
        self, by: UsageBy, since: date | None, now: datetime, health: Health | None
    ) -> UsageReport:
        """Usage since a day; by task and message as long as their runs are stored."""
        today = day_of(now, self._settings.zone)
        first = min(since or today - timedelta(days=DAYS - 1), today)
        by_day = self._sums(first.isoformat(), today.isoformat())
        sums = [one for day_sums in by_day.values() for one in day_sums]
        todays = self._count(by_day.get(today.isoformat(), []))
        groups: dict[str, list[UsageSum]] = {}
        if by == "day":
            days = (first + timedelta(days=n) for n in range((today - first).days + 1))
            groups = {day.isoformat(): by_day.get(day.isoformat(), []) for day in days}
        elif by in ("task", "message"):
            groups = self._by_run(first.isoformat(), messages=by == "message")
        else:
            for one in sums:
                groups.setdefault(_key(by, one), []).append(one)
        rows = [(key, self._count(group)) for key, group in groups.items()]
        if by != "day":
            rows = sorted(rows, key=lambda row: (-_tokens(row[1]), row[0]))[:MAX_ROWS]
        return UsageReport(
            by=by,
            since=first.isoformat(),
            today=todays,
            total=self._count(sums),
            rows=[UsageRow.of(one, key=key, title=self._title(by, key)) for key, one in rows],
            budget=self._budget(todays, health),
        )

    def of_task(self, task_id: str, made_at: datetime) -> TokenCounts:
        since = (made_at - timedelta(days=1)).date().isoformat()
        return self._count(sums_of(usage_of_run(self._files, task_id, since)))

    def of_trigger(self, trigger_id: str, now: datetime) -> TokenCounts:
        runs = self._runs(self._day(now))
        return self._count(sums_of(run for run in runs if run.trigger_id == trigger_id))

    def _by_run(self, first: str, *, messages: bool) -> dict[str, list[UsageSum]]:
        runs: dict[str, list[RunUsage]] = {}
        for day in days_with_lines(self._files):
            for run in self._runs(day) if day >= first else ():
                if (run.role == "teller") == messages:
                    runs.setdefault(run.run_id, []).append(run)
        return {run_id: sums_of(group) for run_id, group in runs.items()}

    def _title(self, by: UsageBy, key: str) -> str:
        if by == "task" and (snapshot := find_snapshot(self._files, key)):
            return snapshot.task.title or first_line(snapshot.task.prompt)
        if by == "trigger" and key and (trigger := self._files.peek(paths.trigger(key), Trigger)):
            return trigger.title or first_line(trigger.prompt)
        if by == "message" and (turn := self._files.peek(paths.turn_done(key), TurnRecord)):
            return first_line(turn.messages[0].text) if turn.messages else ""
        return ""

    def _count(self, sums: Iterable[UsageSum]) -> TokenCounts:
        all_sums, cost = list(sums), dict[str, float]()
        usage = sum((one.usage for one in all_sums), Usage())
        prices = {name: self._settings.price_of(name) for name in {one.engine for one in all_sums}}
        for one in all_sums:
            if (price := prices[one.engine]) is not None:
                cached = price.input if price.cached_input is None else price.cached_input
                fresh = one.usage.input_tokens - one.usage.cached_input_tokens
                paid = fresh * price.input + one.usage.cached_input_tokens * cached
                paid += one.usage.output_tokens * price.output
                cost[price.currency] = cost.get(price.currency, 0.0) + paid / 1e6
        return TokenCounts(
            runs=sum(one.runs for one in all_sums),
            estimated=sum(one.estimated for one in all_sums),
            cost={currency: round(amount, 6) for currency, amount in cost.items()},
            **{name: getattr(usage, name) for name in Usage.model_fields},
        )

    def _budget(self, today: TokenCounts, health: Health | None) -> BudgetStatus:
        """From the consumer's heartbeat, else from the settings."""
        if health is not None and health.budget is not None:
            return health.budget
        return BudgetStatus(used=_tokens(today), **self._settings.budget.model_dump())

    def _sums(self, first: str, last: str) -> dict[str, list[UsageSum]]:
        """The sums of each day with usage, from the months' files or the day's lines."""
        by_day: dict[str, list[UsageSum]] = {}
        for name in self._files.names(paths.USAGE_MONTHS):
            if first[:7] <= name[:7] <= last[:7]:
                month = self._files.peek(paths.usage_month(name[:7]), UsageMonth)
                by_day |= month.days if month else {}
        for day in days_with_lines(self._files):
            if day not in by_day and first <= day <= last:
                by_day[day] = sums_of(self._runs(day))
        return {day: sums for day, sums in by_day.items() if first <= day <= last}

    def _day(self, now: datetime) -> str:
        return day_of(now, self._settings.zone).isoformat()

    def _runs(self, day: str) -> list[RunUsage]:
        """The runs of a day; of the newest day only new lines are read."""
        with self._lock:
            if day < self._tail.day:
                return [*runs_of_day(self._files, day).values()]
            stat = self._files.stat(paths.usage_day(day))
            size = stat.size if stat else 0
            if day > self._tail.day or size < self._tail.offset:  # smaller: a restored backup
                self._tail = _DayTail(day)
            if size > self._tail.offset:
                for end, run in read_lines(self._files, day, self._tail.offset):
                    self._tail.offset, self._tail.runs[run.id] = end, run
            return [*self._tail.runs.values()]


def _key(by: UsageBy, one: UsageSum) -> str:
    keys = {"engine": one.engine, "model": one.model, "role": one.profile or one.role}
    return keys.get(by, one.trigger_id or "")


def _tokens(counts: TokenCounts) -> int:
    return counts.input_tokens + counts.output_tokens
