"""Spans of time as people write and read them: `10m`, `1h30m`, "5 minutes ago". Pure."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

from mimikit.errors import BadInput

_UNITS = {
    word: seconds
    for seconds, words in {
        1: "s sec secs second seconds",
        60: "m min mins minute minutes",
        3600: "h hr hrs hour hours",
        86400: "d day days",
        604800: "w week weeks",
    }.items()
    for word in words.split()
}
_SHOWN = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([a-z]+)[\s,]*")
_PLAIN_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
_TWO_UNITS = 2


def parse_duration(text: str) -> float:
    """Seconds of a span such as `90s`, `10m`, `1h30m`, `2 days`; a bare number means seconds.

    Raises:
        BadInput: it is none, or no time at all.
    """
    folded = text.strip().lower()
    seconds = float(folded) if _PLAIN_NUMBER.fullmatch(folded) else _sum_of_parts(folded)
    if not seconds:
        raise BadInput(f"expected a duration such as 90s, 10m, 2h or 1d, got {text[:40]!r}")
    return seconds


def _sum_of_parts(text: str) -> float:
    """The sum of `1h 30m`; 0 when any of it can not be read."""
    total, position = 0.0, 0
    while position < len(text):
        match = _PART.match(text, position)
        unit = _UNITS.get(match[2]) if match else None
        if match is None or unit is None:
            return 0.0
        total += float(match[1]) * unit
        position = match.end()
    return total


def words(seconds: float) -> str:
    """A span in words, of its one or two greatest units: `1 hour 5 minutes`, `0.4 seconds`."""
    seconds = max(seconds, 0.0)
    if seconds < 1:
        return f"{seconds:.1f} seconds" if seconds >= 0.1 else "under 0.1 seconds"
    if seconds < 10 and round(seconds, 1) % 1:
        return f"{seconds:.1f} seconds"
    rest = round(seconds)
    parts: list[str] = []
    for size, name in _SHOWN:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
        elif parts:
            break
        if len(parts) == _TWO_UNITS:
            break
    return " ".join(parts)


def short(seconds: float) -> str:
    """A span in few characters, for tables: `8s`, `3m 20s`, `2h 5m`, `4d`."""
    if seconds < 0.1:
        return "0s"
    return re.sub(r" (second|minute|hour|day)s?", lambda match: match[1][0], words(seconds))


def ago(when: datetime, now: datetime) -> str:
    """How long before or after `now`, by its greatest unit: `5 minutes ago`, `in 2 hours`."""
    seconds = (now - when).total_seconds()
    if -1 < seconds < 1:
        return "just now"
    span = " ".join(words(float(int(abs(seconds)))).split()[:2])
    return f"{span} ago" if seconds > 0 else f"in {span}"


def at(when: datetime, now: datetime, zone: tzinfo) -> str:
    """A moment in local time, with its day unless that is today: `14:05:09`, `2026-01-28 14:05`."""
    local = when.astimezone(zone)
    if local.date() == now.astimezone(zone).date():
        return f"{local:%H:%M:%S}"
    return f"{local:%Y-%m-%d %H:%M}"
