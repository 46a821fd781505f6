"""Due times: no drift, each slot once, for any behaviour of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.errors import BadInput
from mimikit.protocol.triggers import Schedule
from mimikit.triggers.schedule import (
    MAX_COUNTED,
    check,
    count_slots_after,
    first_timely_slot,
    is_far_ahead,
    is_too_late,
    next_run_at,
    slot_to_wait_for,
    zone_of,
)

T0 = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def following(interval: float, *, now: float, planned: float | None, last: float | None = None):
    """`next_run_at` in seconds since T0; the trigger was made at T0."""
    slot = next_run_at(
        Schedule(interval=interval),
        now=at(now),
        planned=None if planned is None else at(planned),
        since=T0 if last is None else at(last),
    )
    assert slot is not None
    return (slot - T0).total_seconds()


def test_a_slot_that_a_wrong_clock_planned_is_pulled_in() -> None:
    year = 365 * 86400
    assert following(10, now=0, planned=year) == 10
    assert following(10, now=0, planned=None, last=year) == 10


def test_a_recorded_slot_that_is_due_is_kept_until_it_has_fired() -> None:
    schedule = Schedule(interval=10)

    def wait_for(recorded: float | None, now: float):
        slot = slot_to_wait_for(
            schedule,
            now=at(now),
            recorded=None if recorded is None else at(recorded),
            last_run_at=None,
            created_at=T0,
        )
        return slot and (slot - T0).total_seconds()

    assert wait_for(10, 500) == 10
    assert wait_for(510, 500) == 510
    assert wait_for(9999, 500) == 510
    assert wait_for(None, 500) == 10


# ---- a whole life, against a naive reference


class Life:
    """One trigger as the supervisor handles it: a slot that has a run is not run again."""

    def __init__(self, interval: float, start: float = 0) -> None:
        self.schedule = Schedule(interval=interval)
        self.created = at(start)
        self.ran: dict[datetime, datetime] = {}
        self.last: datetime | None = None
        self.slot = self._next(self.created, None)

    def _next(self, now: datetime, planned: datetime | None) -> datetime:
        slot = next_run_at(self.schedule, now=now, planned=planned, since=self.last or self.created)
        assert slot is not None
        return slot

    def tick(self, seconds: float) -> bool:
        """One tick; returns whether it fired."""
        now = at(seconds)
        if now < self.slot:
            self.slot = self._next(now, self.slot)
            return False
        self.ran.setdefault(self.slot, now)
        self.last = now
        self.slot = self._next(now, self.slot)
        return True


INTERVALS = st.integers(1000, 100_000).map(lambda ms: ms / 1000)


@given(INTERVALS, st.lists(st.floats(0.001, 500), max_size=60))
def test_on_a_steady_clock_it_does_as_the_naive_reference(
    interval: float, steps: list[float]
) -> None:
    life = Life(interval)
    due, now = interval, 0.0
    for step in steps:
        now = round(now + step, 3)
        fires = now >= round(due, 3)
        assert life.tick(now) == fires
        if fires:
            due = due + interval if round(due + interval, 3) > now else now + interval
            due = round(due, 3)
        assert (life.slot - T0).total_seconds() == pytest.approx(due, abs=1e-6)


ANY_TIMES = st.lists(st.floats(-1e6, 1e6) | st.floats(-30, 30), max_size=80)


@given(INTERVALS, ANY_TIMES)
def test_whatever_the_clock_does_a_tick_fires_its_slot_at_most_and_the_next_lies_ahead(
    interval: float, times: list[float]
) -> None:
    life = Life(interval)
    for seconds in times:
        slot, now = life.slot, at(round(seconds, 3))
        assert life.tick(round(seconds, 3)) == (slot <= now)
        assert now < life.slot <= now + 2 * timedelta(seconds=interval)
        # Asked again in the same instant, as after a crash, it fires nothing.
        assert not life.tick(round(seconds, 3))


# ---- cron lines and single times

BERLIN = ZoneInfo("Europe/Berlin")
NINE = Schedule(cron="0 9 * * *", timezone="Europe/Berlin")  # 08:00 UTC in winter


def cron_slot(
    now: datetime, planned: datetime | None = None, last: datetime | None = None
) -> datetime | None:
    return next_run_at(NINE, now=now, planned=planned, since=last or T0)


def test_the_next_cron_slot_comes_after_now_whatever_was_missed() -> None:
    tomorrow = datetime(2026, 11, 22, 8, tzinfo=UTC)
    assert cron_slot(T0) == tomorrow
    assert cron_slot(T0, planned=T0 - timedelta(days=9), last=T0 - timedelta(days=10)) == tomorrow
    assert cron_slot(tomorrow, planned=tomorrow) == tomorrow + timedelta(days=1)


def test_a_future_cron_slot_is_kept_unless_it_is_too_far_ahead() -> None:
    tomorrow = datetime(2026, 11, 22, 8, tzinfo=UTC)
    assert cron_slot(T0, planned=tomorrow) == tomorrow
    assert cron_slot(T0, planned=tomorrow + timedelta(days=1)) == tomorrow + timedelta(days=1)
    assert cron_slot(T0, planned=tomorrow + timedelta(days=2)) == tomorrow


def test_a_cron_line_without_a_zone_is_meant_in_the_workspace_s() -> None:
    line = Schedule(cron="0 9 * * *")
    slot = next_run_at(line, now=T0, planned=None, since=T0, zone=ZoneInfo("Asia/Shanghai"))
    assert slot == datetime(2026, 11, 22, 1, tzinfo=UTC)
    assert zone_of(line, BERLIN) == BERLIN
    assert zone_of(NINE, ZoneInfo("UTC")).key == "Europe/Berlin"


def wait_for(
    schedule: Schedule,
    now: datetime,
    recorded: datetime | None,
    last: datetime | None = None,
    created: datetime = T0,
) -> datetime | None:
    return slot_to_wait_for(
        schedule, now=now, recorded=recorded, last_run_at=last, created_at=created
    )


def test_a_cron_slot_before_the_first_check_is_due() -> None:
    first = datetime(2026, 11, 22, 8, tzinfo=UTC)
    assert wait_for(NINE, T0 + timedelta(days=5), None) == first
    assert wait_for(NINE, T0, None) == first


def test_without_a_record_a_cron_line_goes_on_from_its_last_run() -> None:
    now = T0 + timedelta(days=30)
    ran = datetime(2026, 12, 21, 8, 0, 1, tzinfo=UTC)
    assert wait_for(NINE, now, None, ran) == datetime(2026, 12, 22, 8, tzinfo=UTC)
    # A last run of a clock that has gone back, or from before it was made, is no start.
    assert wait_for(NINE, now, None, T0 - timedelta(days=3)) == datetime(
        2026, 11, 22, 8, tzinfo=UTC
    )


def test_a_due_cron_slot_is_kept_until_it_has_fired() -> None:
    slot = datetime(2026, 11, 22, 8, tzinfo=UTC)
    assert wait_for(NINE, slot + timedelta(days=3), slot) == slot
    assert wait_for(NINE, slot - timedelta(hours=1), slot) == slot
    assert wait_for(NINE, slot - timedelta(days=20), slot) == slot - timedelta(days=19)


def test_a_single_time_is_its_own_slot_and_has_no_next() -> None:
    once = Schedule(run_at=at(60))
    for recorded in (None, at(60)):
        assert wait_for(once, T0, recorded) == at(60)
        assert wait_for(once, at(9999), recorded) == at(60)
    assert next_run_at(once, now=at(61), planned=at(60), since=at(61)) is None
    assert next_run_at(once, now=at(61), planned=None, since=T0) == at(60)


def test_missed_slots_are_counted_and_a_single_time_misses_none() -> None:
    assert count_slots_after(Schedule(interval=10), T0, now=at(9.999)) == 0
    assert count_slots_after(Schedule(interval=10), T0, now=at(35)) == 3
    assert count_slots_after(Schedule(interval=10), at(50), now=T0) == 0
    slot = datetime(2026, 11, 22, 8, tzinfo=UTC)
    assert count_slots_after(NINE, slot, now=slot + timedelta(days=2)) == 2
    assert count_slots_after(NINE, slot, now=slot + timedelta(hours=47)) == 1
    minutely = Schedule(cron="* * * * *")
    assert count_slots_after(minutely, slot, now=slot + timedelta(days=900)) == MAX_COUNTED
    assert count_slots_after(Schedule(run_at=slot), slot, now=slot + timedelta(days=2)) == 0


def test_only_a_slot_that_no_clock_can_have_planned_is_far_ahead() -> None:
    hourly = Schedule(interval=3600)
    assert not is_far_ahead(hourly, at(3600), now=T0)
    assert not is_far_ahead(hourly, at(-3600), now=T0)
    assert is_far_ahead(hourly, at(7201), now=T0)
    nine = datetime(2026, 11, 22, 8, tzinfo=UTC)
    assert not is_far_ahead(NINE, nine, now=T0)
    assert is_far_ahead(NINE, nine + timedelta(days=5), now=T0)
    assert not is_far_ahead(Schedule(run_at=at(1e9)), at(1e9), now=T0)


class CronLife:
    """One cron trigger as the supervisor handles it, with any clock."""

    def __init__(self, line: str, zone: str, start: datetime) -> None:
        self.schedule = Schedule(cron=line, timezone=zone)
        self.ran: list[datetime] = []
        self.slot = self._next(start, None)

    def _next(self, now: datetime, planned: datetime | None) -> datetime:
        slot = next_run_at(self.schedule, now=now, planned=planned, since=now)
        assert slot is not None
        return slot

    def tick(self, now: datetime) -> bool:
        """One tick; returns whether a slot was due."""
        due = now >= self.slot
        if due and self.slot not in self.ran:
            self.ran.append(self.slot)
        self.slot = self._next(now, self.slot)
        return due


LINES = st.sampled_from(["*/15 * * * *", "30 2 * * *", "0 9 * * 1-5", "0 0 1 * *"])
PLACES = st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])


@given(LINES, PLACES, st.lists(st.integers(-90 * 86400, 90 * 86400), min_size=1, max_size=25))
def test_whatever_the_clock_does_a_cron_slot_fires_once_and_the_next_lies_ahead(
    line: str, zone: str, jumps: list[int]
) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    life = CronLife(line, zone, now)
    for jump in jumps:
        now += timedelta(seconds=jump)
        slot = life.slot
        assert life.tick(now) == (slot <= now)
        assert life.slot > now
        assert not life.tick(now)
        assert not is_far_ahead(life.schedule, life.slot, now=now)
    assert len(life.ran) == len(set(life.ran))


@settings(max_examples=50)
@given(LINES, PLACES, st.lists(st.integers(1, 2000), min_size=1, max_size=200))
def test_no_cron_slot_is_skipped_while_running(line: str, zone: str, steps: list[int]) -> None:
    start = now = datetime(2026, 3, 7, tzinfo=UTC)
    life = CronLife(line, zone, start)
    passed = 0
    for step in steps:
        before, now = now, now + timedelta(seconds=step)
        came = count_slots_after(life.schedule, before, now=now)
        assert life.tick(now) == bool(came)
        passed += bool(came)
    assert len(life.ran) == passed
    assert life.ran == sorted(life.ran)


# ---- limits: a start, an end, a number of days between


def times_of(schedule: Schedule, now: datetime, count: int = 4) -> list[str]:
    """The first slots of a schedule created at `now`, in its zone."""
    zone, found = zone_of(schedule, ZoneInfo("UTC")), list[str]()
    slot = next_run_at(schedule, now=now, planned=None)
    while slot is not None and len(found) < count:
        found.append(f"{slot.astimezone(zone):%m-%d %H:%M}")
        slot = next_run_at(schedule, now=slot, planned=slot)
    return found


SATURDAY = datetime(2026, 10, 24, 12, tzinfo=UTC)
"""The clocks of Berlin change in the night after it."""


def hour(number: float) -> datetime:
    return SATURDAY + timedelta(hours=number)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"cron": "0 8 * * *", "every_days": 2}, ["10-26 08:00", "10-28 08:00", "10-30 08:00"]),
        ({"cron": "0 8,20 * * *", "every_days": 9}, ["10-24 20:00", "11-02 08:00", "11-02 20:00"]),
        ({"cron": "0 9 * * 0,1", "every_weeks": 2}, ["10-25 09:00", "11-02 09:00", "11-08 09:00"]),
        ({"cron": "0 8 * * *", "until": hour(48)}, ["10-25 08:00", "10-26 08:00"]),
        ({"cron": "0 8 * * *", "starting": hour(216)}, ["11-03 08:00", "11-04 08:00"]),
        ({"interval": 3600, "until": hour(2)}, ["10-24 15:00", "10-24 16:00"]),
    ],
)  # fmt: skip
def test_limits_choose_among_the_slots_by_local_dates(
    limits: dict[str, object], expected: list[str]
) -> None:
    schedule = Schedule(starting=SATURDAY, timezone="Europe/Berlin").but(**limits)
    check(schedule)
    found = times_of(schedule, SATURDAY)
    assert found[: len(expected)] == expected
    assert len(found) == (len(expected) if "until" in limits else 4)


def test_days_between_do_not_hang_on_when_it_is_asked() -> None:
    schedule = Schedule(cron="0 8 * * *", every_days=3, starting=T0, timezone="Europe/Berlin")
    slots = set[datetime]()
    for hours in range(0, 60 * 24, 5):
        slot = next_run_at(schedule, now=T0 + timedelta(hours=hours), planned=None)
        assert slot is not None
        slots.add(slot)
    days = sorted(slot.astimezone(BERLIN).date() for slot in slots)
    assert {(after - before).days for before, after in pairwise(days)} == {3}


def test_after_a_missed_slot_the_first_that_is_not_too_late_is_next() -> None:
    daily = Schedule(cron="0 7 * * *", lateness=3600)
    slot = datetime(2026, 11, 22, 7, tzinfo=UTC)
    assert not is_too_late(daily, slot, slot + timedelta(hours=1))
    assert is_too_late(daily, slot, slot + timedelta(hours=11))
    assert first_timely_slot(daily, slot, now=slot + timedelta(hours=11)) == slot + timedelta(
        days=1
    )
    later = slot + timedelta(days=3, minutes=10)  # this morning's is 10 minutes late only
    assert first_timely_slot(daily, slot, now=later) == slot + timedelta(days=3)
    often = Schedule(interval=60, lateness=0)
    assert first_timely_slot(often, T0, now=at(150)) == at(180)
    assert first_timely_slot(often, T0, now=at(120)) == at(120)
    assert first_timely_slot(Schedule(run_at=T0, lateness=1), T0, now=at(9)) is None


# ---- what can be used


@pytest.mark.parametrize(
    ("schedule", "field", "words"),
    [
        (Schedule(), "schedule", "expected one of interval, cron, runAt; got none"),
        (Schedule(interval=5, cron="0 9 * * *"), "schedule", "got interval and cron"),
        (Schedule(run_at=T0, times=3), "schedule.times", "with interval or cron"),
        (Schedule(interval=5, starting=at(1), until=T0), "schedule.until", "after starting"),
        (Schedule(interval=5, starting=T0, every_days=2), "schedule.everyDays", "with cron"),
        (Schedule(cron="0 9 * * *", every_weeks=2), "schedule.everyWeeks", "starting"),
        (
            Schedule(cron="0 9 * * 2", starting=T0, every_days=14),
            "schedule.everyDays",
            "on which the cron line has times",
        ),
        (Schedule(interval=5, timezone="../etc/passwd"), "schedule.timezone", "IANA"),
        (Schedule(interval=5, timezone="a\0b"), "schedule.timezone", "IANA"),
    ],
)
def test_an_invalid_schedule_is_refused_with_its_field(
    schedule: Schedule, field: str, words: str
) -> None:
    with pytest.raises(BadInput) as caught:
        check(schedule)
    assert caught.value.field == field
    assert words in str(caught.value)
    assert len(str(caught.value)) < 200
