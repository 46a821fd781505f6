"""A run's own folder, outside of the workspace: made before it, gone after it."""

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

_REMOVE_S = 60


def make_scratch(state: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=scratch_prefix(state)))


def sweep_scratch(state: Path) -> None:
    """Remove the scratch folders that a killed consumer of this state has left behind.

    Only while no run of this state is going on.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{scratch_prefix(state)}*"):
        with contextlib.suppress(FileNotFoundError):
            if path.lstat().st_uid == os.getuid():  # anybody may make a folder of that name
                remove_scratch(path)


def remove_scratch(scratch: Path) -> None:
    """Remove a scratch folder, whatever a run has made of it; what can not go stays for a start."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(scratch, ignore_errors=True)
    if os.path.lexists(scratch):  # folders too deep for Python, or shut by the run
        line = 'chmod -R u+rwx -- "$1"; rm -rf -- "$1"'
        with contextlib.suppress(OSError):
            process.output(["/bin/sh", "-c", line, "sh", str(scratch)], timeout_s=_REMOVE_S)


def lay_out_upstream(files: Files, upstream: tuple[TaskResult, ...], scratch: Path) -> None:
    """Put the whole text of each result a run builds on into its scratch folder, read-only."""
    for result in upstream:
        whole = files.read(paths.side(result.id)) if "whole" in result.result else None
        folder = scratch / UPSTREAM
        folder.mkdir(exist_ok=True)
        path = folder / f"{result.id}.txt"
        path.write_bytes(whole if whole is not None else result.text.encode(errors="replace"))
        path.chmod(0o400)
