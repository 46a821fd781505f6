"""What the tests of queues share: folders, storages, and waiting without sleeping."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from mimikit.hueyfiles.storage import ClaimStorage
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from tests.support.memory_disk import MemoryDisk

START = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


def until(condition: Callable[[], object], limit_s: float = 20.0) -> None:
    """Wait until something holds; fail when it does not in time."""
    pause, deadline = threading.Event(), time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.002)


def real_files(root: Path, *, product: bool = False) -> Files:
    """Files on the real disk; with `product`, all folders of the protocol in them."""
    files = Files(RealDisk(root), durable=False)
    if product:
        files.make_folders()
    return files


def memory_files(disk: MemoryDisk | None = None) -> Files:
    """Files on a disk in memory, with all folders of the protocol."""
    files = Files(disk or MemoryDisk())
    files.make_folders()
    return files


def plain(files: Files, **options: object) -> ClaimStorage:
    """A storage for any program that never waits and watches nothing."""
    return ClaimStorage("test", files=files, **{"blocking": False, **options})  # pyright: ignore[reportArgumentType]


def names(files: Files, folder: str) -> list[str]:
    """All files of a folder."""
    return files.names(folder, suffix="")


def reasons(files: Files) -> list[str]:
    """Why each file in `corrupt/` is there."""
    found = files.names("corrupt", suffix=".reason.txt")
    return [(files.read(f"corrupt/{name}") or b"").decode() for name in found]
