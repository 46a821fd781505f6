"""When a trigger is due. Pure: takes `now`, knows neither the clock nor the disk.

A slot is one planned time of one trigger; a run's id is derived from it, so a slot that comes up
again (a crash between run and state, a clock that went back) gives the id that is already taken.
Intervals are served; `unsupported` says of everything else that it is not.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mimikit.protocol.models import Schedule, Trigger, time_text, to_utc

_JUMP = 2
"""A slot more than this many intervals ahead was planned by a clock that has gone back since."""

_UNITS = (
    (7 * 86400, "week", "周"),
    (86400, "day", "天"),
    (3600, "hour", "小时"),
    (60, "minute", "分钟"),
    (1, "second", "秒"),
)


def next_run_at(
    schedule: Schedule,
    *,
    now: datetime,
    planned: datetime | None,
    last_run_at: datetime | None,
    created_at: datetime,
) -> datetime | None:
    """The slot to wait for; None when the schedule has none.

    Args:
        schedule: of the trigger.
        now: the time.
        planned: the slot that was settled just now (ran or skipped), or one that is still to come
            and shall be looked at again; None when no slot is recorded.
        last_run_at: when the trigger last fired.
        created_at: when it was made.

    Source: spec 4: planned time + interval while on time, so nothing drifts; now + interval after a
    missed slot, so nothing is made up. A slot that lies absurdly far ahead is pulled in.
    """
    if schedule.interval is None:
        return None
    interval = timedelta(seconds=schedule.interval)
    if planned is None:
        return _pulled_in(_plus(last_run_at or created_at, interval), now, interval)
    if planned > now:
        return _pulled_in(planned, now, interval)
    following = _plus(planned, interval)
    return following if following is None or following > now else _plus(now, interval)


def slot_to_wait_for(
    schedule: Schedule,
    *,
    now: datetime,
    recorded: datetime | None,
    last_run_at: datetime | None,
    created_at: datetime,
) -> datetime | None:
    """The slot a trigger waits for when it is loaded: the recorded one if it is due or near."""
    if schedule.interval is not None and recorded is not None and recorded <= now:
        return recorded
    return next_run_at(
        schedule, now=now, planned=recorded, last_run_at=last_run_at, created_at=created_at
    )


def is_due(slot: datetime | None, *, now: datetime) -> bool:
    """Whether a slot has come."""
    return slot is not None and slot <= now


def slot_name(slot: datetime) -> str:
    """A slot as it goes into the id of its run; the same for the same instant in any zone."""
    return time_text(slot)


def unsupported(trigger: Trigger) -> str | None:
    """Why this trigger can not be served, in plain words; None when it can."""
    instead = 'expected type "recurring" with a schedule.interval in seconds'
    if trigger.type != "recurring":
        return f"{instead}; {trigger.type} triggers are not supported yet"
    if trigger.condition is not None:
        return f"{instead}; a recurring trigger has no condition"
    schedule = trigger.schedule
    if schedule is not None and schedule.cron is not None:
        return f"{instead}; schedules by cron are not supported yet"
    if schedule is not None and schedule.run_at is not None:
        return f"{instead}; a recurring trigger has no runAt"
    if schedule is None or schedule.interval is None:
        return f"{instead}, got none"
    return None


def describe(schedule: Schedule, locale: str = "en") -> str:
    """A schedule in words: `every 10 seconds`, `每 10 秒`."""
    zh = locale.lower().startswith("zh")
    if schedule.interval is not None:
        return _every(schedule.interval, zh=zh)
    zone = f" ({schedule.timezone})" if schedule.timezone else ""
    if schedule.cron is not None:
        return f"按 cron {schedule.cron}{zone}" if zh else f"by cron {schedule.cron}{zone}"
    if schedule.run_at is not None:
        at = f"{to_utc(schedule.run_at):%Y-%m-%d %H:%M} UTC"
        return f"{at} 执行一次" if zh else f"once at {at}"
    return "没有时间" if zh else "at no time"


def _every(seconds: float, *, zh: bool) -> str:
    size, en, chinese = next(unit for unit in _UNITS if seconds % unit[0] == 0 or unit[0] == 1)
    count = f"{seconds / size:.3f}".rstrip("0").rstrip(".")
    if zh:
        return f"每{chinese}" if count == "1" else f"每 {count} {chinese}"
    return f"every {en}" if count == "1" else f"every {count} {en}s"


def _plus(start: datetime, interval: timedelta) -> datetime | None:
    """The time one interval later, to the millisecond; None beyond the end of the calendar."""
    try:
        return to_utc(start + interval)
    except OverflowError:
        return None


def _pulled_in(slot: datetime | None, now: datetime, interval: timedelta) -> datetime | None:
    """The slot, or one interval from now when no honest clock can have planned it so late."""
    if slot is None or slot - now <= _JUMP * interval:
        return slot
    return _plus(now, interval)
