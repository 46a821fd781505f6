"""A run's scratch folder outside the workspace."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from mimikit.engines import process
from mimikit.engines.base import UPSTREAM
from mimikit.engines.process_marks import scratch_prefix
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.results import TaskResult

_REMOVE_TIMEOUT_S = 60


def make_scratch(state: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=scratch_prefix(state)))


def sweep_scratch(state: Path) -> None:
    """Remove the scratch folders of a dead consumer; only while nothing runs."""
    for path in Path(tempfile.gettempdir()).glob(f"{scratch_prefix(state)}*"):
        with contextlib.suppress(FileNotFoundError):
            if path.lstat().st_uid == os.getuid():  # /tmp is shared
                remove_scratch(path)


def remove_scratch(scratch: Path) -> None:
    with contextlib.suppress(RecursionError):
        shutil.rmtree(scratch, ignore_errors=True)
    if os.path.lexists(scratch):  # too deep for Python, or without permission
        line = 'chmod -R u+rwx -- "$1"; rm -rf -- "$1"'
        with contextlib.suppress(OSError):
            process.output(["/bin/sh", "-c", line, "sh", str(scratch)], timeout_s=_REMOVE_TIMEOUT_S)


def write_upstream(files: Files, upstream: tuple[TaskResult, ...], scratch: Path) -> None:
    """Write the results of earlier steps into the scratch folder, read-only."""
    for result in upstream:
        full = files.read(paths.side(result.id)) if "whole" in result.result else None
        folder = scratch / UPSTREAM
        folder.mkdir(exist_ok=True)
        path = folder / f"{result.id}.txt"
        path.write_bytes(full if full is not None else result.text.encode(errors="replace"))
        path.chmod(0o400)
