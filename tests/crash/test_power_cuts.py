"""Power that fails under a real ext4: its journal is replayed, and nothing acknowledged is gone.

The disk is a file. A copy of that file, made before a change, is what a power cut at this moment
leaves: what the kernel had not written to it by then is not in it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.testing.twins import FakeClock
from tests.crash.dice import DICE, dead_owner
from tests.crash.driver import Client, Flow
from tests.crash.flows import FLOWS
from tests.crash.images import Contents
from tests.crash.oracle import Frozen, Oracle, judge
from tests.support.mind import Mind
from tests.support.product import START

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(0),
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("mount", "umount", "mkfs.ext4"),
]

CHANGES = ("write_new", "append_line", "rename", "rename_exclusive", "unlink", "sync_dir")
SOME = ("task", "message", "two messages", "next attempt", "trigger", "archive, young", "chain")


class CutDisk(RealDisk):
    """Calls `cut` before each change."""

    cut: Callable[[], None] = staticmethod(lambda: None)


def _cutting(name: str) -> Callable[..., Any]:
    plain = getattr(RealDisk, name)

    def changed(self: CutDisk, *args: Any, **more: Any) -> Any:
        self.cut()
        return plain(self, *args, **more)

    return changed


for _name in CHANGES:
    setattr(CutDisk, _name, _cutting(_name))


@contextmanager
def mounted(image: Path) -> Generator[Path]:
    """The disk in this file, beside it; gives where the state lies on it."""
    point = image.with_suffix("")
    point.mkdir()
    done = subprocess.run(
        ["mount", "-o", "loop", str(image), str(point)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no disk in a file can be mounted here: {done.stderr.strip()}")
    try:
        yield point / "state"
    finally:
        subprocess.run(["umount", str(point)], check=True)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file that is an empty ext4 disk."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-b", "1024", str(path)], check=True)
    return path


def contents(state: Path) -> Contents:
    """What lies in a state folder, as the oracle reads it."""
    found: Contents = {"": {}}
    for path in sorted(state.rglob("*")):
        name = path.relative_to(state).as_posix()
        if path.is_dir():
            found.setdefault(name, {})
        else:
            folder, _, last = name.rpartition("/")
            found.setdefault(folder, {})[last] = path.read_bytes()
    return found


def live(flow: Flow, files: Files, oracle: Oracle, life: int, first: int) -> Iterator[int]:
    """One life of the product, from an action of the flow on; gives each that is done."""
    DICE.life(life)
    clock = FakeClock(START)
    dead_owner(files, life)
    files.make_folders()
    product = flow.counting(flow.product(files, clock, Mind(oracle.runs)))
    client = Client(product, oracle)
    product.start()
    product.idle()
    yield first - 1
    for number in range(first, len(flow.actions)):
        client.action = number
        flow.actions[number](client)
        client.product.idle()
        yield number


def cut_anywhere(
    flow: Flow, image: Path, every: int, *, durable: bool = True
) -> tuple[int, list[str]]:
    """Live through the flow, and then on from each `every`-th cut: how many, and what is wrong."""
    cuts: list[tuple[Path, Frozen, int]] = []
    oracle, seen, now = Oracle(), 0, 0

    def cut() -> None:
        nonlocal seen
        seen += 1
        if seen % every == 0:
            copy = image.with_name(f"cut-{seen}.img")
            shutil.copyfile(image, copy)
            cuts.append((copy, oracle.freeze(), now))

    with mounted(image) as state:
        state.mkdir()
        with contextlib.closing(CutDisk(state)) as disk:
            files = Files(disk, durable=durable)
            files.make_folders()
            os.sync()
            life = live(flow, files, oracle, 0, 0)
            disk.cut = cut
            for number in life:
                now = min(number + 1, len(flow.actions) - 1)
    wrong: list[str] = []
    for copy, frozen, action in cuts:
        known = Oracle.thaw(frozen)
        with mounted(copy) as state, contextlib.closing(RealDisk(state)) as disk:
            for _ in live(flow, Files(disk), known, 1, action):
                found = judge(contents(state), known, flow.expected)
                wrong += [f"{flow.name}, {copy.name}: {violation}" for violation in found]
        copy.unlink()
    return len(cuts), wrong


@pytest.mark.fault(9)
@pytest.mark.parametrize(
    "flow", [flow for flow in FLOWS if flow.name in SOME], ids=lambda flow: flow.name
)
def test_what_was_acknowledged_outlives_a_power_cut_under_a_real_file_system(
    flow: Flow,
    image: Path,
    size: int,
    lines: list[str],
    proof: Callable[[dict[str, float]], None],
) -> None:
    count, wrong = cut_anywhere(flow, image, 1 if size > 1 else 3)
    assert wrong == []
    assert count > 5
    proof({"power cuts": count})
    lines.append(f"{flow.name}: {count} power cuts under ext4")


def test_without_its_flushes_the_same_is_seen_to_lose_something(image: Path) -> None:
    flow = next(flow for flow in FLOWS if flow.name == "message")
    assert cut_anywhere(flow, image, 3, durable=False)[1] != []
