"""What stands for `threading` in the product while its actors are greenlets of one thread.

A lock that is held has who wants it wait in the scheduler, so that its holder can go on; so does an
event that was not set. Without it the one thread would wait for itself, for ever.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import threading
from collections.abc import Generator
from types import ModuleType

from mimikit.protocol import watch
from mimikit.web.api import conversation
from tests.interleave.scheduler import Actor, Operation, Scheduler


class Runs:
    """The run that is under way; None between them."""

    scheduler: Scheduler | None = None
    locks = itertools.count()
    """A number for each lock, so that the same run gives the same names."""


class TurnLock:
    """`threading.Lock`, and with `again` `threading.RLock`."""

    def __init__(self, *, again: bool = False) -> None:
        self._again, self._name = again, f"lock {next(Runs.locks)}"
        self._holder: Actor | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler = Runs.scheduler
        actor = scheduler.current if scheduler else None
        if scheduler is not None and actor is not None and len(actor.process.actors) > 1:
            mine = frozenset({self._name})
            scheduler.point(Operation("acquire", "a lock in memory", mine, mine))
        if self._count and not (self._again and self._holder is actor):
            if not blocking:
                return False
            assert scheduler is not None, "expected a lock that is free, got one that is held"
            holder = self._holder.name if self._holder else "nobody"
            if not scheduler.wait(
                lambda: not self._count, f"a lock that {holder} has", gives_up=timeout >= 0
            ):
                return False
        self._holder, self._count = actor, self._count + 1
        return True

    def release(self) -> None:
        self._count -= 1

    def locked(self) -> bool:
        return self._count > 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()


class TurnCondition(TurnLock):
    """`threading.Condition`, whose lock may be taken again by who has it."""

    def __init__(self) -> None:
        super().__init__(again=True)

    def wait(self, timeout: float | None = None) -> bool:
        assert Runs.scheduler is not None
        self.release()
        is_told = Runs.scheduler.wait_for_others("a condition")
        self.acquire()
        return is_told

    def notify_all(self) -> None:
        """Who waits looks again as soon as anybody has done anything."""


class TurnEvent:
    """`threading.Event`: who waits lets the others go on."""

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if self._is_set or timeout == 0 or Runs.scheduler is None:
            return self._is_set
        if timeout is None:
            return Runs.scheduler.wait(self.is_set, "an event", gives_up=False)
        return self._is_set or (Runs.scheduler.wait_for_others("a pause") and self._is_set)


class Threading(ModuleType):
    """The module `threading`, but for its locks."""

    Lock = TurnLock
    Event = TurnEvent
    Condition = TurnCondition

    def __init__(self) -> None:
        super().__init__("threading")

    RLock = functools.partial(TurnLock, again=True)

    def __getattr__(self, name: str) -> object:
        return getattr(threading, name)


def _refused(self: watch.BoundedThread) -> None:
    """What is begun beside the actors would take part in no turns: it is as if memory were out."""
    raise RuntimeError(f"no thread is to be had for {self.name}")


@contextlib.contextmanager
def turns_taken() -> Generator[None]:
    """Let every module of the product that is loaded make such locks."""
    stand_in = Threading()
    changed = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("mimikit.") and getattr(module, "threading", None) is threading
    ]
    for module in changed:
        module.threading = stand_in  # pyright: ignore[reportAttributeAccessIssue]
    kept, Runs.locks = conversation._LOCKS, itertools.count()
    conversation._LOCKS = [TurnLock() for _ in kept]  # pyright: ignore[reportAttributeAccessIssue]
    start, watch.BoundedThread.start = watch.BoundedThread.start, _refused
    try:
        yield
    finally:
        watch.BoundedThread.start = start
        conversation._LOCKS = kept
        for module in changed:
            module.threading = threading  # pyright: ignore[reportAttributeAccessIssue]
