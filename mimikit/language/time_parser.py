"""Reads times in sentences, without a clock: what the words mean on any day. Pure.

How doubtful words are taken stands in `times`, the words themselves in `time_vocabulary`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from typing import NamedTuple

from mimikit.language import time_vocabulary as words
from mimikit.language.time_vocabulary import number_of, period_at, span_at

DAY_MINUTES = 24 * 60
DAY_S = 86400
FURTHEST_S = 3660 * DAY_S
NINE = 9 * 60
_MOST_HOURS = 24


@dataclass(frozen=True, slots=True)
class RepeatTime:
    """Again and again. Units: seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class CronTime:
    """Five fields of numbers (days 0-6, 0 is Sunday), meant in the zone of whoever says it."""

    expression: str


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """A time of day. From 1440 minutes on it lies after the midnight that ends its day."""

    minutes: int
    seconds: int = 0
    offset: tzinfo | None = None
    """The zone it was written with, if any."""


@dataclass(frozen=True, slots=True)
class DayAhead:
    """A number of days from today."""

    days: int


@dataclass(frozen=True, slots=True)
class Weekday:
    """A day of the week, Monday is 0; of the week that many weeks ahead, or None: the next one."""

    day: int
    weeks: int | None = None


@dataclass(frozen=True, slots=True)
class YearDay:
    """A date; None: of the year in which it comes next."""

    month: int
    day: int
    year: int | None = None


Day = DayAhead | Weekday | YearDay


@dataclass(frozen=True, slots=True)
class SpanAhead:
    """A length of time from now. Units: seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class DayTime:
    """A day, a time of day, or both."""

    day: Day | None
    clock: TimeOfDay | None


Time = SpanAhead | DayTime | RepeatTime | CronTime


class FoundTime(NamedTuple):
    """A time that was read, where it stood, and its words."""

    time: Time
    start: int
    end: int
    words: str
    adverb: bool = False
    """Whether it is a word such as `daily`, which may as well be an argument of a command."""

    @property
    def vague(self) -> bool:
        """Whether it names a day and leaves the time of day open."""
        return isinstance(self.time, DayTime) and self.time.clock is None


def time_at(plain: str, start: int) -> FoundTime | None:
    """The time that begins at `start` of a folded text."""
    for read in (_later, _on_the_hour, _on_days):
        cursor = _Cursor(plain, start)
        found = read(cursor)
        if found is not None:
            return FoundTime(found, start, cursor.at, plain[start : cursor.at])
    period = period_at(plain, start)
    if period is None:
        return None
    said = plain[start : period.end]
    return FoundTime(RepeatTime(period.seconds), start, period.end, said, period.adverb)


def time_at_end(plain: str, ending: re.Pattern[str], tail: int) -> FoundTime | None:
    """The time near the end of a text, with nothing after it but what `ending` matches.

    Only one that begins with a word for it: a bare `9:00` or `10m` belongs to what it stands in.
    """
    for match in words.INTRODUCED.finditer(plain, max(0, len(plain) - tail)):
        found = time_at(plain, match.start())
        if found is not None and ending.match(plain, found.end):
            return found
    return None


def is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


class _Cursor:
    """A place in a text that moves on with what is taken."""

    def __init__(self, plain: str, at: int) -> None:
        self.plain = plain
        self.at = at

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What the pattern matches here; then the cursor stands behind it."""
        match = pattern.match(self.plain, self.at)
        if match:
            self.at = match.end()
        return match


def _later(cursor: _Cursor) -> Time | None:
    """`in 10 minutes`, 「两小时后」; with whole days also a time of day: `in 3 days at 9`."""
    before = cursor.take(words.IN)
    span = span_at(cursor.plain, cursor.at)
    if span is None or span.seconds > FURTHEST_S:
        return None
    cursor.at = span.end
    if not cursor.take(words.FROM_NOW) and not (before and before["tells"]):
        return None
    if span.seconds % DAY_S == 0:
        on_day = _Cursor(cursor.plain, cursor.at)
        spoken, part = _clock_words(on_day)
        clock = _clock(spoken[0], part) if len(spoken) == 1 else None
        if clock:
            cursor.at = on_day.at
            return DayTime(DayAhead(int(span.seconds) // DAY_S), clock)
    return SpanAhead(span.seconds)


def _on_the_hour(cursor: _Cursor) -> CronTime | None:
    """`every hour at :15`."""
    match = cursor.take(words.HOURLY)
    if match is None:
        return None
    minute = int(number_of(match["minute"] or match["past"] or match["minute_zh"] or "0"))
    return CronTime(f"{minute} * * * *") if minute < 60 else None


def _on_days(cursor: _Cursor) -> DayTime | CronTime | None:
    """A day or days, a part of the day and a time, in one of the orders in which they are said."""
    cursor.take(words.ON)
    day = _days(cursor) or _day(cursor)
    spoken, part = _clock_words(cursor)
    if spoken and day is None:
        day = _days(cursor) or _day(cursor)
        part = part or (cursor.take(words.PART) if day else None)
    clocks = _clocks(spoken, part) if spoken or part is None else _default(part, day)
    if clocks is None:
        return None
    if isinstance(day, _Days):
        return _cron(day, clocks)
    if (day is None and not clocks) or len(clocks) > 1:
        return None
    return DayTime(day, clocks[0] if clocks else None)


def _clock_words(cursor: _Cursor) -> tuple[list[re.Match[str]], re.Match[str] | None]:
    """The times of day as they are said, and the part of the day."""
    part = cursor.take(words.PART)
    first = cursor.take(words.HOUR)
    if first is None:
        return [], part
    spoken = [first]
    while len(spoken) < _MOST_HOURS and (more := cursor.take(words.NEXT_HOUR)):
        spoken.append(more)
    return spoken, part or cursor.take(words.LATE_PART)


def _default(part: re.Match[str], day: Day | _Days | None) -> list[TimeOfDay] | None:
    """What a part of the day means alone; of an unnamed day only noon is a time."""
    hour = words.PARTS[_said(part)["part"]].default
    if hour is None or (day is None and hour != words.NOON):
        return None
    return [TimeOfDay(hour * 60)]


def _clocks(spoken: list[re.Match[str]], part: re.Match[str] | None) -> list[TimeOfDay] | None:
    """The times of day that were said; None when one of them does not exist."""
    clocks = [_clock(match, part) for match in spoken]
    known = [clock for clock in clocks if clock is not None]
    return known if len(known) == len(clocks) else None


def _clock(match: re.Match[str], part: re.Match[str] | None) -> TimeOfDay | None:
    """The time of day that was said; None when there is no such time."""
    said = _said(match)
    if said["name"]:
        return TimeOfDay(words.NAMED[said["name"]])
    # What each hour that may be said stands for: by am and pm, else by the part of the day.
    hours = words.ALL_HOURS
    if half := said["half"] or said["full_half"]:
        hours = words.HALVES[half[0]]
    elif named := said.get("part") or (_said(part)["part"] if part else ""):
        hours = words.PARTS[named].hours
    hour, minute = int(number_of(_one_of(said, words.HOURS_SAID))), _minute(said)
    if hour not in hours or minute >= 60 or (hour == 24 and minute > 0):
        return None
    minutes = hours[hour] * 60 + minute
    if minutes < 0:
        minutes += DAY_MINUTES
    return TimeOfDay(minutes, int(said["second"] or 0), _offset(said["offset"]))


def _minute(said: dict[str, str]) -> int:
    if said["near"]:
        return 30 if said["near"].startswith("half") else -15 if said["near"].endswith("to") else 15
    if said["half_zh"]:
        return 30
    if said["quarter"]:
        return 15 * int(number_of(said["quarter"]))
    return int(number_of(_one_of(said, ("minute", "minute_zh", "more_zh")) or "0"))


def _offset(said: str) -> tzinfo | None:
    """The zone behind a time of day: `Z`, `UTC`, `+08:00`."""
    if not said:
        return None
    return UTC if said[0].isalpha() else datetime.strptime(said, "%z").tzinfo


def _day(cursor: _Cursor) -> Day | None:
    match = cursor.take(words.DAY)
    if match is None:
        return None
    said = _said(match)
    if said["ahead"]:
        return DayAhead(words.AHEAD[" ".join(said["ahead"].split())])
    weekday = said["weekday_en"] or said["weekday_zh"]
    if weekday:
        return Weekday(words.WEEKDAYS[weekday], words.WEEKS[said["which"].replace("个", "")])
    year = _one_of(said, ("y_iso", "y_zh", "y_mdy", "y_dmy"))
    month = words.MONTHS.get(said["mon_mdy"][:3] or said["mon_dmy"][:3])
    month = month or int(number_of(said["m_iso"] or said["m_zh"]))
    number = int(number_of(_one_of(said, ("d_iso", "d_zh", "d_mdy", "d_dmy"))))
    if not is_date(int(year or 2000), month, number):
        cursor.at = match.start()
        return None
    return YearDay(month, number, int(year) if year else None)


@dataclass(frozen=True, slots=True)
class _Days:
    """Days that come again: of the week (Monday is 0), of the month, of a month."""

    week: frozenset[int] = frozenset(range(7))
    month: tuple[int, ...] = ()
    of: int | None = None


def _days(cursor: _Cursor) -> _Days | None:
    start = cursor.at
    if cursor.take(words.YEARLY):
        day = _day(cursor)
        if isinstance(day, YearDay) and day.year is None:
            return _Days(month=(day.day,), of=day.month)
    elif match := cursor.take(words.MONTHLY):
        listed = words.NUMBER.findall(match["en"] or match["en_of"] or match["zh"])
        numbers = [int(number_of(one)) for one in listed]
        if all(1 <= number <= 31 for number in numbers):
            return _Days(month=tuple(sorted(set(numbers))))
    elif match := cursor.take(words.SETS):
        return _Days(words.WEEK_SETS[str(match.lastgroup)])
    elif match := cursor.take(words.LISTS):
        week, again = _listed(match["en"] or match["zh"])
        if again or match["every"] or match["every_zh"]:
            return _Days(week)
    cursor.at = start
    return None


def _listed(text: str) -> tuple[frozenset[int], bool]:
    """The weekdays of a list, and whether it speaks of every week by itself (a range, a plural)."""
    days: list[int] = []
    ranging = again = False
    for match in words.IN_LIST.finditer(text):
        if match["to"] or match["plural"]:
            ranging, again = bool(match["to"]), True
            continue
        day = words.WEEKDAYS[match["day"].lower()]
        if ranging:
            days += [(days[-1] + more) % 7 for more in range(1, (day - days[-1]) % 7)]
        days.append(day)
        ranging = False
    return frozenset(days), again


def _cron(days: _Days, clocks: list[TimeOfDay]) -> CronTime | None:
    """The cron line; None when no line of numbers says just this."""
    if not clocks:
        if days == _Days():
            return None
        clocks = [TimeOfDay(NINE)]
    frames = {(clock.minutes // DAY_MINUTES, clock.minutes % 60) for clock in clocks}
    shift, minute = max(frames)
    exact = all(clock.seconds == 0 and clock.offset is None for clock in clocks)
    if len(frames) > 1 or not exact or (days.month and shift):
        return None
    hours = sorted({clock.minutes % DAY_MINUTES // 60 for clock in clocks})
    week = sorted((day + 1 + shift) % 7 for day in days.week)
    of_month = _numbers(list(days.month)) if days.month else "*"
    of_week = "*" if len(week) == 7 else _numbers(week)
    return CronTime(f"{minute} {_numbers(hours)} {of_month} {days.of or '*'} {of_week}")


def _numbers(numbers: list[int]) -> str:
    """Numbers of a cron field, three or more in a row as a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )


def _said(match: re.Match[str]) -> dict[str, str]:
    return {name: (text or "").lower() for name, text in match.groupdict().items()}


def _one_of(said: dict[str, str], names: tuple[str, ...]) -> str:
    return next((said[name] for name in names if said[name]), "")
