"""What the heartbeat tells those who look on of the work."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import EngineStatus, Role
from mimikit.protocol.runtime import Health
from mimikit.supervisor.loop import HeartbeatWriter
from mimikit.supervisor.status_watch import StatusWatch
from mimikit.testing.twins import FakeClock
from tests.support.mind import Mind
from tests.support.product import START, Product


class Told:
    """A heartbeat, and the hints that it gave since they were asked for last."""

    def __init__(self, files: Files, engines: Callable[[], dict[str, EngineStatus]] = dict) -> None:
        self.files, self.serving = files, StatusWatch(engines)
        self.clock = FakeClock(START)
        self.product = Product(files, self.clock, Mind([]))
        self._hints: list[tuple[str, object]] = []
        self.product.store.feed.tell = (  # pyright: ignore[reportAttributeAccessIssue]
            lambda kind, **facts: self._hints.append((kind, facts.get("id")))
        )
        self._writer = HeartbeatWriter(
            self.product.store,
            shortage=self.product.context.shortage,
            teller=self.product.teller,
            queued=dict,
            engines=self.serving,
            fallen=lambda: None,
        )

    def run(self, run_id: str, role: Role = "worker") -> None:
        self.product.context.live.start(run_id, role, "", START)

    def does(self, run_id: str, text: str) -> None:
        self.product.context.live.headline(run_id, text)

    def health(self) -> Health:
        self.beat()
        health = self.files.load(paths.HEALTH, Health)
        assert health is not None
        return health

    def beat(self, after_s: float = 0) -> list[object]:
        """The runs whose jobs are shown anew."""
        self.clock.advance(after_s)
        self._hints.clear()
        self._writer.beat(self.clock.now(), 0, None)
        return [id_ for kind, id_ in self._hints if kind == "job"]


@pytest.fixture
def told(files: Files) -> Told:
    return Told(files)


def test_a_run_that_does_something_else_shows_its_job_anew(told: Told) -> None:
    told.run("task-1")
    assert told.beat() == []
    told.does("task-1", "reads")
    assert told.beat() == ["task-1"]
    assert told.beat(2) == []


def test_what_comes_fast_is_shown_at_most_once_a_second_and_the_last_of_it_is(told: Told) -> None:
    told.run("task-1")
    told.does("task-1", "one")
    assert told.beat() == ["task-1"]
    told.does("task-1", "two")
    assert told.beat(0.4) == []
    told.does("task-1", "three")
    assert told.beat(0.4) == []
    assert told.beat(0.4) == ["task-1"]
    assert told.beat(9) == []


def test_the_words_of_a_turn_are_no_work(told: Told) -> None:
    told.run("turn-1", "teller")
    told.does("turn-1", "thinks")
    assert told.beat() == []


def test_a_clock_set_back_silences_nobody(told: Told) -> None:
    told.run("task-1")
    told.does("task-1", "one")
    assert told.beat() == ["task-1"]
    told.clock.jump(START.replace(year=2020))
    told.does("task-1", "two")
    assert told.beat() == ["task-1"]


def test_a_trouble_is_written_while_an_engine_takes_its_time_to_say_how_it_is(files: Files) -> None:
    held, is_slow, now = threading.Event(), list[bool](), "codex"

    def find_out() -> dict[str, EngineStatus]:
        if is_slow:
            assert held.wait(60)
        return {"standard": EngineStatus(engine=now)}

    told = Told(files, find_out)
    assert told.health().engines["standard"].engine == "codex"
    is_slow.append(True)
    trouble = EngineStatus(engine="codex", state="waiting", want="unreachable")
    told.product.teller.engines.shown["codex"] = trouble
    now = "mine"
    health = told.health()
    assert not held.is_set()
    assert health.minds["codex"].want == "unreachable"
    assert health.engines["standard"].engine == "codex", "what was known stands meanwhile"
    held.set()
    assert told.serving._thread is not None
    told.serving._thread.join(60)
    assert told.health().engines["standard"].engine == "mine", "written though no beat was due"


def test_an_engine_that_fails_to_say_how_it_is_leaves_what_was_known(files: Files) -> None:
    answers = iter([{"teller": EngineStatus(engine="codex")}])

    def find_out() -> dict[str, EngineStatus]:
        for answer in answers:
            return answer
        raise OSError("no more processes")

    told = Told(files, find_out)
    told.beat()
    told.beat(9)
    assert told.health().engines["teller"].engine == "codex"
