"""Several engines in an order: the first that serves is used, and each switch is told once."""

from __future__ import annotations

import tomllib

import pytest

from mimikit.engines.base import EngineOutage
from mimikit.protocol import paths
from mimikit.protocol.models import Role
from tests.support.engine_world import LOGGED_OUT, World
from tests.support.reading import loaded, results, transcript

ENDPOINT = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}


class Pair(World):
    """A product with two engines, of which `auto` takes codex first."""

    def __init__(self) -> None:
        super().__init__("deep", engines={"deep": ENDPOINT})
        self.first, (self.second,) = self.mind, self.others


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
    (told,) = pair.told("is used until")
    assert told.startswith("codex is logged out")
    assert "deep" in told
    pair.first.waiting = None
    for number in (3, 4):
        pair.client.say(f"m{number}", f"again {number}")
        pair.live_through(20)
        pair.start()
    assert (pair.first.served, pair.second.served) == (3, 2)
    assert pair.told("is used again") == ["codex is used again."]
    assert [text for role, text in transcript(pair.files) if role == "system"] == [
        told,
        "codex is used again.",
    ]


def test_what_is_turned_away_goes_to_the_next_at_once_and_costs_no_attempt(pair: Pair) -> None:
    pair.first.until_s = -1
    pair.client.say("m1", "plan: a; b")
    pair.live_through(3)
    assert pair.second.served >= 3
    assert set(results(pair.files).values()) == {"done"}
    assert {attempt for _, attempt in pair.oracle.runs} == {1}
    assert len(pair.told("is used until")) == 1


@pytest.mark.parametrize("role", ["teller", "planner", "worker"])
def test_what_is_too_long_for_one_goes_to_the_next_alone_and_costs_no_attempt(
    pair: Pair, role: Role
) -> None:
    pair.first.too_small_for = role
    pair.client.say("m1", "plan: a session")
    pair.live_through(3)
    assert set(results(pair.files).values()) == {"done"}
    assert {attempt for _, attempt in pair.oracle.runs} == {1}
    assert pair.second.served == pair.first.too_long > 0
    assert pair.told("is used until") == []
    answers = [text for who, text in transcript(pair.files) if who == "agent"]
    words = 'more than codex takes at once: "Limit 8000, Requested 9001". deep gets it'
    assert any(words in text for text in answers) == (role == "teller")
    served = pair.first.served
    pair.first.too_small_for = None
    pair.client.say("m2", "hello")
    pair.live_through(2)
    assert pair.first.served == served + 1, "its circuit stayed closed"


@pytest.mark.parametrize("until_s", [None, 600])
def test_what_is_too_long_for_all_is_told_at_once_with_both_numbers(
    pair: Pair, until_s: float | None
) -> None:
    pair.first.too_small_for = pair.second.too_small_for = "teller"
    pair.second.until_s = until_s
    pair.client.say("m1", "hello")
    pair.live_through(2)
    (told,) = pair.told("Limit 8000, Requested 9001")
    assert "ask in smaller pieces" in told
    assert pair.first.too_long <= 2
    assert not pair.files.names(paths.INBOX)


def test_the_better_one_is_tried_again_when_its_limit_ends(pair: Pair) -> None:
    pair.first.until_s = 600
    pair.client.say("m1", "one")
    pair.live_through(5)
    pair.first.until_s = None
    pair.client.say("m2", "two")
    pair.live_through(5)
    assert (pair.first.served, pair.second.served) == (1, 2)
    assert "until 09:10" in pair.told("is used until")[0]
    pair.live_through(600)
    pair.client.say("m3", "three")
    pair.live_through(5)
    assert (pair.first.served, pair.second.served) == (2, 2)
    assert len(pair.told("is used again")) == 1


def test_where_both_cannot_serve_everything_waits_and_nothing_is_lost(pair: Pair) -> None:
    pair.first.waiting = LOGGED_OUT
    pair.second.until_s = -1
    pair.client.say("m1", "how are you, my friend?")
    pair.live_through(60)
    assert pair.first.served + pair.second.served == 1
    pair.second.until_s = None
    pair.live_through(30)
    assert ("agent", "heard how are you, my friend?") in transcript(pair.files)


def test_an_endpoint_that_is_set_up_is_waited_for_from_the_beginning() -> None:
    pair = Pair()
    pair.first.waiting = EngineOutage("no such program", "missing")
    pair.second.waiting = EngineOutage("the key is wrong", "logged_out")
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
