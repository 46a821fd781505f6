"""The usage ledger: one line per attempt of an engine, and the sums of past days.

Crash: the line is written before the result of the run; an attempt that died with the consumer has
none. A line written twice has one id and counts once.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from mimikit.clock import Clock
from mimikit.config import Settings, TokenCapSettings
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import Role, Task, Usage
from mimikit.protocol.results import RunUsage, UsageMonth, UsageSum

HeldFor: TypeAlias = Literal["day", "trigger", "task"]
_CAPS: dict[HeldFor, str] = {
    "task": "per_task_tokens",
    "day": "daily_tokens",
    "trigger": "per_trigger_daily_tokens",
}
WITHOUT_TOKENS = frozenset({"builtin", "command"})
"""Engines that use no tokens."""
WAITS = "budget:"
"""Prefix of `waits_for` of a task that waits for tokens."""
MOST_SUMS = 200
"""Sums kept of a day; further triggers share one."""


@dataclass(frozen=True, slots=True)
class BudgetHold:
    """The token cap for which a run may not start."""

    held_for: HeldFor
    cap: int
    used: int
    until: datetime | None = None
    """When its window ends; None: never."""


def day_of(now: datetime, zone: ZoneInfo) -> date:
    return now.astimezone(zone).date()


def day_end(now: datetime, zone: ZoneInfo) -> datetime:
    """When the user's day ends (midnight may not exist in a zone)."""
    begin = datetime.combine(day_of(now, zone) + timedelta(days=1), time(), zone)
    return begin.astimezone(UTC)


def hold_for(
    caps: TokenCapSettings, used: Mapping[HeldFor, int | None], now: datetime, zone: ZoneInfo
) -> BudgetHold | None:
    """The cap for which a run may not start now; None: it may.

    used: the tokens used in each window of the run; None: it has no such window.
    """
    for window, setting in _CAPS.items():
        cap, tokens = getattr(caps, setting), used.get(window)
        if cap is not None and tokens is not None and tokens >= cap:
            until = None if window == "task" else day_end(now, zone)
            return BudgetHold(window, cap, tokens, until)
    return None


def held_for(waits_for: str | None) -> Literal["day", "trigger"] | None:
    """The token cap that a task waits for, by its `waits_for`."""
    if waits_for is None or not waits_for.startswith(WAITS):
        return None
    return "trigger" if waits_for == f"{WAITS}trigger" else "day"


def read_lines(files: Files, day: str, offset: int = 0) -> Iterator[tuple[int, RunUsage]]:
    """The lines of a day from an offset on, each with its end offset."""
    for end, line in files.lines(paths.usage_day(day), offset=offset):
        with contextlib.suppress(ValidationError):
            yield end, RunUsage.model_validate(line, strict=False)


def runs_of_day(files: Files, day: str) -> dict[str, RunUsage]:
    return {line.id: line for _, line in read_lines(files, day)}


def sums_of(runs: Iterable[RunUsage]) -> list[UsageSum]:
    """The sums of attempts by engine, model, role, profile and trigger."""
    groups: dict[tuple[str, str, Role, str, str | None], list[RunUsage]] = {}
    for run in runs:
        key = (run.engine, run.model, run.role, run.profile, run.trigger_id)
        if key not in groups and len(groups) >= MOST_SUMS:
            key = (*key[:4], None)
        groups.setdefault(key, []).append(run)
    return [
        UsageSum(
            engine=engine,
            model=model,
            role=role,
            profile=profile,
            trigger_id=trigger_id,
            runs=len(group),
            estimated=sum(run.estimated for run in group),
            usage=sum((run.usage for run in group), Usage()),
        )
        for (engine, model, role, profile, trigger_id), group in groups.items()
    ]


def days_with_lines(files: Files) -> list[str]:
    """Days whose lines are not deleted yet, oldest first."""
    return [name.removesuffix(".jsonl") for name in files.names(paths.USAGE, suffix=".jsonl")]


def usage_of_run(files: Files, run_id: str, since: str) -> list[RunUsage]:
    """The attempts of one task or turn, from that day on, oldest first."""
    found: dict[str, RunUsage] = {}
    for day in (day for day in days_with_lines(files) if day >= since):
        needle = f'"{run_id}"'.encode()
        lines = files.lines_back(paths.usage_day(day), holding=needle)
        for _, line in reversed([*lines]):
            with contextlib.suppress(ValidationError):
                run = RunUsage.model_validate(line, strict=False)
                found |= {run.id: run} if run.run_id == run_id else {}
    return list(found.values())


def roll_up(files: Files, today: date) -> list[str]:
    """Write the sums of past days that have none yet; returns those days.

    Crash: a month is replaced as a whole; repeating it gives the same.
    """
    done: list[str] = []
    open_days = [day for day in days_with_lines(files) if day < today.isoformat()]
    for month in sorted({day[:7] for day in open_days}):
        known = files.load(paths.usage_month(month), UsageMonth) or UsageMonth()
        new = [d for d in open_days if d[:7] == month and d not in known.days]
        if new:
            days = known.days | {day: sums_of(runs_of_day(files, day).values()) for day in new}
            files.save(paths.usage_month(month), known.but(days=dict(sorted(days.items()))))
            done += new
    return done


def is_summed_up(files: Files, day: str) -> bool:
    month = files.peek(paths.usage_month(day[:7]), UsageMonth)
    return month is not None and day in month.days


@dataclass
class RunMeter:
    """Counts the tokens of one attempt while its engine runs."""

    line: RunUsage
    reported: Usage = field(default_factory=Usage)
    left: int | None = None
    """Tokens its task may still use."""
    cap: int = 0
    """Tokens its task may use in all."""

    @property
    def is_over(self) -> bool:
        return self.left is not None and self.reported.tokens > self.left


class UsageBook:
    """Sums the tokens of each cap's window; writes the lines. Thread-safe; one per consumer."""

    def __init__(self, files: Files, settings: Settings, clock: Clock) -> None:
        self._files, self._clock, self._zone = files, clock, settings.zone
        self._lock = threading.Lock()
        self.caps: TokenCapSettings = settings.budget
        self._day = date.min
        self._used = 0
        self._by_trigger = Counter[str]()
        self.held: dict[str, tuple[BudgetHold, Task | None]] = {}
        """Task or turn that waits for tokens → its cap, and the task."""

    def begin(
        self, run_id: str, attempt: int, role: Role, engine: str, model: str, task: Task | None
    ) -> RunMeter | BudgetHold | None:
        """A meter, or the cap for which the run may not start; None: its engine uses no tokens.

        Raises:
            StorageError: the ledger cannot be read.
        """
        if engine in WITHOUT_TOKENS:
            return None
        with self._lock:
            now = self._clock.now()
            self._load_day(day_of(now, self._zone))
            trigger_id = task.source_trigger_id if task else None
            by_trigger = self._by_trigger[trigger_id] if trigger_id is not None else None
            of_task = self._of_task(task, now)
            used: dict[HeldFor, int | None] = {
                "day": self._used,
                "trigger": by_trigger,
                "task": of_task,
            }
            hold = hold_for(self.caps, used, now, self._zone)
            if hold is not None:
                self.held[run_id] = hold, task
                return hold
            self.held.pop(run_id, None)
            line = RunUsage(
                id=new_id("use", now), at=now, run_id=run_id, attempt=attempt, role=role,
                profile=task.profile if task and role == "worker" else "", engine=engine,
                model=model, trigger_id=trigger_id,
            )  # fmt: skip
            cap = self.caps.per_task_tokens
            left = cap - of_task if cap is not None and of_task is not None else None
            return RunMeter(line, left=left, cap=cap or 0)

    def settle(self, meter: RunMeter, usage: Usage, *, estimated: bool = False) -> None:
        """Write the line of an attempt. May be repeated after a StorageError."""
        with self._lock:
            now = self._clock.now()
            self._load_day(day_of(now, self._zone))
            changes = {"at": now, "usage": usage, "estimated": estimated}
            line = meter.line.model_copy(update=changes)
            self._files.append(paths.usage_day(self._day.isoformat()), line.to_dict())
            self._count(line)

    def waits_for(self, run_id: str) -> str | None:
        hold, _ = self.held.get(run_id, (None, None))
        return f"{WAITS}{hold.held_for}" if hold else None

    def forget(self, run_id: str) -> None:
        with self._lock:
            self.held.pop(run_id, None)

    def used_today(self) -> int:
        with self._lock:
            self._load_day(day_of(self._clock.now(), self._zone))
            return self._used

    def _load_day(self, day: date) -> None:
        """Load the sums of a day, unless they are."""
        if day == self._day:
            return
        runs = runs_of_day(self._files, day.isoformat()).values()
        self._day, self._used = day, 0
        self._by_trigger.clear()
        for run in runs:
            self._count(run)

    def _count(self, run: RunUsage) -> None:
        self._used += run.usage.tokens
        if run.trigger_id is not None:
            self._by_trigger[run.trigger_id] += run.usage.tokens

    def _of_task(self, task: Task | None, now: datetime) -> int | None:
        """The tokens of all attempts of a task; None: it has no cap."""
        if task is None or self.caps.per_task_tokens is None:
            return None
        if not (task.attempts or task.interruptions or task.not_before):
            return 0
        since = day_of(min(task.created_at, now), self._zone).isoformat()
        return sum(run.usage.tokens for run in usage_of_run(self._files, task.id, since))
