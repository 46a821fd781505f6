"""A program for the tests that kill: a Huey consumer whose tasks leave a line in a file outside.

Usage: drainer.py FOLDER LINES_FILE [WORKERS [THREAD|PROCESS [MOST [GATE]]]]; ends when the queue is
empty. With MOST lines in the file it does no more; with GATE it begins once that file is there.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from pathlib import Path

from mimikit.hueyfiles.storage import ClaimHuey


def make_huey(folder: str, lines: str, most: float = math.inf) -> ClaimHuey:
    """The Huey that producer and consumers share; from so many lines on no task ends."""
    huey = ClaimHuey("drain", path=folder, results=False, read_timeout=0.1)

    @huey.task(name="note")
    def note(number: int) -> None:  # pyright: ignore[reportUnusedFunction]
        descriptor = os.open(lines, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if most < math.inf and Path(lines).read_bytes().count(b"\n") >= most:
            threading.Event().wait()
        os.write(descriptor, f"{number} {os.getpid()}\n".encode())
        os.close(descriptor)
        threading.Event().wait(0.001)

    huey.note = note  # pyright: ignore[reportAttributeAccessIssue]
    return huey


def main(
    folder: str,
    lines: str,
    workers: str = "2",
    kind: str = "thread",
    most: str = "inf",
    gate: str = "",
) -> None:
    """Consume until nothing waits and nothing runs."""
    huey = make_huey(folder, lines, float(most))
    if gate:
        Path(f"{gate}-{os.getpid()}").touch()
        while not Path(gate).exists():
            threading.Event().wait(0.005)
    consumer = huey.create_consumer(workers=int(workers), worker_type=kind, periodic=False)
    consumer.start()
    root = Path(folder)
    while any((root / "queue").iterdir()) or any((root / "running").iterdir()):
        threading.Event().wait(0.005)
    consumer.stop(graceful=True)


if __name__ == "__main__":
    # By its real name: Huey calls a task by the module it was defined in.
    from tests.hueyfiles import drainer

    drainer.main(*sys.argv[1:])
