"""Parses times in sentences ("tomorrow at 9", 「每周一早上 9 点」), and puts times in words. Pure.

`time_at` needs no clock: a `Time` is what the words mean on any day. `when_of` gives the moment,
the interval or the cron line. Ambiguities:

- A time of day alone is the next such time. A weekday is the next such day; "next Monday" and
  「下周一」 lie in the calendar week after this one, which begins on Monday.
- A day alone means nine o'clock; a part of a day means the hour in `time_vocabulary.PARTS`.
- Midnight ends the day it is named with: 「今晚 12 点」, "Friday at midnight" and "24:00" are one
  instant with 0:00 of the day after. 「晚上 1 点」 and "tonight at 2" come after that midnight.
- A date without a year is the next such date. A day that is named and has passed is `PastTime`.
- A local time that does not exist moves forward over the gap; of one that exists twice the first
  counts.
- A date is read as year, month, day, or with the month's name: `12/1` is none.
- An hour alone ("at 6") is the next such on the 12-hour clock; an end ("until Friday") is whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from mimikit.language import time_vocabulary as words
from mimikit.language.day_times import (
    NINE,
    Day,
    DayAhead,
    Days,
    DayTime,
    MissingDay,
    TimeCursor,
    TimeOfDay,
    Weekday,
    ahead,
    clock_of,
    cron_line,
    cron_within,
    default_time,
    first_of,
    groups_of,
    instant,
    limit_of,
    match_clocks,
    read_day,
    read_days,
    read_excluded,
    read_window,
    without,
)
from mimikit.language.phrases import (
    NO_LIMITS,
    Language,
    Limits,
    cron_words,
    interval_words,
    limited_words,
    moment_words,
)
from mimikit.language.time_vocabulary import fold, interval_at, number_of, ordinal_of

_DAY_S = 86400
_MAX_AHEAD_S = 3660 * _DAY_S


@dataclass(frozen=True, slots=True)
class RepeatTime:
    """Repeats at an interval."""

    seconds: float
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class CronTime:
    """A cron line of five fields (days 0-6, 0 is Sunday), in the speaker's zone."""

    expression: str
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class SpanAhead:
    """A duration from now."""

    seconds: float


@dataclass(frozen=True, slots=True)
class BoundTime:
    """A repetition with its limits in words; `when_of` resolves them."""

    core: RepeatTime | CronTime
    starting: DayTime | None = None
    until: DayTime | SpanAhead | None = None
    times: int | None = None
    every_days: int | None = None
    every_weeks: int | None = None


Time = SpanAhead | DayTime | RepeatTime | CronTime | BoundTime


class FoundTime(NamedTuple):
    """A parsed time and its place in the text."""

    time: Time
    start: int
    end: int
    words: str
    adverb: bool = False
    """Whether it is an adverb such as `daily`, which may be an argument of a command."""

    @property
    def vague(self) -> bool:
        """Whether it is a day without a time of day."""
        return isinstance(self.time, DayTime) and self.time.clock is None


@dataclass(frozen=True, slots=True)
class InstantTime:
    """An instant in UTC."""

    at: datetime


When = InstantTime | RepeatTime | CronTime


def parse_when(text: str, *, now: datetime, zone: ZoneInfo) -> When | None:
    """Parse a text that is nothing but a time; None when it is not.

    Raises:
        PastTime: it names a day, and that time has passed.
    """
    plain = fold(text.strip()).rstrip(" .。!")
    time = time_at(plain, 0)
    span = interval_at("span", plain, 0)
    try:
        if time is not None and time.end == len(plain):
            return when_of(time.time, now=now, zone=zone)
        if span is not None and span.end == len(plain) and span.seconds <= _MAX_AHEAD_S:
            return when_of(SpanAhead(span.seconds), now=now, zone=zone)
    except MissingDay:
        pass
    return None


def parse_limit(text: str, *, now: datetime, zone: ZoneInfo, is_end: bool) -> datetime | None:
    """Parse the start or end of a schedule; a day alone is meant whole."""
    plain = fold(text.strip())
    cursor = TimeCursor(plain, 0)
    limit = _moment(cursor)
    if limit is not None and limit.day is not None and cursor.at == len(plain):
        return limit_of(limit, now, zone, is_end=is_end)
    when = parse_when(text, now=now, zone=zone)
    return when.at if isinstance(when, InstantTime) else None


def time_at(plain: str, start: int) -> FoundTime | None:
    """Parse the time that begins at `start` of a folded text."""
    for read in (_time_from_now, _on_the_hour, _phrase):
        cursor = TimeCursor(plain, start)
        time = read(cursor)
        if time is not None:
            phrase = plain[start : cursor.at]
            return FoundTime(time, start, cursor.at, phrase, phrase.lower() in words.ADVERBS)
    return None


def interval_of(time: Time) -> float | None:
    core = time.core if isinstance(time, BoundTime) else time
    return core.seconds if isinstance(core, RepeatTime) else None


def time_at_end(plain: str, ending: re.Pattern[str], tail: int) -> FoundTime | None:
    """Parse the time at the end of a text, followed only by what `ending` matches.

    It must begin with a word for a time: a bare `9:00` or `10m` may be part of the text.
    """
    for match in words.PATTERNS["introduced"].finditer(plain, max(0, len(plain) - tail)):
        time = time_at(plain, match.start())
        if time is not None and ending.match(plain, time.end):
            return time
    return None


def _time_from_now(cursor: TimeCursor) -> Time | None:
    """Parse `in 10 minutes`, 「两小时后」, `in 3 days at 9`."""
    before = cursor.take("in")
    seconds = cursor.take_seconds("span")
    if seconds is None or seconds > _MAX_AHEAD_S:
        return None
    if not cursor.take("from_now") and not (before and before["tells"]):
        return None
    if seconds % _DAY_S == 0:
        on_day = TimeCursor(cursor.plain, cursor.at)
        matches, part = match_clocks(on_day)
        clock = clock_of(matches[0], part) if len(matches) == 1 else None
        if clock:
            cursor.at = on_day.at
            return DayTime(DayAhead(int(seconds) // _DAY_S), clock)
    return SpanAhead(seconds)


def _on_the_hour(cursor: TimeCursor) -> CronTime | None:
    """Parse `every hour at :15`."""
    match = cursor.take("hourly")
    if match is None:
        return None
    minute = int(number_of(match["minute"] or match["past"] or match["minute_zh"] or "0"))
    return CronTime(f"{minute} * * * *") if minute < 60 else None


# ---- phrases: their parts come in any order, each once

_Hours = tuple[list[re.Match[str]], re.Match[str] | None]


@dataclass(frozen=True, slots=True)
class _Parts:
    times: int | None = None
    until: DayTime | SpanAhead | None = None
    starting: DayTime | None = None
    step: tuple[int, bool] | None = None
    """Every so many days, or weeks (True)."""
    excluded: frozenset[int] | None = None
    window: tuple[int, int] | None = None
    """From and to a minute of the day."""
    days: Days | None = None
    day: Day | None = None
    hours: _Hours | None = None
    part: re.Match[str] | None = None
    """Of the day, apart from its hours: "at 9 tomorrow morning"."""
    period: float | None = None


def _phrase(cursor: TimeCursor) -> Time | None:
    """Parse days, times of day, intervals and their limits; None unless they fit together."""
    cursor.take("on")
    parts = _Parts()
    while (more := _with_next(cursor, parts)) is not None:
        parts = more
    clocks = _clocks(parts)
    core = None if clocks is None else _repetition(parts, clocks)
    if core is not None:
        return _bound(core, parts)
    single = _Parts(day=parts.day, hours=parts.hours, part=parts.part)
    return _single_time(parts) if parts == single else None


def _with_next(cursor: TimeCursor, parts: _Parts) -> _Parts | None:
    """The parts and the next one; None: none follows, the cursor stays."""
    start = cursor.at
    for name, read in _READERS:
        value = read(cursor) if getattr(parts, name) is None else None
        if value is not None:
            return replace(parts, **{name: value})
        cursor.at = start
    return None


def _times(cursor: TimeCursor) -> int | None:
    match = cursor.take("times")
    if match is None:
        return None
    return 2 if match["twice"] else int(number_of(match["en"] or match["zh"])) or None


def _until(cursor: TimeCursor) -> DayTime | SpanAhead | None:
    """Parse `until Friday`, `for two weeks`, 「直到周五」."""
    if cursor.take("lasting"):
        seconds = cursor.take_seconds("span")
        return None if seconds is None or seconds > _MAX_AHEAD_S else SpanAhead(seconds)
    opening = cursor.take("until")
    moment = _moment(cursor) if opening else None
    has_stop = cursor.take("stop") is not None
    return moment if opening and (has_stop or not opening["stop"]) else None


def _starting(cursor: TimeCursor) -> DayTime | None:
    opening, moment = cursor.take("starting"), _moment(cursor)
    onwards = cursor.take("onwards")
    is_said = (opening and opening["en"]) or (onwards and onwards["zh"])
    return moment if is_said and moment and moment.day else None


def _moment(cursor: TimeCursor) -> DayTime | None:
    """Parse a day, a time of day, or both in any order."""
    cursor.take("on")
    day, hours = read_day(cursor), _hours(cursor)
    return _single_time(_Parts(day=day or read_day(cursor), hours=hours))


def _single_time(parts: _Parts) -> DayTime | None:
    clocks = _clocks(parts)
    if clocks is None or len(clocks) > 1 or not (parts.day or clocks):
        return None
    return DayTime(parts.day, clocks[0] if clocks else None)


def _step(cursor: TimeCursor) -> tuple[int, bool] | None:
    match = cursor.take("step")
    if match is None:
        return None
    groups = groups_of(match)
    count = 2 if groups["other"] or groups["skip_zh"] else 1
    if groups["nth"]:
        count = ordinal_of(groups["nth"])
    elif number := first_of(groups, ("count", "count_zh")):
        count = int(number_of(number))
    if first_of(groups, ("fortnights", "fortnight", "biweekly")):
        count *= 2
    return (count, not first_of(groups, ("days", "days_zh", "skip_days"))) if count else None


def _hours(cursor: TimeCursor) -> _Hours | None:
    matches, part = match_clocks(cursor)
    return (matches, part) if matches or part else None


_READERS: tuple[tuple[str, Callable[[TimeCursor], object]], ...] = (
    ("times", _times), ("until", _until), ("starting", _starting), ("step", _step),
    ("excluded", read_excluded), ("window", read_window), ("days", read_days), ("day", read_day),
    ("hours", _hours), ("part", lambda cursor: cursor.take("part")),
    ("period", lambda cursor: cursor.take_seconds("period")),
)  # fmt: skip


# ---- what the parts mean together


def _clocks(parts: _Parts) -> list[TimeOfDay] | None:
    """The times of day; None when one of them does not exist."""
    matches, part = parts.hours or ([], None)
    if part and parts.part and part["part"] != parts.part["part"]:
        return None  # "morning and evening" are two times
    part = part or parts.part
    read = [clock_of(match, part) for match in matches]
    if part and not matches:
        read = [default_time(part, has_day=bool(parts.day or parts.days or parts.step))]
    clocks = [clock for clock in read if clock is not None]
    return clocks if len(clocks) == len(read) else None


def _repetition(parts: _Parts, clocks: list[TimeOfDay]) -> BoundTime | None:
    for limit in (parts.starting, parts.until):  # "every day until Friday at 9"
        if isinstance(limit, DayTime) and limit.day and limit.clock and not clocks:
            clocks = [limit.clock]
    days = without(parts.days or Days(), parts.excluded)
    if parts.step is not None:
        return _of_step(parts, parts.step, clocks)
    if days is None or parts.day is not None:
        return None
    if parts.period is not None:
        return _of_period(parts, parts.period, days, clocks)
    if parts.days is None or parts.window is not None:
        return None
    if days == Days() and not (clocks or parts.excluded or parts.starting):
        return BoundTime(RepeatTime(_DAY_S))
    cron = cron_line(days, clocks or [TimeOfDay(NINE)])
    return BoundTime(CronTime(cron)) if cron else None


def _of_period(
    parts: _Parts, seconds: float, days: Days, clocks: list[TimeOfDay]
) -> BoundTime | None:
    if parts.hours is not None or parts.part is not None:
        return None
    if parts.days or parts.window or parts.excluded:
        cron = cron_within(seconds, days, parts.window)
        return BoundTime(CronTime(cron)) if cron else None
    if seconds == 7 * _DAY_S and parts.starting:
        return _of_step(parts, (1, True), clocks)
    return BoundTime(RepeatTime(seconds))


def _of_step(parts: _Parts, step: tuple[int, bool], clocks: list[TimeOfDay]) -> BoundTime | None:
    """Every other day at 8, every 2 weeks on Monday."""
    count, is_weeks = step
    if parts.window or parts.excluded or parts.period not in (None, 7 * _DAY_S):
        return None
    days = parts.days
    if isinstance(parts.day, Weekday) and parts.day.weeks is None and days is None:
        days = Days(frozenset((parts.day.day,)))
    elif parts.day is not None:
        return None
    if days is not None and not (is_weeks and days.is_weekly and 1 <= count <= 52):
        return None
    number = count * 7 if is_weeks and days is None else count
    if days is None and not (clocks or parts.starting):
        return BoundTime(RepeatTime(number * _DAY_S))
    cron = cron_line(days or Days(), clocks or [TimeOfDay(NINE)])
    if cron is None or number > 366:
        return None
    every = None if number == 1 else number
    return BoundTime(
        CronTime(cron),
        every_days=every if days is None else None,
        every_weeks=None if days is None else every,
    )


def _bound(core: BoundTime, parts: _Parts) -> Time | None:
    until, starting, repeated = parts.until, parts.starting, core.core
    seconds = repeated.seconds if isinstance(repeated, RepeatTime) else None
    is_short = seconds is not None and seconds < _DAY_S
    if isinstance(until, DayTime) and until.day is None and not is_short:
        return None
    if seconds is None and parts.hours is None:  # their time of day is that of the repetition
        starting = starting and replace(starting, clock=None)
        until = replace(until, clock=None) if isinstance(until, DayTime) else until
    elif starting is not None and starting.clock is None and seconds is not None:
        starting = replace(starting, clock=TimeOfDay(NINE))
    bound = replace(core, starting=starting, until=until, times=parts.times)
    return bound if bound != BoundTime(repeated) else repeated


# ---- from words to instants


def when_of(time: Time, *, now: datetime, zone: ZoneInfo) -> When:
    """Resolve a parsed time for a speaker at `now` in `zone`.

    Raises:
        PastTime: it names a day, and that time has passed.
    """
    match time:
        case SpanAhead(seconds):
            return InstantTime(ahead(now, seconds, zone))
        case DayTime(day, clock):
            return InstantTime(instant(day, clock or TimeOfDay(NINE), now, zone))
        case BoundTime(core, starting, until, times, every_days, every_weeks):
            start = limit_of(starting, now, zone, is_end=False) if starting else None
            end = None
            if isinstance(until, SpanAhead):
                end = ahead(start or now, until.seconds, zone)
            elif until is not None:
                end = limit_of(until, now, zone, is_end=True)
            limits = Limits(start, end, times, None, every_days, every_weeks)
            return replace(core, limits=limits)
        case _:
            return time


# ---- from instants to words


def when_words(when: When, zone: ZoneInfo, language: Language = "en") -> str:
    match when:
        case InstantTime(at):
            return moment_words(at, zone, language)
        case RepeatTime(seconds, limits):
            return limited_words(interval_words(seconds, language), limits, zone, language)
        case CronTime(expression, limits):
            repeated = cron_words(expression, language, zone.key, limits)
            return limited_words(repeated, limits, zone, language)
