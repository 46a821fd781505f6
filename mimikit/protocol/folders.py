"""Whole folders of the user's own files in the state folder, whatever they are called."""

from __future__ import annotations

import contextlib

from mimikit.protocol.disk import DiskErrors, FileKind
from mimikit.protocol.files import Files


def listed(files: Files, folder: str) -> list[tuple[str, FileKind]]:
    """All that stands in a folder, whatever it is, by name; nothing where there is none."""
    with DiskErrors(folder), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return sorted(files.fs.list_dir(folder))
    return []


def remove_all(files: Files, folder: str) -> None:
    """Remove a folder with all that is in it; links in it are removed, not followed.

    Crash: a part of it is gone. Who wants all or nothing moves it to `cache/` before.
    """
    with DiskErrors(folder):
        for name, kind in listed(files, folder):
            if kind == "folder":
                remove_all(files, f"{folder}/{name}")
            else:
                files.fs.unlink(f"{folder}/{name}")
        files.fs.remove_dir(folder)
