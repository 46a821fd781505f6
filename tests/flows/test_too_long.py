"""More than a model takes at once: asked once more in short, then told in a plain sentence."""

from __future__ import annotations

import pytest

from mimikit.engines.base import EngineRequest, Outcome
from mimikit.protocol.files import Files
from mimikit.testing.memory_disk import MemoryDisk
from mimikit.testing.twins import FakeClock
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.reading import result, transcript


class SmallWindow(Mind):
    """A mind that takes prompts of so many characters."""

    takes = 10**9

    def __init__(self, runs: list[tuple[str, int]]) -> None:
        super().__init__(runs)
        self.asked: list[tuple[str, int]] = []
        """The runs it was asked for, with how long the prompt was."""

    def run(self, request: EngineRequest) -> Outcome:
        self.asked.append((request.run_id, len(request.prompt)))
        if len(request.prompt) > self.takes:
            said = "context_length_exceeded (raw words)"
            return Outcome("failed", error=said, failure_reason="error", too_long=True)
        return super().run(request)


class World:
    def __init__(self) -> None:
        self.files = Files(MemoryDisk())
        self.files.make_folders()
        oracle = Oracle()
        self.mind = SmallWindow(oracle.runs)
        self.product = Product(self.files, FakeClock(START), self.mind)
        self.product.start()
        self.client = Client(self.product, oracle)


def test_it_is_asked_once_more_with_half_of_the_budgets_and_nobody_hears_of_it() -> None:
    world = World()
    text = "tea and cake " * 3000
    world.client.say("m0", text)
    world.product.idle()
    world.mind.takes = world.mind.asked.pop()[1] * 3 // 4
    world.mind.asked.clear()
    world.client.say("m1", text)
    world.product.idle()
    (first, whole), (second, half) = world.mind.asked
    assert first == second
    assert half < world.mind.takes < whole
    said = transcript(world.files)
    assert said[-1][0] == "agent"
    assert said[-1][1].startswith("heard tea and cake")
    assert not [text for role, text in said if role == "system"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hello my friend", "is more than the model of"),
        ("你今天过得怎么样？", "模型"),
    ],
)
def test_in_vain_it_is_told_in_a_sentence_of_the_users_language(text: str, told: str) -> None:
    world = World()
    world.mind.takes = 10
    world.client.say("m1", text)
    world.product.idle()
    said = transcript(world.files)
    assert ("user", text) in said, "nothing is lost"
    assert told in said[-1][1]
    assert "raw words" not in str(said)
    runs = [run for run, _ in world.mind.asked]
    assert len(runs) == 2 * len(set(runs)), "once more, each time"


def test_a_task_that_is_too_long_fails_with_the_sentence() -> None:
    world = World()
    world.mind.takes = 10
    world.client.submit("t1", "paint", notify="none")
    world.product.idle()
    failed = result(world.files, "t1")
    assert (failed.status, failed.failure_reason) == ("failed", "error")
    assert "at once, also in short" in (failed.error or "")
