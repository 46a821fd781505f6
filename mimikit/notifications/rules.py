"""When what waits for a channel is sent, and what of it together. Pure. Source: spec 6.

What is urgent goes at once; successes wait a moment for one another; in quiet hours most waits for
their end. Whatever may go when a channel's turn comes goes as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from mimikit.notify_settings import EventKind, NotifySettings
from mimikit.protocol.notifications import MOST_EVENTS, NotificationEvent

AN_HOUR, A_DAY = timedelta(hours=1), timedelta(days=1)
GIVE_UP = A_DAY
"""An event is no longer tried for once its channel has failed for so long since it came."""
FIRST_RETRY, LONGEST_RETRY = timedelta(seconds=30), timedelta(minutes=30)
TOLD_FAILURES = 3
"""So many failures in a row of a channel are told on the page."""
_GATHERED = timedelta(minutes=1)
"""No event is to wait longer for others of its trigger."""
UNBOUND: frozenset[EventKind] = frozenset({"question", "reminder"})
"""What no rate holds up."""


@dataclass(frozen=True, slots=True)
class ChannelHistory:
    """What is known of a channel's last sends."""

    tried_at: tuple[datetime, ...] = ()
    """Of the last hour, oldest first."""
    sent_at: datetime | None = None
    """When something last arrived."""
    failed_at: datetime | None = None
    error: str | None = None
    """Why its last failure was one."""
    failures: int = 0
    """In a row, until now."""
    failing_since: datetime | None = None

    @property
    def last_try(self) -> datetime | None:
        return self.tried_at[-1] if self.tried_at else None


class SendDecision(NamedTuple):
    """What is to go now, and when to look again; what is given up."""

    events: tuple[NotificationEvent, ...] = ()
    due_at: datetime | None = None
    given_up: tuple[NotificationEvent, ...] = ()


def quiet_until(settings: NotifySettings, now: datetime, zone: ZoneInfo) -> datetime | None:
    """When the quiet hours end in which `now` is; None: it is in none."""
    if (times := settings.quiet_times) is None:
        return None
    begin, end = times
    local = now.astimezone(zone)
    at = local.time()
    is_quiet = begin <= at < end if begin < end else at >= begin or at < end
    if not is_quiet:
        return None
    day = local.date() + timedelta(days=int(at >= end))
    return datetime.combine(day, end, tzinfo=zone).astimezone(UTC)


def decide(
    waiting: Sequence[NotificationEvent],
    history: ChannelHistory,
    settings: NotifySettings,
    now: datetime,
    zone: ZoneInfo,
) -> SendDecision:
    """What of a channel's waiting events goes now, as one."""
    since = history.failing_since
    old = [it for it in waiting if since and now - max(it.created_at, since) >= GIVE_UP]
    given_up = tuple(old[:MOST_EVENTS])
    gone = {it.id for it in given_up}
    left = [it for it in waiting if it.id not in gone]
    if not left:
        return SendDecision(given_up=given_up)
    quiet = quiet_until(settings, now, zone)
    done_at = min((_time(it, now) for it in left if it.kind == "done"), default=now)
    merged_at = done_at + timedelta(seconds=settings.merge_s)

    def release(event: NotificationEvent) -> datetime:
        at = merged_at if event.kind == "done" else _gathered_until(event, now)
        return max(at, quiet) if quiet and event.kind not in settings.quiet_events else at

    due = {it.id: release(it) for it in left}
    ready = sorted((it for it in left if due[it.id] <= now), key=lambda it: (it.created_at, it.id))[
        :MOST_EVENTS
    ]
    if not ready:
        return SendDecision(due_at=min(due.values()), given_up=given_up)
    is_unbound = any(it.kind in UNBOUND for it in ready)
    free_at = free_from(history, settings, now, is_unbound=is_unbound)
    if free_at > now:
        return SendDecision(due_at=free_at, given_up=given_up)
    return SendDecision(tuple(ready), now, given_up)


def free_from(
    history: ChannelHistory, settings: NotifySettings, now: datetime, *, is_unbound: bool
) -> datetime:
    """From when on a channel may be sent to again.

    After the first half of what an hour allows the other half is spread evenly over one.
    """
    tried = [at for at in history.tried_at if now - AN_HOUR < at <= now]  # or the clock was set
    if not tried:
        return now
    gap = timedelta(seconds=settings.apart_s)
    free_of_charge = settings.per_hour // 2
    if history.failures:
        factor = 2 ** min(history.failures - 1, 10)
        gap = max(gap, min(FIRST_RETRY * factor, LONGEST_RETRY))
    elif len(tried) >= free_of_charge and not is_unbound:
        gap = max(gap, AN_HOUR / (settings.per_hour - free_of_charge))
    return tried[-1] + gap


def after_send(history: ChannelHistory, at: datetime, error: str | None) -> ChannelHistory:
    """What is known of a channel once a send has ended; `error`: why it did not arrive."""
    tried = (*(it for it in history.tried_at if at - AN_HOUR < it <= at), at)
    if error is None:
        return ChannelHistory(tried, at, history.failed_at, history.error)
    since = history.failing_since or at
    return ChannelHistory(tried, history.sent_at, at, error, history.failures + 1, since)


def _time(event: NotificationEvent, now: datetime) -> datetime:
    """When it came; the clock may have been set back since."""
    return min(event.created_at, now)


def _gathered_until(event: NotificationEvent, now: datetime) -> datetime:
    at = event.not_before
    return at if at is not None and now < at <= now + _GATHERED else _time(event, now)
