"""Somebody who does anything in any order to a product that may die at any change of its disk."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from mimikit.protocol.files import Files
from mimikit.testing.memory_disk import Crash, MemoryDisk
from mimikit.testing.twins import FakeClock
from tests.crash.dice import DICE, dead_owner, loaded_dice
from tests.crash.driver import Client
from tests.crash.images import Contents
from tests.crash.oracle import Expected, Oracle, judge
from tests.support.mind import Mind
from tests.support.product import START, Product

MESSAGES = (
    *("hello", "plan: one; two", "plan: bad one", "ask: colour? | default", "ask: shape?"),
    *("remember tea", "remember the long way", "backlog sweep", "tell one two", "fail now"),
    *("find: it", "every 60: tick", "chain: one > two", "wonder why"),
)
PROMPTS = ("one", "bad one", "flaky", "long", "session")
SPANS_S = (1, 61, 601, 3 * 3600)
LEAPS_S = (-7200, -30, 30, 7200)
few, many = st.integers(0, 5), st.integers(0, 60)


class Journeys(RuleBasedStateMachine):
    """One state folder, from its first start to the oracle's word."""

    happened: ClassVar[Counter[str]] = Counter()
    """Over all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(loaded_dice())
        self.clock, self.oracle = FakeClock(START), Oracle()
        self.disk, self.lives = MemoryDisk(), 0
        self.tasks, self.triggers = list[str](), list[str]()
        self.power: int | None = None
        """Which of the images that a power cut may leave is found after the next death."""
        self.number = 0

    @initialize()
    def begin(self) -> None:
        self.happened["journeys"] += 1
        self._start()

    # ---- what somebody does

    @rule(text=st.sampled_from(MESSAGES))
    def say(self, text: str) -> None:
        id_ = self._new("msg")
        self._do(lambda client: client.say(id_, text))

    @rule(text=st.sampled_from(("blue", "round")))
    def answer(self, text: str) -> None:
        id_ = self._new("msg")
        self._do(lambda client: client.answer(id_, text))

    @rule(prompt=st.sampled_from(PROMPTS), attempts=st.integers(1, 2))
    def submit(self, prompt: str, attempts: int) -> None:
        self.tasks.append(self._new("task"))
        self._do(lambda client: client.submit(self.tasks[-1], prompt, max_attempts=attempts))

    @precondition(lambda self: self.tasks)
    @rule(action=st.sampled_from(("cancel", "retry", "dismiss")), which=few)
    def order_about_a_task(self, action: str, which: int) -> None:
        self._order(action, self.tasks[which % len(self.tasks)])

    @rule(interval=st.sampled_from((60, 1800)))
    def make_trigger(self, interval: int) -> None:
        self.triggers.append(self._new("trig"))
        self._do(lambda client: client.trigger(self.triggers[-1], interval, "tick"))

    @precondition(lambda self: self.triggers)
    @rule(action=st.sampled_from(("pause", "resume", "run", "remove")), which=few)
    def order_about_a_trigger(self, action: str, which: int) -> None:
        self._order(f"trigger_{action}", self.triggers[which % len(self.triggers)])

    @rule(action=st.sampled_from(("pause", "resume")))
    def order_all(self, action: str) -> None:
        self._order(action)

    # ---- what else happens

    @rule()
    def work(self) -> None:
        self._do(lambda client: client.product.idle())

    @rule()
    def look_once(self) -> None:
        self._do(lambda client: client.product.tick())

    @rule(seconds=st.sampled_from(SPANS_S))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.work()

    @rule(seconds=st.sampled_from(LEAPS_S))
    def clock_is_set(self, seconds: int) -> None:
        self.happened["clocks set"] += 1
        self.clock.jump(self.clock.now() + timedelta(seconds=seconds))

    @rule(changes=many, torn=st.sampled_from((0.0, 0.4, 1.0)))
    def it_dies_soon(self, changes: int, torn: float) -> None:
        """Before one of its next changes of a file, or half-way through."""
        self.disk.log.clear()
        self.disk.crash_at, self.disk.torn = changes, torn

    @rule(changes=many, image=many)
    def power_fails_soon(self, changes: int, image: int) -> None:
        self.it_dies_soon(changes, 0.0)
        self.power = image

    @rule()
    def it_is_killed(self) -> None:
        self._die()

    @rule()
    def it_is_stopped_and_started(self) -> None:
        self._do(lambda client: client.stop())
        self._start()

    # ---- what has to be true

    def teardown(self) -> None:
        with self.stack:
            if self.lives:
                self._rest()
                found = judge(self._contents(), self.oracle, Expected())
                assert not found, "\n".join(found)

    def _rest(self) -> None:
        """All that was held goes on, and what waits has its time; then all is looked at anew."""
        self.disk.crash_at = None
        self._order("resume")
        for _ in range(3):
            self.clock.advance(601)
            self.client.product.idle()
        self._die()
        self.client.product.idle()

    # ---- how

    def _new(self, kind: str) -> str:
        self.number += 1
        return f"{kind}-{self.number}"

    def _order(self, action: Any, target: str = "") -> None:
        id_ = self._new("order")
        self._do(lambda client: client.order(id_, action, target))

    def _do(self, act: Callable[[Client], object]) -> None:
        """What is done is done again, with the same ids, until it is accepted."""
        self.happened["steps"] += 1
        while True:
            try:
                act(self.client)
            except Crash:
                self._die()
            else:
                return

    def _start(self) -> None:
        """A start may die as well, and is followed by another."""
        while True:
            self.lives += 1
            DICE.life(self.lives)
            files = Files(self.disk)
            dead_owner(files, self.lives)
            try:
                files.make_folders()
                product = Product(files, self.clock, Mind(self.oracle.runs))
                product.context.usage.begin = lambda *_facts: None  # pyright: ignore[reportAttributeAccessIssue]
                product.start()
            except Crash:
                self._bury()
            else:
                self.client = Client(product, self.oracle)
                return

    def _die(self) -> None:
        self._bury()
        self._start()

    def _bury(self) -> None:
        if self.power is None:
            self.happened["kills"] += 1
            self.disk = self.disk.after_kill()
            return
        self.happened["power cuts"] += 1
        images = list(self.disk.after_power_loss())
        self.disk, self.power = images[self.power % len(images)], None

    def _contents(self) -> Contents:
        return {
            folder: {name: file.data for name, file in names.items()}
            for folder, names in self.disk._folders.items()
        }
