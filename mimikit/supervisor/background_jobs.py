"""Work that takes long and that the supervisor must not wait for: one job at a time, on a thread.

What a job was to change it changes on disk by itself, and can be done again: a kill loses nothing
but the time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

from mimikit.errors import BadInput

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobOutcome(Generic[T]):
    """What a job gave, or why it gave nothing."""

    value: T | None = None
    error: BadInput | None = None


class JobRunner(Protocol):
    """Where such work is done: a thread, or in place for tests."""

    def ask(self, key: str, do: Callable[[], T]) -> JobOutcome[T] | None:
        """The outcome of the job of that key, told once; None: not yet, and it is begun if need be.

        Raises:
            Exception: what the job raised, unless that is a BadInput.
        """
        ...


class BackgroundJobs:
    """Does a job on a thread of its own. `ask` is for one thread alone."""

    def __init__(self, ring: Callable[[], None]) -> None:
        """`ring` is called when a job is done."""
        self._ring = ring
        self._key: str | None = None
        self._done: list[Callable[[], object]] = []

    def ask(self, key: str, do: Callable[[], T]) -> JobOutcome[T] | None:
        if self._done and self._key is not None:
            was, self._key, tell = self._key, None, self._done.pop()
            if was == key:
                return _told(cast("Callable[[], T]", tell))  # the same key, the same job
        if self._key is None:
            self._key = key
            threading.Thread(
                target=self._carry_out, args=(do,), name=f"job {key}", daemon=True
            ).start()
        return None

    def _carry_out(self, do: Callable[[], object]) -> None:
        try:
            value = do()
        except Exception as error:  # noqa: BLE001 - raised again where it is asked for
            raised = error

            def tell() -> object:
                raise raised

            self._done.append(tell)
        else:
            self._done.append(lambda: value)
        self._ring()


class JobsInPlace:
    """Does a job as soon as it is asked for."""

    def ask(self, key: str, do: Callable[[], T]) -> JobOutcome[T] | None:
        return _told(do)


def _told(do: Callable[[], T]) -> JobOutcome[T]:
    try:
        return JobOutcome(do())
    except BadInput as error:
        return JobOutcome(error=error)
