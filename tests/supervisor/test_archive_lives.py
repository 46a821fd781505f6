"""Whatever happens in whatever order, each message is in the working set or in memory, and once."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mimikit.conversation.history import HistoryCaps
from mimikit.memory.archive import ArchiveRules
from mimikit.protocol.files import Files
from tests.crash.disk import Contents, Image, WatchedDisk
from tests.crash.driver import START_NS, TOLD_ERRORS, Client, warm_folder
from tests.crash.oracle import Folder, Oracle, remembered
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.twins import FakeClock

LIVES = 20
ACTIONS = 30
PAUSES_S = (60, 700, 3_700, 22_000, 86_400, 3 * 86_400, 20 * 86_400)
TEXTS = ("hello day", "a difficult day", "an unspeakable day", "remember tea", "remember long tea")
UNDER_WAY = "is pending for nobody"
"""True of a pass that goes on; at the end it must not be."""


class Life:
    """A product that is talked to, left alone, robbed of its model, and killed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.rules = ArchiveRules(
            start_above=self.dice.choice([3, 10, 100]),
            flush_at=self.dice.choice([6, 800]),
            batch=self.dice.choice([1, 3, 200]),
        )
        self.caps = HistoryCaps(soft=self.dice.choice([4, 200]), hard=self.dice.choice([6, 300]))
        self.clock, self.oracle = FakeClock(START), Oracle()
        self.said = 0
        self.client = self.started(warm_folder())

    def started(self, folders: Contents) -> Client:
        files = Files(WatchedDisk.of(Image("life", folders), start_ns=START_NS))
        mind = Mind(self.oracle.runs)
        product = Product(files, self.clock, mind, rules=self.rules, caps=self.caps)
        product.start()
        return Client(product, self.oracle)

    def folders(self) -> Contents:
        disk = self.client.files.fs
        assert isinstance(disk, WatchedDisk)
        return disk.kill_image().folders

    def work(self) -> None:
        """Work until nothing is left to do, or a little while the model is down."""
        product = self.client.product
        if product.mind.waiting is None:
            product.idle()
            return
        for _ in range(4):
            product.tick()
            self.clock.advance(2)

    def say(self) -> None:
        self.said += 1
        self.client.say(f"m{self.said}", self.dice.choice(TEXTS))
        self.work()

    def wait(self) -> None:
        self.clock.advance(self.dice.choice(PAUSES_S))
        self.work()

    def lose_or_find_the_model(self) -> None:
        mind = self.client.product.mind
        mind.waiting = None if mind.waiting else "down"

    def die(self) -> None:
        self.client = self.started(self.folders())

    def do_a_little(self) -> None:
        for _ in range(self.dice.randint(1, 3)):
            self.client.product.archiver.step(self.clock.now())

    def act(self) -> None:
        acts: list[tuple[Callable[[], None], int]] = [
            (self.say, 45),
            (self.wait, 30),
            (self.lose_or_find_the_model, 10),
            (self.die, 7),
            (self.do_a_little, 8),
        ]
        (act,) = self.dice.choices([a for a, _ in acts], [weight for _, weight in acts])
        act()


@pytest.mark.parametrize("seed", range(LIVES))
def test_nothing_said_is_lost_or_doubled_and_all_ends_in_memory(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.crash.disk.MOST_LOOKS", 10**9)
    life = Life(seed)
    for _ in range(ACTIONS):
        life.act()
        found = remembered(Folder(life.folders()))
        assert [line for line in found if UNDER_WAY not in line] == []
    life.client.product.mind.waiting = None
    for _ in range(12):
        life.clock.advance(13 * 3600)
        life.work()
    assert remembered(Folder(life.folders())) == []
    conversation = life.client.product.store.conversation
    if all("unspeakable" not in message.text for message in conversation.messages):
        assert [message.id for message in conversation.messages if not message.archived] == []
    assert {str(e["event"]) for e in life.client.product.log.errors} <= TOLD_ERRORS
    assert life.said > 5
