"""Crash-only: what ends the consumer, and that nothing is noted of a run it ends."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable

import pytest

from mimikit.engines.base import Outcome, RunSpec
from mimikit.errors import EngineError, shortage_of
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.watch import CriticalThread
from mimikit.runner.consumer import end_with_threads
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.twins import FakeClock

SHORTAGES: dict[str, Callable[[], BaseException]] = {
    "files": lambda: OSError(errno.EMFILE, "Too many open files"),
    "files of the machine": lambda: OSError(errno.ENFILE, "Too many open files in system"),
    "memory": MemoryError,
    "memory to fork": lambda: OSError(errno.ENOMEM, "Cannot allocate memory"),
    "threads": lambda: RuntimeError("can't start new thread"),
}


def caused(cause: BaseException) -> EngineError:
    error = EngineError("it cannot be started")
    error.__cause__ = cause
    return error


class ShortEngine(Mind):
    def __init__(self, runs: list[tuple[str, int]], error: BaseException) -> None:
        super().__init__(runs)
        self._error = error

    def run(self, request: RunSpec) -> Outcome:
        raise self._error


def client_of(error: BaseException) -> Client:
    oracle, files = Oracle(), Files(MemoryDisk())
    files.make_folders()
    product = Product(files, FakeClock(START), ShortEngine(oracle.runs, error))
    product.start()
    return Client(product, oracle)


@pytest.mark.parametrize("name", SHORTAGES)
def test_a_run_that_meets_a_shortage_ends_the_process_and_writes_no_result(name: str) -> None:
    client = client_of(caused(SHORTAGES[name]()))
    client.submit("task-1", "paint")
    with pytest.raises(EngineError) as caught:
        client.product.idle()
    assert shortage_of(caught.value)
    assert client.product.files.names("worker/results") == []
    assert client.product.files.names("worker/running") == ["task-1.json"]


def test_a_message_that_meets_a_shortage_stays_in_the_inbox() -> None:
    client = client_of(MemoryError())
    client.say("msg-1", "hello")
    with pytest.raises(MemoryError):
        client.product.idle()
    assert client.product.files.names(paths.INBOX) == ["msg-1.json"]


def test_an_operation_of_the_supervisor_that_meets_a_shortage_is_not_survived() -> None:
    client = client_of(MemoryError())

    def short(_now: object) -> bool:
        raise MemoryError

    client.product.supervisor._operations.insert(0, ("short", short))
    with pytest.raises(MemoryError):
        client.product.tick()


def test_another_fault_of_an_engine_fails_its_run_alone() -> None:
    client = client_of(OSError(errno.EIO, "Input/output error"))
    client.submit("task-1", "paint", max_attempts=1)
    client.product.idle()
    end = client.product.store.ledger.end_of("task-1")
    assert end is not None
    assert end.status == "failed"


def test_a_lasting_thread_that_dies_and_a_shortage_in_any_thread_end_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda _args: None)
    end_with_threads(ended.append)

    def die_of(error: Exception) -> Callable[[], None]:
        def die() -> None:
            raise error

        return die

    for error in (ValueError("odd"), MemoryError()):
        thread = threading.Thread(target=die_of(error), name="passing", daemon=True)
        thread.start()
        thread.join(20)
    lasting = CriticalThread("teller")
    lasting.begin(die_of(ValueError("odd")))
    lasting.join(20)
    assert ended == ["no memory is left", "the teller thread died: ValueError('odd')"]
