"""A kept server: started once, shared by runs, replaced when it ended or its key changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mimikit.engines import kept_server
from mimikit.engines.base import CancelToken
from mimikit.engines.kept_server import KeptProcess, KeptServer
from mimikit.engines.process import Program, ProgramOutcome
from mimikit.errors import EngineError

PROGRAM = Program(["server"], Path("/"), {}, 1.0)


class Server(KeptProcess):
    """A server whose program is faked by `run`."""

    def __init__(self, made: list[Server], *, idle_s: float = 600.0) -> None:
        super().__init__("server", PROGRAM, ready_s=0.2, idle_s=idle_s)
        made.append(self)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    """The servers started so far; each lives until it is stopped."""

    def run(
        _program: Program,
        on_output: Callable[[str, bytes], None],
        cancel: CancelToken,
        *,
        tick: Callable[[], float],
    ) -> ProgramOutcome:
        on_output("stderr", b"a word\n")
        stopped = threading.Event()
        cancel.on_cancel(lambda _reason: stopped.set())
        while not stopped.wait(min(tick(), 0.01)):
            pass
        return ProgramOutcome(-15, cancel.reason)

    monkeypatch.setattr(kept_server.process, "run", run)
    return []


def ready(made: list[Server], **options: float) -> Callable[[], Server]:
    def make() -> Server:
        server = Server(made, **options)
        server.is_ready.set()
        return server

    return make


def test_runs_share_one_until_it_is_closed(made: list[Server]) -> None:
    kept = KeptServer[Server]()
    token = CancelToken()
    with kept.use(1, ready(made), token) as first, kept.use(1, ready(made), token) as second:
        assert first is second
    kept.close()
    assert first.ended == "it was stopped"
    with kept.use(1, ready(made), CancelToken()) as third:
        assert third is not first
    kept.close()


def test_another_key_starts_another_server_and_the_old_one_ends_after_its_runs(
    made: list[Server],
) -> None:
    kept = KeptServer[Server]()
    token = CancelToken()
    with kept.use(1, ready(made), token) as old, kept.use(2, ready(made), token) as new:
        assert new is not old
        assert old.ended is None
    old.end()
    assert len(made) == 2
    kept.close()


def test_an_idle_server_is_ended(made: list[Server]) -> None:
    kept = KeptServer[Server]()
    with kept.use(1, ready(made, idle_s=0.02), CancelToken()) as server:
        pass
    for _ in range(1000):
        if server.ended is not None:
            break
        threading.Event().wait(0.01)
    assert server.ended == "it was stopped"


def test_a_server_that_is_not_ready_in_time_is_an_error(made: list[Server]) -> None:
    kept = KeptServer[Server]()
    for _ in range(2):
        use = kept.use(1, lambda: Server(made), CancelToken())
        with pytest.raises(EngineError, match=r"server was not ready within 0\.2 s"), use:
            pass
    assert len(made) == 2
    kept.close()


def test_a_canceled_run_does_not_wait_for_the_server(made: list[Server]) -> None:
    kept, cancel = KeptServer[Server](), CancelToken()
    cancel.cancel("canceled")
    use = kept.use(1, lambda: Server(made), cancel)
    with pytest.raises(EngineError, match="stopped before server was ready"), use:
        pass
    kept.close()
