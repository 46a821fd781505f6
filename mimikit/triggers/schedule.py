"""Computes the planned times (slots) of schedules: interval, cron, runAt. Pure: takes `now`.

A run's id is derived from its slot, so a repeated slot (a crash between run and state, a clock that
was set back) gives an id that already exists.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from mimikit.errors import BadInput, ErrorCode
from mimikit.protocol.models import to_utc
from mimikit.protocol.triggers import Schedule

UTC_ZONE = ZoneInfo("UTC")
MAX_COUNTED = 1000
"""Missed cron slots are counted up to this number; a machine may have slept for years."""
_ONE_WITH_STEP = re.compile(r"\b(\w+)-\1/0*[1-9]\d*", re.ASCII)
_JUMP = 2
"""A slot more than this many slots ahead was planned before the clock was set back."""
_MAX_PERIODS = 1000
"""Periods of `everyDays` or `everyWeeks` that are searched for one slot."""
_MOMENT = timedelta(microseconds=1)
_PAST: ErrorCode = "no_future_time"


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
    _check_limits(schedule)


def _check_limits(schedule: Schedule) -> None:
    plan = schedule
    steps = {"everyDays": plan.every_days, "everyWeeks": plan.every_weeks}
    recurring = {"starting": plan.starting, "until": plan.until, "times": plan.times, **steps}
    used = [name for name, value in recurring.items() if value is not None]
    if used and plan.run_at is not None:
        raise _refusal(used[0], "expected it with interval or cron, got runAt")
    if plan.until is not None and plan.starting is not None and plan.until < plan.starting:
        raise _refusal("until", "expected a time after starting, got an earlier one", _PAST)
    used = [name for name, value in steps.items() if value is not None]
    if not used:
        return
    if plan.cron is None or plan.starting is None or len(used) > 1:
        raise _refusal(used[0], "expected one of everyDays and everyWeeks, with cron and starting")
    start = plan.but(until=None, timezone=None)
    if next(_slots(start, plan.starting - _MOMENT, UTC_ZONE), None) is None:
        raise _refusal(used[0], "expected days on which the cron line has times, got none")


def _refusal(field: str, message: str, code: ErrorCode | None = None) -> BadInput:
    return BadInput(f"{field}: {message}", field=f"schedule.{field}", code=code)


def anchored(schedule: Schedule, now: datetime, zone: ZoneInfo = UTC_ZONE) -> Schedule:
    """With `starting` at its first time, if every Nth day or week of it counts."""
    plan = schedule
    is_stepped = plan.every_days is not None or plan.every_weeks is not None
    if not is_stepped or plan.cron is None or plan.starting is not None:
        return plan
    first = next(cron_times(plan.cron, now, zone_of(plan, zone)), None)
    return plan.but(starting=first)


def with_limits_of(old: Schedule | None, new: Schedule, given: Collection[str] = ()) -> Schedule:
    """An edited schedule, with the limits of the old one that fit it and are not given anew."""
    if old is None:
        return new
    names = {"lateness"} if new.run_at is not None else {"lateness", "starting", "until", "times"}
    names |= {"every_days", "every_weeks"} if new.cron is not None else set()
    absent = {name for name in names if getattr(new, name) is None and name not in given}
    return new.but(**{name: getattr(old, name) for name in absent})


def check_coming(schedule: Schedule, now: datetime, zone: ZoneInfo = UTC_ZONE) -> None:
    if schedule.run_at is None and not upcoming(schedule, now=now, zone=zone):
        raise _refusal("until", "expected a time to come, got one that passed", _PAST)


def zone_of(schedule: Schedule, workspace: ZoneInfo) -> ZoneInfo:
    """The time zone of a schedule: its own, else the workspace's; raises BadInput."""
    name = schedule.timezone
    return workspace if name is None else time_zone(name, "schedule.timezone")


def time_zone(name: str, field: str = "timezone") -> ZoneInfo:
    """Raises BadInput."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        message = f"timezone: expected an IANA time zone such as Asia/Shanghai, got {name[:60]!r}"
        raise BadInput(message, field=field, code="bad_zone") from None


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
        near = list(itertools.islice(_slots(schedule, now, zone), _JUMP))
        # Any other was planned in another zone, or before the clock was set back.
        return planned if planned in near else next(iter(near), None)
    if schedule.interval is None:
        return None
    slot = _next_in_rhythm(schedule, schedule.interval, now, planned, since or now)
    is_over = slot is not None and schedule.until is not None and slot > schedule.until
    return None if is_over else slot


def _next_in_rhythm(
    schedule: Schedule, seconds: float, now: datetime, planned: datetime | None, since: datetime
) -> datetime | None:
    interval, starting = timedelta(seconds=seconds), schedule.starting
    if starting is not None and (
        starting > since if planned is None else planned == starting > now
    ):
        return starting
    if planned is None:
        return _not_too_far(_plus(since, interval), now, interval)
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
        return next(_slots(schedule, start, zone), None)
    since = last_run_at or created_at
    return next_run_at(schedule, now=now, planned=recorded, since=since, zone=zone)


def count_slots_after(
    schedule: Schedule, slot: datetime, *, now: datetime, zone: ZoneInfo = UTC_ZONE
) -> int:
    """The number of slots after `slot` up to now; they are reported, not run."""
    if schedule.interval is not None:
        end = now if schedule.until is None else min(now, schedule.until)
        return max(0, int((end - slot).total_seconds() // schedule.interval))
    passed = itertools.takewhile(lambda time: time <= now, _slots(schedule, slot, zone))
    return sum(1 for _ in itertools.islice(passed, MAX_COUNTED))


def is_too_late(schedule: Schedule, slot: datetime, now: datetime) -> bool:
    return schedule.lateness is not None and now - slot > timedelta(seconds=schedule.lateness)


def first_timely_slot(
    schedule: Schedule, slot: datetime, *, now: datetime, zone: ZoneInfo = UTC_ZONE
) -> datetime | None:
    """The first slot after a missed one that is not too late at `now`; it may be due."""
    earliest = max(slot, now - timedelta(seconds=schedule.lateness or 0) - _MOMENT)
    if schedule.interval is None:
        return next(_slots(schedule, earliest, zone), None)
    passed = math.floor((earliest - slot).total_seconds() / schedule.interval) + 1
    following = _plus(slot, timedelta(seconds=passed * schedule.interval))
    is_over = following and schedule.until and following > schedule.until
    return None if is_over else following


def upcoming(schedule: Schedule, *, now: datetime, zone: ZoneInfo = UTC_ZONE) -> list[datetime]:
    if schedule.run_at is not None:
        return [max(schedule.run_at, now)]
    most, times = min(3, schedule.times or 3), list[datetime]()
    slot = next_run_at(schedule, now=now, planned=None, zone=zone)
    while slot is not None and len(times) < most:
        times.append(slot)
        slot = next_run_at(schedule, now=slot, planned=slot, zone=zone)
    return times


def is_far_ahead(
    schedule: Schedule, slot: datetime, *, now: datetime, zone: ZoneInfo = UTC_ZONE
) -> bool:
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


# ---- cron lines


def _slots(schedule: Schedule, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """The slots of a cron line after `after`, from `starting` until `until`."""
    if schedule.cron is None:
        return iter(())
    zone = zone_of(schedule, zone)
    if schedule.starting is not None:
        after = max(after, schedule.starting - _MOMENT)
    if schedule.every_days is None and schedule.every_weeks is None:
        coming = cron_times(schedule.cron, after, zone)
    else:
        coming = _on_chosen_days(schedule, schedule.cron, after, zone)
    until = schedule.until
    return coming if until is None else itertools.takewhile(lambda slot: slot <= until, coming)


def _on_chosen_days(
    schedule: Schedule, line: str, after: datetime, zone: ZoneInfo
) -> Iterator[datetime]:
    """The times of a cron line on every Nth day or in every Nth week, by local dates."""
    first = (schedule.starting or after).astimezone(zone).date()
    for _ in range(_MAX_PERIODS):
        for slot in cron_times(line, after, zone):
            day = slot.astimezone(zone).date()
            away = _days_to_chosen(schedule, first, day)
            if away:
                after = _midnight(day, away, zone) - _MOMENT
                break
            yield slot
        else:
            return


def _days_to_chosen(schedule: Schedule, first: date, day: date) -> int:
    """The number of days from `day` to the next day of the schedule; 0: it is one."""
    if schedule.every_days is not None:
        return (first - day).days % schedule.every_days
    monday = day - timedelta(days=day.weekday())
    weeks = (first - timedelta(days=first.weekday()) - monday).days // 7
    away = weeks % (schedule.every_weeks or 1)
    return away and away * 7 - day.weekday()


def _midnight(day: date, days: int, zone: ZoneInfo) -> datetime:
    try:
        local = datetime.combine(day + timedelta(days=days), time(), zone)
        return local.astimezone(UTC)
    except (OverflowError, ValueError):
        return datetime.max.replace(tzinfo=UTC)


def check_cron(expression: str) -> None:
    """Validate a cron line with at least one future time; raises BadInput."""
    expected = "expected minute hour day month weekday, such as `0 9 * * 1-5`"
    if len(expression) > 200 or len(expression.split()) != 5:
        raise _refusal("cron", f"{expected}; got {expression[:60]!r}", "bad_cron")
    try:
        first = next(_simulated(expression, datetime(2026, 1, 1, tzinfo=UTC)), None)
    except (CronSimError, AssertionError, ValueError, TypeError) as error:
        detail = f" ({error})" if isinstance(error, CronSimError) else ""
        message = f"{expected}; got {expression[:60]!r}{detail}"
        raise _refusal("cron", message, "bad_cron") from None
    if first is None:
        raise _refusal("cron", f"{expression!r} has no future time", _PAST)


def cron_times(expression: str, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """The instants of a cron line after `after`, in UTC.

    As Debian's cron: a fixed time that does not exist (DST) comes right after the gap, one that
    exists twice comes once; a line with a star in minute or hour goes on through both.

    Raises:
        CronSimError: the line is invalid, see `check_cron`.
    """
    latest = after
    try:
        for planned in _simulated(expression, after.astimezone(zone)):
            instant = to_utc(planned)
            if instant > latest:
                latest = instant
                yield instant
    except (OverflowError, ValueError):
        return


def _simulated(expression: str, after: datetime) -> Iterator[datetime]:
    """Works around cronsim, which reads `5-5/10` as `5/10`."""
    return iter(CronSim(_ONE_WITH_STEP.sub(r"\1", expression.upper()), after))
