"""The home of a machine that works day and night: what needs its user, what runs, what comes."""

from __future__ import annotations

from datetime import datetime, timedelta

from mimikit.clock import Clock
from mimikit.protocol.models import Instant
from mimikit.tasks.recent import RecentRuns
from mimikit.tools.world import titles
from mimikit.views import needs, tasks, triggers
from mimikit.views.base import Title, View, Words
from mimikit.views.job_reader import JobFilter
from mimikit.views.jobs import JobView
from mimikit.views.logs import LogLineView, last_error
from mimikit.views.needs import NeedView
from mimikit.views.self_awake import SelfAwakeView, self_awake_view
from mimikit.views.snapshot import StateReader
from mimikit.views.status import Consumer, PageState, is_paused, queue_counts
from mimikit.views.timeline import TimelineView, timeline
from mimikit.views.triggers import TriggerView
from mimikit.views.usage import UsageTodayView

MOST_NEXT, MOST_IMPROVEMENTS = 5, 5
_MOST_WAITING = 20
"""Waiting tasks on a timeline: of a long queue those that are next."""
_MOST_RUNNING = 20
_RUNNING = JobFilter(frozenset({"planning", "running"}))


class NextFiring(View):
    """A trigger and when it fires next."""

    trigger_id: str
    title: Title
    at: Instant
    words: Words
    """When it runs."""


class HealthView(View):
    """How the whole is doing."""

    consumer: PageState
    beat_age_s: float | None
    started_at: Instant | None
    busy: int
    """Places for work in which something runs."""
    seats: int
    """All of them."""
    waiting: int
    """Tasks in the queues."""
    paused: bool
    last_error: LogLineView | None
    free_bytes: int | None
    """Of the disk; null where that is not told."""


class HomeView(View):
    """In the order in which it is shown."""

    now: Instant
    needs: list[NeedView]
    running: list[JobView]
    next: list[NextFiring]
    more_next: int
    """Further triggers that have a time to come."""
    usage: UsageTodayView
    self_awake: SelfAwakeView
    """With the last few of what it did."""
    health: HealthView


class HomeReader:
    """Assembles what others read; the runs of the last days it reads once. Thread-safe."""

    def __init__(self, state: StateReader, clock: Clock) -> None:
        self._state, self._clock = state, clock
        self._recent = RecentRuns(state.files)

    def home(self) -> HomeView:
        state, now = self._state, self._clock.now()
        consumer = state.consumer()
        listed = triggers.listed(state.files, state.situation(consumer))
        usage = state.usage.today(now, consumer.current)
        recent = self._recent.look(now, needs.SPAN)
        title_of, scene = titles(state.files), state.jobs.scene(consumer.live, now)
        coming = upcoming(listed, now)
        return HomeView(
            now=now,
            needs=needs.needs(state.files, consumer, listed, usage.budget, recent, title_of, now),
            running=state.jobs.listed(scene, _RUNNING, "", _MOST_RUNNING).jobs,
            next=coming[:MOST_NEXT],
            more_next=max(len(coming) - MOST_NEXT, 0),
            usage=usage,
            self_awake=self_awake_view(state.files, state.settings, MOST_IMPROVEMENTS),
            health=self._health(consumer, now),
        )

    def timeline(self, hours: int) -> TimelineView:
        files, now = self._state.files, self._clock.now()
        live = self._state.consumer().live
        recent = self._recent.look(now, timedelta(hours=hours))
        found = tasks.live_views(files)
        is_due = [it for it in found if it.task.not_before is None or it.task.not_before <= now]
        waiting = [it for it in is_due if it.state == "queued"][:_MOST_WAITING]
        running = [it for it in found if it.state != "queued"]

        def started(task_id: str) -> datetime | None:
            return live[task_id].started_at if task_id in live else None

        shown = [*running, *waiting]
        return timeline(recent, shown, started, titles(files), now=now, hours=hours)

    def _health(self, consumer: Consumer, now: datetime) -> HealthView:
        files, health = self._state.files, consumer.health
        busy = sum(run.role == "worker" for run in consumer.live.values())
        return HealthView(
            consumer=consumer.on_page,
            beat_age_s=None if consumer.beat_age_s is None else round(consumer.beat_age_s, 1),
            started_at=health.started_at if health else None,
            busy=busy,
            seats=health.worker_seats if health else 0,
            waiting=sum(queue_counts(files, consumer.current).values()),
            paused=is_paused(files, consumer.current),
            last_error=last_error(files, now),
            free_bytes=needs.free_bytes(files),
        )


def upcoming(listed: list[TriggerView], now: datetime) -> list[NextFiring]:
    """The triggers that have a time to come, the next first. Pure."""
    found = [
        NextFiring(trigger_id=one.id, title=one.title, at=one.next_run_at, words=one.words)
        for one in listed
        if one.enabled and not one.broken and not one.blocked_by
        and one.next_run_at is not None and one.next_run_at > now
    ]  # fmt: skip
    return sorted(found, key=lambda it: (it.at, it.trigger_id))
