"""Fixtures: a state folder in memory, and a client of a whole consumer over it in one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mimikit.engines.base import Engine
from mimikit.protocol.files import Files
from tests.crash.disk import Image, WatchedDisk
from tests.crash.driver import START_NS, Client
from tests.crash.oracle import Oracle, judge
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.twins import FakeClock


def start_client(
    files: Files | None = None,
    engine: Callable[[list[tuple[str, int]]], Engine] = Mind,
    **options: Any,
) -> Client:
    """A client of a started, idle product; without `files` over a new folder in memory.

    engine: makes the engine, given the list of runs that the oracle looks at.
    options: further arguments of `Product`.
    """
    if files is None:
        files = Files(MemoryDisk())
        files.make_folders()
    oracle = Oracle()
    product = Product(files, FakeClock(START), engine(oracle.runs), **options)
    product.start()
    product.idle()
    return Client(product, oracle)


@pytest.fixture
def disk() -> WatchedDisk:
    """An empty disk whose files are as old as the fake clock says."""
    return WatchedDisk.of(Image("new", {"": {}}), start_ns=START_NS)


@pytest.fixture
def files(disk: WatchedDisk) -> Files:
    """An empty state folder."""
    made = Files(disk)
    made.make_folders()
    return made


@pytest.fixture
def client(files: Files) -> Client:
    """A client of a product that was started and has nothing to do."""
    return start_client(files)


@pytest.fixture
def judged(client: Client, disk: WatchedDisk) -> Iterator[Client]:
    """A client after whose test everything must be in order, as after a crash."""
    yield client
    client.product.idle()
    assert judge(disk.kill_image().folders, client.oracle) == []
