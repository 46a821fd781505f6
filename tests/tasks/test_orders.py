"""Orders from outside: given once, kept with their outcome."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Order, OrderOutcome
from mimikit.tasks import orders
from mimikit.testing.memory_disk import Crash, MemoryDisk

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
ORDER = Order(id="o1", action="cancel", target="t1", created_at=NOW)
OUTCOME = OrderOutcome(order=ORDER, ok=True, message="canceled t1", applied_at=NOW)


def test_an_order_is_given_once(files: Files) -> None:
    assert orders.give(files, ORDER)
    assert not orders.give(files, ORDER)
    assert orders.waiting(files) == [ORDER]
    assert orders.outcome(files, "o1") is None


def test_an_order_that_was_settled_is_not_given_again(files: Files) -> None:
    orders.give(files, ORDER)
    orders.settle(files, OUTCOME)
    assert orders.waiting(files) == []
    assert orders.outcome(files, "o1") == OUTCOME
    assert not orders.give(files, ORDER)
    assert orders.waiting(files) == []


def test_the_first_outcome_stays(files: Files) -> None:
    orders.give(files, ORDER)
    orders.settle(files, OUTCOME)
    orders.settle(files, OUTCOME.but(ok=False, message="too late"))
    assert orders.outcome(files, "o1") == OUTCOME


def test_orders_wait_oldest_first(files: Files) -> None:
    orders.give(files, ORDER.but(id="b", created_at=NOW + timedelta(seconds=1)))
    orders.give(files, ORDER.but(id="c"))
    orders.give(files, ORDER.but(id="a"))
    assert [order.id for order in orders.waiting(files)] == ["a", "c", "b"]


def test_an_order_never_vanishes_without_an_outcome() -> None:
    for at in range(30):
        disk = MemoryDisk()
        files = Files(disk)
        files.make_folders()
        orders.give(files, ORDER)
        disk.crash_at = len(disk.log) + at
        try:
            orders.settle(files, OUTCOME)
        except Crash:
            for image in [disk.after_kill(), *disk.after_power_loss()]:
                left = image.contents()
                assert paths.command("o1") in left or paths.command_done("o1") in left
        else:
            return
    raise AssertionError("expected settling to end within 30 changes")


def test_a_file_that_is_no_order_holds_up_no_other(files: Files) -> None:
    files.write("commands/bad.json", b'{"id": "bad", "action": "explode", "createdAt": "x"}')
    orders.give(files, ORDER)
    assert orders.waiting(files) == [ORDER]
    assert files.names(paths.CORRUPT, suffix="bad.json")
