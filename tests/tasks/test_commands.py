"""Orders from outside: given once, kept with their outcome."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, CommandResult
from mimikit.tasks import queue
from tests.support.memory_disk import Crash, MemoryDisk

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
ORDER = Command(id="o1", action="cancel", target="t1", created_at=NOW)
OUTCOME = CommandResult(command=ORDER, ok=True, message="canceled t1", applied_at=NOW)


def test_an_order_is_given_once(files: Files) -> None:
    assert queue.submit_command(files, ORDER)
    assert not queue.submit_command(files, ORDER)
    assert queue.waiting_commands(files) == [ORDER]
    assert queue.command_result(files, "o1") is None


def test_an_order_that_was_settled_is_not_given_again(files: Files) -> None:
    queue.submit_command(files, ORDER)
    queue.settle_command(files, OUTCOME)
    assert queue.waiting_commands(files) == []
    assert queue.command_result(files, "o1") == OUTCOME
    assert not queue.submit_command(files, ORDER)
    assert queue.waiting_commands(files) == []


def test_the_first_outcome_stays(files: Files) -> None:
    queue.submit_command(files, ORDER)
    queue.settle_command(files, OUTCOME)
    queue.settle_command(files, OUTCOME.but(ok=False, message="too late"))
    assert queue.command_result(files, "o1") == OUTCOME


def test_orders_wait_oldest_first(files: Files) -> None:
    queue.submit_command(files, ORDER.but(id="b", created_at=NOW + timedelta(seconds=1)))
    queue.submit_command(files, ORDER.but(id="c"))
    queue.submit_command(files, ORDER.but(id="a"))
    assert [order.id for order in queue.waiting_commands(files)] == ["a", "c", "b"]


def test_an_order_never_vanishes_without_an_outcome() -> None:
    for at in range(30):
        disk = MemoryDisk()
        files = Files(disk)
        files.make_folders()
        queue.submit_command(files, ORDER)
        disk.crash_at = len(disk.log) + at
        try:
            queue.settle_command(files, OUTCOME)
        except Crash:
            for image in [disk.after_kill(), *disk.after_power_loss()]:
                left = image.contents()
                assert paths.command("o1") in left or paths.command_done("o1") in left
        else:
            return
    raise AssertionError("expected settling to end within 30 changes")


def test_a_file_that_is_no_order_holds_up_no_other(files: Files) -> None:
    files.write("commands/bad.json", b'{"id": "bad", "action": "explode", "createdAt": "x"}')
    queue.submit_command(files, ORDER)
    assert queue.waiting_commands(files) == [ORDER]
    assert files.names(paths.CORRUPT, suffix="bad.json")


def test_an_outcome_that_comes_while_it_is_waited_for_is_given(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def pause(most_s: float) -> None:
        pauses.append(most_s)
        queue.settle_command(files, OUTCOME)

    monkeypatch.setattr(queue.time, "sleep", pause)
    found = queue.submit_and_wait(files, ORDER, is_served=True)
    assert found == OUTCOME
    assert len(pauses) == 1
    assert 0 < pauses[0] <= queue.COMMAND_WAIT_S


def test_where_nobody_applies_commands_one_is_kept_and_nothing_is_waited_for(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause(most_s: float) -> None:
        raise AssertionError(f"expected no wait, got one of {most_s}")

    monkeypatch.setattr(queue.time, "sleep", pause)
    found = queue.submit_and_wait(files, ORDER, is_served=False)
    assert found is None
    assert queue.waiting_commands(files) == [ORDER]


def test_a_command_without_an_outcome_in_time_is_kept(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "COMMAND_WAIT_S", 0.03)
    found = queue.submit_and_wait(files, ORDER, is_served=True)
    assert found is None
    assert queue.waiting_commands(files) == [ORDER]
