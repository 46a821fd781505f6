"""Reads when to retry from an engine's error message, or the headers of a response."""

from __future__ import annotations

import contextlib
import email.utils
import re
from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from mimikit.config import system_zone
from mimikit.language.phrases import MONTHS

_AGAIN_AT = re.compile(
    r"try again at (?:(?P<month>[a-z]{3}) (?P<day>\d{1,2})[a-z]{0,2}, (?P<year>\d{4}) )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d) ?(?P<half>[ap]m)",
    re.IGNORECASE,
)
_PIECE = (
    r"(\d+(?:\.\d+)?) ?"
    r"(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
)
_AGAIN_IN = re.compile(
    rf"(?:(?:try again|retry|wait)(?: (?:in|after|for))?|retry.after\W) ?"
    rf"((?:{_PIECE}[ ,]*(?:and )?)+)|(?P<zh_s>\d+) ?秒后",
    re.IGNORECASE,
)
MAX_WAIT_S = 366 * 86400
_UNIT_S = {"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def retry_at(message: str, now: datetime, zone: tzinfo | None = None) -> datetime | None:
    """`zone`: of its clock times; None: the system's."""
    if found := _AGAIN_IN.search(message):
        seconds = float(found["zh_s"] or 0)
        for number, unit in re.findall(_PIECE, (found[1] or "").lower()):
            unit_s = _UNIT_S.get(unit[:3]) or _UNIT_S.get(unit) or _UNIT_S[unit[0]]
            seconds += float(number) * unit_s
        return now + timedelta(seconds=min(seconds, MAX_WAIT_S))
    found = _AGAIN_AT.search(message)
    if found is None:
        return None
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    local = now.astimezone(zone or ZoneInfo(system_zone())).replace(second=0, microsecond=0)
    try:
        if found["year"]:
            month = MONTHS[found["month"].lower()]
            local = local.replace(year=int(found["year"]), month=month, day=int(found["day"]))
        at = local.replace(hour=hour, minute=int(found["minute"]))
    except (KeyError, ValueError):
        return None
    if not found["year"] and at < now - timedelta(minutes=1):
        at += timedelta(days=1)
    return at.astimezone(now.tzinfo)


def retry_header(headers: Mapping[str, object], now: datetime) -> datetime | None:
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = str(headers.get(name, ""))
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            return now + timedelta(seconds=min(float(value) * unit_s, MAX_WAIT_S))
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            at = email.utils.parsedate_to_datetime(value)
            at = at.astimezone(now.tzinfo) if at.tzinfo else at.replace(tzinfo=now.tzinfo)
            return min(at, now + timedelta(seconds=MAX_WAIT_S))
    return None
