"""The harness itself: it finds what was broken on purpose, and shows it again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator

import pytest

from mimikit import app, config_file
from mimikit.conversation import attachments
from mimikit.errors import StorageError
from mimikit.memory import notes
from mimikit.protocol.disk import Lock
from mimikit.protocol.files import Files
from tests.interleave.explorer import Explorer, Scenario, run
from tests.interleave.huey_scenarios import HUEY_SCENARIOS
from tests.interleave.scenarios import SCENARIOS
from tests.interleave.scheduler import (
    KILL,
    Decision,
    Operation,
    Process,
    Schedule,
    Scheduler,
    Stuck,
)
from tests.interleave.threads import Runs, TurnEvent, TurnLock
from tests.interleave.world import World

Patch = pytest.MonkeyPatch


def scenario(name: str) -> Scenario:
    return next(one for one in (*SCENARIOS, *HUEY_SCENARIOS) if one.name == name)


# ---- planted faults


@contextlib.contextmanager
def unlocked(_files: Files, _path: str) -> Generator[None]:
    """Anybody may come in."""
    yield


def no_lock_of_memory(patch: Patch) -> None:
    patch.setattr(notes, "held", unlocked)


def no_lock_of_settings(patch: Patch) -> None:
    patch.setattr(config_file, "held", unlocked)


def no_lock_of_files(patch: Patch) -> None:
    patch.setattr(attachments, "held", unlocked)


def no_lock_of_the_consumer(patch: Patch) -> None:
    patch.setattr(app, "_both_locks", lambda _state: Lock(lambda: None))


def temps_of_one_name(patch: Patch) -> None:
    """Each temp file of a folder is called the same, whoever writes it."""

    def publish(
        files: Files, path: str, data: bytes, rename: Callable[[str, str], None], *, sync: bool
    ) -> None:
        temp = f"{path.rpartition('/')[0]}/.tmp-it".lstrip("/")
        with contextlib.suppress(FileNotFoundError):
            files.fs.unlink(temp)
        files.fs.write_new(temp, data, sync=sync)
        rename(temp, path)

    patch.setattr(Files, "_publish", publish)


def temps_of_the_living_are_swept(patch: Patch) -> None:
    patch.setattr(World, "lives", lambda _world, _temp: False)


def moves_that_look_at_their_source(patch: Patch) -> None:
    """What is gone as it is moved, and written anew by the next look, is taken for no folder."""
    move = Files.move

    def moved(files: Files, source: str, target: str) -> bool:
        if move(files, source, target):
            return True
        if files.fs.stat(source) is not None:
            raise StorageError("the folder is gone")
        return False

    patch.setattr(Files, "move", moved)


@pytest.mark.parametrize(
    ("plant", "name", "says"),
    [
        (no_lock_of_memory, "the backlog is changed by three", "is lost"),
        (no_lock_of_settings, "settings are changed by three terminals", "is lost"),
        (no_lock_of_files, "a file is sent again as it expires", "is lost"),
        (no_lock_of_the_consumer, "two consumers start", ""),
        (temps_of_one_name, "messages are sent by three pages", ""),
        (temps_of_the_living_are_swept, "a consumer starts as a file is sent", "was refused"),
        (moves_that_look_at_their_source, "a result is asked for as it is kept", "was refused"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_was_broken_on_purpose_is_found_and_shown_again(
    plant: Callable[[Patch], None], name: str, says: str, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    # Of two consumers many schedules show it, and each is long.
    every = 15 if name == "two consumers start" else 1
    report = Explorer(scenario(name), most_preemptions=1, every=every, most_violations=1).run()
    assert report.violations, report.summary()
    schedule, text = report.violations[0]
    assert says in text
    again, _ = run(scenario(name), Schedule.parse(str(schedule)))
    assert text in again.found
    monkeypatch.undo()
    mended, _ = run(scenario(name), Schedule())
    assert mended.found == []


def test_the_same_schedule_gives_the_same_run() -> None:
    here = scenario("a message")
    first, _ = run(here, Schedule())
    number = next(n for n, step in enumerate(first.steps) if step.is_free and step.others)
    schedule = Schedule().then(number, first.steps[number].others[0])
    one, _ = run(here, schedule)
    other, _ = run(here, schedule)
    assert one == other
    assert one.steps != first.steps


def test_equal_schedules_do_the_same() -> None:
    """Each of those that need not run gives the verdict, and the operations, of one that did."""
    counted = Explorer(
        scenario("one file is sent by two pages, and named by a third"), most_preemptions=1
    )
    report = counted.run()
    whole = Explorer(
        scenario("one file is sent by two pages, and named by a third"), most_preemptions=1
    )
    whole._moved = lambda *_steps: None  # pyright: ignore[reportAttributeAccessIssue]
    whole._is_met = lambda *_key: False  # pyright: ignore[reportAttributeAccessIssue]
    every = whole.run()
    assert report.equal > 0
    assert every.equal == 0
    assert report.covered == every.ran
    assert set(counted._verdicts) == set(whole._verdicts)


# ---- the scheduler


def going(*actors: tuple[str, int, Callable[[Scheduler], None]], schedule: str = "") -> Scheduler:
    """Run actors: each with its process's number and what it does."""
    scheduler = Scheduler(Schedule.parse(schedule), lambda _process: None)
    processes: dict[int, Process] = {}
    for name, number, act in actors:
        process = processes.setdefault(number, Process(str(number), number))
        scheduler.add(name, process, lambda act=act: act(scheduler))
    Runs.scheduler = scheduler
    try:
        scheduler.run()
    finally:
        Runs.scheduler = None
    return scheduler


def steps_of(name: str) -> Callable[[Scheduler], None]:
    def act(scheduler: Scheduler) -> None:
        for number in range(3):
            scheduler.point(Operation("write", f"{name}{number}"))

    return act


def order_of(scheduler: Scheduler) -> str:
    return " ".join(step.operation.path for step in scheduler.steps)


def test_each_goes_on_until_it_ends_unless_the_schedule_says_else() -> None:
    two = ("a", 1, steps_of("a")), ("b", 2, steps_of("b"))
    assert order_of(going(*two)) == "a0 a1 a2 b0 b1 b2"
    assert order_of(going(*two, schedule="1:b")) == "a0 b0 b1 b2 a1 a2"
    assert order_of(going(*two, schedule="1:b 3:a")) == "a0 b0 b1 a1 a2 b2"
    assert order_of(going(*two, schedule="0:b")) == "b0 b1 b2 a0 a1 a2"


def test_a_process_that_dies_takes_all_its_actors_with_it() -> None:
    three = ("a", 1, steps_of("a")), ("b", 1, steps_of("b")), ("c", 2, steps_of("c"))
    assert order_of(going(*three, schedule=f"1:b 2:{KILL}")) == "a0 b0 c0 c1 c2"


def test_who_wants_a_lock_that_is_held_lets_its_holder_go_on() -> None:
    lock, seen = TurnLock(), list[str]()

    def take(name: str) -> Callable[[Scheduler], None]:
        def act(scheduler: Scheduler) -> None:
            with lock:
                scheduler.point(Operation("write", name))
                seen.append(name)

        return act

    going(("a", 1, take("a")), ("b", 1, take("b")), schedule="1:b")
    assert seen == ["a", "b"]


def test_two_that_wait_for_each_other_are_told() -> None:
    first, second = TurnLock(), TurnLock()

    def take(one: TurnLock, other: TurnLock) -> Callable[[Scheduler], None]:
        def act(scheduler: Scheduler) -> None:
            with one:
                scheduler.point(Operation("write", "x"))
                with other:
                    pass

        return act

    two = ("a", 1, take(first, second)), ("b", 1, take(second, first))
    going(*two)
    with pytest.raises(Stuck, match="a: a lock that b has"):
        going(*two, schedule="1:b")


def test_an_event_that_nobody_sets_is_given_up_where_there_is_a_limit() -> None:
    heard: list[bool] = []
    going(("a", 1, lambda _scheduler: heard.append(TurnEvent().wait(5))))
    assert heard == [False]
    with pytest.raises(Stuck, match="an event"):
        going(("a", 1, lambda _scheduler: heard.append(TurnEvent().wait())))


def test_a_schedule_that_can_not_be_met_is_refused() -> None:
    with pytest.raises(ValueError, match="was not"):
        going(("a", 1, steps_of("a")), schedule="7:b")


def test_a_schedule_prints_as_it_is_read() -> None:
    assert str(Schedule.parse("3:page 7:†")) == "3:page 7:†"
    assert Schedule.parse("3:page").decisions == (Decision(3, "page"),)
    assert Schedule.parse(str(Schedule())).decisions == ()
