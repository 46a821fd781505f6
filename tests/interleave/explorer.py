"""Every schedule of a scenario with at most two preemptions, judged by the oracle.

A *preemption* has another actor go on where the one before could have, or has the process die that
was about to act. Where an actor ends or waits, each of those that can go on is tried besides, at no
cost. Every schedule is met once: from one that ran, the next ones are made by one more decision
behind the last.

Two schedules in which two neighbouring operations of different processes change places, none of
which reads or changes what the other changes, do the same. So an actor that is preempted one
operation earlier need not run if that operation has nothing to do with what the others do in
between: then it is counted as *equal to one that ran*, and so are those made from it. Operations of
one process are never taken for independent, as they share memory.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from mimikit.config import Settings
from mimikit.errors import MimikitError
from tests.crash.disk import Endless as EndlessLife
from tests.crash.driver import TOLD_ERRORS, warm_folder
from tests.crash.images import Contents
from tests.crash.oracle import Expected, Frozen, judge
from tests.interleave.scheduler import (
    KILL,
    Endless,
    Pick,
    Schedule,
    Step,
    Stuck,
)
from tests.interleave.world import Caller, Consumer, World, begun


def nothing(world: World) -> None:
    """Nothing is done later."""


@dataclass(frozen=True)
class Scenario:
    """Who does what at once.

    base: what lies there before. setup: makes the actors; what it does itself comes before all
    of them. check: what else has to be true at the end. refuses: errors that a caller may be told.
    kills: processes that may die. later: what is done once all is quiet.
    """

    name: str
    setup: Callable[[World], None]
    base: Callable[[], Contents] = warm_folder
    settings: Settings | None = None
    expected: Expected = field(default_factory=Expected)
    check: Callable[[World], list[str]] = lambda world: []
    refuses: tuple[type[MimikitError], ...] = ()
    kills: tuple[str, ...] = ()
    later: Callable[[World], None] = nothing
    told: frozenset[str] = TOLD_ERRORS
    every: int = 1
    """By day only each so many-th of the schedules with preemptions is run."""


class Ran(NamedTuple):
    """What came of a schedule."""

    steps: tuple[Step, ...]
    picks: tuple[Pick, ...]
    found: list[str]


@dataclass
class Report:
    """What was explored, and what went wrong: each with the schedule that shows it."""

    scenario: str
    ran: int = 0
    equal: int = 0
    left: int = 0
    """Schedules that by day are left to the night."""
    kills: int = 0
    longest: int = 0
    seconds: float = 0.0
    violations: list[tuple[Schedule, str]] = field(default_factory=list[tuple[Schedule, str]])

    @property
    def covered(self) -> int:
        return self.ran + self.equal

    def summary(self) -> str:
        """One line."""
        left = f", {self.left:,} left to the night" if self.left else ""
        return (
            f"{self.scenario}: {self.covered:,} schedules ({self.ran:,} ran, {self.equal:,} equal "
            f"to one that ran{left}), {self.kills:,} with a kill, of up to {self.longest} "
            f"operations, {self.seconds:.1f} s of CPU, {len(self.violations)} violations"
        )

    def told(self) -> str:
        """The first violations, each with what replays it."""
        return "\n".join(
            f'{text}\n    replay("{self.scenario}", "{schedule}")'
            for schedule, text in self.violations[:5]
        )


_Verdict: TypeAlias = dict[tuple[int, Frozen], list[str]]


@dataclass
class _Class:
    """Schedules that do the same: the one of them that ran, and how many they are."""

    schedule: Schedule
    ran: Ran
    steps: tuple[Step, ...]
    """Of the one that was met last."""
    size: int = 1


class Explorer:
    """Explores one scenario.

    most_preemptions: how many a schedule may have. every: only each so many-th of the schedules
    with preemptions is run, the others, and what is made from them, are left to the night.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        most_preemptions: int = 2,
        every: int = 1,
        most_violations: int = 5,
    ) -> None:
        self.scenario = scenario
        self.most, self.every, self.most_violations = most_preemptions, every, most_violations
        self.report = Report(scenario.name)
        self._verdicts: _Verdict = {}
        self._met: dict[tuple[int, str], int] = {}
        """How a run has begun, and who went on without being preempted → how many preemptions were
        left for those that are made from it."""
        self._turn = 0

    def run(self) -> Report:
        """Explore it all."""
        started = time.process_time()
        with _rare_collections():
            self._explore(Schedule(), self._ran(Schedule(), ()), 1)
        self.report.seconds = time.process_time() - started
        return self.report

    # ---- which schedules ----------------------------------------------------------------

    def _explore(
        self, schedule: Schedule, ran: Ran, weight: int, parent: _Beginnings | None = None
    ) -> None:
        """All that are made from one that ran, which stands for `weight` equal ones."""
        depth, left = len(schedule.decisions), self.most - schedule.preemptions
        beginnings = _Beginnings(schedule, ran.steps, parent, looks_ahead=bool(left))
        for number in range(schedule.decisions[-1].step if depth else 0, len(ran.steps)):
            key = beginnings.ids[number], ran.steps[number].actor
            self._met[key] = max(left, self._met.get(key, 0))
        for pick in ran.picks:
            if pick.decided == depth and pick.costs <= left:
                for other in pick.others:
                    child = schedule.then(pick.step, other, costs=pick.costs)
                    if (ended := self._tried(child, weight, ran.steps[: pick.step])) is not None:
                        self._explore(child, ended, weight, beginnings)
        if left:
            for one in self._preempted(schedule, ran, weight, beginnings):
                self.report.equal += (one.size - 1) * weight
                self._explore(one.schedule, one.ran, weight * one.size, beginnings)

    def _preempted(
        self, schedule: Schedule, ran: Ran, weight: int, beginnings: _Beginnings
    ) -> list[_Class]:
        """With one preemption more, from the last step back: each that ran, with its equals."""
        found: list[_Class] = []
        by_other: dict[str, _Class] = {}
        for number in range(len(ran.steps) - 1, -1, -1):
            step = ran.steps[number]
            if step.decided < len(schedule.decisions):
                break
            if not step.is_free:
                by_other.clear()
                continue
            self._killed(schedule, number, ran.steps, weight, beginnings)
            for gone in by_other.keys() - set(step.others):
                del by_other[gone]
            for other in step.others:
                child, known = schedule.then(number, other), by_other.pop(other, None)
                moved = known and self._moved(ran.steps, number, known.steps)
                if known is not None and moved:
                    known.size, known.steps = known.size + 1, moved
                    by_other[other] = known
                    self._kill_after(child, moved, ran.steps[:number], step, weight)
                elif not self._is_met(beginnings.of(number, other), other, child, weight) and (
                    ended := self._tried(child, weight, ran.steps[:number])
                ):
                    by_other[other] = _Class(child, ended, ended.steps)
                    found.append(by_other[other])
        return found

    def _killed(
        self,
        schedule: Schedule,
        number: int,
        steps: tuple[Step, ...],
        weight: int,
        beginnings: _Beginnings,
    ) -> None:
        """Have the process die before it changes something; looks change nothing."""
        step = steps[number]
        if step.operation.writes and self._may_die(step):
            child, who = schedule.then(number, KILL), f"{KILL}{step.process}"
            if self._is_met(beginnings.ids[number : number + 1], who, child, weight):
                return
            if (ran := self._tried(child, weight, steps[:number])) is not None:
                self._met[beginnings.ids[number], who] = self.most - child.preemptions
                self._explore(child, ran, weight, beginnings)

    def _is_met(self, ids: Sequence[int], who: str, child: Schedule, weight: int) -> bool:
        """Whether another run has begun so and gone on so, and what is made from it was met."""
        left = self.most - child.preemptions
        is_met = any(self._met.get((id_, who), -1) >= left for id_ in ids)
        self.report.equal += weight if is_met else 0
        return is_met

    def _tried(self, schedule: Schedule, weight: int, begun: tuple[Step, ...]) -> Ran | None:
        """Run this one, which stands for so many; None when it is left to the night.

        begun: the steps it begins with, as another run has shown.
        """
        if len(self.report.violations) >= self.most_violations:
            return None
        if schedule.preemptions:
            self._turn += 1
            if self._turn % self.every:
                self.report.left += weight
                return None
        self.report.equal += weight - 1
        if any(decision.to == KILL for decision in schedule.decisions):
            self.report.kills += weight
        return self._ran(schedule, begun)

    def _kill_after(
        self,
        schedule: Schedule,
        steps: tuple[Step, ...],
        begun: tuple[Step, ...],
        step: Step,
        weight: int,
    ) -> None:
        """Of a schedule that need not run: it dies as it is to go on with this step.

        The one that ran dies there one operation later.
        """
        if (
            schedule.preemptions == self.most
            or not step.operation.writes
            or not self._may_die(step)
        ):
            return
        begin = schedule.decisions[-1].step
        at = next(n for n, one in enumerate(steps[begin:], begin) if one.actor == step.actor)
        child = schedule.then(at, KILL)
        if (ran := self._tried(child, weight, begun)) is not None:
            self._explore(child, ran, weight)

    def _may_die(self, step: Step) -> bool:
        return self._process_of[step.process] in self.scenario.kills

    def _moved(
        self, steps: tuple[Step, ...], number: int, later: tuple[Step, ...]
    ) -> tuple[Step, ...] | None:
        """The steps of a schedule preempted here, from those of the one preempted a step later.

        None: they may differ in what comes of them.
        """
        if number + 1 >= len(steps) or steps[number + 1].actor != steps[number].actor:
            return None
        mine = later[number]
        end = number + 1
        while end < len(later) and later[end].actor != mine.actor:
            if _depends(mine, later[end]):
                return None
            end += 1
        between = later[number + 1 : end]
        after = later[end].others if end < len(later) else ()
        return (*later[:number], *between, mine._replace(others=after, is_free=False), *later[end:])

    # ---- one of them ----------------------------------------------------------------------

    def _ran(self, schedule: Schedule, begun: tuple[Step, ...]) -> Ran:
        ran, self._process_of = run(self.scenario, schedule, self._verdicts, begun)
        self.report.ran += 1
        self.report.longest = max(self.report.longest, len(ran.steps))
        self.report.violations += [(schedule, text) for text in ran.found]
        return ran


class _Beginnings:
    """What the first steps of a run come to.

    The same number wherever no two of them that depend on each other have changed places. parent:
    that of the run this one was made from, which has begun with the same steps.
    """

    def __init__(
        self,
        schedule: Schedule,
        steps: tuple[Step, ...],
        parent: _Beginnings | None = None,
        *,
        looks_ahead: bool = True,
    ) -> None:
        self.ids: list[int] = []
        """By how many steps."""
        self._marks: list[int] = []
        self._next: dict[int, dict[str, int]] = {}
        """By how many steps: the same once another actor has done what it is about to do."""
        self._written: dict[str, int] = {}
        self._read: dict[str, int] = {}
        self._own: dict[str, tuple[int, int]] = {}
        self._barrier = 0
        deaths = {decision.step for decision in schedule.decisions if decision.to == KILL}
        begin = schedule.decisions[-1].step if schedule.decisions else 0
        coming = _Coming(steps) if looks_ahead else None
        known = parent._marks[:begin] if parent else ()
        total = 0
        for number, step in enumerate(steps):
            if number in deaths:
                total = self._barrier = hash((total, KILL))
            self.ids.append(total)
            if coming is not None:
                coming.passes(step)
                if number >= begin and step.is_free and step.others:
                    self._next[number] = {
                        other: total + self._mark(one) for other, one in coming.of(step.others)
                    }
            mark = known[number] if number < len(known) else self._mark(step)
            self._marks.append(mark)
            self._keep(step, mark)
            total += mark
            if "*" in step.operation.reads:
                total = self._barrier = hash(total)

    def of(self, number: int, other: str) -> tuple[int, ...]:
        """What has to be met for this actor to go on here as it did elsewhere."""
        after = self._next.get(number, {}).get(other)
        return (self.ids[number],) if after is None else (self.ids[number], after)

    def _mark(self, step: Step) -> int:
        count, own = self._own.get(step.actor, (0, 0))
        written, read = self._written.get, self._read.get
        operation = step.operation
        before = 0
        for one in operation.reads:
            before += written(one, 0)
        for one in operation.writes:
            before += written(one, 0) + 3 * read(one, 0)
        process = written(f"process {step.process}", 0)
        return hash((step.actor, count, own, process, self._barrier, before))

    def _keep(self, step: Step, mark: int) -> None:
        count, _ = self._own.get(step.actor, (0, 0))
        self._own[step.actor] = count + 1, mark
        self._written[f"process {step.process}"] = mark
        read = self._read
        for one in step.operation.reads:
            read[one] = read.get(one, 0) + mark
        for one in step.operation.writes:
            self._written[one], read[one] = mark, 0


class _Coming:
    """What each actor does next in a run, as one passes over its steps."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self._steps: dict[str, list[Step]] = {}
        for step in reversed(steps):
            self._steps.setdefault(step.actor, []).append(step)

    def passes(self, step: Step) -> None:
        self._steps[step.actor].pop()

    def of(self, others: tuple[str, ...]) -> list[tuple[str, Step]]:
        """The next step of each of these that has one."""
        return [(other, left[-1]) for other in others if (left := self._steps.get(other))]


def _depends(one: Step, other: Step) -> bool:
    """Whether two operations may not change places."""
    if one.process == other.process:
        return True
    mine, yours = one.operation, other.operation
    if "*" in mine.reads or "*" in yours.reads:
        return True
    return not (
        mine.writes.isdisjoint(yours.writes)
        and mine.writes.isdisjoint(yours.reads)
        and mine.reads.isdisjoint(yours.writes)
    )


@contextlib.contextmanager
def _rare_collections() -> Generator[None]:
    """A world is a knot of objects: looking for such costs much, and finds few."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run(
    scenario: Scenario,
    schedule: Schedule,
    verdicts: _Verdict | None = None,
    known: tuple[Step, ...] = (),
) -> tuple[Ran, dict[int, str]]:
    """One run: the schedule, then all that is left to do, a restart, and the oracle's word.

    known: the steps it begins with; another run has shown them.
    """
    with begun(lambda: World(scenario.base(), schedule, scenario.settings)) as world:
        scheduler = world.scheduler
        scheduler.known = known
        scenario.setup(world)
        world.disk.scheduler = scheduler
        found: list[str] = []
        try:
            scheduler.run()
            found = _settled(scenario, world, {} if verdicts is None else verdicts)
        except (Stuck, Endless, EndlessLife) as error:
            found = [f"{type(error).__name__}: {error}"]
        names = {number: member.process.name for number, member in world.members.items()}
        return Ran(tuple(scheduler.steps), tuple(scheduler.picks), found), names


def _settled(scenario: Scenario, world: World, verdicts: _Verdict) -> list[str]:
    """Let everything come to rest; what is wrong then."""
    found = [
        f"{actor.name}: {type(actor.error).__name__}: {actor.error}"
        for actor in world.scheduler._actors
        if actor.error is not None
    ]
    serving = [one for one in world.consumers if one.product and not one.process.is_dead]
    if not serving and world.consumers:
        serving = [_next_consumer(world)]
    for consumer in serving:
        consumer.rest()
    if any(not caller.is_done for caller in world.callers) or scenario.later is not nothing:
        for caller in list(world.callers):
            found += _repeated(scenario, world, caller)
        scenario.later(world)
        for consumer in serving:
            consumer.rest()
    for consumer in world.consumers:
        found += _logged(scenario, consumer)
    key = world.disk.kill_image().key(), world.oracle.freeze()
    if key not in verdicts:
        before = scenario.check(world)
        for consumer in serving:
            consumer.process.is_dead = True
        last = _next_consumer(world)
        after = judge(world.disk.kill_image().folders, world.oracle, scenario.expected)
        verdicts[key] = [*before, *_logged(scenario, last), *after, *scenario.check(world)]
    return found + verdicts[key]


def _logged(scenario: Scenario, consumer: Consumer) -> list[str]:
    """Errors that nothing in the scenario brings about."""
    errors = consumer.product.log.errors if consumer.product else []
    return [
        f"{consumer.process.name} logged: {error}"
        for error in errors
        if error["event"] not in scenario.told
    ]


def _next_consumer(world: World) -> Consumer:
    """One that starts where none is left, and works until nothing is left to do."""
    consumer = world.consumer("next")
    consumer.start()
    consumer.rest()
    return consumer


def _repeated(scenario: Scenario, world: World, caller: Caller) -> list[str]:
    """What a caller was refused, or died over, is done again."""
    found: list[str] = []
    if caller.refused is not None and not isinstance(caller.refused, scenario.refuses):
        found.append(f"{caller.process.name} was refused: {caller.refused}")
    if not caller.is_done:
        other = caller.again()
        world.members[other.process.number] = other
        other.draw()
        other.act()
        if other.refused is not None and not isinstance(other.refused, scenario.refuses):
            found.append(f"{caller.process.name}, once more, was refused: {other.refused}")
    return found
