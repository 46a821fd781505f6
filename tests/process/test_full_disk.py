"""A full disk: it is said, nothing accepted is lost, and on it goes once there is space again."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest

from tests.process.world import World, stretched, until

pytestmark = [pytest.mark.needs_platform("linux"), pytest.mark.needs_program("mount", "umount")]

SIZE = "4m"
AGAIN_S = 2.0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[World]:
    """A world whose state lies on a small disk of its own."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    world = World(tmp_path)
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    world.state = disk / "state"
    yield world
    world.close()
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(world: World) -> Path:
    """Use up all the space there is."""
    path = world.state.parent / "ballast"
    with path.open("ab", buffering=0) as file:
        for size in (2**16, 4096, 1):
            with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
                write_on(file, size)
    return path


def write_on(file: FileIO, size: int) -> None:
    """Write until that fails."""
    while True:
        file.write(b"x" * size)


def test_a_full_disk_is_said_and_nothing_accepted_is_lost(small: World) -> None:
    consumer = small.start_consumer()
    web = small.start_web()
    gate, done = small.root / "gate", small.root / "done"
    line = f"touch {done}.begun; while ! [ -e {gate} ]; do sleep 0.02; done; echo gone on >>{done}"
    small.drop("job", {"prompt": line, "profile": "command"})
    until(lambda: Path(f"{done}.begun").exists(), "the command runs")
    consumer.send_signal(signal.SIGSTOP)  # so that these lie in the inbox when the disk is full
    accepted = [f"msg-{number}" for number in range(5)]
    for id_ in accepted:
        assert small.post("/api/input", {"id": id_, "text": "hello"}).status == 202
    ballast = fill(small)
    for path, body in (
        ("/api/input", {"id": "msg-late", "text": "hello"}),
        ("/api/tasks", {"id": "task-late", "prompt": "echo late", "profile": "command"}),
    ):
        refused = small.post(path, body)
        assert (refused.status, refused.body["error"]["field"]) == (507, None)
        assert "disk is full" in refused.body["error"]["message"]
    consumer.send_signal(signal.SIGCONT)
    gate.touch()
    until(done.exists, "the command has ended")
    # What it had to write is refused: it says so in its log as soon as that can be written.
    for _ in range(3):
        assert small.post("/api/input", {"id": "msg-late", "text": "hello"}).status == 507
    assert small.ask("GET", "/api/snapshot").status == 200
    assert small.names("corrupt", "") == []

    ballast.unlink()
    begun = time.monotonic()
    until(lambda: small.post("/api/input", {"id": "msg-late", "text": "hello"}).status == 202,
          "messages are taken again")  # fmt: skip
    until(lambda: all(small.replies(id_) for id_ in [*accepted, "msg-late"]), "all are answered",
          facts=small.facts)  # fmt: skip
    assert time.monotonic() - begun <= stretched(AGAIN_S)
    until(lambda: small.told("job"), "the run that ended meanwhile is told")
    assert (small.result("job") or {})["status"] == "done"
    assert done.read_text() == "gone on\n"
    until(small.is_idle, "nothing is left to do")
    assert (consumer.poll(), web.poll()) == (None, None)
    said = [message["id"] for message in small.transcript() if message["role"] == "user"]
    assert sorted(said) == sorted([*accepted, "msg-late"])
    assert small.names("corrupt", "") == []
    assert "Traceback" not in small.output("consumer") + small.output("web")
