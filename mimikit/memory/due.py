"""When an item of the backlog is due, as it stands at its end: `(due 2026-12-01 09:00)`. Pure.

It is the workspace's own time, as a person would write it; a day alone means nine in the morning.
"""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

_DUE = re.compile(
    r"\s*[(（]\s*(?:due|截止)[:：]?\s*"
    r"(\d{4}-\d\d?-\d\d?)(?:[ T]+(\d\d?:\d\d))?\s*[)）](?=\s*(?:<!--.*?-->\s*)*$)",
    re.IGNORECASE,
)
_END = re.compile(r"\s*(?:<!--.*?-->\s*)*$")
_FORM = "%Y-%m-%d %H:%M"
_MORNING = "9:00"
_FIRST_YEAR, END_YEAR = 1971, 2199
"""Times of these years stay within those of triggers, whatever the zone."""
_ALMOST_A_MINUTE = timedelta(seconds=59, milliseconds=999)


class DatedBacklogItem(NamedTuple):
    """An item by its name, and when it is due: `2026-12-01 09:00`."""

    name: str
    due: str | None


def split(item: str) -> DatedBacklogItem:
    """An item apart; what only looks like a time that is due belongs to its name."""
    found = _DUE.search(item)
    if found is None:
        return DatedBacklogItem(item, None)
    with contextlib.suppress(ValueError):
        at = datetime.strptime(f"{found[1]} {found[2] or _MORNING}", _FORM)  # noqa: DTZ007
        if not _FIRST_YEAR <= at.year < END_YEAR:
            return DatedBacklogItem(item, None)
        name = item[: found.start()] + item[found.end() :]
        return (
            DatedBacklogItem(name.strip(), f"{at:{_FORM}}")
            if name.strip()
            else DatedBacklogItem(item, None)
        )
    return DatedBacklogItem(item, None)


def with_due(item: str, due: str | None) -> str:
    """The item, as it stands in its line, due then; None: at no time."""
    name = split(item)
    if name.due is not None and (found := _DUE.search(item)):
        item = item[: found.start()] + item[found.end() :]
    if due is None:
        return item
    end = _END.search(item)
    at = end.start() if end else len(item)
    return f"{item[:at]} (due {due}){item[at:]}"


def instant(due: str, zone: ZoneInfo) -> datetime:
    """When that is."""
    return datetime.strptime(due, _FORM).replace(tzinfo=zone).astimezone(UTC)


def text_of(at: datetime, zone: ZoneInfo) -> str | None:
    """An instant as it stands in the list; part of a minute counts as a whole one.

    None: the list would not know it again, and nobody would be told of it.
    """
    local = (at + _ALMOST_A_MINUTE).astimezone(zone)
    return f"{local:{_FORM}}" if _FIRST_YEAR <= local.year < END_YEAR else None
