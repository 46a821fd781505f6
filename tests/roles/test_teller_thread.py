"""The thread that takes turns outlives whatever becomes of one."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mimikit.clock import SystemClock
from mimikit.engines.base import CancelToken
from mimikit.roles import teller
from mimikit.roles.run import RunContext
from mimikit.roles.teller import TellerThread, TurnJob, TurnOutcome


class FewFacts:
    """What the thread itself needs of a run's context."""

    clock = SystemClock()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("has_begun", [True, False])
def test_a_turn_that_has_no_memory_to_say_so_is_an_outcome_and_the_next_is_taken(
    monkeypatch: pytest.MonkeyPatch, *, has_begun: bool
) -> None:
    begun = threading.Semaphore(0)
    lacking = [True]

    def take(_context: RunContext, job: TurnJob) -> TurnOutcome:
        begun.release()
        if lacking[0]:
            job.cancel.has_begun = has_begun
            raise MemoryError
        return TurnOutcome(job, None, "taken")

    monkeypatch.setattr(teller, "outcome_of", take)
    thread = TellerThread(cast("RunContext", FewFacts()), lambda: None)
    first, second = (cast("Any", SimpleNamespace(cancel=CancelToken())) for _ in range(2))
    thread.start(first)
    assert begun.acquire(timeout=20)
    thread._thread.join(20)
    (lost,) = thread.outcomes()
    # One that had begun has used its attempt.
    reason = "error" if has_begun else "engine_unavailable"
    assert (lost.job, lost.failure_reason) == (first, reason)
    assert lost.retry_at is not None
    lacking[0] = False
    thread.start(second)
    assert begun.acquire(timeout=20)
    thread.close(20)
    assert [(ended.job, ended.error) for ended in thread.outcomes()] == [(second, "taken")]
