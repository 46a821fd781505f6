"""The times of a cron line in a time zone. Pure.

The package cronsim walks the local calendar; here its times become instants. A local time that the
zone's clocks jump over is skipped, one that they show twice is meant the first time it comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from mimikit.errors import BadInput
from mimikit.protocol.models import to_utc

FIELDS = 5
_LONGEST = 200
_ONE_WITH_STEP = re.compile(r"\b(\w+)-\1/0*[1-9]\d*", re.ASCII)


def check(expression: str) -> None:
    """Raise BadInput unless this is a cron line with a time to come."""
    expected = "cron: expected minute hour day month weekday, such as `0 9 * * 1-5`"
    if len(expression) > _LONGEST or len(expression.split()) != FIELDS:
        raise BadInput(f"{expected}; got {expression[:60]!r}", field="schedule.cron")
    try:
        next(_local(expression, datetime(2026, 1, 1)), None)  # noqa: DTZ001 - local by design
    except (CronSimError, AssertionError, ValueError, TypeError) as error:
        told = f" ({error})" if isinstance(error, CronSimError) else ""
        raise BadInput(
            f"{expected}; got {expression[:60]!r}{told}", field="schedule.cron"
        ) from None
    if next(times(expression, datetime(2026, 1, 1, tzinfo=UTC), ZoneInfo("UTC")), None) is None:
        raise BadInput(f"cron: {expression!r} has no time to come", field="schedule.cron")


def times(expression: str, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """The instants after `after`, in order, UTC; ends where the calendar ends.

    Raises:
        CronSimError: the line is none; `check` tells before.
    """
    try:
        local = after.astimezone(zone).replace(tzinfo=None)
        for planned in _local(expression, local):
            instant = to_utc(planned.replace(tzinfo=zone))
            if instant > after and instant.astimezone(zone).replace(tzinfo=None) == planned:
                yield instant
    except (OverflowError, ValueError):
        return


def _local(expression: str, after: datetime) -> Iterator[datetime]:
    """The times of a calendar without a zone. A step in a span of one is no step to the end."""
    return iter(CronSim(_ONE_WITH_STEP.sub(r"\1", expression.upper()), after))
