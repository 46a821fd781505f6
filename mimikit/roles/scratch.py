"""A run's scratch folder outside the workspace."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from mimikit.conversation.attachments import content
from mimikit.engines import process
from mimikit.engines.base import UPSTREAM, TurnInput
from mimikit.engines.process_marks import scratch_prefix
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Role
from mimikit.roles.prompts import file_name

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


def write_inputs(files: Files, role: Role, turn_input: TurnInput, scratch: Path) -> None:
    """Write earlier results and the user's files into a Worker's scratch folder, read-only."""
    if role != "worker":
        return
    for result in turn_input.upstream:
        full = files.read(paths.side(result.id)) if "whole" in result.result else None
        data = full if full is not None else result.text.encode(errors="replace")
        _write(scratch, f"{result.id}.txt", data)
    for attachment in turn_input.attachments:
        if (data := content(files, attachment.ref)) is not None:
            _write(scratch, file_name(attachment.ref), data)


def _write(scratch: Path, name: str, data: bytes) -> None:
    folder = scratch / UPSTREAM
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    path.chmod(0o400)
