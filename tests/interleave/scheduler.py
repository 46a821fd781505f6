"""Who goes on at which operation: actors of several processes, one at a time, as a schedule says.

An actor is a greenlet that runs the product's own functions. Before each operation of the disk, and
where a lock of its process is taken, it comes to a *point*. There the schedule may have another
actor go on, or have the process die; else it goes on itself until it ends or has to wait.

The same schedule gives the same run: nothing else decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import greenlet

from mimikit.testing.memory_disk import Crash

KILL = "†"
MOST_STEPS = 5_000
"""Points of one run; the longest needs a fifth."""
EVERYTHING = frozenset({"*"})
"""What an operation touches that may depend on any other."""


class Endless(BaseException):
    """The actors go round and round. A BaseException: no handler for errors may catch it."""


class Strayed(BaseException):
    """A run has not begun as another one with the same schedule did: something else decides, too.

    A BaseException: no handler for errors may catch it.
    """


class Stuck(Exception):
    """Each actor that is left waits for another."""


class Operation(NamedTuple):
    """What an actor is about to do, and what it reads and changes by that."""

    name: str
    path: str
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.name} {self.path}"


class Decision(NamedTuple):
    """Before the step with this number: the actor that goes on, or KILL for who was about to."""

    step: int
    to: str

    def __str__(self) -> str:
        return f"{self.step}:{self.to}"


class Schedule(NamedTuple):
    """Where a run differs from the one in which each goes on as long as it can, in their order."""

    decisions: tuple[Decision, ...] = ()
    preemptions: int = 0

    def __str__(self) -> str:
        return " ".join(map(str, self.decisions)) or "(none)"

    def then(self, step: int, to: str, *, costs: int = 1) -> Schedule:
        return Schedule((*self.decisions, Decision(step, to)), self.preemptions + costs)

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """The schedule that prints so."""
        pairs = [word.split(":") for word in text.split() if ":" in word]
        return cls(tuple(Decision(int(step), to) for step, to in pairs))


class Step(NamedTuple):
    """One operation of a run."""

    actor: str
    process: int
    operation: Operation
    others: tuple[str, ...]
    """Who else could have gone on here."""
    is_free: bool
    """Whether the actor may be preempted here: it did not begin to go on just now."""
    decided: int
    """How many decisions of the schedule were behind it."""


class Pick(NamedTuple):
    """A place where somebody had to be chosen, as the one before could not go on."""

    step: int
    others: tuple[str, ...]
    """Who was not."""
    decided: int
    costs: int
    """Another choice costs no preemption where an actor ended, and one where it only waits."""


@dataclass(eq=False)
class Process:
    """What dies together: a number of its own, and its actors."""

    name: str
    number: int
    is_dead: bool = False
    actors: list[Actor] = field(default_factory=list["Actor"])
    on_death: Callable[[], None] = lambda: None


@dataclass(eq=False)
class Actor:
    """One thread of a process."""

    name: str
    process: Process
    run: Callable[[], None]
    thread: Any = None
    is_over: bool = False
    waits_for: Callable[[], bool] | None = None
    """What has to come true before it goes on."""
    may_give_up: bool = False
    """Whether it goes on all the same once nobody else can: a wait with a limit, or an idle one."""
    why: str = ""
    error: BaseException | None = None

    def is_ready(self) -> bool:
        return not self.is_over and (self.waits_for is None or self.waits_for())


class Scheduler:
    """Runs the actors of one run to their ends."""

    def __init__(self, schedule: Schedule, entered: Callable[[Process], None]) -> None:
        """`entered` is called as a process goes on."""
        self.schedule = schedule
        self.steps: list[Step] = []
        self.picks: list[Pick] = []
        self.known: tuple[Step, ...] = ()
        """The steps it begins with: who else could go on there need not be looked up again."""
        self.current: Actor | None = None
        self._entered = entered
        self._actors: list[Actor] = []
        self._decided = self._progress = self._changes = 0
        self._is_fresh = False
        self._told: Actor | None = None
        """Who goes on as the schedule says."""
        self._hub: Any = None

    def add(self, name: str, process: Process, run: Callable[[], None]) -> None:
        """Have a thread in this process; the first one added goes first."""
        actor = Actor(name, process, run)
        process.actors.append(actor)
        self._actors.append(actor)

    def run(self) -> None:
        """Until all actors are over.

        Raises:
            Stuck: those that are left wait for each other.
        """
        self._hub = greenlet.getcurrent()
        for actor in self._actors:
            actor.thread = greenlet.greenlet(self._life(actor))
        while (actor := self._pick()) is not None:
            self.current, self._is_fresh = actor, True
            self._entered(actor.process)
            actor.thread.switch()
            self._bury()
        self.current = None
        unused = self.schedule.decisions[self._decided :]
        if unused:
            raise ValueError(f"expected all of {self.schedule} to be met, {unused[0]} was not")

    def _life(self, actor: Actor) -> Callable[[], None]:
        def live() -> None:
            try:
                actor.run()
            except Crash:
                pass
            except Strayed:
                raise
            except BaseException as error:  # noqa: BLE001 - told as what came of this run
                actor.error = error
            actor.is_over = True

        return live

    def _bury(self) -> None:
        """End the other actors of a process that died; their disk is gone already."""
        for actor in self._actors:
            if actor.process.is_dead and not actor.is_over:
                self.current = actor
                if actor.thread:
                    actor.thread.throw(Crash)
                actor.is_over = True

    # ---- what actors call ---------------------------------------------------------------

    def point(self, operation: Operation) -> None:
        """The current actor is about to do this; somebody else may come before."""
        actor = self.current
        if actor is None:
            return
        while (decision := self._next_decision()) is not None:
            self._decided += 1
            if decision.to == KILL:
                actor.process.is_dead = True
                actor.process.on_death()
                raise Crash
            self._told = self._named(decision)
            self._hub.switch()
        self._note(actor, operation)

    def _note(self, actor: Actor, operation: Operation) -> None:
        if len(self.steps) > MOST_STEPS:
            raise Endless(f"expected a run to end, but {actor.name} still is at {operation}")
        is_wait = operation.reads is EVERYTHING
        number = len(self.steps)
        if number < len(self.known):
            step = self.known[number]
            if (step.actor, step.operation) != (actor.name, operation):
                raise Strayed(f"expected {step} at {number}, got {operation} by {actor.name}")
        else:
            others = tuple(one.name for one in self._actors if one is not actor and one.is_ready())
            is_free = not self._is_fresh and not is_wait
            step = Step(actor.name, actor.process.number, operation, others, is_free, self._decided)
        self.steps.append(step)
        self._is_fresh = False
        if not is_wait:
            self._progress += operation.name != "lock"
            self._changes += any(it[:5] != "lock " for it in operation.writes)

    def wait(self, until: Callable[[], bool], why: str, *, gives_up: bool) -> bool:
        """The current actor can not go on before that; False: nobody could bring it about.

        gives_up: it goes on then; else the run is stuck.
        """
        actor = self.current
        if actor is None:
            if not until() and not gives_up:
                raise Stuck(f"nobody else is there, and {why}")
            return until()
        self._note(actor, Operation("wait", why, EVERYTHING, EVERYTHING))
        actor.waits_for, actor.may_give_up, actor.why = until, gives_up, why
        self._hub.switch()
        is_met, actor.waits_for = until(), None
        return is_met

    def wait_for_others(self, why: str) -> bool:
        """Until somebody else has done something; False: nobody can."""
        seen = self._progress
        return self.wait(lambda: self._progress > seen, why, gives_up=True)

    def rest(self, until: Callable[[], bool]) -> bool:
        """Until that is so, or others have changed something; False: nobody does any more."""
        seen = self._changes
        return (
            self.wait(lambda: until() or self._changes > seen, "something to do", gives_up=True)
            or self._changes > seen
        )

    # ---- who goes on --------------------------------------------------------------------

    def _pick(self) -> Actor | None:
        if (told := self._told) is not None:
            self._told = None
            return told
        left = [actor for actor in self._actors if not actor.is_over]
        ready = [actor for actor in left if actor.is_ready()]
        if not ready:
            ready = [actor for actor in left if actor.may_give_up][:1]
            if left and not ready:
                waits = "; ".join(f"{actor.name}: {actor.why}" for actor in left)
                raise Stuck(f"each waits for another: {waits}")
        if not ready:
            return None
        # Who only looks again and again lets those go first that it waits for.
        ready.sort(key=lambda actor: actor.waits_for is not None)
        chosen, decision = ready[0], self._next_decision()
        if decision is not None and decision.to != KILL:
            self._decided += 1
            chosen = self._named(decision)
        elif len(ready) > 1:
            others = tuple(actor.name for actor in ready if actor is not chosen)
            costs = int(self.current is not None and not self.current.is_over)
            self.picks.append(Pick(len(self.steps), others, self._decided, costs))
        return chosen

    def _named(self, decision: Decision) -> Actor:
        found = next((one for one in self._actors if one.name == decision.to), None)
        if found is None or not found.is_ready():
            raise ValueError(f"expected {decision.to} to be able to go on at step {decision.step}")
        return found

    def _next_decision(self) -> Decision | None:
        if self._decided == len(self.schedule.decisions):
            return None
        decision = self.schedule.decisions[self._decided]
        return decision if decision.step == len(self.steps) else None
