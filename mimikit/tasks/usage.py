"""The ledger of usage: a line before each run of a mind and one after it, and sums of past days.

Crash: the first line is there before the engine begins. A run that has no second one when the
consumer starts was cut short: what it had told by then counts, else what it had reserved, and it is
marked as estimated. The second line is written before the result, so neither is lost nor counted
twice: a line that stands there twice has one id.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal

from pydantic import ValidationError

from mimikit.clock import Clock
from mimikit.config import Settings, TokenCapSettings
from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import Role, Task, Usage
from mimikit.protocol.usage import RunUsage, UsageMonth, UsageSum
from mimikit.tasks.budget import BudgetHold, RunKind, TokenBudget, day_of

WITHOUT_TOKENS = frozenset({"builtin", "command"})
"""Engines that cost none."""
WAITS = "budget:"
"""How `waits_for` begins of a task that waits for tokens; no engine is named so."""
MOST_SUMS = 200
"""Of a day; the runs of further triggers are summed up together."""


def held_for(waits_for: str | None) -> Literal["day", "trigger"] | None:
    """For which tokens a task waits, by its `waits_for`; None: for none."""
    if waits_for is None or not waits_for.startswith(WAITS):
        return None
    return "trigger" if waits_for == f"{WAITS}trigger" else "day"


def read_lines(files: Files, day: str, offset: int = 0) -> Iterator[tuple[int, RunUsage]]:
    """The lines of a day's file from an offset on, each with its end; others are passed over."""
    for end, line in files.lines(paths.usage_day(day), offset=offset):
        with contextlib.suppress(ValidationError):
            yield end, RunUsage.model_validate(line, strict=False)


def runs_of_day(files: Files, day: str) -> dict[str, RunUsage]:
    """The runs of a day by the ids of their lines: of each the last word."""
    return {line.id: line for _, line in read_lines(files, day)}


def sums_of(runs: Iterable[RunUsage]) -> list[UsageSum]:
    """What runs have used, by kind; one that began and is not over has used nothing yet."""
    groups: dict[tuple[str, str, Role, str, str | None], list[RunUsage]] = {}
    for run in runs:
        if run.state != "used":
            continue
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
            usage=total_of(run.usage for run in group),
        )
        for (engine, model, role, profile, trigger_id), group in groups.items()
    ]


def total_of(usages: Iterable[Usage]) -> Usage:
    """Many together; quicker than one after the other."""
    found = list(usages)
    return Usage(**{name: sum(getattr(one, name) for one in found) for name in Usage.model_fields})


def days_with_lines(files: Files) -> list[str]:
    """The days whose runs are known one by one, oldest first."""
    return [name.removesuffix(".jsonl") for name in files.names(paths.USAGE, suffix=".jsonl")]


def usage_of_run(files: Files, run_id: str, since: str) -> list[RunUsage]:
    """The runs of one task or turn over all its attempts, from that day on, oldest first."""
    found: dict[str, RunUsage] = {}
    for day in (day for day in days_with_lines(files) if day >= since):
        needle = f'"{run_id}"'.encode()
        told = files.lines_back(paths.usage_day(day), holding=needle)
        for _, line in reversed([*told]):
            with contextlib.suppress(ValidationError):
                run = RunUsage.model_validate(line, strict=False)
                found |= {run.id: run} if run.run_id == run_id else {}
    return [run for run in found.values() if run.state == "used"]


def roll_up(files: Files, today: date, busy: frozenset[str] = frozenset()) -> list[str]:
    """Sum up the days that are over and were not yet; gives them. `busy`: a run of theirs goes on.

    Crash: a month is written whole; done again it is the same: the lines of its days still stand.
    """
    done: list[str] = []
    open_days = [day for day in days_with_lines(files) if day < today.isoformat()]
    for month in sorted({day[:7] for day in open_days}):
        known = files.load(paths.usage_month(month), UsageMonth) or UsageMonth()
        new = [d for d in open_days if d[:7] == month and d not in known.days and d not in busy]
        if new:
            days = known.days | {day: sums_of(runs_of_day(files, day).values()) for day in new}
            files.save(paths.usage_month(month), known.but(days=dict(sorted(days.items()))))
            done += new
    return done


def is_summed_up(files: Files, day: str) -> bool:
    """Whether the lines of a day may go."""
    month = files.peek(paths.usage_month(day[:7]), UsageMonth)
    return month is not None and day in month.days


@dataclass
class RunMeter:
    """What one run uses, while it does."""

    began: RunUsage
    day: str
    told: Usage = field(default_factory=Usage)
    """What its engine has told so far."""
    most: int | None = None
    """So much its task may still use."""
    cap: int = 0
    """What its task may use in all."""

    @property
    def is_over(self) -> bool:
        return self.most is not None and self.told.tokens > self.most


class UsageBook:
    """Reserves, counts and writes down. Thread-safe; one per consumer."""

    def __init__(self, files: Files, settings: Settings, clock: Clock) -> None:
        self._files, self._clock, self._zone = files, clock, settings.zone
        self._lock = threading.RLock()
        self._budget = TokenBudget(settings.budget)
        self._live: dict[str, RunMeter] = {}
        self._unbegun: list[tuple[str, RunUsage]] = []
        """By day: first lines that a refusing disk may hold all the same, though nothing began."""
        self.held: dict[str, tuple[BudgetHold, Task | None]] = {}
        """By the id of its task or turn: what waits for tokens."""

    @property
    def caps(self) -> TokenCapSettings:
        return self._budget.caps

    def renew(self, caps: TokenCapSettings) -> None:
        """Take other caps from now on."""
        with self._lock:
            self._budget.caps = caps

    def begin(
        self, run_id: str, attempt: int, role: Role, engine: str, model: str, task: Task | None
    ) -> RunMeter | BudgetHold | None:
        """Note that a run begins, unless it has to wait; None: it costs nothing.

        Crash: the line is there before the engine is; it need not outlive a power cut.

        Raises:
            StorageError: nothing has begun.
        """
        if engine in WITHOUT_TOKENS:
            return None
        with self._lock:
            now = self._clock.now()
            self._turn_to(day_of(now, self._zone))
            self._end_unbegun()
            trigger_id = task.source_trigger_id if task else None
            kind: RunKind = (engine, role, task.profile if task and role == "worker" else "")
            left, hold = self._left(task, now)
            hold = hold or self._budget.hold(kind, trigger_id, now, self._zone)
            if hold is not None:
                self.held[run_id] = hold, task
                return hold
            self.held.pop(run_id, None)
            id_ = new_id("use", now)  # derived from nothing: no run is ever written twice
            reserved = self._budget.reserve(id_, kind, trigger_id)
            began = RunUsage(
                id=id_, at=now, state="began", run_id=run_id, attempt=attempt, role=role,
                profile=kind[2], engine=engine, model=model, trigger_id=trigger_id,
                reserved=reserved,
            )  # fmt: skip
            cap = self.caps.per_task_tokens or 0
            meter = RunMeter(began, self._budget.day.isoformat(), most=left, cap=cap)
            path = paths.usage_day(meter.day)
            try:
                self._files.append(path, began.to_dict(), sync=not self._files.exists(path))
            except StorageError:
                self._budget.settle(id_)
                self._unbegun.append((meter.day, began))
                raise
            self._live[id_] = meter
            return meter

    def _end_unbegun(self) -> None:
        """Say of what never began that it has used nothing."""
        while self._unbegun:
            day, began = self._unbegun[-1]
            over = began.but(at=self._clock.now(), state="none")
            self._files.append(paths.usage_day(day), over.to_dict())
            self._unbegun.pop()

    def tell(self, meter: RunMeter, usage: Usage) -> None:
        """What a run has used so far, as its engine tells."""
        with self._lock:
            meter.told = usage
            self._budget.grow(meter.began.id, usage.tokens)

    def settle(self, meter: RunMeter, usage: Usage | None, *, estimated: bool = False) -> None:
        """Write down what a run has used (None: nothing), and give back what it had reserved.

        Raises:
            StorageError: it is to be said again; until then what it had reserved stays so.
        """
        with self._lock:
            began = meter.began
            if began.id not in self._live:
                return
            over = began.model_copy(
                update={
                    "at": self._clock.now(),
                    "state": "none" if usage is None else "used",
                    "usage": usage or Usage(),
                    "estimated": estimated,
                }
            )
            self._files.append(paths.usage_day(meter.day), over.to_dict())
            del self._live[began.id]
            self._budget.settle(began.id)
            if meter.day == self._budget.day.isoformat():
                self._count(over)

    def waits_for(self, run_id: str) -> str | None:
        """What a task that was held waits for, as its file says it."""
        hold, _ = self.held.get(run_id, (None, None))
        return f"{WAITS}{hold.held_for}" if hold else None

    def forget(self, run_id: str) -> None:
        """It waits no longer."""
        with self._lock:
            self.held.pop(run_id, None)

    def state(self) -> tuple[int, int]:
        """What of today is used, and what reserved."""
        with self._lock:
            self._turn_to(day_of(self._clock.now(), self._zone))
            return self._budget.used, self._budget.reserved()

    def is_full(self) -> bool:
        """Whether today has no room for anything."""
        used, _ = self.state()
        return self.caps.daily_tokens is not None and used >= self.caps.daily_tokens

    def keep_up(self, now: datetime) -> bool:
        """Sum up the days that are over; False while a run of one goes on, whose turn comes yet."""
        today = day_of(now, self._zone)
        with self._lock:
            self._end_unbegun()
            busy = frozenset(meter.day for meter in self._live.values())
        roll_up(self._files, today, busy)
        return busy <= {today.isoformat()}

    def recover(self) -> None:
        """Bring runs to their end that were cut short with the last consumer.

        Crash: each is one line; those written are not found again.
        """
        for day in days_with_lines(self._files):
            if is_summed_up(self._files, day):
                continue
            for run in runs_of_day(self._files, day).values():
                if run.state == "began":
                    told = _last_told(self._files, run.run_id)
                    usage = told or Usage(input_tokens=run.reserved)
                    over = {"state": "used", "usage": usage, "estimated": True}
                    line = run.model_copy(update={**over, "at": self._clock.now()})
                    self._files.append(paths.usage_day(day), line.to_dict())

    def _turn_to(self, day: date) -> None:
        """Count for another day, also where the clock was set back; what runs need is kept."""
        if day == self._budget.day:
            return
        is_first = self._budget.day == date.min
        self._budget.begin_day(day)
        if is_first:
            before = [d for d in days_with_lines(self._files) if d < day.isoformat()][-1:]
            for run in (run for d in before for run in runs_of_day(self._files, d).values()):
                self._learn(run)
        for run in runs_of_day(self._files, day.isoformat()).values():
            if run.state == "used":
                self._count(run, learns=is_first)

    def _count(self, run: RunUsage, *, learns: bool = True) -> None:
        trigger_id = run.trigger_id
        self._budget.count(trigger_id, run.usage.tokens)
        if learns:
            self._learn(run)

    def _learn(self, run: RunUsage) -> None:
        if run.state == "used" and not run.estimated:
            self._budget.learn((run.engine, run.role, run.profile), run.usage.tokens)

    def _left(self, task: Task | None, now: datetime) -> tuple[int | None, BudgetHold | None]:
        """What a task may still use, over all its attempts; or that nothing is left of it."""
        cap = self.caps.per_task_tokens
        if task is None or cap is None:
            return None, None
        since = day_of(min(task.created_at, now), self._zone).isoformat()
        used = sum(run.usage.tokens for run in usage_of_run(self._files, task.id, since))
        return cap - used, BudgetHold("task", cap, used) if used >= cap else None


def _last_told(files: Files, run_id: str) -> Usage | None:
    """What a run that was cut short had told of its usage."""
    for _, line in files.lines_back(paths.run_output(run_id)):
        if line.get("type") == "usage":
            with contextlib.suppress(ValidationError):
                return Usage.model_validate(line.get("data"), strict=False)
        if line.get("type") == "started":
            break
    return None
