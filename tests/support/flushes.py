"""Sees which files and folders a program has flushed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def flushes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inode of each flush from now on, in order; each is carried out."""
    flushed: list[int] = []
    fsync = os.fsync

    def seen(descriptor: int) -> None:
        flushed.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    return flushed


def inodes(*files: Path) -> list[int]:
    """Those of these files and folders."""
    return [file.stat().st_ino for file in files]
