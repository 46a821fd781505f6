"""Days and times of day in sentences, and the instants they mean. Pure."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import groupby
from typing import Literal
from zoneinfo import ZoneInfo

from mimikit.errors import BadInput
from mimikit.language import time_vocabulary as words
from mimikit.language.phrases import MONTHS, moment_words
from mimikit.language.time_vocabulary import number_of, ordinal_of

DAY_MINUTES = 24 * 60
NINE = 9 * 60
_MAX_HOURS = 24


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """A time of day; 1440 minutes or more are after the midnight that ends the day."""

    minutes: int
    seconds: int = 0
    offset: tzinfo | None = None
    """The UTC offset, if one was given."""
    spoken: bool = False
    """Whether the hour may be meant on the 12-hour clock: `at 6`, 「6 点」."""


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


@dataclass(frozen=True, slots=True)
class MonthDay:
    """A day of the month `ahead`; None: of the next month that has it."""

    number: int | None
    """None: the last day."""
    ahead: int | None = None


Day = DayAhead | Weekday | YearDay | MonthDay


@dataclass(frozen=True, slots=True)
class DayTime:
    day: Day | None
    clock: TimeOfDay | None


class PastTime(BadInput):
    """The named day, or the time on that day, has passed."""

    default_code = "no_future_time"

    def __init__(self, at: datetime, zone: ZoneInfo) -> None:
        moment = moment_words(at, zone)
        super().__init__(f"expected a time to come, got one {moment}; name a later one")
        self.at = at


class MissingDay(BadInput):
    """A day of a month that does not have it."""

    default_code = "bad_when"


def is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


class TimeCursor:
    """A position in a text, moved by matching patterns."""

    def __init__(self, plain: str, at: int) -> None:
        self.plain = plain
        self.at = at

    def take(self, pattern: str) -> re.Match[str] | None:
        """Match the pattern of that name here, and move behind it."""
        match = words.PATTERNS[pattern].match(self.plain, self.at)
        if match:
            self.at = match.end()
        return match

    def take_seconds(self, kind: Literal["period", "span"]) -> float | None:
        """Parse the interval or duration that begins here, and move behind it."""
        found = words.interval_at(kind, self.plain, self.at)
        if found is None:
            return None
        self.at = found.end
        return found.seconds


def match_clocks(cursor: TimeCursor) -> tuple[list[re.Match[str]], re.Match[str] | None]:
    """Match times of day, and the part of the day."""
    part = cursor.take("part")
    first = cursor.take("hour")
    if first is None:
        return [], part
    matches = [first]
    while len(matches) < _MAX_HOURS and (more := cursor.take("next_hour")):
        matches.append(more)
    return matches, part or cursor.take("late_part")


def default_time(part: re.Match[str], *, has_day: bool) -> TimeOfDay | None:
    """The default time of a part of the day; without a day only noon has one."""
    hour = words.PARTS[groups_of(part)["part"]].default
    return None if hour is None or (not has_day and hour != words.NOON) else TimeOfDay(hour * 60)


def clock_of(match: re.Match[str], part: re.Match[str] | None) -> TimeOfDay | None:
    """The time of day of a match; None when there is no such time."""
    groups = groups_of(match)
    if groups["name"]:
        return TimeOfDay(words.NAMED[groups["name"]])
    # Each hour on the 24-hour clock: by am and pm, else by the part of the day.
    hours = words.ALL_HOURS
    if half := groups["half"] or groups["full_half"]:
        hours = words.HALVES[half[0]]
    elif named := groups.get("part") or (groups_of(part)["part"] if part else ""):
        hours = words.PARTS[named].hours
    hour, minute = int(number_of(first_of(groups, words.HOUR_GROUPS))), _minute(groups)
    if hour not in hours or minute >= 60 or (hour == 24 and minute > 0):
        return None
    minutes = hours[hour] * 60 + minute
    if minutes < 0:
        minutes += DAY_MINUTES
    is_bare = groups["full"] and not match[0].lower().lstrip(" ,").startswith("at")
    spoken = hours is words.ALL_HOURS and 0 < hour < 12 and not is_bare
    spoken = spoken and not first_of(groups, words.HOUR_GROUPS).startswith("0")
    offset, zone = groups["offset"], None  # `z`, `utc`, `+08:00`
    if offset:
        zone = UTC if offset.isalpha() else datetime.strptime(offset, "%z").tzinfo
    return TimeOfDay(minutes, int(groups["second"] or 0), zone, spoken and zone is None)


def _minute(groups: dict[str, str]) -> int:
    if groups["near"]:
        return words.NEAR[" ".join(groups["near"].split())]
    if groups["half_zh"]:
        return 30
    if groups["quarter"]:
        return 15 * int(number_of(groups["quarter"]))
    return int(number_of(first_of(groups, ("minute", "minute_zh", "more_zh")) or "0"))


def read_day(cursor: TimeCursor) -> Day | None:
    match = cursor.take("day")
    if match is None:
        return None
    groups = groups_of(match)
    if groups["ahead"]:
        return DayAhead(words.AHEAD[" ".join(groups["ahead"].split())])
    weekday = groups["weekday_en"] or groups["weekday_zh"]
    if weekday:
        return Weekday(words.WEEKDAYS[weekday], words.WEEKS[groups["which"].replace("个", "")])
    number = first_of(groups, ("md_en", "md_next", "md_on", "md_zh", "md_bare"))
    if number or groups["last_en"] or groups["last_zh"] or groups["last_here"]:
        return _month_day(groups, number)
    year = first_of(groups, ("y_iso", "y_zh", "y_mdy", "y_dmy"))
    month = MONTHS.get(groups["mon_mdy"][:3] or groups["mon_dmy"][:3])
    month = month or int(number_of(groups["m_iso"] or groups["m_zh"]))
    number = int(number_of(first_of(groups, ("d_iso", "d_zh", "d_mdy", "d_dmy"))))
    if not is_date(int(year or 2000), month, number):
        cursor.at = match.start()
        return None
    return YearDay(month, number, int(year) if year else None)


@dataclass(frozen=True, slots=True)
class Days:
    """Recurring days: of the week (Monday is 0), of each month, or of one month."""

    week: frozenset[int] = frozenset(range(7))
    month: tuple[int, ...] = ()
    of: int | None = None
    month_part: tuple[str, str] | None = None
    """Cron fields of such a day as the last of the month, or its first Friday."""

    @property
    def is_weekly(self) -> bool:
        return not self.month and self.month_part is None


def read_days(cursor: TimeCursor) -> Days | None:
    start = cursor.at
    if cursor.take("yearly"):
        day = read_day(cursor)
        if isinstance(day, YearDay) and day.year is None:
            return Days(month=(day.day,), of=day.month)
    elif match := cursor.take("monthly"):
        listed = words.PATTERNS["number"].findall(match["en"] or match["en_of"] or match["zh"])
        numbers = [int(number_of(one)) for one in listed]
        if all(1 <= number <= 31 for number in numbers):
            return Days(month=tuple(sorted(set(numbers))))
    elif match := cursor.take("month_part"):
        if part := _month_part(groups_of(match)):
            return Days(month_part=part)
    elif match := cursor.take("sets"):
        return Days(words.WEEK_SETS[str(match.lastgroup)])
    elif match := cursor.take("lists"):
        week, again = _listed(match["en"] or match["zh"])
        if again or match["every"] or match["every_zh"]:
            return Days(week)
    cursor.at = start
    return None


def _month_part(groups: dict[str, str]) -> tuple[str, str] | None:
    """The cron fields for the day and weekday; None when cron has none for it."""
    if groups["end_zh"]:
        return "L", "*"
    if not (groups["of"] or groups["zh"] or "month" in groups["every"]):
        return None
    if groups["zh"]:
        nth = 0 if groups["last_zh"] else int(number_of(groups["nth_zh"]))
    else:
        nth = ordinal_of(groups["nth"])
    if weekday := groups["weekday"] or groups["weekday_zh"]:
        number = (words.WEEKDAYS[weekday] + 1) % 7
        return "*", f"{number}#{nth}" if nth else f"{number}L"
    if groups["work"] or groups["work_zh"]:
        return None if nth else ("LW", "*")
    return (str(nth) if nth else "L"), "*"


def _listed(text: str) -> tuple[frozenset[int], bool]:
    """Parse a list of weekdays; returns also whether it implies every week (a range, a plural)."""
    days: list[int] = []
    ranging = again = False
    for match in words.PATTERNS["in_list"].finditer(text):
        if match["to"] or match["plural"]:
            ranging, again = bool(match["to"]), True
            continue
        day = words.WEEKDAYS[match["day"].lower()]
        if ranging:
            days += [(days[-1] + more) % 7 for more in range(1, (day - days[-1]) % 7)]
        days.append(day)
        ranging = False
    return frozenset(days), again


def cron_line(days: Days, clocks: list[TimeOfDay]) -> str | None:
    """The cron line; None when one line cannot express it."""
    frames = {(clock.minutes // DAY_MINUTES, clock.minutes % 60) for clock in clocks}
    shift, minute = max(frames)
    exact = all(clock.seconds == 0 and clock.offset is None for clock in clocks)
    if len(frames) > 1 or not exact or (shift and not days.is_weekly):
        return None
    hours = sorted({clock.minutes % DAY_MINUTES // 60 for clock in clocks})
    week = sorted((day + 1 + shift) % 7 for day in days.week)
    if days.month_part is not None:
        month_day, weekday = days.month_part
        return f"{minute} {_cron_field(hours)} {month_day} * {weekday}"
    of_month = _cron_field(list(days.month)) if days.month else "*"
    of_week = "*" if len(week) == 7 else _cron_field(week)
    return f"{minute} {_cron_field(hours)} {of_month} {days.of or '*'} {of_week}"


def _cron_field(numbers: list[int]) -> str:
    """Format numbers of a cron field, three or more in a row as a range."""
    groups = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in groups]
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )


def without(days: Days, excluded: frozenset[int] | None) -> Days | None:
    """The weekdays but the excluded ones; None when that makes no sense."""
    if excluded is None:
        return days
    left = days.week - excluded
    return Days(left) if days.is_weekly and left and excluded & days.week else None


def cron_within(seconds: float, days: Days, window: tuple[int, int] | None) -> str | None:
    """The cron line of an interval within hours of some days; None when one cannot express it."""
    first, last = window or (0, DAY_MINUTES - 1)
    week = sorted((day + 1) % 7 for day in days.week)
    of_week = "*" if len(week) == 7 else _cron_field(week)
    if not days.is_weekly or seconds % 60 or last >= DAY_MINUTES:
        return None
    minutes = int(seconds) // 60
    if minutes % 60 == 0 and (window or DAY_MINUTES % minutes == 0):
        hours = [minute // 60 for minute in range(first, last + 1, minutes)]
        return f"{first % 60} {_cron_field(hours)} * * {of_week}"
    end = last // 60 - (last % 60 == 0)
    if first % 60 or minutes == 0 or 60 % minutes or (last % 60 and last % 60 + minutes < 60):
        return None
    every = "*" if minutes == 1 else f"*/{minutes}"
    hours = "*" if window is None else _cron_field(list(range(first // 60, end + 1)))
    return f"{every} {hours} * * {of_week}"


def read_excluded(cursor: TimeCursor) -> frozenset[int] | None:
    match = cursor.take("except")
    if match is None:
        return None
    listed = match["en"] or match["zh"] or match["out"]
    return _listed(listed)[0] if listed else words.WEEK_SETS["rest"]


def read_window(cursor: TimeCursor) -> tuple[int, int] | None:
    match = cursor.take("window")
    if match is None:
        return None
    first = _window_end(match["from"] or match["from_zh"])
    last = _window_end(match["to"] or match["to_zh"])
    if first is None or last is None:
        return None
    if last <= first and last < DAY_MINUTES // 2:
        last += DAY_MINUTES // 2  # "between 9 and 5"
    return (first, last) if first < last else None


def _window_end(text: str) -> int | None:
    """The minute of the day of `9`, `9am`, `17:30`, 「下午五点」."""
    cursor = TimeCursor(f"at {text.strip()}" if text.isascii() else text.strip(), 0)
    matches, part = match_clocks(cursor)
    clock = clock_of(matches[0], part) if len(matches) == 1 else None
    return clock.minutes if clock and cursor.at == len(cursor.plain) else None


def _month_day(groups: dict[str, str], number: str) -> MonthDay | None:
    which = first_of(groups, ("mw_en", "mw_on", "mw_zh")).replace("个", "")
    ahead = None if groups["md_on"] or groups["md_bare"] else words.WEEKS.get(which or "this", 0)
    if not number:
        return MonthDay(None, ahead)
    is_zh = groups["md_zh"] or groups["md_bare"]
    day = int(number_of(number)) if is_zh else ordinal_of(number)
    return MonthDay(day, ahead) if 1 <= day <= 31 else None


def _month_days(number: int | None, ahead: int | None, today: date) -> Iterator[date]:
    """The dates of that day, this month or later."""
    for months in range(13) if ahead is None else (ahead,):
        years, month = divmod(today.month - 1 + months, 12)
        last = monthrange(today.year + years, month + 1)[1]
        day = date(today.year + years, month + 1, min(number or last, last))
        if (number or 0) <= last and (ahead is not None or day >= today):
            yield day


def groups_of(match: re.Match[str]) -> dict[str, str]:
    return {name: (text or "").lower() for name, text in match.groupdict().items()}


def first_of(groups: dict[str, str], names: tuple[str, ...]) -> str:
    return next((groups[name] for name in names if groups[name]), "")


def instant(day: Day | None, clock: TimeOfDay, now: datetime, zone: ZoneInfo) -> datetime:
    """The first matching day on which the time of day is in the future."""
    if day is None:
        clock = replace(clock, minutes=clock.minutes % DAY_MINUTES)
    at = now
    for one in _dates(day, now.astimezone(zone).date()):
        for half_day in (0, DAY_MINUTES // 2) if clock.spoken and day is None else (0,):
            at = _at(one, clock, zone, half_day)
            if at > now:
                return at
    raise PastTime(at, zone)


def limit_of(limit: DayTime, now: datetime, zone: ZoneInfo, *, is_end: bool) -> datetime:
    """The first or last instant that a limit includes; a day alone is meant whole."""
    if limit.day is None:
        return instant(None, limit.clock or TimeOfDay(NINE), now, zone)
    today = now.astimezone(zone).date()
    dates = _dates(limit.day, today)
    day = next((one for one in dates if one >= today), dates[0])
    clock = limit.clock or (TimeOfDay(DAY_MINUTES - 1, 59) if is_end else TimeOfDay(0))
    at = _at(day, clock, zone)
    if day < today or (is_end and at <= now):
        raise PastTime(at, zone)
    return at


def ahead(start: datetime, seconds: float, zone: ZoneInfo) -> datetime:
    """Whole days keep the time of day when the clocks change: in a week is the same hour."""
    whole = seconds % 86400 == 0
    return (start.astimezone(zone if whole else UTC) + timedelta(seconds=seconds)).astimezone(UTC)


def _at(day: date, clock: TimeOfDay, zone: ZoneInfo, more_minutes: int = 0) -> datetime:
    into_day = timedelta(minutes=clock.minutes + more_minutes, seconds=clock.seconds)
    # `fold=0` is the first of two, as `times` promises.
    local = datetime.combine(day, time()) + into_day
    return local.replace(tzinfo=clock.offset or zone).astimezone(UTC)


def _dates(day: Day | None, today: date) -> list[date]:
    match day:
        case None:
            ahead = [-1, 0, 1, 2]
        case DayAhead(days):
            ahead = [days]
        case Weekday(weekday, weeks):
            away = weekday - today.weekday()
            ahead = [away % 7, away % 7 + 7] if weeks is None else [away + 7 * weeks]
        case MonthDay(number, months):
            fitting = list(_month_days(number, months, today))
            if not fitting:
                raise MissingDay(f"expected a day that exists, got the {number}. of that month")
            return fitting
        case YearDay(month, number, year):
            if year is not None:
                return [date(year, month, number)]
            years = range(today.year, today.year + 9)
            fitting = (date(y, month, number) for y in years if is_date(y, month, number))
            return [next(one for one in fitting if one >= today)]
    return [today + timedelta(days=days) for days in ahead]
