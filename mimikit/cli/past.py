"""Times that lie behind us as people write them: `2026-01-28`, `yesterday 9:00`, `7d`. Pure."""

from __future__ import annotations

import re
from datetime import MAXYEAR, UTC, date, datetime, time, timedelta, tzinfo

from mimikit.cli import durations
from mimikit.errors import BadInput

_DAY = re.compile(r"(today|yesterday)(?:\s+(?:at\s+)?(\d{1,2}):(\d\d))?")
_MONTH = re.compile(r"(\d{4})-(\d\d)")
_MOST_BACK_S = 100 * 366 * 86400


def parse_time(text: str, now: datetime, zone: tzinfo) -> datetime:
    """The time that is meant, in UTC: a day or month means its beginning, a span so long ago.

    Raises:
        BadInput: it is none.
    """
    folded = " ".join(text.lower().split())
    try:
        found = _iso(folded, zone) or _named(folded, now, zone) or _ago(folded, now)
        if found is not None and 1 < found.year < MAXYEAR:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise BadInput(
        "expected a day or time such as 2026-01-28, 2026-01-28T09:30, yesterday or 7d, "
        f"got {text[:40]!r}"
    )


def _iso(text: str, zone: tzinfo) -> datetime | None:
    month = _MONTH.fullmatch(text)
    if month is not None:
        return datetime(int(month[1]), int(month[2]), 1, tzinfo=zone)
    try:
        found = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=zone)


def _named(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    found = _DAY.fullmatch(text)
    if found is None:
        return None
    day: date = now.astimezone(zone).date() - timedelta(days=found[1] == "yesterday")
    clock = time(int(found[2]), int(found[3])) if found[2] else time()
    return datetime.combine(day, clock, zone)


def _ago(text: str, now: datetime) -> datetime | None:
    if text.isdigit():
        return None  # a bare number of seconds is nobody's way to say when
    try:
        seconds = durations.parse_duration(text.removesuffix(" ago"))
    except BadInput:
        return None
    return now - timedelta(seconds=seconds) if seconds <= _MOST_BACK_S else None
