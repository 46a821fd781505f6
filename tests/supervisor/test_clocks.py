"""A clock that leaps, a machine that sleeps: what waits for a time, and what goes by the time."""

from __future__ import annotations

import errno
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mimikit import config
from mimikit.clock import LEAP, ClockWatch, SystemClock, leap_at_start
from mimikit.engines.base import Failed, Outcome, RunSpec
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import ClockDoubt, Question, Task
from mimikit.protocol.runtime import Health
from mimikit.supervisor import recovery
from mimikit.supervisor.retention import BATCH, after_leap, after_living
from mimikit.tasks import queue
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.memory_disk import DiskStep, MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.reading import loaded, slots, transcript
from tests.support.twins import FakeClock

DAY = 86_400.0
LONG = timedelta(days=40)


def product_at(files: Files, clock: FakeClock) -> Product:
    """The next process over this folder."""
    product = Product(files, clock, Mind(Oracle().runs))
    product.start()
    return product


# ---- noticing


def test_a_leap_is_told_from_time_that_passes_and_from_sleep() -> None:
    clock = FakeClock(START)
    watch = ClockWatch(clock)
    clock.advance(DAY)
    clock.sleep(DAY)
    assert watch.leap() == timedelta()
    clock.jump(clock.now() + LEAP / 2)
    assert watch.leap() == timedelta()  # it is only kept right
    clock.jump(clock.now() - timedelta(hours=3))
    assert watch.leap() == LEAP / 2 - timedelta(hours=3)
    watch.settle()
    assert watch.leap() == timedelta()


def test_the_machine_s_own_clocks_tell_no_leap() -> None:
    watch = ClockWatch(SystemClock())
    assert watch.leap() == timedelta()
    assert SystemClock().uptime() > 0


def test_a_process_that_stands_still_between_two_looks_sees_no_leap() -> None:
    class StoppedClock(FakeClock):
        stops = False

        def now(self) -> datetime:
            if self.stops:
                self.stops = False
                self.advance(3600)
            return super().now()

    clock = StoppedClock(START)
    watch = ClockWatch(clock)
    clock.stops = True
    assert watch.leap() == timedelta()


@pytest.mark.parametrize(
    ("by", "leap"),
    [
        (timedelta(hours=23), timedelta()),  # nobody ran
        (LONG, LONG),
        (timedelta(seconds=-30), timedelta()),
        (timedelta(hours=-1), timedelta(hours=-1)),
    ],
)
def test_at_the_start_the_newest_record_stands_against_the_clock(
    by: timedelta, leap: timedelta
) -> None:
    assert leap_at_start(START, START + by) == leap
    assert leap_at_start(None, START) == timedelta()


# ---- what is removed


def left(client: Client | Product) -> list[str]:
    return client.files.names("worker/results")


def tidied(product: Product, seconds: float) -> list[str]:
    """What is left after this time and a look of the house-keeping."""
    product.clock.advance(seconds)
    product.retention.ring()
    for _ in range(3):
        product.tick()
    return left(product)


def test_what_ended_is_removed_after_its_time_in_batches_and_the_log_says_what(
    client: Client,
) -> None:
    for number in range(BATCH + 10):
        client.files.write(f"worker/results/t{number:03}.json", b"{}")
    client.files.write("worker/queue/other.txt", b"not ours")
    client.say("m1", "hello")
    client.product.idle()
    client.product.tick()
    assert len(left(client)) == BATCH + 10
    client.product.clock.advance(29 * DAY)
    client.product.retention.ring()
    client.product.tick()
    assert len(left(client)) == BATCH + 10
    client.product.clock.advance(2 * DAY)
    client.product.retention.ring()
    client.product.tick()
    assert 0 < len(left(client)) <= BATCH + 10 - BATCH // 2
    for _ in range(3):
        client.product.tick()
    assert left(client) == []
    told = {line["path"] for line in client.product.log.audits if line["event"] == "expired"}
    assert {f"worker/results/t{number:03}.json" for number in range(BATCH + 10)} <= told
    assert not client.files.exists("runs/turn-x.jsonl")
    assert transcript(client.files)[-1] == ("agent", "heard hello")


def test_what_waits_to_be_told_or_runs_is_not_removed(client: Client) -> None:
    client.submit("t1", "one")
    client.product.pool("worker")  # its result is there; nobody was told of it
    client.product.store.live.start("t2", "worker", "t2", START)
    client.files.write(paths.run_output("t2"), b"{}\n")
    client.product.clock.advance(40 * DAY)
    retention = client.product.retention
    inbox = {"id": "res-t1", "kind": "task_result", "createdAt": "2026-12-01T09:00:00.000Z"}
    client.files.write(paths.inbox("res-t1"), str(inbox).replace("'", '"').encode())
    retention.ring()
    for _ in range(3):
        retention.step(client.now)
    assert left(client) == ["t1.json"]
    assert client.files.exists(paths.run_output("t2"))
    assert not client.files.exists(paths.run_output("t1"))


def test_nothing_is_removed_on_the_word_of_a_clock_that_leapt(client: Client) -> None:
    product = client.product
    client.files.write("worker/results/t1.json", b"{}")
    product.clock.jump(START + LONG)
    assert tidied(product, 0) == ["t1.json"]
    assert tidied(product, DAY - 10) == ["t1.json"]
    (told,) = [line for line in product.log.audits if line["event"] == "clock_leapt"]
    assert told["seconds"] == LONG.total_seconds()
    product.clock.jump(product.clock.now() + timedelta(hours=2))  # it stands nowhere yet
    product.tick()
    assert tidied(product, DAY - 10) == ["t1.json"]
    assert tidied(product, 20) == []


def test_a_leap_stops_a_removal_that_is_under_way(client: Client) -> None:
    for number in range(2 * BATCH):
        client.files.write(f"worker/results/t{number:03}.json", b"{}")
    client.product.clock.advance(31 * DAY)
    client.product.retention.ring()
    client.product.tick()
    before = left(client)
    assert before
    client.product.clock.jump(START)
    assert tidied(client.product, 60) == before
    assert tidied(client.product, DAY) == before  # they are a day old


def test_a_clock_that_leapt_before_the_start_is_not_believed_either(client: Client) -> None:
    client.files.write("worker/results/t1.json", b"{}")
    client.stop()
    clock = FakeClock(START + LONG)
    assert tidied(product_at(client.files, clock), 0) == ["t1.json"]
    clock.advance(3600)  # and at no start after it
    assert tidied(product_at(client.files, clock), 3600) == ["t1.json"]
    assert tidied(product_at(client.files, clock), DAY) == []


def test_a_machine_that_is_on_for_some_hours_every_second_day_removes_too(client: Client) -> None:
    client.files.write("worker/results/t1.json", b"{}")
    client.stop()
    clock = FakeClock(START)
    gone_at = 0
    for number in range(60):
        clock.jump(START + timedelta(days=2 * number))
        product = product_at(client.files, clock)
        for _ in range(8 * 6):
            clock.advance(600)
            product.retention.ring()
            product.tick()
        product.store.save_runtime(starts=[], seen_at=clock.now())
        if not left(product):
            gone_at = number
            break
    assert 30 <= 2 * gone_at <= 30 + 14  # days


def test_a_machine_that_is_on_for_some_hours_believes_no_clock_that_leapt_once(
    client: Client,
) -> None:
    client.stop()
    clock = FakeClock(START)

    def on(at: datetime) -> Product:
        clock.jump(at)
        product = product_at(client.files, clock)
        for _ in range(8 * 6):
            clock.advance(600)
            product.retention.ring()
            product.tick()
        product.store.save_runtime(starts=[], seen_at=clock.now())
        return product

    for number in range(1, 9):
        on(START + timedelta(days=2 * number))
    client.files.write("worker/results/t1.json", b"{}")  # at the very beginning, by its time
    for number in (9, 10):
        assert left(on(START + timedelta(days=2 * number))) == ["t1.json"]
    assert left(on(START + 2 * LONG)) == ["t1.json"]  # once, and by far
    assert left(on(START + 2 * LONG + timedelta(days=2))) == ["t1.json"]
    for number in (11, 12, 13, 14):  # it is right again
        assert left(on(START + timedelta(days=2 * number))) == ["t1.json"]


@pytest.mark.parametrize(
    ("lived", "now", "believed"),
    [
        ((0, 0), 23, 0),  # not yet
        ((0, 0), 24, None),  # it went on for a day: the clock is believed
        ((-100, 23), 1, -100),  # lived a day since: the time it had then
        ((-100, 22), 1, 0),
    ],
)
def test_what_is_believed_after_a_leap(
    lived: tuple[int, int], now: int, believed: int | None
) -> None:
    """Times in hours, before and after the last leap: (proving, lived by then), an hour more."""
    hour = timedelta(hours=1)
    doubt = ClockDoubt(
        leapt_at=START, believed=START, proving=START + lived[0] * hour, lived_s=3600 * lived[1]
    )
    new = after_living(doubt, START + now * hour, 3600)
    assert (new and new.believed) == (None if believed is None else START + believed * hour)


def test_what_a_leap_makes_of_what_is_believed() -> None:
    day = timedelta(days=1)
    ahead = after_leap(None, START, START + 40 * day, ran=False)
    assert (ahead.believed, ahead.proving) == (START, START + 40 * day)
    lived = ahead.but(lived_s=50)
    further = after_leap(lived, START + 40 * day, START + 80 * day, ran=False)
    assert further == lived.but(leapt_at=START + 80 * day)
    seen = after_leap(lived, START + 40 * day, START + 80 * day, ran=True)
    assert seen == ahead.but(leapt_at=START + 80 * day, proving=START + 80 * day)
    back = after_leap(further, START + 80 * day, START - day, ran=False)
    assert back == ClockDoubt(leapt_at=START - day, believed=START - day, proving=START - day)


def test_a_machine_that_slept_goes_on_removing(client: Client) -> None:
    client.files.write("worker/results/t1.json", b"{}")
    client.product.clock.sleep(LONG.total_seconds())
    assert tidied(client.product, 0) == []


def test_a_trigger_that_an_editor_has_away_outlives_a_leap(client: Client) -> None:
    client.trigger("g1", 3600, "tick")
    client.product.tick()
    data = client.files.read(paths.trigger("g1"))
    assert data is not None
    client.files.remove(paths.trigger("g1"))
    client.stop()
    product_at(client.files, FakeClock(START + LONG))
    assert client.files.exists(paths.trigger_state("g1"))


def test_a_killed_consumer_has_left_its_health(client: Client) -> None:
    client.stop()
    health = Health(
        pid=1, version="1", started_at=START, beat_at=START + LEAP, tick_age_s=0,
        queued={}, live=[], worker_seats=1, paused=False, engines={},
    )  # fmt: skip
    client.files.save(paths.HEALTH, health)
    store = client.product.store
    assert recovery.newest_record(store, START) == START + LEAP
    client.files.remove(paths.HEALTH)  # by a power cut
    assert recovery.newest_record(store, START) == START  # the stop before
    store.save_runtime(seen_at=None)
    assert recovery.newest_record(store, START) is None
    client.say("m1", "hello")
    client.product.idle()
    assert recovery.newest_record(store, client.now) == client.now
    assert recovery.newest_record(store, START - LONG) is None


# ---- what waits


def not_before(files: Files, task_id: str) -> object:
    return loaded(files, paths.queued("worker", task_id))["notBefore"]


@pytest.mark.parametrize("at_start", [False, True])
def test_waits_are_shortened_when_the_clock_goes_back(client: Client, *, at_start: bool) -> None:
    limited = Task(
        id="t1", prompt="one", created_at=START, trace_id="r", origin="cli", released=True,
        not_before=START + LONG + timedelta(hours=5),
    )  # fmt: skip
    client.files.save(paths.queued("worker", "t1"), limited)
    asked = limited.but(id="t2", released=False)
    client.files.save(paths.queued("worker", "t2"), asked)
    client.product.clock.jump(START + LONG)
    client.product.tick()
    if at_start:
        client.stop()
        product_at(client.files, FakeClock(START))
    else:
        client.product.clock.jump(START)
        client.product.tick()
    assert not_before(client.files, "t1") == "2026-12-01T14:00:00.000Z"
    assert not_before(client.files, "t2") == "2027-01-10T14:00:00.000Z"  # a person's own word
    assert client.files.names("worker/running") == []


def test_a_crash_while_a_wait_is_shortened_costs_no_attempt(client: Client) -> None:
    task = Task(
        id="t1", prompt="one", created_at=START, trace_id="r", origin="cli", released=True,
        not_before=START + timedelta(hours=2), attempts=0,
    )  # fmt: skip
    client.files.save(paths.running("worker", "t1"), task)  # claimed, not yet released again
    product = product_at(client.files, FakeClock(START))
    (again,) = product.queued("worker")
    assert (again.attempts, again.released) == (0, True)


@pytest.mark.parametrize("hours", [-100, 100])
def test_an_engine_is_asked_again_after_the_same_time(client: Client, hours: int) -> None:
    client.say("m1", "limited")
    client.product.tick()
    assert not client.files.names(paths.TURNS, suffix=".started")
    client.product.clock.jump(START + timedelta(hours=hours))
    client.product.clock.advance(5)
    client.product.tick()
    assert transcript(client.files)[-1] == ("agent", "heard limited")


def test_an_engine_is_asked_again_after_a_sleep(client: Client) -> None:
    client.say("m1", "limited")
    client.product.tick()
    client.product.clock.sleep(60)
    client.product.tick()
    assert transcript(client.files)[-1] == ("agent", "heard limited")


def test_a_model_is_asked_soon_after_the_clock_went_back(client: Client) -> None:
    def asked() -> int:
        return sum(line["event"] == "llm_eval_asked" for line in client.product.log.audits)

    client.product.clock.jump(START + LONG)
    client.when("g1", "go", {"type": "llm_eval", "params": {"prompt": "not now"}})
    client.product.idle()
    assert asked() == 1
    client.product.clock.jump(START)
    client.when("g2", "go", {"type": "llm_eval", "params": {"prompt": "not now"}})
    client.product.idle()
    assert asked() == 2


def test_a_costly_look_is_taken_again_when_the_clock_went_back(client: Client) -> None:
    client.when("g1", "go", {"type": "file_changed", "params": {"path": "a"}})
    client.product.idle()
    triggers = client.product.supervisor.triggers
    client.product.clock.jump(START + LONG)
    client.product.idle()
    triggers._rests["g1"] = client.now + timedelta(minutes=1)  # as a look of 6 s would
    client.product.clock.jump(START)
    client.product.tick()
    client.touch("a")
    client.product.idle()
    assert len(slots(client.files, "g1")) == 1


def test_starts_of_a_time_to_come_make_no_start_wait() -> None:
    ahead = [START + LONG] * 3
    assert recovery.back_off(ahead, START) == timedelta()
    assert recovery.back_off([START + timedelta(seconds=2)] * 3, START) == recovery.BACK_OFF


# ---- questions


def asked(client: Client) -> Question | None:
    return client.files.load(paths.PENDING_QUESTION, Question)


@pytest.fixture
def asking(client: Client) -> Client:
    """A question of ten minutes waits, which has a default."""
    client.say("m1", "ask: which colour? | default red")
    client.product.idle()
    found = asked(client)
    assert found is not None
    assert (found.default, found.timeout) == ("red", 600)
    return client


def is_defaulted(client: Client) -> bool:
    """Whether the default was taken, and the user told so."""
    client.product.idle()
    told = [text for role, text in transcript(client.files) if role == "system"]
    return any("red" in text for text in told) and asked(client) is None


@pytest.mark.parametrize(
    "pass_over",
    [
        lambda clock: clock.jump(clock.now() + LONG),
        lambda clock: clock.jump(clock.now() - LONG),
        lambda clock: clock.sleep(LONG.total_seconds()),
    ],
    ids=["ahead", "back", "sleep"],
)
def test_no_leap_and_no_sleep_answers_for_the_user(
    asking: Client, pass_over: Callable[[FakeClock], None]
) -> None:
    clock = asking.product.clock
    clock.advance(300)
    pass_over(clock)
    assert not is_defaulted(asking)
    found = asked(asking)
    assert found is not None
    left_s = (found.expires_at - clock.now()).total_seconds()
    assert 200 < left_s <= 300  # so it is shown
    clock.advance(left_s + 1)
    assert is_defaulted(asking)


@pytest.mark.parametrize("hours", [5, 960, -5])
def test_what_passed_while_nobody_ran_answers_no_question(asking: Client, hours: int) -> None:
    asking.product.clock.advance(300)
    asking.product.tick()
    asking.stop()
    clock = FakeClock(asking.now + timedelta(hours=hours))
    product = product_at(asking.files, clock)
    product.idle()
    assert asked(asking) is not None
    clock.advance(310)
    product.idle()
    assert asked(asking) is None


@pytest.mark.parametrize("back_s", [420, 3600])
def test_a_start_after_a_leap_back_leaves_the_answer_its_time(asking: Client, back_s: int) -> None:
    """What was put right is counted from by the next start too."""
    clock = asking.product.clock
    clock.advance(300)
    clock.jump(clock.now() - timedelta(seconds=back_s))
    asking.product.tick()
    clock = FakeClock(clock.now())
    product = product_at(asking.files, clock)
    product.idle()
    clock.advance(290)
    product.idle()
    assert asked(asking) is not None
    clock.advance(20)
    product.idle()
    assert asked(asking) is None


# ---- attempts


def test_a_stopped_turn_uses_its_number_and_costs_no_attempt(client: Client) -> None:
    numbers: list[int] = []
    for _ in range(3):
        product = Product(client.files, FakeClock(START), Mind(client.oracle.runs))
        product.start()

        def stopped(request: RunSpec, product: Product = product) -> Outcome:
            numbers.append(request.attempt)
            product.context.stopping.set()
            product.store.live.stop_all()
            return Failed("killed", "")

        product.mind.run = stopped
        if not numbers:
            client.say("m1", "hello")
        product.tick()
        product.tick()
    last = product_at(client.files, FakeClock(START))
    last.idle()
    assert numbers == [1, 2, 3]
    assert transcript(client.files)[-1] == ("agent", "heard hello")
    assert loaded(client.files, paths.HISTORY)["messages"][-1].get("failed") in (None, False)
    assert client.files.names(paths.TURNS, suffix=".started") == []


# ---- zones


def test_a_cron_follows_a_changed_zone_at_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = "UTC"
    settings = client.product.settings
    monkeypatch.setattr(config, "system_zone", lambda: zone)
    product = client.product
    product.store.settings = settings.model_copy(update={"timezone": ""})
    client.make("g1", "tick", type="recurring", schedule={"cron": "0 9 * * *"})
    product.tick()
    assert product.supervisor.triggers.index.next_due() == START + timedelta(days=1)
    zone = "Asia/Tokyo"
    product.tick()
    due = product.supervisor.triggers.index.next_due()
    assert due is not None
    assert due.astimezone(ZoneInfo(zone)).hour == 9
    assert due == START + timedelta(hours=15)


def test_a_line_of_a_slot_before_the_checkpoint_is_found(client: Client) -> None:
    ledger = client.product.store.ledger
    ledger.write("slot", "g1", START, slot="one")
    ledger.write("slot", "g2", START, slot="two")
    ledger.write("trigger_created", "g3", START)
    ledger.checkpoint()
    again = Product(client.files, FakeClock(START), Mind([])).store.ledger
    assert again.newest_slot("g1") == "one"
    assert again.newest_slot("g3") is None


def test_a_crash_after_a_checkpoint_doubles_no_line_of_a_slot(client: Client) -> None:
    client.trigger("g1", 60, "tick")
    client.product.tick()
    ledger = client.product.store.ledger
    write = ledger.write

    def die_after_the_slot(event: str, *given: Any, **facts: object) -> None:
        write(event, *given, **facts)
        if event == "slot":
            write("trigger_created", "other", START)
            ledger.checkpoint()
            raise KeyboardInterrupt

    ledger.write = die_after_the_slot
    client.product.clock.advance(60)
    with pytest.raises(KeyboardInterrupt):
        client.product.tick()
    product_at(client.files, client.product.clock).idle()
    assert len(slots(client.files, "g1")) == 1
    assert len(client.files.names("worker/results")) == 1


def test_waits_of_both_seats_are_found(client: Client) -> None:
    task = Task(
        id="p1", role="planner", prompt="x", created_at=START, trace_id="r", origin="cli",
        released=True, not_before=START + timedelta(hours=2),
    )  # fmt: skip
    client.files.save(paths.queued("planner", "p1"), task)
    queue.shorten_waits(client.files, timedelta(hours=1), {})
    (again,) = client.product.queued("planner")
    assert again.not_before == START + timedelta(hours=1)


def test_a_wait_that_the_disk_leaves_half_shortened_goes_on(client: Client) -> None:
    disk = client.files.fs
    assert isinstance(disk, MemoryDisk)
    refused_at = 0
    while True:
        left = [refused_at]  # changes until one is refused
        refused_at += 1

        def fail(_number: int, _step: DiskStep, left: list[int] = left) -> OSError | None:
            left[0] -= 1
            return OSError(errno.ENOSPC, "refused") if left[0] == -1 else None

        product = product_at(client.files, FakeClock(START))
        task = Task(
            id=f"t{refused_at}", prompt="x", created_at=START, trace_id="r", origin="cli",
            released=True, not_before=START + timedelta(hours=2),
        )  # fmt: skip
        client.files.save(paths.queued("worker", task.id), task)
        product.clock.jump(START - timedelta(hours=1))
        disk.fail = fail
        product.tick()
        product.clock.advance(2)
        product.tick()
        disk.fail = None
        assert client.files.names("worker/running") == []
        (again,) = product.queued("worker")
        assert again.not_before is not None
        assert again.not_before <= START + timedelta(hours=1)
        client.files.remove(paths.queued("worker", task.id))
        if left[0] >= 0:
            break
    assert refused_at > 10
