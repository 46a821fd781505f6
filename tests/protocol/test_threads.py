"""Threads that die before they say that they live: whoever begins one does not wait for ever."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mimikit.protocol import watch
from mimikit.protocol.watch import BoundedThread, LastingThread

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def begin_all(monkeypatch: pytest.MonkeyPatch, begin: Callable[..., Any]) -> None:
    """Have each new thread of the kernel run what `begin` makes of its first function."""
    monkeypatch.setattr(watch, "_BIRTH_S", 0.3)
    for name in ("_start_new_thread", "_start_joinable_thread"):
        real = getattr(threading, name, None)
        if real is not None:

            def start(first: Any, *rest: Any, _real: Any = real, **more: Any) -> Any:
                return _real(begin(first), *rest, **more)

            monkeypatch.setattr(threading, name, start)


@pytest.mark.fault(65)
def test_a_thread_that_dies_unborn_is_told_in_time_and_another_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dies(_first: Any) -> Callable[[], None]:
        def die() -> None:
            raise MemoryError

        return die

    lasting, ran = LastingThread("one"), threading.Event()
    with monkeypatch.context() as patch:
        begin_all(patch, dies)
        ended: list[str] = []

        def begin() -> None:
            try:
                lasting.begin(ran.set)
            except RuntimeError as error:
                ended.append(str(error))

        # By the kernel's means: a `Thread` is what can not be begun here.
        _thread.start_new_thread(begin, ())
        until = time.monotonic() + 60
        while not ended and time.monotonic() < until:
            time.sleep(0.01)
        assert ended == ["a new thread did not come to life"]
        assert lasting.thread is None
    assert lasting.begin(ran.set) is False
    assert ran.wait(60)


def test_a_thread_that_was_given_up_never_runs_however_late_it_is_born(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    born: list[threading.Event] = []

    def late(first: Any) -> Callable[[], None]:
        event = threading.Event()
        born.append(event)

        def bear() -> None:
            event.wait(60)
            first()

        return bear

    ran: list[str] = []
    with monkeypatch.context() as patch:
        begin_all(patch, late)
        thread = BoundedThread(lambda: ran.append("late"))
        with pytest.raises(RuntimeError, match="did not come to life"):
            thread.start()
    born[0].set()
    until = time.monotonic() + 60
    while not thread.ident and time.monotonic() < until:
        time.sleep(0.01)
    thread.join(60)
    assert thread.ident
    assert ran == []
