"""What ran in the last hours, waiting apart from running: rows of bars, however many runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from mimikit.language.plain_text import first_line
from mimikit.protocol.models import Instant
from mimikit.tasks.queue import TaskSnapshot, TaskState
from mimikit.tasks.recent import EndedRun, RecentLedger
from mimikit.views.base import Title, View

MOST_HOURS = 48
MOST_BARS = 400
"""So many are sent; where there are more, those near one another become one."""
MOST_ROWS = 12
_FEW = 40
"""Bars of a row that stay as they are as long as there is room for all."""
_PASSING_MS = 2000
_FIRST_SLOTS, _LAST_SLOTS = 240, 12
RowKind = Literal["request", "trigger", "internal"]


class TimelineBar(View):
    """One run, or several of one row that lie near one another. Units: milliseconds."""

    task_id: str
    """Of several the last."""
    state: TaskState
    """Failed where one of them did."""
    title: Title
    created_at: Instant | None
    """When it began to wait; null where that is not known, and of several."""
    started_at: Instant | None
    """Null while it waits, and where it never ran."""
    ended_at: Instant | None
    """Null while it goes on."""
    count: int
    failed: int
    wait_ms: int | None
    """Of several the longest."""
    run_ms: int | None
    """Of several all together."""


class TimelineRow(View):
    """The runs of a trigger; or what was asked for, or mimikit's own upkeep, of all kinds."""

    kind: RowKind
    id: str
    """The trigger's; else the kind."""
    title: Title
    runs: int
    failed: int
    bars: list[TimelineBar]
    """Oldest first; of triggers they do not overlap much, of requests they may."""


class TimelineView(View):
    """Rows: what was asked for first, then triggers by their title, then upkeep."""

    since: Instant
    until: Instant
    runs: int
    failed: int
    rows: list[TimelineRow]
    more_rows: int
    """Triggers that ran longest ago, of very many."""
    whole: bool
    """False where of so many runs only the newest are known."""


@dataclass(frozen=True)
class _Bar:
    """The same before it is known which ones are shown: of ten thousand a model each takes long."""

    task_id: str
    state: TaskState
    title: str
    created_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    count: int
    failed: int
    wait_ms: int | None
    run_ms: int | None


class _Run(NamedTuple):
    """A run that ended or goes on."""

    row: tuple[RowKind, str]
    bar: _Bar
    began: datetime
    """When it was first seen: began to wait, or to run."""


def timeline(
    recent: RecentLedger,
    live: Iterable[TaskSnapshot],
    started: Callable[[str], datetime | None],
    title_of: Callable[[str], str],
    *,
    now: datetime,
    hours: int,
) -> TimelineView:
    """Pure. started: when a task that runs began; title_of: the title of a task or trigger."""
    since = now - timedelta(hours=hours)
    runs = [_ended(run) for run in recent.runs if not _is_passing(run)]
    runs += [_live(known, started(known.task.id)) for known in live]
    rows: dict[tuple[RowKind, str], list[_Run]] = {}
    for run in sorted(runs, key=lambda run: run.began):
        rows.setdefault(run.row, []).append(run)
    triggers = [key for key in rows if key[0] == "trigger"]
    triggers.sort(key=lambda key: rows[key][-1].began, reverse=True)
    for key in triggers[MOST_ROWS:]:
        del rows[key]
    bars = _few_enough({key: [run.bar for run in found] for key, found in rows.items()}, since, now)
    made = [
        TimelineRow(
            kind=kind,
            id=id_,
            title=title_of(id_) if kind == "trigger" else "",
            runs=len(found),
            failed=sum(run.bar.failed for run in found),
            bars=[
                TimelineBar.of(bar, title=bar.title or title_of(bar.task_id))
                for bar in bars[kind, id_]
            ],
        )
        for (kind, id_), found in rows.items()
    ]
    made.sort(key=lambda row: (("request", "trigger", "internal").index(row.kind), row.title))
    return TimelineView(
        since=since,
        until=now,
        runs=len(runs),
        failed=sum(run.bar.failed for run in runs),
        rows=made,
        more_rows=max(len(triggers) - MOST_ROWS, 0),
        whole=recent.is_whole,
    )


def _is_passing(run: EndedRun) -> bool:
    """A plan that took no time is no more than a step on the way to its work."""
    took = _ms(run.started_at, run.ended_at) or 0
    return run.seat == "planner" and run.status == "done" and took < _PASSING_MS


def _row_of(trigger_id: str | None, *, internal: bool) -> tuple[RowKind, str]:
    if internal:
        return "internal", "internal"
    return ("trigger", trigger_id) if trigger_id else ("request", "request")


def _ended(run: EndedRun) -> _Run:
    state: TaskState = "done"
    if run.status in ("failed", "canceled"):
        state = "failed" if run.status == "failed" else "canceled"
    created = run.created_at
    started = run.started_at
    began = min(at for at in (created, started, run.ended_at) if at is not None)
    bar = _Bar(
        task_id=run.id,
        state=state,
        title=run.title,
        created_at=created,
        started_at=started,
        ended_at=run.ended_at,
        count=1,
        failed=int(state == "failed"),
        wait_ms=_ms(created, started or run.ended_at),
        run_ms=_ms(started, run.ended_at),
    )
    return _Run(_row_of(run.trigger_id, internal=run.internal), bar, began)


def _live(known: TaskSnapshot, started: datetime | None) -> _Run:
    task = known.task
    bar = _Bar(
        task_id=task.id,
        state=known.state,
        title=task.title or first_line(task.prompt),
        created_at=task.created_at,
        started_at=started,
        ended_at=None,
        count=1,
        failed=0,
        wait_ms=_ms(task.created_at, started),
        run_ms=None,
    )
    trigger_id = task.source_trigger_id if task.firing is not False else None
    row = _row_of(trigger_id, internal=task.internal)
    return _Run(row, bar, min(task.created_at, started or task.created_at))


def _few_enough(
    rows: dict[tuple[RowKind, str], list[_Bar]], since: datetime, until: datetime
) -> dict[tuple[RowKind, str], list[_Bar]]:
    """The same rows with about MOST_BARS bars at most: full rows are drawn together first."""
    slots, made = _FIRST_SLOTS, rows
    few = min(_FEW, MOST_BARS // max(len(rows), 1))
    while True:
        slot = (until - since) / slots
        made = {
            key: bars if len(bars) <= few else _joined(bars, since, slot)
            for key, bars in made.items()
        }
        if sum(map(len, made.values())) <= MOST_BARS or slots <= _LAST_SLOTS:
            return made
        slots //= 2


def _joined(bars: list[_Bar], since: datetime, slot: timedelta) -> list[_Bar]:
    """One bar for those that began in one slot and ended, failures apart."""
    groups: dict[tuple[object, bool], list[_Bar]] = {}
    for bar in bars:
        start = bar.started_at or bar.ended_at
        is_over = bar.ended_at is not None and start is not None
        at: object = (start - since) // slot if is_over and start is not None else bar.task_id
        groups.setdefault((at, bar.failed > 0), []).append(bar)
    return [_one_bar(group) if len(group) > 1 else group[0] for group in groups.values()]


def _one_bar(bars: list[_Bar]) -> _Bar:
    starts = [at for bar in bars if (at := bar.started_at or bar.ended_at) is not None]
    return dataclasses.replace(
        bars[-1],
        created_at=None,
        started_at=min(starts),
        ended_at=max(bar.ended_at for bar in bars if bar.ended_at is not None),
        count=sum(bar.count for bar in bars),
        failed=sum(bar.failed for bar in bars),
        wait_ms=max((bar.wait_ms for bar in bars if bar.wait_ms is not None), default=None),
        run_ms=sum(bar.run_ms or 0 for bar in bars),
    )


def _ms(start: datetime | None, end: datetime | None) -> int | None:
    if start is None or end is None:
        return None
    return max(int((end - start).total_seconds() * 1000), 0)
