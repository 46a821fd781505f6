"""Too few files, too little memory, no processes: nothing is begun, and no attempt is spent."""

from __future__ import annotations

import errno
import gc
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from mimikit.engines.base import EngineRequest, Outcome
from mimikit.errors import EngineError, ProgramLost, StorageError, shortage_of
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.roles.shortage import PAUSE_S, few_files, few_processes, process_limits
from mimikit.supervisor.loop import SAID_S, ShortageGuard
from mimikit.testing import twins
from mimikit.testing.memory_disk import MemoryDisk
from mimikit.testing.twins import FakeClock
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.engines.test_shell import engine, here
from tests.support import product
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.reading import result, transcript
from tests.support.runs import Ground

_ = here  # a fixture

WANTS: dict[str, Callable[[], BaseException]] = {
    "files": lambda: OSError(errno.EMFILE, "Too many open files"),
    "files of the machine": lambda: OSError(errno.ENFILE, "Too many open files in system"),
    "memory": MemoryError,
    "memory to fork": lambda: OSError(errno.ENOMEM, "Cannot allocate memory"),
    "processes": lambda: BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
    "threads": lambda: RuntimeError("can't start new thread"),
}


def caused(cause: BaseException) -> EngineError:
    error = EngineError("it can not be started")
    error.__cause__ = cause
    return error


class ShortMind(Mind):
    """A mind that can not begin as long as there is too little of something."""

    def __init__(self, runs: list[tuple[str, int]]) -> None:
        super().__init__(runs)
        self.want: Callable[[], BaseException] | None = None
        self.tries = 0

    def run(self, request: EngineRequest) -> Outcome:
        self.tries += 1
        if self.want is not None:
            raise self.want()
        return super().run(request)


class World:
    def __init__(self) -> None:
        self.oracle = Oracle()
        self.mind = ShortMind(self.oracle.runs)
        self.files = Files(MemoryDisk())
        self.files.make_folders()
        self.clock = FakeClock(START)
        self.product = Product(self.files, self.clock, self.mind)
        self.product.start()
        self.client = Client(self.product, self.oracle)

    def live_through(self, seconds: int) -> None:
        for _ in range(2 * seconds):
            self.product._pass()
            self.clock.advance(0.5)


@pytest.mark.parametrize("want", WANTS)
def test_what_could_not_begin_waits_and_spends_no_attempt(want: str) -> None:
    world = World()
    world.mind.want = lambda: caused(WANTS[want]())
    world.client.submit("task-1", "paint", max_attempts=1)
    world.client.submit("task-2", "wash", max_attempts=1)
    world.live_through(60)
    assert world.mind.tries <= 1 + 60 / PAUSE_S, "not each task is tried in vain"
    said = world.product.supervisor._shortage
    assert said is not None
    told = [facts["reason"] for facts in world.product.log.audits if facts["event"] == "short_of"]
    assert shortage_of(caused(WANTS[want]())) in told
    assert world.oracle.runs == []
    assert world.files.names("worker/results") == []
    world.mind.want = None
    world.product.idle()
    world.live_through(int(SAID_S) + 1)
    assert said.said is None
    for task_id in ("task-1", "task-2"):
        found = result(world.files, task_id)
        assert (found.status, found.attempts) == ("done", 1)
    assert sorted(world.oracle.runs) == [("task-1", 1), ("task-2", 1)]


@pytest.mark.parametrize("want", WANTS)
def test_a_message_waits_too_and_is_answered_once(want: str) -> None:
    world = World()
    world.mind.want = lambda: caused(WANTS[want]())
    world.client.say("msg-1", "hello")
    world.live_through(60)
    assert world.mind.tries <= 1 + 60 / PAUSE_S
    assert world.files.names(paths.INBOX) == ["msg-1.json"]
    assert transcript(world.files) == []
    world.mind.want = None
    world.product.idle()
    assert transcript(world.files) == [("user", "hello"), ("agent", "heard hello")]
    assert [attempt for _, attempt in world.oracle.runs] == [1]


def test_a_lasting_want_is_told_once_and_not_by_turns() -> None:
    world = World()
    guard = world.product.supervisor._shortage
    assert guard is not None
    world.mind.want = lambda: caused(MemoryError())
    world.client.submit("task-1", "paint")
    world.client.say("msg-1", "hello")
    world.live_through(5)
    seen: set[str | None] = set()
    for _ in range(60):
        world.live_through(1)
        seen.add(guard.said)
    assert seen == {"nothing new is begun: no memory is left"}
    assert world.mind.tries > 20, "it is tried all the while"
    world.mind.want = None
    world.live_through(3)
    assert result(world.files, "task-1").status == "done", "what is told holds nothing up"
    world.live_through(int(SAID_S) + 2)
    assert guard.said is None
    told = [facts["reason"] for facts in world.product.log.audits if facts["event"] == "short_of"]
    assert told == ["no memory is left", "nothing any more"]


def test_a_want_met_before_the_engine_is_asked_spends_nothing_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.client.submit("task-1", "paint", max_attempts=1)

    def refuse(*_: object, **__: object) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("mimikit.roles.dispatcher.task_refusal", refuse)
        patch.setattr(world.product.context.stopping, "wait", lambda _s: True)  # insists no longer
        world.live_through(3)
    assert world.files.names("worker/results") == []
    world.product.idle()
    assert (result(world.files, "task-1").status, result(world.files, "task-1").attempts) == (
        "done",
        1,
    )


class WantAfter(Mind):
    """Meets a want after its first run: at this call of a function, whoever calls it."""

    def __init__(self, runs: list[tuple[str, int]], at: float, want: BaseException) -> None:
        super().__init__(runs)
        self._at, self._want = at, want
        self.calls = 0

    def run(self, request: EngineRequest) -> Outcome:
        outcome = super().run(request)
        if len(self.runs) == 1:
            gc.disable()  # what it calls belongs to no run
            sys.settrace(self._called)
        return outcome

    def _called(self, _frame: FrameType, _event: str, _argument: object) -> None:
        self.calls += 1
        if self.calls > self._at:
            sys.settrace(None)
            raise self._want


def lived_through(seat: str, at: float, want: BaseException) -> tuple[World, int]:
    """One run of this seat, its want, and what follows; with how many calls there were."""
    world = World()
    mind = WantAfter(world.oracle.runs, at, want)
    world.product = Product(world.files, world.clock, mind)
    world.product.start()
    client = Client(world.product, world.oracle)
    if seat == "teller":
        client.say("m1", "hello")
    else:
        client.submit("t1", "long find: the cat", role=seat, max_attempts=1)
    try:
        world.product.idle()
    except (MemoryError, OSError):  # the consumer is started again then
        mind.heals = True
        world.product = Product(world.files, world.clock, Mind(world.oracle.runs))
        world.product.start()
    world.product.idle()
    return world, mind.calls


@pytest.fixture
def traced_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is called after a run is counted up to where the run is over."""

    def ends(run: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: object) -> Any:
            try:
                return run(*arguments)
            finally:
                sys.settrace(None)
                gc.enable()

        return watched

    for place, name in ((product, "dispatch"), (twins, "outcome_of")):
        monkeypatch.setattr(place, name, ends(getattr(place, name)))


@pytest.mark.usefixtures("traced_to_the_end")
@pytest.mark.parametrize("seat", ["worker", "planner", "teller"])
@pytest.mark.parametrize("want", ["files", "memory"])
def test_a_want_that_is_met_after_a_run_repeats_none(seat: str, want: str) -> None:
    """At each call of a function between the engine's last word and the end of the run."""
    _, calls = lived_through(seat, float("inf"), MemoryError())
    assert calls > 50
    ends: Counter[str] = Counter()
    for at in range(calls):
        world, _ = lived_through(seat, at, WANTS[want]())
        runs = world.oracle.runs
        assert len(set(runs)) == len(runs), at  # no attempt is made twice
        if seat == "teller":
            assert transcript(world.files)[0] == ("user", "hello"), at
            ends[transcript(world.files)[-1][1]] += 1
        else:
            assert [run for run in runs if run[0] == "t1"] == [("t1", 1)], at
            assert world.files.names(f"{seat}/running") == [], at
            end = world.product.store.ledger.end_of("t1")
            assert end is not None, at
            ends[end.status] += 1
    kept = ends["heard hello" if seat == "teller" else "done"]
    assert kept > calls / 2, ends  # mostly what it came to is kept, too


def test_another_fault_is_no_want() -> None:
    world = World()
    world.mind.want = lambda: OSError(errno.EIO, "Input/output error")
    world.client.submit("task-1", "paint", max_attempts=1)
    world.live_through(3)
    assert result(world.files, "task-1").status == "failed"
    world.mind.want = MemoryError  # by itself: it may have begun, so it is not repeated for nothing
    world.client.submit("task-2", "wash", max_attempts=1)
    world.live_through(3)
    assert result(world.files, "task-2").status == "failed"
    assert shortage_of(ProgramLost("it had begun")) is None
    assert shortage_of(StorageError("full")) is None
    assert shortage_of(None) is None


@pytest.mark.parametrize(
    ("open_files", "limit", "enough"),
    [(10, 1024, True), (975, 1024, True), (977, 1024, False), (60, 64, False), (9999, -1, True)],
)
def test_room_for_two_runs_is_left(open_files: int, limit: int, enough: bool) -> None:
    said = few_files(open_files, limit)
    assert (said is None) == enough
    assert said is None or f"{open_files} of {limit} files are open" in said


@pytest.mark.parametrize(
    ("tree", "own", "found"),
    [
        ({"a/b": ("90", "100"), "a": ("95", "max")}, "0::/a/b", [(90, 100)]),
        ({"a/b": ("9", "100"), "a": ("95", "96")}, "0::/a/b", [(9, 100), (95, 96)]),
        ({"pids/a": ("7", "8"), "a": ("1", "2")}, "4:memory:/a\n3:pids:/a", [(7, 8)]),
        ({"pids": ("7", "8")}, "3:pids:/docker/of-the-host", [(7, 8)]),
        ({"": ("7", "8")}, "0::/../of-the-host", [(7, 8)]),
        (
            {"pids/a": ("7", "8"), "a": ("1", "2")},
            "3:pids:/a\n1:name=systemd:/a\n0::/a",
            [(7, 8), (1, 2)],
        ),
        ({"a": ("what", "8")}, "0::/a", []),
        ({}, "0::/a", []),
    ],
    ids=["v2", "around", "v1", "v1 of a host", "v2 of a host", "both", "odd", "none"],
)
def test_control_groups_of_both_versions_tell_their_limits(
    tmp_path: Path, tree: dict[str, tuple[str, str]], own: str, found: list[tuple[int, int]]
) -> None:
    for group, (current, limit) in tree.items():
        (tmp_path / "groups" / group).mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / group / "pids.current").write_text(f"{current}\n")
        (tmp_path / "groups" / group / "pids.max").write_text(f"{limit}\n")
    (tmp_path / "own").write_text(f"{own}\n")
    assert list(process_limits(tmp_path / "groups", tmp_path / "own")) == found


def test_a_group_that_is_nearly_full_is_told_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    assert few_processes(92, 100) is None
    world = World()
    world.client.submit("task-1", "paint", max_attempts=1)
    groups = [(10, 1000), (93, 100)]
    monkeypatch.setattr("mimikit.roles.shortage.process_limits", lambda: iter(groups))
    world.live_through(10)
    guard = world.product.supervisor._shortage
    assert guard is not None
    assert "93 of 100 processes are in use" in (guard.said or "")
    assert world.mind.tries == 0, "it is not tried in vain"
    groups[1] = (20, 100)
    world.live_through(3)
    assert result(world.files, "task-1").status == "done"


# ---- at the engine's own seam


@pytest.mark.parametrize("want", ["files", "memory to fork", "processes"])
def test_a_shell_that_can_not_be_forked_is_a_want(
    here: Ground, monkeypatch: pytest.MonkeyPatch, want: str
) -> None:
    shell = engine()
    assert shell.run(here.request("true")).status == "done"

    def refuse(*_: object, **__: object) -> Any:
        error = WANTS[want]()
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", refuse)
        with pytest.raises(EngineError) as caught:
            shell.run(here.request("true"))
    assert shortage_of(caught.value)
    assert shell.run(here.request("true")).status == "done"


def test_a_rest_after_crashes_is_told_and_ends_by_itself() -> None:
    world, changes = World(), list[str | None]()
    guard = ShortageGuard(world.product.context, lambda: changes.append(guard.reason()))
    guard.step(START)
    guard.rest(30, "tasks wait")
    for _ in range(29):
        world.clock.advance(1)
        guard.step(START)
        assert guard.said == "tasks wait"
    world.clock.advance(1)
    guard.step(START)
    assert guard.said is None
    assert changes == ["tasks wait", None]
