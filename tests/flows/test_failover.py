"""Several minds in an order: the first that serves is used, and each switch is told once."""

from __future__ import annotations

import tomllib
from datetime import timedelta

import pytest

from mimikit.config import Settings
from mimikit.engines.base import EngineAbsence, Failed, Outcome, RunSpec
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.reading import loaded, results, transcript
from tests.support.twins import FakeClock

LOGGED_OUT = EngineAbsence("codex is not logged in: run `codex login`", "logged_out")
ENDPOINT = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}


class MindWithLimit(Mind):
    """A mind that turns everything away while it is limited, and counts what it was asked."""

    def __init__(self, runs: list[tuple[str, int]], name: str) -> None:
        super().__init__(runs)
        self.name = name
        self.is_limited = False
        self.served = 0
        self.until_s: float | None = None

    def run(self, request: RunSpec) -> Outcome:
        if self.is_limited:
            until = None if self.until_s is None else START + timedelta(seconds=self.until_s)
            return Failed("rate_limited", "limit", retry_at=until)
        self.served += 1
        return super().run(request)


class Pair:
    """A product with two minds, of which `auto` takes codex first."""

    def __init__(self) -> None:
        self.files = Files(MemoryDisk())
        self.files.make_folders()
        self.clock = FakeClock(START)
        self.oracle = Oracle()
        self.first = MindWithLimit(self.oracle.runs, "codex")
        self.second = MindWithLimit(self.oracle.runs, "deep")
        self.shell = MindWithLimit(self.oracle.runs, "command")
        limits = {"retry_delay_s": 1, "engine_retry_s": 5}
        facts = {"timezone": "UTC", "limits": limits, "engines": {"deep": ENDPOINT}}
        self.settings = Settings.model_validate(facts)
        self.start()

    def start(self) -> None:
        self.product = Product(
            self.files,
            self.clock,
            self.first,
            settings=self.settings,
            more_engines=(self.second, BuiltinEngine(is_program=lambda _: False), self.shell),
        )
        self.product.start()
        self.client = Client(self.product, self.oracle)

    def live_through(self, seconds: int) -> None:
        for _ in range(seconds):
            while self.product._pass():
                pass
            self.clock.advance(1)

    def told(self, what: str) -> list[str]:
        return [text for role, text in transcript(self.files) if role == "system" and what in text]


@pytest.fixture
def pair() -> Pair:
    pair = Pair()
    pair.client.say("m0", "hello")
    pair.live_through(2)
    assert (pair.first.served, pair.second.served) == (1, 0)
    return pair


def test_a_switch_is_told_once_each_way_also_over_a_restart(pair: Pair) -> None:
    pair.first.waiting = LOGGED_OUT
    for number in (1, 2):
        pair.client.say(f"m{number}", f"again {number}")
        pair.live_through(20)
        pair.start()
    assert (pair.first.served, pair.second.served) == (1, 2)
    (told,) = pair.told("in its place")
    assert told.startswith("codex is logged out")
    assert "deep" in told
    pair.first.waiting = None
    for number in (3, 4):
        pair.client.say(f"m{number}", f"again {number}")
        pair.live_through(20)
        pair.start()
    assert (pair.first.served, pair.second.served) == (3, 2)
    assert pair.told("serves again") == ["codex serves again."]
    assert [text for role, text in transcript(pair.files) if role == "system"] == [
        told,
        "codex serves again.",
    ]


def test_what_is_turned_away_goes_to_the_next_at_once_and_costs_no_attempt(pair: Pair) -> None:
    pair.first.is_limited = True
    pair.client.say("m1", "plan: a; b")
    pair.live_through(3)
    assert pair.second.served >= 3
    assert set(results(pair.files).values()) == {"done"}
    assert {attempt for _, attempt in pair.oracle.runs} == {1}
    assert len(pair.told("in its place")) == 1


def test_the_better_one_is_tried_again_when_its_limit_ends(pair: Pair) -> None:
    pair.first.is_limited, pair.first.until_s = True, 600
    pair.client.say("m1", "one")
    pair.live_through(5)
    pair.first.is_limited = False
    pair.client.say("m2", "two")
    pair.live_through(5)
    assert (pair.first.served, pair.second.served) == (1, 2)
    assert "until 09:10" in pair.told("in its place")[0]
    pair.live_through(600)
    pair.client.say("m3", "three")
    pair.live_through(5)
    assert (pair.first.served, pair.second.served) == (2, 2)
    assert len(pair.told("serves again")) == 1


def test_where_both_can_not_serve_everything_waits_and_nothing_is_lost(pair: Pair) -> None:
    pair.first.waiting = LOGGED_OUT
    pair.second.is_limited = True
    pair.client.say("m1", "how are you, my friend?")
    pair.live_through(60)
    assert pair.first.served + pair.second.served == 1
    pair.second.is_limited = False
    pair.live_through(30)
    assert ("agent", "heard how are you, my friend?") in transcript(pair.files)


def test_an_endpoint_that_is_set_up_is_waited_for_from_the_beginning() -> None:
    pair = Pair()
    pair.first.waiting = EngineAbsence("no such program", "missing")
    pair.second.waiting = EngineAbsence("the key is wrong", "logged_out")
    pair.client.say("m1", "how are you, my friend?")
    pair.live_through(10)
    assert not [text for role, text in transcript(pair.files) if role == "agent"]
    (told,) = pair.told("deep has no key that is accepted")
    assert "`mimikit engine add deep` with the right key" in told
    pair.second.waiting = None
    pair.live_through(10)
    assert pair.second.served == 1


def test_the_order_is_the_owners_and_counts_at_once(pair: Pair) -> None:
    own = b'# mine\n[engines.deep]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
    pair.files.write("config.toml", own)
    pair.client.order("o1", "engine_use", "deep codex")
    pair.live_through(2)
    done = loaded(pair.files, paths.command_done("o1"))
    assert done["ok"], done
    text = (pair.files.read("config.toml") or b"").decode()
    assert "# mine\n" in text
    assert tomllib.loads(text)["engine"] == ["deep", "codex"]
    pair.client.say("m1", "hello")
    pair.live_through(2)
    assert (pair.first.served, pair.second.served) == (1, 1)


def test_what_is_removed_while_it_is_waited_for_is_waited_for_no_more() -> None:
    pair = Pair()
    pair.files.write(
        "config.toml", b'[engines.deep]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
    )
    pair.first.waiting = EngineAbsence("no such program", "missing")
    pair.second.waiting = EngineAbsence("the key is wrong", "logged_out")
    pair.client.say("m1", "how are you, my friend?")
    pair.live_through(5)
    assert "deep" in pair.product.teller.engines.shown
    pair.client.order("o1", "engine_remove", "deep")
    pair.live_through(10)
    assert loaded(pair.files, paths.command_done("o1"))["ok"]
    assert "deep" not in pair.product.teller.engines.shown
    assert "deep" not in loaded(pair.files, paths.RUNTIME)["engines"]
    assert not pair.files.names(paths.INBOX), "code has answered"
