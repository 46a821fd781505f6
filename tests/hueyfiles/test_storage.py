"""The storage of any Huey program: order, claims, acknowledgement, recovery, values, schedule."""

from __future__ import annotations

import gc
import threading
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from huey.constants import EmptyData

from mimikit.errors import BadInput
from mimikit.hueyfiles.storage import ClaimStorage
from mimikit.protocol.files import Files
from tests.hueyfiles.helpers import START, names, plain, real_files, reasons, until
from tests.support.memory_disk import Crash, MemoryDisk
from tests.support.twins import FakeClock

AT = datetime(2030, 1, 1)  # noqa: DTZ001 - Huey's times carry no zone


@pytest.fixture(params=["real disk", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return real_files(tmp_path) if request.param == "real disk" else Files(MemoryDisk())


def drain(storage: ClaimStorage, into: list[bytes] | None = None) -> list[bytes]:
    found: list[bytes] = [] if into is None else into
    while (message := storage.dequeue()) is not None:
        found.append(bytes(message))
    return found


# ---- order ----------------------------------------------------------------------------------


def test_messages_of_one_moment_keep_their_order(files: Files) -> None:
    storage = plain(files, clock=FakeClock(START))
    sent = [f"{i}".encode() for i in range(300)]
    for data in sent:
        storage.enqueue(data)
    assert storage.enqueued_items(3) == sent[:3]
    assert drain(storage) == sent


def test_a_clock_that_was_set_back_does_not_let_later_ones_pass(files: Files) -> None:
    clock = FakeClock(START)
    storage = plain(files, clock=clock)
    storage.enqueue(b"a")
    clock.jump(START - timedelta(hours=1))
    storage.enqueue(b"b")
    assert drain(storage) == [b"a", b"b"]


def test_any_number_is_a_priority_larger_first(files: Files) -> None:
    storage = plain(files)
    given = [0, 5, -3, 2.5, None, 70_000, 1e300, -0.0, float("inf"), 2]
    for priority in given:
        storage.enqueue(repr(priority).encode(), priority)
    order = sorted(given, key=lambda p: -(p or 0))
    assert drain(storage) == [repr(priority).encode() for priority in order]
    with pytest.raises(ValueError, match="nan"):
        storage.enqueue(b"x", float("nan"))


def test_what_others_put_in_is_found_and_a_higher_priority_goes_first(tmp_path: Path) -> None:
    one, other = plain(real_files(tmp_path)), plain(real_files(tmp_path))
    assert one.dequeue() is None
    other.enqueue(b"low")
    other.enqueue(b"high", 9)
    assert drain(one) == [b"high", b"low"]


def test_a_message_too_large_for_a_file_is_refused_when_it_is_put_in(files: Files) -> None:
    storage = plain(files)
    with pytest.raises(BadInput, match="pass its path"):
        storage.enqueue(b"x" * (9 * 2**20))
    with pytest.raises(TypeError):
        storage.put_data("k", "text")  # pyright: ignore[reportArgumentType]
    assert storage.queue_size() == storage.result_store_size() == 0


# ---- claims ---------------------------------------------------------------------------------


def test_a_claim_is_done_when_its_thread_ends(files: Files) -> None:
    storage = plain(files)
    storage.enqueue(b"a")
    storage.enqueue(b"b")
    thread = threading.Thread(target=storage.dequeue)
    thread.start()
    thread.join()
    assert names(files, "running") == []
    assert storage.dequeue() == b"b"
    assert len(names(files, "running")) == 1


def test_the_claims_of_a_living_owner_are_never_touched(files: Files) -> None:
    first = plain(files)
    first.enqueue(b"a")
    assert first.dequeue() == b"a"
    second = plain(files)
    assert second.dequeue() is None  # it looks for orphans first
    assert len(names(files, "running")) == 1


def test_the_claims_of_a_dead_owner_are_put_back_in_their_order() -> None:
    disk = MemoryDisk()
    storage = plain(Files(disk))
    for data in (b"a", b"b", b"c"):
        storage.enqueue(data)
    assert storage.dequeue() == b"a"
    assert drain(plain(Files(disk.after_kill()))) == [b"a", b"b", b"c"]


def test_of_many_threads_each_message_goes_to_one(files: Files) -> None:
    storages = [plain(files) for _ in range(3)]
    for i in range(300):
        storages[0].enqueue(f"{i}".encode())
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda s=storage: found.extend(drain(s)))
        for storage in storages
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(f"{i}".encode() for i in range(300))
    assert names(files, "running") == names(files, "queue") == []


# ---- waiting --------------------------------------------------------------------------------


def test_a_message_of_another_process_ends_the_wait(tmp_path: Path) -> None:
    waiting = ClaimStorage("test", tmp_path, read_timeout=30)
    found: list[bytes | None] = []
    thread = threading.Thread(target=lambda: found.append(waiting.dequeue()))
    thread.start()
    until(lambda: (tmp_path / "owners").exists() and len(list((tmp_path / "owners").iterdir())) > 1)
    plain(real_files(tmp_path)).enqueue(b"a")
    thread.join(20)
    assert found == [b"a"]
    waiting.close()


def test_while_paused_nothing_is_claimed(tmp_path: Path) -> None:
    storage = ClaimStorage("test", tmp_path, read_timeout=0.01)
    storage.paused = True
    storage.enqueue(b"a")
    assert storage.dequeue() is None
    storage.paused = False
    assert storage.dequeue() == b"a"
    storage.close()


def test_a_wait_ends_by_wake_and_stop_and_nothing_is_claimed_after_stop(tmp_path: Path) -> None:
    storage = ClaimStorage("test", tmp_path, read_timeout=30)
    for end in (storage.wake, storage.stop):
        found: list[bytes | None] = []
        thread = threading.Thread(target=lambda found=found: found.append(storage.dequeue()))
        thread.start()
        # A wake that comes before the wait begins may be missed: ring until it is heard.
        until(lambda end=end, thread=thread: (end(), thread.join(0.01), not thread.is_alive())[2])
        assert found == [None]
    storage.enqueue(b"a")
    assert storage.dequeue() is None
    storage.close()


# ---- what can not be read ---------------------------------------------------------------------


# ---- flushing ---------------------------------------------------------------------------------


# ---- values and counters ------------------------------------------------------------------------


def test_a_text_and_its_bytes_are_the_same_key_and_any_bytes_are_one(files: Files) -> None:
    storage = plain(files)
    storage.put_data("ключ", b"1")
    assert storage.peek_data("ключ".encode()) == b"1"
    storage.put_data(b"\xff/../x", b"\x00\xff")
    assert storage.pop_data(b"\xff/../x") == b"\x00\xff"
    assert storage.result_items() == {"ключ": b"1"}


def test_a_value_that_can_not_be_read_is_none_and_kept_aside(files: Files) -> None:
    storage = plain(files)
    storage.put_data("k", b"v")
    (name,) = names(files, "values")
    files.write(f"values/{name}", b'{"key":"k"')
    assert storage.peek_data("k") is EmptyData
    assert len(reasons(files)) == 1


def test_counters_of_many_threads_add_up(files: Files) -> None:
    storages = [plain(files) for _ in range(3)]
    threads = [
        threading.Thread(target=lambda s=s: [s.incr("n", 2) for _ in range(20)]) for s in storages
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert storages[0].incr("n", 0) == 120


# ---- crashes ----------------------------------------------------------------------------------


# Threads and finalizers of the dead process meet its dead disk.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_process_that_dies_at_any_step_loses_no_message_it_accepted() -> None:
    """Each step of: enqueue three, claim and run two, the schedule read and enqueued."""
    for step in range(10_000):
        disk = MemoryDisk(crash_at=step, torn=(step % 3) / 2)
        accepted: list[bytes] = []
        ran: list[bytes] = []
        try:
            work(plain(Files(disk)), accepted, ran)
        except Crash:
            survivor = plain(Files(disk.after_kill()))
            drain(survivor, ran)
            for data in survivor.read_schedule(AT):
                survivor.enqueue(data)
            drain(survivor, ran)
            survivor.read_schedule(AT)
            assert set(accepted) <= set(ran), f"step {step}: {disk.log[-3:]}"
            assert names(survivor._files, "running") == names(survivor._files, "due") == []
        else:
            assert step > 40
            assert sorted(ran) == sorted(accepted)
            gc.collect()
            return


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_power_cut_at_any_step_loses_no_message_that_was_flushed() -> None:
    """Claims and acknowledgements are not flushed: they are repeated, and nothing is lost."""
    for step in range(10_000):
        disk = MemoryDisk(crash_at=step)
        accepted: list[bytes] = []
        ran: list[bytes] = []
        try:
            work(plain(Files(disk)), accepted, ran)
        except Crash:
            for left in disk.after_power_loss():
                survivor = plain(Files(left))
                again = list(ran)
                for data in survivor.read_schedule(AT):
                    survivor.enqueue(data)
                drain(survivor, again)
                assert set(accepted) <= set(again), f"step {step}: {disk.log[-3:]}"
        else:
            gc.collect()
            return


def work(storage: ClaimStorage, accepted: list[bytes], ran: list[bytes]) -> None:
    storage.add_to_schedule(b"later", AT)
    accepted.append(b"later")
    for data in (b"a", b"b", b"c"):
        storage.enqueue(data)
        accepted.append(data)
    for _ in range(2):
        message = storage.dequeue()
        assert message is not None
        ran.append(bytes(message))
    for data in storage.read_schedule(AT):
        storage.enqueue(data)
    drain(storage, ran)


def test_what_was_read_from_the_schedule_and_enqueued_is_not_read_again() -> None:
    disk = MemoryDisk()
    storage = plain(Files(disk))
    storage.add_to_schedule(b"a", AT)
    storage.add_to_schedule(b"b", AT)
    first, second = storage.read_schedule(AT)
    assert storage.schedule_size() == 0
    storage.enqueue(first)
    survivor = plain(Files(disk.after_kill()))
    assert drain(survivor) == [first]
    assert survivor.read_schedule(AT) == [second]


def test_what_was_read_and_not_enqueued_is_done_with_the_next_read(files: Files) -> None:
    storage = plain(files)
    storage.add_to_schedule(b"expired meanwhile", AT)
    assert storage.read_schedule(AT) == [b"expired meanwhile"]
    assert len(names(files, "due")) == 1
    assert storage.read_schedule(AT) == []
    assert names(files, "due") == []


def test_a_scheduled_message_changed_on_its_way_is_there_once(files: Files) -> None:
    storage = plain(files)
    message = b'{"huey":{"$message":{"id":"t1","name":"n","retries":%d}}}'
    storage.add_to_schedule(message % 2, AT)
    assert storage.read_schedule(AT) == [message % 2]
    storage.enqueue(message % 1)
    assert names(files, "due") == []
    assert drain(storage) == [message % 1]


def test_the_schedule_is_in_order_of_its_times_across_a_change_of_zone(files: Files) -> None:
    storage = plain(files)
    base = datetime(2026, 3, 29, 1, 30)  # noqa: DTZ001
    for minutes in (90, -(10**9), 0, 30, 45):
        storage.add_to_schedule(str(minutes).encode(), base + timedelta(minutes=minutes))
    assert storage.scheduled_items() == [b"-1000000000", b"0", b"30", b"45", b"90"]
    assert storage.read_schedule(base + timedelta(minutes=30)) == [b"-1000000000", b"0", b"30"]
