"""Consumers as processes: killed they lose no message, together they run none twice."""

from __future__ import annotations

import collections
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hueyfiles.drainer import make_huey
from tests.hueyfiles.helpers import until
from tests.support.pace import within


def start(folder: Path, lines: Path, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.hueyfiles.drainer", str(folder), str(lines), *more],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )


def fill(folder: Path, lines: Path, count: int) -> None:
    huey = make_huey(str(folder), str(lines))
    for number in range(count):
        huey.note(number)  # pyright: ignore[reportAttributeAccessIssue]
    huey.storage.close()


def noted(lines: Path) -> list[tuple[int, int]]:
    if not lines.exists():
        return []
    pairs = (line.split() for line in lines.read_text().splitlines())
    return [(int(number), int(pid)) for number, pid in pairs]


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for child in started:
        child.kill()
        child.wait()


@pytest.mark.slow
def test_a_consumer_killed_again_and_again_loses_nothing(
    tmp_path: Path, size: int, children: list[subprocess.Popen[bytes]]
) -> None:
    kills, count = 12 * size, 1500 * size
    folder, lines = tmp_path / "queue", tmp_path / "lines"
    chance = random.Random(1)
    fill(folder, lines, count)
    for _ in range(kills):
        before = len(noted(lines))
        # However late it is killed, it has not done all by then.
        children.append(start(folder, lines, "2", "thread", str(before + 100)))
        until(lambda before=before: len(noted(lines)) > before + chance.randrange(60))
        children[-1].kill()
        children[-1].wait()
        assert len({number for number, _ in noted(lines)}) < count, "it ended before it was killed"
    children.append(start(folder, lines))
    assert children[-1].wait(within(60)) == 0
    times = collections.Counter(number for number, _ in noted(lines))
    assert set(times) == set(range(count))
    # A kill repeats at most what its two threads were at.
    assert sum(times.values()) - count <= 2 * kills


def test_several_consumers_run_nothing_twice(
    tmp_path: Path, children: list[subprocess.Popen[bytes]]
) -> None:
    folder, lines = tmp_path / "queue", tmp_path / "lines"
    fill(folder, lines, 600)
    gate = tmp_path / "gate"
    children += [start(folder, lines, "2", "thread", "inf", str(gate)) for _ in range(3)]
    until(lambda: len(list(tmp_path.glob("gate-*"))) == len(children))  # else the first does all
    gate.touch()
    for child in children:
        assert child.wait(within(60)) == 0
    assert sorted(number for number, _ in noted(lines)) == list(range(600))
    assert len({pid for _, pid in noted(lines)}) > 1


def test_huey_s_process_workers_each_claim_as_themselves(
    tmp_path: Path, children: list[subprocess.Popen[bytes]]
) -> None:
    folder, lines = tmp_path / "queue", tmp_path / "lines"
    fill(folder, lines, 200)
    children.append(start(folder, lines, "2", "process"))
    assert children[0].wait(within(60)) == 0
    assert sorted(number for number, _ in noted(lines)) == list(range(200))
    assert children[0].pid not in {pid for _, pid in noted(lines)}
