"""Clock jumps and suspends: waits are recomputed, and deletion pauses."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mimikit import config
from mimikit.clock import JUMP, ClockWatch, SystemClock, jump_at_start
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Question, Task
from mimikit.supervisor.retention import BATCH
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.reading import loaded, transcript
from tests.support.twins import FakeClock

LONG = timedelta(days=40)
DAY = 86_400.0


def left(client: Client | Product) -> list[str]:
    return client.files.names("worker/results")


def tidied(product: Product, seconds: float) -> list[str]:
    """What is left after this time and a look of the house-keeping."""
    product.clock.advance(seconds)
    product.retention.ring()
    for _ in range(3):
        product.tick()
    return left(product)


def product_at(files: Files, clock: FakeClock) -> Product:
    product = Product(files, clock, Mind(Oracle().runs))
    product.start()
    return product


# ---- noticing a jump


def test_a_clock_jump_is_distinguished_from_passing_time_and_sleep() -> None:
    clock = FakeClock(START)
    watch = ClockWatch(clock)
    clock.advance(DAY)
    clock.sleep(DAY)
    clock.jump(clock.now() + JUMP / 2)  # an ordinary correction
    assert watch.jump() == timedelta()
    clock.jump(clock.now() - timedelta(hours=3))
    assert watch.jump() == JUMP / 2 - timedelta(hours=3)
    watch.settle()
    assert watch.jump() == timedelta()
    assert ClockWatch(SystemClock()).jump() == timedelta()


@pytest.mark.parametrize(
    ("by", "jump"),
    [
        (timedelta(days=2), timedelta()),  # switched off
        (LONG, LONG),
        (timedelta(seconds=-30), timedelta()),
        (timedelta(hours=-1), timedelta(hours=-1)),
    ],
)
def test_a_jump_at_start_is_measured_from_the_last_heartbeat(
    by: timedelta, jump: timedelta
) -> None:
    assert jump_at_start(START, START + by) == jump
    assert jump_at_start(None, START) == timedelta()


# ---- what is deleted


def test_nothing_is_deleted_until_a_day_after_a_jump(client: Client) -> None:
    product = client.product
    client.files.write("worker/results/t1.json", b"{}")
    product.clock.jump(START + LONG)
    assert tidied(product, 0) == ["t1.json"]
    (logged,) = [line for line in product.log.audits if line["event"] == "clock_jumped"]
    assert logged["seconds"] == LONG.total_seconds()
    assert tidied(product, DAY - 10) == ["t1.json"]
    product.clock.jump(product.clock.now() + timedelta(hours=2))
    product.tick()
    assert tidied(product, DAY - 10) == ["t1.json"]
    assert tidied(product, 20) == []
    client.files.write("worker/results/t2.json", b"{}")
    product.clock.sleep(LONG.total_seconds())  # a suspend is no jump
    assert tidied(product, 0) == []


def test_a_jump_while_no_consumer_ran_pauses_deletion_over_restarts(client: Client) -> None:
    client.files.write("worker/results/t1.json", b"{}")
    client.trigger("g1", 3600, "tick")
    client.product.tick()
    client.files.remove(paths.trigger("g1"))  # an editor may have it away just now
    client.stop()
    clock = FakeClock(START + LONG)
    assert tidied(product_at(client.files, clock), 0) == ["t1.json"]
    assert client.files.exists(paths.trigger_state("g1"))
    clock.advance(3600)
    assert tidied(product_at(client.files, clock), 3600) == ["t1.json"]
    assert tidied(product_at(client.files, clock), DAY) == []


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


@pytest.mark.parametrize("hours", [-100, 100])
def test_an_engine_is_asked_again_after_the_same_time(client: Client, hours: int) -> None:
    client.say("m1", "limited")
    client.product.tick()
    assert not client.files.names(paths.TURNS, suffix=".started")
    client.product.clock.jump(START + timedelta(hours=hours))
    client.product.clock.advance(5)
    client.product.tick()
    assert transcript(client.files)[-1] == ("agent", "heard limited")


@pytest.mark.parametrize("by", [LONG, -LONG])
def test_a_jump_answers_no_question(client: Client, by: timedelta) -> None:
    client.say("m1", "ask: which colour? | default red")
    client.product.idle()
    clock = client.product.clock
    clock.advance(300)
    clock.jump(clock.now() + by)
    client.product.idle()
    asked = client.files.load(paths.PENDING_QUESTION, Question)
    assert asked is not None
    assert asked.expires_at == clock.now() + timedelta(seconds=300)
    clock.advance(301)
    client.product.idle()
    assert client.files.load(paths.PENDING_QUESTION, Question) is None


# ---- zones


def test_a_cron_follows_a_changed_zone_at_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone, product = "UTC", client.product
    monkeypatch.setattr(config, "system_zone", lambda: zone)
    product.store.settings = product.settings.model_copy(update={"timezone": ""})
    client.make("g1", "tick", type="recurring", schedule={"cron": "0 9 * * *"})
    product.tick()
    assert product.supervisor.triggers.index.next_due() == START + timedelta(days=1)
    zone = "Asia/Tokyo"
    product.tick()
    assert product.supervisor.triggers.index.next_due() == START + timedelta(hours=15)


# ---- ended things are deleted after their retention time


def test_expired_files_are_removed_in_batches_and_logged(client: Client) -> None:
    expired = {f"worker/results/t{number:03}.json" for number in range(BATCH + 10)}
    for path in expired:
        client.files.write(path, b"{}")
    client.files.write("worker/queue/other.txt", b"not ours")
    assert len(tidied(client.product, 29 * DAY)) == BATCH + 10
    client.product.clock.advance(2 * DAY)
    client.product.retention.ring()
    client.product.tick()
    assert 0 < len(left(client)) <= BATCH + 10 - BATCH // 2
    assert tidied(client.product, 0) == []
    assert expired <= {line.get("path") for line in client.product.log.audits}


def test_unreported_results_and_running_tasks_are_not_removed(client: Client) -> None:
    client.submit("t1", "one")
    client.product.pool("worker")  # its result is there; nobody was told of it
    client.product.store.live.start("t2", "worker", "t2", START)
    client.files.write(paths.run_output("t2"), b"{}\n")
    client.product.clock.advance(40 * DAY)
    inbox = {"id": "res-t1", "kind": "task_result", "createdAt": "2026-12-01T09:00:00.000Z"}
    client.files.write(paths.inbox("res-t1"), str(inbox).replace("'", '"').encode())
    client.product.retention.ring()
    for _ in range(3):
        client.product.retention.step(client.now)
    assert left(client) == ["t1.json"]
    assert client.files.exists(paths.run_output("t2"))
    assert not client.files.exists(paths.run_output("t1"))
