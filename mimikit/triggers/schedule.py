"""Computes the planned times (slots) of schedules: interval, cron, runAt. Pure: takes `now`.

A run's id is derived from its slot, so a repeated slot (a crash between run and state, a clock that
was set back) gives an id that already exists.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from mimikit.errors import BadInput
from mimikit.protocol.models import to_utc
from mimikit.protocol.triggers import Schedule

UTC_ZONE = ZoneInfo("UTC")
MAX_COUNTED = 1000
"""Missed cron slots are counted up to this number; a machine may have slept for years."""
_ONE_WITH_STEP = re.compile(r"\b(\w+)-\1/0*[1-9]\d*", re.ASCII)
_JUMP = 2
"""A slot more than this many slots ahead was planned before the clock was set back."""


def check(schedule: Schedule) -> None:
    plan = {"interval": schedule.interval, "cron": schedule.cron, "runAt": schedule.run_at}
    fields = [name for name, value in plan.items() if value is not None]
    if len(fields) != 1:
        got = " and ".join(fields) or "none"
        raise BadInput(
            f"schedule: expected one of interval, cron, runAt; got {got}", field="schedule"
        )
    if schedule.timezone is not None:
        zone_of(schedule, UTC_ZONE)
    if schedule.cron is not None:
        check_cron(schedule.cron)


def zone_of(schedule: Schedule, workspace: ZoneInfo) -> ZoneInfo:
    """The time zone of a schedule: its own, else the workspace's; raises BadInput."""
    if schedule.timezone is None:
        return workspace
    try:
        return ZoneInfo(schedule.timezone)
    except (KeyError, ValueError, OSError):
        raise BadInput(
            "timezone: expected an IANA time zone such as Asia/Shanghai, "
            f"got {schedule.timezone[:60]!r}",
            field="schedule.timezone",
        ) from None


def next_run_at(
    schedule: Schedule,
    *,
    now: datetime,
    planned: datetime | None,
    since: datetime | None = None,
    zone: ZoneInfo = UTC_ZONE,
) -> datetime | None:
    """The next slot; None: the schedule has ended.

    `planned`: the slot that just ran or was skipped, or a future one to validate; None: none
    recorded. `since`: the last run (default: now), for an interval without a recorded slot.
    `zone`: for cron lines without one.

    Source: spec 4: planned time + interval while on time (no drift); now + interval after a missed
    slot (no catch-up); cron: the next slot after now. A slot too far ahead is replaced.
    """
    if schedule.run_at is not None:
        return schedule.run_at if planned is None or planned > now else None
    if schedule.cron is not None:
        coming = cron_times(schedule.cron, now, zone_of(schedule, zone))
        near = list(itertools.islice(coming, _JUMP))
        # Any other was planned in another zone, or before the clock was set back.
        return planned if planned in near else next(iter(near), None)
    if schedule.interval is None:
        return None
    interval = timedelta(seconds=schedule.interval)
    if planned is None:
        return _not_too_far(_plus(since or now, interval), now, interval)
    if planned > now:
        return _not_too_far(planned, now, interval)
    following = _plus(planned, interval)
    return following if following is None or following > now else _plus(now, interval)


def slot_to_wait_for(
    schedule: Schedule,
    *,
    now: datetime,
    recorded: datetime | None,
    last_run_at: datetime | None,
    created_at: datetime,
    zone: ZoneInfo = UTC_ZONE,
) -> datetime | None:
    """The slot of a trigger that is loaded: the recorded one if it is due or near."""
    if schedule.run_at is not None:
        return schedule.run_at
    if recorded is not None and recorded <= now:
        return recorded
    if schedule.cron is not None and recorded is None:
        # It may have passed while no consumer ran.
        start = created_at if last_run_at is None else max(created_at, min(last_run_at, now))
        return next(cron_times(schedule.cron, start, zone_of(schedule, zone)), None)
    since = last_run_at or created_at
    return next_run_at(schedule, now=now, planned=recorded, since=since, zone=zone)


def count_slots_after(
    schedule: Schedule, slot: datetime, *, now: datetime, zone: ZoneInfo = UTC_ZONE
) -> int:
    """The number of slots after `slot` up to now; they are reported, not run."""
    if schedule.interval is not None:
        return max(0, int((now - slot).total_seconds() // schedule.interval))
    if schedule.cron is None:
        return 0
    coming = cron_times(schedule.cron, slot, zone_of(schedule, zone))
    passed = itertools.takewhile(lambda time: time <= now, coming)
    return sum(1 for _ in itertools.islice(passed, MAX_COUNTED))


def upcoming(schedule: Schedule, *, now: datetime, zone: ZoneInfo = UTC_ZONE) -> list[datetime]:
    """The next three times of a schedule created now."""
    if schedule.run_at is not None:
        return [max(schedule.run_at, now)]
    if schedule.cron is not None:
        coming = cron_times(schedule.cron, now, zone_of(schedule, zone))
        return list(itertools.islice(coming, 3))
    if schedule.interval is None:
        return []
    seconds = schedule.interval
    times = [_plus(now, timedelta(seconds=number * seconds)) for number in (1, 2, 3)]
    return [time for time in times if time is not None]


def is_far_ahead(
    schedule: Schedule, slot: datetime, *, now: datetime, zone: ZoneInfo = UTC_ZONE
) -> bool:
    """Whether a slot is too far ahead to have been planned by a correct clock."""
    return slot > now and next_run_at(schedule, now=now, planned=slot, zone=zone) != slot


def _plus(start: datetime, interval: timedelta) -> datetime | None:
    """None: beyond the end of the calendar."""
    try:
        return to_utc(start + interval)
    except (OverflowError, ValueError):
        return None


def _not_too_far(slot: datetime | None, now: datetime, interval: timedelta) -> datetime | None:
    """The slot, or one interval from now if it is too far ahead."""
    if slot is None or slot - now <= _JUMP * interval:
        return slot
    return _plus(now, interval)


# ---- cron lines: cronsim's local times are converted to instants


def check_cron(expression: str) -> None:
    """Validate a cron line with at least one future time; raises BadInput."""
    expected = "cron: expected minute hour day month weekday, such as `0 9 * * 1-5`"
    if len(expression) > 200 or len(expression.split()) != 5:
        raise BadInput(f"{expected}; got {expression[:60]!r}", field="schedule.cron")
    try:
        next(_local_times(expression, datetime(2026, 1, 1)), None)  # noqa: DTZ001 - local by design
    except (CronSimError, AssertionError, ValueError, TypeError) as error:
        detail = f" ({error})" if isinstance(error, CronSimError) else ""
        raise BadInput(
            f"{expected}; got {expression[:60]!r}{detail}", field="schedule.cron"
        ) from None
    coming = cron_times(expression, datetime(2026, 1, 1, tzinfo=UTC), UTC_ZONE)
    if next(coming, None) is None:
        raise BadInput(f"cron: {expression!r} has no time to come", field="schedule.cron")


def cron_times(expression: str, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """The instants of a cron line after `after`, in UTC.

    A local time that does not exist (DST) is skipped; of one that exists twice the first counts.

    Raises:
        CronSimError: the line is invalid, see `check_cron`.
    """
    try:
        local = after.astimezone(zone).replace(tzinfo=None)
        for planned in _local_times(expression, local):
            instant = to_utc(planned.replace(tzinfo=zone))
            if instant > after and instant.astimezone(zone).replace(tzinfo=None) == planned:
                yield instant
    except (OverflowError, ValueError):
        return


def _local_times(expression: str, after: datetime) -> Iterator[datetime]:
    """Works around cronsim, which reads `5-5/10` as `5/10`."""
    return iter(CronSim(_ONE_WITH_STEP.sub(r"\1", expression.upper()), after))
