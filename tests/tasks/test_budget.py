"""Tokens are reserved before a run and settled after it; a day is one of the user's calendar."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.config import TokenCapSettings
from mimikit.tasks.budget import GUESS, RunKind, TokenBudget, day_end, day_of

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
ZONE = ZoneInfo("Europe/Berlin")
TELLER: RunKind = ("codex", "teller", "")
WORKER: RunKind = ("codex", "worker", "standard")


def budget(**caps: int) -> TokenBudget:
    made = TokenBudget(TokenCapSettings(**caps))
    made.begin_day(day_of(NOON, ZONE))
    return made


def used(of: TokenBudget, run: str, kind: RunKind, tokens: int, trigger: str | None = None) -> bool:
    """Have a run begin and end; False when it is held."""
    if of.hold(kind, trigger, NOON, ZONE) is not None:
        return False
    of.reserve(run, kind, trigger)
    of.settle(run)
    of.count(trigger, tokens)
    of.learn(kind, tokens)
    return True


def test_without_a_cap_everything_is_only_counted() -> None:
    of = budget()
    assert all(used(of, f"r{n}", WORKER, 10**6) for n in range(5))
    assert of.used == 5 * 10**6


def test_a_run_reserves_what_its_like_has_used_most_lately_and_gives_it_back() -> None:
    of = budget(daily_tokens=10_000)
    assert of.reserve("r", TELLER, None) == GUESS["teller"]
    of.settle("r")
    for number, tokens in enumerate((100, 900, 300)):
        used(of, f"r{number}", TELLER, tokens)
    assert of.reserve("r9", TELLER, None) == 900
    assert (of.used, of.reserved()) == (1300, 900)
    of.settle("r9")
    assert of.reserved() == 0


def test_over_the_day_s_tokens_a_run_waits_for_the_next_day() -> None:
    of = budget(daily_tokens=1000)
    assert used(of, "r1", TELLER, 600)
    hold = of.hold(TELLER, None, NOON, ZONE)
    assert hold is not None
    assert (hold.held_for, hold.used, hold.is_short) == ("day", 600, False)
    assert hold.until == datetime(2026, 11, 23, 23, 0, tzinfo=UTC)
    of.begin_day(date(2026, 11, 24))
    assert of.hold(TELLER, None, NOON + timedelta(hours=12), ZONE) is None


def test_what_runs_under_way_have_reserved_is_waited_for_only_a_moment() -> None:
    of = budget(daily_tokens=1000)
    used(of, "r1", TELLER, 400)
    of.reserve("r2", TELLER, None)
    hold = of.hold(TELLER, None, NOON, ZONE)
    assert hold is not None
    assert hold.is_short
    of.settle("r2")
    assert of.hold(TELLER, None, NOON, ZONE) is None


def test_a_run_for_which_not_even_a_whole_day_has_room_has_a_day_to_itself() -> None:
    of = budget(daily_tokens=1000)
    assert used(of, "r1", WORKER, 5000)
    assert not used(of, "r2", WORKER, 5000)


def test_of_a_kind_that_never_was_one_run_begins_where_anything_is_left() -> None:
    of = budget(daily_tokens=1000)
    assert used(of, "r1", TELLER, 900)
    assert of.hold(WORKER, None, NOON, ZONE) is None
    assert of.reserve("r2", WORKER, None) == 100
    hold = of.hold(WORKER, None, NOON, ZONE)
    assert hold is not None
    assert hold.is_short


def test_a_trigger_has_tokens_of_its_own() -> None:
    of = budget(per_trigger_daily_tokens=1000)
    assert used(of, "r1", WORKER, 800, "g1")
    hold = of.hold(WORKER, "g1", NOON, ZONE)
    assert hold is not None
    assert hold.held_for == "trigger"
    assert of.hold(WORKER, "g2", NOON, ZONE) is None
    assert of.hold(WORKER, None, NOON, ZONE) is None


@pytest.mark.parametrize(
    ("zone", "now", "end"),
    [
        ("Europe/Berlin", "2026-03-29T00:30+01:00", "2026-03-29T22:00Z"),  # of 23 hours
        ("Europe/Berlin", "2026-10-25T00:30+02:00", "2026-10-25T23:00Z"),  # of 25
        ("Asia/Shanghai", "2026-11-23T23:59+08:00", "2026-11-23T16:00Z"),
        ("Asia/Beirut", "2026-03-28T12:00+02:00", "2026-03-28T22:00Z"),  # no midnight comes then
        ("Pacific/Apia", "2011-12-29T12:00-10:00", "2011-12-30T10:00Z"),  # no next day
    ],
)
def test_the_day_ends_where_the_user_s_next_one_begins(zone: str, now: str, end: str) -> None:
    assert day_end(datetime.fromisoformat(now), ZoneInfo(zone)) == datetime.fromisoformat(end)


@given(
    st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Asia/Kolkata", "Africa/Cairo"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)),  # noqa: DTZ001 - UTC is added
)
def test_a_moment_before_its_end_it_is_the_same_day_and_then_another(
    key: str, naive: datetime
) -> None:
    zone, now = ZoneInfo(key), naive.replace(tzinfo=UTC)
    end = day_end(now, zone)
    assert end > now
    assert day_of(end, zone) > day_of(now, zone)
    assert day_of(end - timedelta(milliseconds=1), zone) == day_of(now, zone)


RUNS = st.lists(
    st.tuples(st.sampled_from([TELLER, WORKER]), st.integers(1, 3000), st.integers(0, 3)),
    max_size=40,
)


@pytest.mark.fault("complaint 9")
@given(RUNS, st.integers(500, 20_000))
def test_used_and_reserved_pass_the_cap_by_no_more_than_runs_have_used_more_than_they_reserved(
    runs: list[tuple[RunKind, int, int]], cap: int
) -> None:
    """Several at a time; each settles after so many others have begun."""
    of, live, over = budget(daily_tokens=cap), list[tuple[int, str, RunKind, int, int]](), 0
    for number, (kind, tokens, lasts) in enumerate(runs):
        for one in [one for one in live if one[0] <= number]:
            live.remove(one)
            _, run, its_kind, used_by_it, held = one
            of.settle(run)
            of.count(None, used_by_it)
            of.learn(its_kind, used_by_it)
            over += max(0, used_by_it - held)
        if of.hold(kind, None, NOON, ZONE) is None:
            held = of.reserve(f"r{number}", kind, None)
            live.append((number + lasts + 1, f"r{number}", kind, tokens, held))
            assert of.used + sum(one[4] for one in live) <= cap + over
    assert of.used <= cap + over


@given(st.lists(st.tuples(st.sampled_from([TELLER, WORKER]), st.integers(1, 3000))), st.integers(1))
def test_one_at_a_time_the_cap_is_passed_by_no_more_than_one_run(
    runs: list[tuple[RunKind, int]], cap: int
) -> None:
    of, most = budget(daily_tokens=cap), 0
    for number, (kind, tokens) in enumerate(runs):
        used(of, f"r{number}", kind, tokens)
        most = max(most, tokens)
        assert of.used <= cap + most
