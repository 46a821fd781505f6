"""What was used: by day, engine, model, role, task, trigger or message; and what it cost.

Days that are over are read from their sums, a month at a time, and kept while the file stays the
same; of a day that goes on only what is new is read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Literal, TypeAlias

from pydantic import Field

from mimikit.config import Settings
from mimikit.language.plain_text import first_line
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import Instant, TurnRecord, Usage
from mimikit.protocol.results import RunUsage, UsageMonth, UsageSum
from mimikit.protocol.runtime import BudgetStatus, Health
from mimikit.protocol.triggers import Trigger
from mimikit.tasks.budget import day_of
from mimikit.tasks.usage import days_with_lines, read_lines, sums_of, total_of, usage_of_run
from mimikit.views.base import Title, View
from mimikit.views.tasks import find_view

UsageBy: TypeAlias = Literal["day", "engine", "model", "role", "task", "trigger", "message"]
DAYS = 30
MOST_ROWS = 100


class TokenCounts(View):
    """Tokens, by how many runs, and what they cost by currency, where a price is set."""

    runs: int = 0
    estimated: int = 0
    """Runs whose engine told nothing, or not all of it."""
    input_tokens: int = 0
    cached_input_tokens: int = 0
    """Part of the input."""
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    """Part of the output."""
    cost: dict[str, float] = Field(default_factory=dict[str, float])
    """By currency, of the runs whose engine has a price."""


class UsageRow(TokenCounts):
    key: str
    """The day, engine, model, role, or the id; empty: of none (no trigger, no model named)."""
    title: Title
    """Of what has an id."""


class BudgetView(View):
    """How today stands; null: no cap. Units: tokens."""

    daily_tokens: int | None
    per_task_tokens: int | None
    per_trigger_daily_tokens: int | None
    used: int
    until: Instant | None
    """While something waits for tokens: until when."""
    messages: int
    tasks: int


class UsageReport(View):
    by: UsageBy
    since: str
    """The first day of it."""
    today: TokenCounts
    total: TokenCounts
    rows: list[UsageRow]
    """Days in their order, of which none is left out; of all else those that used most first."""
    budget: BudgetView


class UsageTodayView(TokenCounts):
    """What today's runs have used, by the user's calendar."""

    budget: BudgetView


@dataclass
class _DayLines:
    """What is read of a day's file."""

    offset: int = 0
    runs: dict[str, RunUsage] = field(default_factory=dict[str, RunUsage])


class UsageReader:
    """Reads the ledger of usage; each line, and each sum, once. Thread-safe."""

    def __init__(self, files: ReadOnlyFiles, settings: Settings) -> None:
        self._files, self._settings = files, settings
        self._lock = threading.Lock()
        self._months: dict[str, tuple[tuple[int, int], UsageMonth]] = {}
        self._days: dict[str, _DayLines] = {}
        self._today: tuple[tuple[str, int], TokenCounts] | None = None
        """The day and how far it was read; and what that came to."""

    def today(self, now: datetime, health: Health | None) -> UsageTodayView:
        with self._lock:
            day = day_of(now, self._settings.zone).isoformat()
            runs = self._lines(day)
            mark = day, self._days[day].offset
            if self._today is None or self._today[0] != mark:
                self._today = mark, self._counted(sums_of(runs.values()))
            counts = self._today[1]
        return UsageTodayView.of(counts, budget=self._budget(counts, health))

    def report(
        self, by: UsageBy, since: date | None, now: datetime, health: Health | None
    ) -> UsageReport:
        """What was used from that day on; of tasks and messages as far as runs are kept."""
        today = day_of(now, self._settings.zone)
        first = min(since or today - timedelta(days=DAYS - 1), today)
        with self._lock:
            by_day = self._sums(first.isoformat(), today.isoformat())
            runs: list[RunUsage] = []
            if by in ("task", "message"):
                days = [day for day in days_with_lines(self._files) if day >= first.isoformat()]
                runs = [run for day in days for run in self._lines(day).values()]
            mine = self._counted(by_day.get(today.isoformat(), []))
        total = self._counted(one for sums in by_day.values() for one in sums)
        if by == "day":
            rows = [
                UsageRow.of(self._counted(by_day.get(day, [])), key=day, title="")
                for day in (
                    (first + timedelta(days=number)).isoformat()
                    for number in range((today - first).days + 1)
                )
            ]
        elif by in ("task", "message"):
            rows = self._by_run(by, runs)
        else:
            rows = self._by_kind(by, [one for sums in by_day.values() for one in sums])
        return UsageReport(
            by=by,
            since=first.isoformat(),
            today=mine,
            total=total,
            rows=rows,
            budget=self._budget(mine, health),
        )

    def of_task(self, task_id: str, made_at: datetime) -> TokenCounts:
        """What one task has used over all its attempts, as far as runs are kept."""
        since = (made_at - timedelta(days=1)).date().isoformat()
        return self._counted(sums_of(usage_of_run(self._files, task_id, since)))

    def of_trigger(self, trigger_id: str, now: datetime) -> TokenCounts:
        """What a trigger's runs of today have used."""
        with self._lock:
            runs = self._lines(day_of(now, self._settings.zone).isoformat()).values()
            return self._counted(sums_of(run for run in runs if run.trigger_id == trigger_id))

    def _by_kind(self, by: UsageBy, sums: list[UsageSum]) -> list[UsageRow]:
        groups: dict[str, list[UsageSum]] = {}
        for one in sums:
            groups.setdefault(_kind(by, one), []).append(one)
        counts = {key: self._counted(group) for key, group in groups.items()}
        return self._ordered(counts, self._trigger_title if by == "trigger" else None)

    def _by_run(self, by: UsageBy, runs: list[RunUsage]) -> list[UsageRow]:
        groups: dict[str, list[RunUsage]] = {}
        for run in runs:
            if (run.role == "teller") == (by == "message"):
                groups.setdefault(run.run_id, []).append(run)
        counts = {key: self._counted(sums_of(group)) for key, group in groups.items()}
        return self._ordered(counts, self._turn_title if by == "message" else self._task_title)

    def _ordered(
        self, counts: dict[str, TokenCounts], title: Callable[[str], str] | None
    ) -> list[UsageRow]:
        by_tokens = sorted(counts.items(), key=lambda it: (-_tokens(it[1]), it[0]))[:MOST_ROWS]
        return [
            UsageRow.of(one, key=key, title=title(key) if title else "") for key, one in by_tokens
        ]

    def _task_title(self, task_id: str) -> str:
        known = find_view(self._files, task_id)
        return (known.task.title or first_line(known.task.prompt)) if known else ""

    def _trigger_title(self, trigger_id: str) -> str:
        found = self._files.peek(paths.trigger(trigger_id), Trigger) if trigger_id else None
        return (found.title or first_line(found.prompt)) if found else ""

    def _turn_title(self, turn_id: str) -> str:
        record = self._files.peek(paths.turn_done(turn_id), TurnRecord)
        return first_line(record.messages[0].text) if record and record.messages else ""

    def _counted(self, sums: Iterable[UsageSum]) -> TokenCounts:
        found, cost = list(sums), dict[str, float]()
        usage = total_of(one.usage for one in found)
        runs, estimated = sum(one.runs for one in found), sum(one.estimated for one in found)
        prices = {name: self._settings.price_of(name) for name in {one.engine for one in found}}
        for one in found:
            if (price := prices[one.engine]) is not None:
                cached = price.input if price.cached_input is None else price.cached_input
                fresh = one.usage.input_tokens - one.usage.cached_input_tokens
                paid = fresh * price.input + one.usage.cached_input_tokens * cached
                paid += one.usage.output_tokens * price.output
                cost[price.currency] = cost.get(price.currency, 0.0) + paid / 1e6
        facts = {name: getattr(usage, name) for name in Usage.model_fields}
        rounded = {currency: round(amount, 6) for currency, amount in cost.items()}
        return TokenCounts(runs=runs, estimated=estimated, cost=rounded, **facts)

    def _budget(self, today: TokenCounts, health: Health | None) -> BudgetView:
        """As the consumer says; while it is down as the settings do."""
        if health is not None and health.budget is not None:
            return BudgetView.of(health.budget)
        caps = self._settings.budget.model_dump()
        return BudgetView.of(BudgetStatus(used=_tokens(today), **caps))

    def _sums(self, first: str, last: str) -> dict[str, list[UsageSum]]:
        """Of each day between these that has any: from its month, else from its lines."""
        found: dict[str, list[UsageSum]] = {}
        for name in self._files.names(paths.USAGE_MONTHS):
            if first[:7] <= name[:7] <= last[:7]:
                found |= self._month(name[:7]).days
        for day in days_with_lines(self._files):
            if day not in found and first <= day <= last:
                found[day] = sums_of(self._lines(day).values())
        return {day: sums for day, sums in found.items() if first <= day <= last}

    def _month(self, month: str) -> UsageMonth:
        path = paths.usage_month(month)
        stat = self._files.stat(path)
        mark = (stat.mtime_ns, stat.size) if stat else (0, 0)
        known = self._months.get(month)
        if known is None or known[0] != mark:
            known = mark, self._files.peek(path, UsageMonth) or UsageMonth()
            self._months[month] = known
        return known[1]

    def _lines(self, day: str) -> dict[str, RunUsage]:
        """The runs of a day; those of the days before are let go where there are many."""
        stat = self._files.stat(paths.usage_day(day))
        known = self._days.setdefault(day, _DayLines())
        if stat is None or stat.size < known.offset:  # another file, as of a backup
            known = self._days[day] = _DayLines()
        if stat is not None and stat.size > known.offset:
            for end, run in read_lines(self._files, day, known.offset):
                known.offset, known.runs[run.id] = end, run
        for other in sorted(self._days)[:-DAYS]:
            del self._days[other]
        return known.runs


def _kind(by: UsageBy, one: UsageSum) -> str:
    match by:
        case "engine":
            return one.engine
        case "model":
            return one.model
        case "role":
            return one.profile or one.role
        case _:
            return one.trigger_id or ""


def _tokens(counts: TokenCounts) -> int:
    return counts.input_tokens + counts.output_tokens
