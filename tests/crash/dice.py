"""Repeatable randomness: the same life of a flow draws the same names.

Each life (the flow, its recovery, the recovery of that) draws from a sequence of its own, so that
two lives never give the same name.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from collections.abc import Generator
from types import ModuleType

from mimikit.protocol import files, ids
from mimikit.roles import run, scratch

NO_PROCESS = 2**22
"""Above every process id of the system: a temp file with this owner is an orphan."""


class Dice:
    """Replaces `secrets` and `os` where the product draws random names."""

    def __init__(self) -> None:
        self._row = 0
        self._count = itertools.count()

    def life(self, number: int) -> None:
        """Restart the sequence of a life."""
        self._row = number
        self._count = itertools.count()

    def token_hex(self, size: int) -> str:
        return self.urandom(size).hex()

    def urandom(self, size: int) -> bytes:
        return ((self._row << 24) | next(self._count)).to_bytes(8, "big")[-size:].rjust(size, b"\1")

    def getpid(self) -> int:
        return os.getpid()

    token_bytes = staticmethod(secrets.token_bytes)


DICE = Dice()


class NoScratch:
    """No scratch folder on the real disk: the tests' engine needs none."""

    @staticmethod
    def mkdtemp(prefix: str) -> str:
        return f"/nowhere/{prefix}"

    @staticmethod
    def rmtree(path: object, *, ignore_errors: bool) -> None:
        pass


@contextlib.contextmanager
def loaded_dice() -> Generator[Dice]:
    """Let the product draw from DICE."""
    places: list[tuple[ModuleType, str, object]] = [
        (files, "secrets", DICE),
        (ids, "os", DICE),
        (scratch, "tempfile", NoScratch),
        (scratch, "shutil", NoScratch),
        (run, "write_inputs", lambda *_nothing: None),
    ]
    kept = [getattr(module, name) for module, name, _ in places]
    for module, name, stand_in in places:
        setattr(module, name, stand_in)
    try:
        yield DICE
    finally:
        for (module, name, _), value in zip(places, kept, strict=True):
            setattr(module, name, value)


def dead_owner(store: files.Files, life: int) -> None:
    """Have the temp files of this life belong to a process that is dead after it."""
    store._temp_owner = f"{NO_PROCESS + life}-sim-boot"
