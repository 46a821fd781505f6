"""Times in sentences: reads "tomorrow at 9" and 「每周一早上 9 点」, and says times in words. Pure.

Reading (`time_parser`) needs no clock: a `Time` is what the words mean on any day. `when_of` then
gives the moment, the interval or the cron line. Where words leave a doubt:

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

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from mimikit.errors import BadInput
from mimikit.language.time_parser import (
    DAY_MINUTES,
    FURTHEST_S,
    NINE,
    CronTime,
    Day,
    DayAhead,
    DayTime,
    RepeatTime,
    SpanAhead,
    Time,
    TimeOfDay,
    Weekday,
    YearDay,
    is_date,
    time_at,
)
from mimikit.language.time_vocabulary import fold, span_at
from mimikit.language.time_words import Language, cron_words, interval_words, moment_words


@dataclass(frozen=True, slots=True)
class InstantTime:
    """One instant, aware, UTC."""

    at: datetime


When = InstantTime | RepeatTime | CronTime


class PastTime(BadInput):
    """The day that was named has passed, or its time of day has."""

    def __init__(self, at: datetime, zone: ZoneInfo) -> None:
        """`at` is the instant that was meant."""
        said = moment_words(at, zone)
        super().__init__(f"expected a time to come, got one {said}; name a later one")
        self.at = at


def parse_when(text: str, *, now: datetime, zone: ZoneInfo) -> When | None:
    """What a text means that is a time as a whole; None when it is none.

    Raises:
        PastTime: it names a day, and that time has passed.
    """
    plain = fold(text.strip()).rstrip(" .。!")
    found = time_at(plain, 0)
    if found is not None and found.end == len(plain):
        return when_of(found.time, now=now, zone=zone)
    span = span_at(plain, 0)
    if span is not None and span.end == len(plain) and span.seconds <= FURTHEST_S:
        return when_of(SpanAhead(span.seconds), now=now, zone=zone)
    return None


# ---- from a time to when it is


def when_of(time: Time, *, now: datetime, zone: ZoneInfo) -> When:
    """When a time is for who says it now, there.

    Raises:
        PastTime: it names a day, and that time has passed.
    """
    match time:
        case SpanAhead(seconds):
            return InstantTime(now.astimezone(UTC) + timedelta(seconds=seconds))
        case DayTime(day, clock):
            return InstantTime(_instant(day, clock or TimeOfDay(NINE), now, zone))
        case _:
            return time


def _instant(day: Day | None, clock: TimeOfDay, now: datetime, zone: ZoneInfo) -> datetime:
    """The first of the days that fit on which the time of day is still to come."""
    if day is None:
        clock = TimeOfDay(clock.minutes % DAY_MINUTES, clock.seconds, clock.offset)
    instants = [_at(one, clock, zone) for one in _dates(day, now.astimezone(zone).date())]
    coming = next((at for at in instants if at > now), None)
    if coming is None:
        raise PastTime(instants[-1], zone)
    return coming


def _dates(day: Day | None, today: date) -> list[date]:
    """The days that a day may mean, in order."""

    def ahead(days: int) -> date:
        return today + timedelta(days=days)

    match day:
        case None:
            return [ahead(days) for days in (-1, 0, 1, 2)]
        case DayAhead(days):
            return [ahead(days)]
        case Weekday(weekday, weeks):
            if weeks is not None:
                return [ahead(weekday - today.weekday() + 7 * weeks)]
            return [ahead((weekday - today.weekday()) % 7 + more) for more in (0, 7)]
        case YearDay(month, number, year):
            if year is not None:
                return [date(year, month, number)]
            years = range(today.year, today.year + 9)
            fitting = (date(y, month, number) for y in years if is_date(y, month, number))
            return [next(one for one in fitting if one >= today)]


def _at(day: date, clock: TimeOfDay, zone: ZoneInfo) -> datetime:
    """The instant of a local time; Python's first fold is just what the module promises."""
    local = datetime.combine(day, time()) + timedelta(minutes=clock.minutes, seconds=clock.seconds)
    return local.replace(tzinfo=clock.offset or zone).astimezone(UTC)


# ---- the way back


def when_words(when: When, zone: ZoneInfo, language: Language = "en") -> str:
    """When it is, as it is said in that zone."""
    match when:
        case InstantTime(at):
            return moment_words(at, zone, language)
        case RepeatTime(seconds):
            return interval_words(seconds, language)
        case CronTime(expression):
            said = cron_words(expression, language)
            return f"{said}（{zone.key}）" if language == "zh" else f"{said} ({zone.key})"
