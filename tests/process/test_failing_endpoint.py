"""An endpoint fails in each of its ways under a real consumer: seen, told once, nothing lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.process.world import World, free_port, until
from tests.support.fake_llm import Body, FakeLLM

KEY = "canary-key-3kd9"
_numbers = itertools.count()


class Endpoint:
    """A model server that can be pulled away and comes back at the same address."""

    def __init__(self) -> None:
        self.port, self.trouble = free_port(), list[Body]()
        self.is_ill: Body | None = None
        """What it answers all the time; else `trouble`, one by one, then it is well."""
        self._stack = ExitStack()
        self.come_back()

    def come_back(self, key: str = KEY) -> None:
        self.llm = self._stack.enter_context(FakeLLM([self._step], port=self.port, key=key))

    def pull_away(self) -> None:
        self._stack.close()

    def _step(self, _body: Body) -> Body:
        if self.is_ill is not None:
            return self.is_ill
        return self.trouble.pop(0) if self.trouble else {"text": "I am here for you."}


class Journey:
    """A consumer and its page over one endpoint."""

    def __init__(self, root: Path) -> None:
        seats = ("ROLES__TELLER", "ROLES__PLANNER", "PROFILES__STANDARD")
        settings: dict[str, object] = {f"{seat}__ENGINE": "mine" for seat in seats}
        settings["LIMITS__TELLER_IDLE_TIMEOUT_S"] = 2
        self.world, self.endpoint = World(root, settings), Endpoint()
        secrets = self.world.state / "secrets"
        secrets.mkdir(parents=True, mode=0o700)
        self.key = secrets / "mine.key"
        self.key.write_text(KEY)
        (self.world.state / "config.toml").write_text(
            'durability = "fast"\n[engines.mine]\n'
            f'base_url = "{self.endpoint.llm.url}"\nmodel = "m"\napi_key_file = "mine.key"\n'
        )
        self.world.start_consumer(wait=False)
        self.world.start_web()
        self.begin()

    def begin(self) -> None:
        """What is told counts from here on."""
        self.seen = len(self.world.transcript())

    def say(self, text: str = "how are you, my friend?") -> str:
        id_ = f"msg-said-{next(_numbers)}"
        answer = self.world.post("/api/input", {"id": id_, "text": text})
        assert answer.status in (200, 201, 202), answer
        return id_

    def answered(self, id_: str) -> None:
        facts = self.world.facts
        (reply,) = until(lambda: self.world.replies(id_), f"{id_} is answered", facts=facts)
        assert reply["text"] == "I am here for you."

    def mind(self) -> dict[str, Any]:
        """How the page says that it is."""
        return self.world.ask("GET", "/api/status").body["minds"].get("mine", {})

    def shows(self, want: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            mind = self.mind()
            return mind if mind.get("want") == want and mind["messages"] else None

        return until(look, f"the page says {want}", facts=lambda: (self.mind(), self.told()))

    def told(self) -> list[str]:
        """What code has said since the beginning."""
        return [m["text"] for m in self.world.transcript()[self.seen :] if m["role"] == "system"]

    def is_told(self, *beginnings: str) -> None:
        until(lambda: len(self.told()) >= len(beginnings), f"{beginnings}", facts=self.told)
        assert [text[: len(b)] for text, b in zip(self.told(), beginnings, strict=True)] == [
            *beginnings
        ]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journey]:
    made = Journey(tmp_path_factory.mktemp("failing"))
    yield made
    made.endpoint.pull_away()
    made.world.close()


@pytest.fixture
def journey(shared: Journey) -> Journey:
    """The same world, well again, whatever a failed test has left."""
    shared.endpoint.is_ill, shared.endpoint.trouble = None, []
    shared.key.write_text(KEY)
    shared.world.post("/api/engines/try")
    shared.answered(shared.say())
    until(lambda: shared.mind().get("state") != "waiting", "all is well", facts=shared.mind)
    shared.begin()
    return shared


WELL = "mine is available again"


def test_pulled_away_in_the_midst_of_a_turn_and_back(journey: Journey) -> None:
    journey.endpoint.trouble = [{"hang": 60}]
    journey.endpoint.llm.asked.clear()
    id_ = journey.say()
    assert journey.endpoint.llm.asked.wait(60)
    journey.endpoint.pull_away()
    journey.shows("unreachable")
    journey.is_told("mine cannot be reached. Waiting for it: 1 message.")
    journey.endpoint.come_back()
    journey.answered(id_)
    journey.is_told("mine cannot be reached", WELL)
    assert len(journey.endpoint.llm.requests) == 1


def test_a_wrong_key_and_then_the_right_one(journey: Journey) -> None:
    journey.key.write_text("another key")
    id_ = journey.say()
    journey.shows("logged_out")
    journey.key.write_text(KEY)
    journey.answered(id_)
    journey.is_told("mine has no key that is accepted. Waiting for it: 1 message.", WELL)


def test_limited_for_an_hour_and_tried_now(journey: Journey) -> None:
    before = len(journey.endpoint.llm.requests)
    journey.endpoint.is_ill = {"status": 429, "headers": {"retry-after": "3600"}}
    id_ = journey.say()
    assert journey.shows("limited")["until"]
    journey.is_told("mine has reached its limit until ")
    assert len(journey.endpoint.llm.requests) == before + 1
    journey.endpoint.is_ill = None
    answer = journey.world.post("/api/engines/try", {"engine": "mine"})
    assert (answer.status, answer.body["message"]) == (200, "trying mine now")
    journey.answered(id_)
    journey.is_told("mine has reached its limit until ", WELL)
    assert len(journey.endpoint.llm.requests) == before + 2


def test_a_stop_while_it_is_waited_for_leaves_no_process(journey: Journey) -> None:
    journey.endpoint.trouble = [{"hang": 60}]
    journey.endpoint.llm.asked.clear()
    id_ = journey.say()
    assert journey.endpoint.llm.asked.wait(60)
    consumer = journey.world.consumer
    assert consumer is not None
    consumer.terminate()
    assert consumer.wait(60) == 0
    until(lambda: not journey.world.of_runs(), "nothing is left")
    journey.world.start_consumer()
    journey.answered(id_)
