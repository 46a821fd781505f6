"""Due times: no drift, nothing made up, never twice for one slot, whatever the clock does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.engines.intervals import interval_words
from mimikit.protocol.models import Condition, Schedule, Trigger
from mimikit.triggers.schedule import (
    describe,
    is_due,
    next_run_at,
    slot_name,
    slot_to_wait_for,
    unsupported,
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
        last_run_at=None if last is None else at(last),
        created_at=T0,
    )
    assert slot is not None
    return (slot - T0).total_seconds()


def trigger(**fields: object) -> Trigger:
    base: dict[str, object] = {
        "id": "trig-1",
        "type": "recurring",
        "prompt": "date",
        "created_at": T0,
        "trace_id": "trace-1",
        "schedule": Schedule(interval=10),
    }
    return Trigger.model_validate(base | fields)


def test_a_new_trigger_fires_one_interval_after_it_was_made() -> None:
    assert following(10, now=0, planned=None) == 10


def test_a_lost_slot_is_derived_from_the_last_run() -> None:
    assert following(10, now=25, planned=None, last=21) == 31


def test_a_derived_slot_may_be_overdue_and_then_fires_once() -> None:
    assert following(10, now=1000, planned=None, last=21) == 31
    assert following(10, now=1000, planned=31, last=1000) == 1010


def test_a_late_tick_does_not_move_the_next_slot() -> None:
    assert following(10, now=10.9, planned=10) == 20
    assert following(10, now=19.999, planned=10) == 20


@pytest.mark.parametrize(("now", "expected"), [(20, 30), (20.001, 30.001), (3600, 3610)])
def test_after_a_missed_slot_the_next_is_an_interval_from_now(now: float, expected: float) -> None:
    assert following(10, now=now, planned=10) == expected


def test_a_slot_to_come_stays_when_it_is_looked_at_again() -> None:
    assert following(10, now=3, planned=10) == 10
    assert following(10, now=-8, planned=10) == 10


def test_a_slot_that_a_wrong_clock_planned_is_pulled_in() -> None:
    year = 365 * 86400
    assert following(10, now=0, planned=year) == 10
    assert following(10, now=0, planned=None, last=year) == 10


def test_a_shorter_interval_takes_effect_at_once() -> None:
    assert following(10, now=100, planned=86400) == 110


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


def test_due_is_from_the_slot_on() -> None:
    assert not is_due(at(10), now=at(9.999))
    assert is_due(at(10), now=at(10))
    assert is_due(at(10), now=at(11))
    assert not is_due(None, now=T0)


def test_a_slot_has_one_name_in_every_zone() -> None:
    shanghai = T0.astimezone(tz=None).astimezone(UTC) + timedelta(0)
    assert slot_name(T0) == "2026-11-21T09:30:00.000Z"
    assert slot_name(shanghai) == slot_name(T0)


def test_slots_are_whole_milliseconds() -> None:
    slot = next_run_at(
        Schedule(interval=1.23456), now=T0, planned=T0, last_run_at=None, created_at=T0
    )
    assert slot == at(1.234)


def test_without_an_interval_there_is_no_slot() -> None:
    assert (
        next_run_at(
            Schedule(cron="0 9 * * *"), now=T0, planned=None, last_run_at=None, created_at=T0
        )
        is None
    )


def test_beyond_the_end_of_the_calendar_there_is_no_slot() -> None:
    end = datetime.max.replace(tzinfo=UTC)
    schedule = Schedule(interval=86400)
    for planned in (end, None):
        slot = next_run_at(schedule, now=end, planned=planned, last_run_at=end, created_at=end)
        assert slot is None


# ---- a whole life, against a naive reference


class Life:
    """One trigger as the supervisor treats it: a slot whose run exists is not run again."""

    def __init__(self, interval: float, start: float = 0) -> None:
        self.schedule = Schedule(interval=interval)
        self.created = at(start)
        self.ran: dict[datetime, datetime] = {}
        self.last: datetime | None = None
        self.slot = self._next(self.created, None)

    def _next(self, now: datetime, planned: datetime | None) -> datetime:
        slot = next_run_at(
            self.schedule,
            now=now,
            planned=planned,
            last_run_at=self.last,
            created_at=self.created,
        )
        assert slot is not None
        return slot

    def tick(self, seconds: float) -> bool:
        """One look at the clock; gives whether it fired."""
        now = at(seconds)
        if not is_due(self.slot, now=now):
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


@given(INTERVALS, st.integers(1, 200))
def test_ticks_that_are_always_late_a_little_make_no_drift(interval: float, runs: int) -> None:
    life = Life(interval)
    for number in range(1, runs + 1):
        assert life.tick(round(number * interval + 0.9, 3))
    assert list(life.ran) == [at(round(n * interval, 3)) for n in range(1, runs + 1)]


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


@given(INTERVALS, ANY_TIMES)
def test_while_the_clock_only_goes_on_every_slot_is_a_new_one(
    interval: float, times: list[float]
) -> None:
    life = Life(interval)
    fired = sum(life.tick(round(seconds, 3)) for seconds in sorted(times))
    assert len(life.ran) == fired
    assert list(life.ran) == sorted(life.ran)


def test_a_clock_set_far_back_may_meet_an_old_slot_which_keeps_its_name() -> None:
    life = Life(1)
    assert life.tick(2)
    assert not life.tick(0)
    assert life.slot == at(1)
    assert slot_name(life.slot) in {slot_name(slot) for slot in life.ran}
    assert life.tick(1)
    assert life.slot == at(2)
    assert life.tick(2)
    assert len(life.ran) == 2


@given(INTERVALS, st.floats(-1e8, 1e8))
def test_after_any_jump_the_next_run_is_at_most_two_intervals_away(
    interval: float, jump: float
) -> None:
    life = Life(interval)
    life.tick(interval)
    now = round(interval + jump, 3)
    life.tick(now)
    assert timedelta(0) < life.slot - at(now) <= 2 * timedelta(seconds=interval)


@given(INTERVALS, st.floats(0.001, 0.999))
def test_a_clock_set_back_by_less_than_an_interval_repeats_no_slot(
    interval: float, share: float
) -> None:
    life = Life(interval)
    assert life.tick(interval)
    assert not life.tick(round(interval - share * interval, 3))
    assert not life.tick(interval)
    assert life.tick(round(2 * interval, 3))
    assert list(life.ran) == [at(interval), at(round(2 * interval, 3))]


# ---- what is served, and words


def test_an_interval_is_served() -> None:
    assert unsupported(trigger()) is None


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"type": "scheduled", "schedule": Schedule(run_at=T0)}, "scheduled triggers"),
        (
            {
                "type": "conditional",
                "schedule": None,
                "condition": Condition(type="file_exists", params={"path": "x"}),
            },
            "conditional triggers",
        ),
        ({"schedule": Schedule(cron="0 9 * * *")}, "cron"),
        ({"schedule": Schedule(interval=10, cron="0 9 * * *")}, "cron"),
        ({"schedule": Schedule(interval=10, run_at=T0)}, "runAt"),
        ({"schedule": Schedule()}, "got none"),
        ({"schedule": None}, "got none"),
        ({"condition": Condition(type="file_exists")}, "no condition"),
    ],
)
def test_what_is_not_served_is_said_in_plain_words(fields: dict[str, object], word: str) -> None:
    reason = unsupported(trigger(**fields))
    assert reason is not None
    assert word in reason
    assert reason.startswith("expected")


@pytest.mark.parametrize(
    ("schedule", "en", "zh"),
    [
        (Schedule(interval=10), "every 10 seconds", "每 10 秒"),
        (Schedule(interval=60), "every minute", "每分钟"),
        (Schedule(interval=21600), "every 6 hours", "每 6 小时"),
        (Schedule(interval=86400), "every day", "每天"),
        (Schedule(interval=90.5), "every 90.5 seconds", "每 90.5 秒"),
        (
            Schedule(cron="0 9 * * *", timezone="Asia/Shanghai"),
            "by cron 0 9 * * * (Asia/Shanghai)",
            "按 cron 0 9 * * * (Asia/Shanghai)",
        ),
        (Schedule(run_at=T0), "once at 2026-11-21 09:30 UTC", "2026-11-21 09:30 UTC 执行一次"),
        (Schedule(), "at no time", "没有时间"),
    ],
)
def test_a_schedule_is_described_in_words(schedule: Schedule, en: str, zh: str) -> None:
    assert describe(schedule) == en
    assert describe(schedule, "zh-CN") == zh


@given(INTERVALS)
def test_a_schedule_is_described_as_its_sentence_is_written(interval: float) -> None:
    assert describe(Schedule(interval=interval), "en") == interval_words(interval, "en")
    assert describe(Schedule(interval=interval), "zh") == interval_words(interval, "zh")
