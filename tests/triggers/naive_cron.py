"""A reference for cron: checks every minute of a time span."""

from __future__ import annotations

import calendar
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]

Row = tuple[datetime, datetime, list[datetime]]
"""An instant, its local time, and the local times that it skipped: those of a gap before it."""


def rows(start: datetime, end: datetime, zone: ZoneInfo) -> list[Row]:
    """The whole minutes in (start, end]."""
    found: list[Row] = []
    time = start.replace(second=0, microsecond=0)
    before = time.astimezone(zone).replace(tzinfo=None)
    while (time := time + MINUTE) <= end:
        local = time.astimezone(zone)
        wall = local.replace(tzinfo=None, fold=0)
        missing = range(1, int((wall - before) / MINUTE))
        if time > start:
            found.append((time, local, [before + MINUTE * n for n in missing]))
        before = wall
    return found


def times(line: str, among: Iterable[Row]) -> list[datetime]:
    """As Debian's cron: fixed times once, after a gap; lines with a star go on."""
    naive = _parsed(line)
    fixed = not any(field.startswith("*") for field in line.split()[:2])
    found: list[datetime] = []
    for time, local, missing in among:
        walls = [*missing, *([] if local.fold else [local])] if fixed else [local]
        if any(naive.fires(wall) for wall in walls):
            found.append(time)
    return found


@dataclass(frozen=True)
class _Naive:
    minutes: frozenset[int]
    months: frozenset[int]
    dom: str
    dow: str
    known: dict[date, bool]

    def fires(self, wall: datetime) -> bool:
        return wall.hour * 60 + wall.minute in self.minutes and self.means(wall.date())

    def means(self, day: date) -> bool:
        if day not in self.known:
            self.known[day] = self._means(day)
        return self.known[day]

    def _means(self, day: date) -> bool:
        by_month, by_week = _is_dom(self.dom, day), _is_dow(self.dow, day)
        both = self.dom.startswith("*") or self.dow.startswith("*")
        return day.month in self.months and (
            (by_month and by_week) if both else (by_month or by_week)
        )


@cache
def _parsed(line: str) -> _Naive:
    minute, hour, dom, month, dow = line.upper().split()
    hours = _numbers(hour, 0, 23, ())
    minutes = _numbers(minute, 0, 59, ())
    return _Naive(
        frozenset(h * 60 + m for h in hours for m in minutes),
        frozenset(_numbers(month, 1, 12, _MONTHS)),
        dom,
        dow,
        {},
    )


def _numbers(field: str, low: int, high: int, names: Iterable[str]) -> set[int]:
    found: set[int] = set()
    for term in field.split(","):
        span, _, step = term.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            start, end = low, high
        else:
            start = _number(first, low, names)
            end = _number(last, low, names) if dash else high if step else start
        found |= {n for n in range(start, end + 1) if (n - start) % int(step or 1) == 0}
    return found


def _number(text: str, low: int, names: Iterable[str]) -> int:
    known = list(names)
    return known.index(text) + low if text in known else int(text)


def _is_dom(field: str, day: date) -> bool:
    last = calendar.monthrange(day.year, day.month)[1]
    for term in field.split(","):
        if term == "L":
            fits = day.day == last
        elif term == "LW":
            working = [n for n in range(1, last + 1) if day.replace(day=n).weekday() < 5]
            fits = day.day == working[-1]
        else:
            fits = day.day in _numbers(term, 1, 31, ())
        if fits:
            return True
    return False


def _is_dow(field: str, day: date) -> bool:
    mine = {day.isoweekday() % 7, day.isoweekday()}  # Sunday is 0 and 7
    for term in field.split(","):
        name, number_sign, number = term.partition("#")
        if number_sign:
            fits = _number(name, 0, _DAYS) in mine and (day.day - 1) // 7 + 1 == int(number)
        elif term.endswith("L"):
            ends = (day + timedelta(days=7)).month != day.month
            fits = int(term[:-1]) in mine and ends
        else:
            fits = bool(_numbers(term, 0, 7, _DAYS) & mine)
        if fits:
            return True
    return False
