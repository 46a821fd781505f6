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
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import groupby
from typing import NamedTuple
from zoneinfo import ZoneInfo

from mimikit.errors import BadInput
from mimikit.language import time_vocabulary as words
from mimikit.language.phrases import MONTHS, Language, cron_words, interval_words, moment_words
from mimikit.language.time_vocabulary import fold, number_of, period_at, span_at

_DAY_MINUTES = 24 * 60
_DAY_S = 86400
_MAX_AHEAD_S = 3660 * _DAY_S
_NINE = 9 * 60
_MAX_HOURS = 24


@dataclass(frozen=True, slots=True)
class RepeatTime:
    """Repeats at an interval."""

    seconds: float


@dataclass(frozen=True, slots=True)
class CronTime:
    """A cron line of five numeric fields (days 0-6, 0 is Sunday), in the speaker's zone."""

    expression: str


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """A time of day; 1440 minutes or more are after the midnight that ends the day."""

    minutes: int
    seconds: int = 0
    offset: tzinfo | None = None
    """The UTC offset, if one was given."""


@dataclass(frozen=True, slots=True)
class DayAhead:
    days: int


@dataclass(frozen=True, slots=True)
class Weekday:
    """A weekday, Monday is 0, in the week `weeks` ahead; None: the next such day."""

    day: int
    weeks: int | None = None


@dataclass(frozen=True, slots=True)
class YearDay:
    """A date; without a year the next such date."""

    month: int
    day: int
    year: int | None = None


Day = DayAhead | Weekday | YearDay


@dataclass(frozen=True, slots=True)
class SpanAhead:
    """A duration from now."""

    seconds: float


@dataclass(frozen=True, slots=True)
class DayTime:
    day: Day | None
    clock: TimeOfDay | None


Time = SpanAhead | DayTime | RepeatTime | CronTime


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


class PastTime(BadInput):
    """The named day, or the time on that day, has passed."""

    def __init__(self, at: datetime, zone: ZoneInfo) -> None:
        moment = moment_words(at, zone)
        super().__init__(f"expected a time to come, got one {moment}; name a later one")
        self.at = at


def parse_when(text: str, *, now: datetime, zone: ZoneInfo) -> When | None:
    """Parse a text that is nothing but a time; None when it is not.

    Raises:
        PastTime: it names a day, and that time has passed.
    """
    plain = fold(text.strip()).rstrip(" .。!")
    time = time_at(plain, 0)
    if time is not None and time.end == len(plain):
        return when_of(time.time, now=now, zone=zone)
    span = span_at(plain, 0)
    if span is not None and span.end == len(plain) and span.seconds <= _MAX_AHEAD_S:
        return when_of(SpanAhead(span.seconds), now=now, zone=zone)
    return None


def time_at(plain: str, start: int) -> FoundTime | None:
    """Parse the time that begins at `start` of a folded text."""
    for read in (_time_from_now, _on_the_hour, _on_days):
        cursor = _Cursor(plain, start)
        time = read(cursor)
        if time is not None:
            return FoundTime(time, start, cursor.at, plain[start : cursor.at])
    period = period_at(plain, start)
    if period is None:
        return None
    phrase = plain[start : period.end]
    return FoundTime(RepeatTime(period.seconds), start, period.end, phrase, period.adverb)


def time_at_end(plain: str, ending: re.Pattern[str], tail: int) -> FoundTime | None:
    """Parse the time at the end of a text, followed only by what `ending` matches.

    It must begin with a word for a time: a bare `9:00` or `10m` may be part of the text.
    """
    for match in words.INTRODUCED.finditer(plain, max(0, len(plain) - tail)):
        time = time_at(plain, match.start())
        if time is not None and ending.match(plain, time.end):
            return time
    return None


def is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


class _Cursor:
    """A position in a text, moved by matching patterns."""

    def __init__(self, plain: str, at: int) -> None:
        self.plain = plain
        self.at = at

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match the pattern here, and move behind it."""
        match = pattern.match(self.plain, self.at)
        if match:
            self.at = match.end()
        return match


def _time_from_now(cursor: _Cursor) -> Time | None:
    """Parse `in 10 minutes`, 「两小时后」, `in 3 days at 9`."""
    before = cursor.take(words.IN)
    span = span_at(cursor.plain, cursor.at)
    if span is None or span.seconds > _MAX_AHEAD_S:
        return None
    cursor.at = span.end
    if not cursor.take(words.FROM_NOW) and not (before and before["tells"]):
        return None
    if span.seconds % _DAY_S == 0:
        on_day = _Cursor(cursor.plain, cursor.at)
        matches, part = _match_clocks(on_day)
        clock = _clock(matches[0], part) if len(matches) == 1 else None
        if clock:
            cursor.at = on_day.at
            return DayTime(DayAhead(int(span.seconds) // _DAY_S), clock)
    return SpanAhead(span.seconds)


def _on_the_hour(cursor: _Cursor) -> CronTime | None:
    """Parse `every hour at :15`."""
    match = cursor.take(words.HOURLY)
    if match is None:
        return None
    minute = int(number_of(match["minute"] or match["past"] or match["minute_zh"] or "0"))
    return CronTime(f"{minute} * * * *") if minute < 60 else None


def _on_days(cursor: _Cursor) -> DayTime | CronTime | None:
    """Parse a day or days, a part of the day and a time, in any usual order."""
    cursor.take(words.ON)
    day = _days(cursor) or _day(cursor)
    matches, part = _match_clocks(cursor)
    if matches and day is None:
        day = _days(cursor) or _day(cursor)
        part = part or (cursor.take(words.PART) if day else None)
    read = [_clock(match, part) for match in matches]
    if part and not matches:
        read = [_default_time(part, day)]
    clocks = [clock for clock in read if clock is not None]
    if len(clocks) < len(read):
        return None  # one of them does not exist
    if isinstance(day, _Days):
        return _cron(day, clocks)
    if (day is None and not clocks) or len(clocks) > 1:
        return None
    return DayTime(day, clocks[0] if clocks else None)


def _match_clocks(cursor: _Cursor) -> tuple[list[re.Match[str]], re.Match[str] | None]:
    """Match times of day, and the part of the day."""
    part = cursor.take(words.PART)
    first = cursor.take(words.HOUR)
    if first is None:
        return [], part
    matches = [first]
    while len(matches) < _MAX_HOURS and (more := cursor.take(words.NEXT_HOUR)):
        matches.append(more)
    return matches, part or cursor.take(words.LATE_PART)


def _default_time(part: re.Match[str], day: Day | _Days | None) -> TimeOfDay | None:
    """The default time of a part of the day; without a day only noon has one."""
    hour = words.PARTS[_groups_of(part)["part"]].default
    return None if hour is None or (day is None and hour != words.NOON) else TimeOfDay(hour * 60)


def _clock(match: re.Match[str], part: re.Match[str] | None) -> TimeOfDay | None:
    """The time of day of a match; None when there is no such time."""
    groups = _groups_of(match)
    if groups["name"]:
        return TimeOfDay(words.NAMED[groups["name"]])
    # Each hour on the 24-hour clock: by am and pm, else by the part of the day.
    hours = words.ALL_HOURS
    if half := groups["half"] or groups["full_half"]:
        hours = words.HALVES[half[0]]
    elif named := groups.get("part") or (_groups_of(part)["part"] if part else ""):
        hours = words.PARTS[named].hours
    hour, minute = int(number_of(_first_of(groups, words.HOUR_GROUPS))), _minute(groups)
    if hour not in hours or minute >= 60 or (hour == 24 and minute > 0):
        return None
    minutes = hours[hour] * 60 + minute
    if minutes < 0:
        minutes += _DAY_MINUTES
    offset, zone = groups["offset"], None  # `z`, `utc`, `+08:00`
    if offset:
        zone = UTC if offset.isalpha() else datetime.strptime(offset, "%z").tzinfo
    return TimeOfDay(minutes, int(groups["second"] or 0), zone)


def _minute(groups: dict[str, str]) -> int:
    if groups["near"]:
        return words.NEAR[" ".join(groups["near"].split())]
    if groups["half_zh"]:
        return 30
    if groups["quarter"]:
        return 15 * int(number_of(groups["quarter"]))
    return int(number_of(_first_of(groups, ("minute", "minute_zh", "more_zh")) or "0"))


def _day(cursor: _Cursor) -> Day | None:
    match = cursor.take(words.DAY)
    if match is None:
        return None
    groups = _groups_of(match)
    if groups["ahead"]:
        return DayAhead(words.AHEAD[" ".join(groups["ahead"].split())])
    weekday = groups["weekday_en"] or groups["weekday_zh"]
    if weekday:
        return Weekday(words.WEEKDAYS[weekday], words.WEEKS[groups["which"].replace("个", "")])
    year = _first_of(groups, ("y_iso", "y_zh", "y_mdy", "y_dmy"))
    month = MONTHS.get(groups["mon_mdy"][:3] or groups["mon_dmy"][:3])
    month = month or int(number_of(groups["m_iso"] or groups["m_zh"]))
    number = int(number_of(_first_of(groups, ("d_iso", "d_zh", "d_mdy", "d_dmy"))))
    if not is_date(int(year or 2000), month, number):
        cursor.at = match.start()
        return None
    return YearDay(month, number, int(year) if year else None)


@dataclass(frozen=True, slots=True)
class _Days:
    """Recurring days: of the week (Monday is 0), of each month, or of one month."""

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
    """Parse a list of weekdays; returns also whether it implies every week (a range, a plural)."""
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
    """The cron line; None when one line cannot express it."""
    if not clocks:
        if days == _Days():
            return None
        clocks = [TimeOfDay(_NINE)]
    frames = {(clock.minutes // _DAY_MINUTES, clock.minutes % 60) for clock in clocks}
    shift, minute = max(frames)
    exact = all(clock.seconds == 0 and clock.offset is None for clock in clocks)
    if len(frames) > 1 or not exact or (days.month and shift):
        return None
    hours = sorted({clock.minutes % _DAY_MINUTES // 60 for clock in clocks})
    week = sorted((day + 1 + shift) % 7 for day in days.week)
    of_month = _cron_field(list(days.month)) if days.month else "*"
    of_week = "*" if len(week) == 7 else _cron_field(week)
    return CronTime(f"{minute} {_cron_field(hours)} {of_month} {days.of or '*'} {of_week}")


def _cron_field(numbers: list[int]) -> str:
    """Format numbers of a cron field, three or more in a row as a range."""
    groups = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in groups]
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )


def _groups_of(match: re.Match[str]) -> dict[str, str]:
    return {name: (text or "").lower() for name, text in match.groupdict().items()}


def _first_of(groups: dict[str, str], names: tuple[str, ...]) -> str:
    return next((groups[name] for name in names if groups[name]), "")


# ---- from words to instants


def when_of(time: Time, *, now: datetime, zone: ZoneInfo) -> When:
    """Resolve a parsed time for a speaker at `now` in `zone`.

    Raises:
        PastTime: it names a day, and that time has passed.
    """
    match time:
        case SpanAhead(seconds):
            return InstantTime(now.astimezone(UTC) + timedelta(seconds=seconds))
        case DayTime(day, clock):
            return InstantTime(_instant(day, clock or TimeOfDay(_NINE), now, zone))
        case _:
            return time


def _instant(day: Day | None, clock: TimeOfDay, now: datetime, zone: ZoneInfo) -> datetime:
    """The first matching day on which the time of day is in the future."""
    if day is None:
        clock = TimeOfDay(clock.minutes % _DAY_MINUTES, clock.seconds, clock.offset)
    into_day = timedelta(minutes=clock.minutes, seconds=clock.seconds)
    at = now
    for one in _dates(day, now.astimezone(zone).date()):
        local = datetime.combine(one, time()) + into_day
        # `fold=0` is the first of two, as the module promises.
        at = local.replace(tzinfo=clock.offset or zone).astimezone(UTC)
        if at > now:
            return at
    raise PastTime(at, zone)


def _dates(day: Day | None, today: date) -> list[date]:
    """The candidate days, in order."""
    match day:
        case None:
            ahead = [-1, 0, 1, 2]
        case DayAhead(days):
            ahead = [days]
        case Weekday(weekday, weeks):
            away = weekday - today.weekday()
            ahead = [away % 7, away % 7 + 7] if weeks is None else [away + 7 * weeks]
        case YearDay(month, number, year):
            if year is not None:
                return [date(year, month, number)]
            years = range(today.year, today.year + 9)
            fitting = (date(y, month, number) for y in years if is_date(y, month, number))
            return [next(one for one in fitting if one >= today)]
    return [today + timedelta(days=days) for days in ahead]


# ---- from instants to words


def when_words(when: When, zone: ZoneInfo, language: Language = "en") -> str:
    """Describe a time in words, in that zone."""
    match when:
        case InstantTime(at):
            return moment_words(at, zone, language)
        case RepeatTime(seconds):
            return interval_words(seconds, language)
        case CronTime(expression):
            return cron_words(expression, language, zone.key)
