"""Randomness that repeats: the same life of a flow gives the same names, so equal disks are equal.

Each life (the flow, its recovery, the recovery of that) draws from a row of its own, so that two
lives never give the same name.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import secrets
from collections.abc import Generator
from types import ModuleType

from mimikit.conversation import turns
from mimikit.engines import sandbox
from mimikit.memory import search, tokens
from mimikit.protocol import files, ids
from mimikit.roles import run, scratch, shortage
from mimikit.supervisor import self_awake
from mimikit.triggers import registry

NO_PROCESS = 2**22
"""Above every process id of the system: a temp file of this owner has a dead one."""


class Dice:
    """Stands for the modules `secrets` and `os` where the product draws."""

    def __init__(self) -> None:
        self._row = 0
        self._count = itertools.count()
        self.temps = itertools.count()
        """Numbers of temp files."""

    def life(self, number: int) -> None:
        """Begin the row of a life."""
        self.position = number, 0
        self.temps = itertools.count()

    @property
    def position(self) -> tuple[int, int]:
        """Row and number of what is drawn next."""
        number = next(self._count)
        self._count = itertools.count(number)
        return self._row, number

    @position.setter
    def position(self, to: tuple[int, int]) -> None:
        self._row, self._count = to[0], itertools.count(to[1])

    def token_hex(self, size: int) -> str:
        return self.urandom(size).hex()

    def urandom(self, size: int) -> bytes:
        return ((self._row << 24) | next(self._count)).to_bytes(8, "big")[-size:].rjust(size, b"\1")

    def getpid(self) -> int:
        return os.getpid()

    token_bytes = staticmethod(secrets.token_bytes)


DICE = Dice()


class FileNames:
    """Stands for `secrets` where files get names; temp files are counted apart.

    Drawn from the same row, a record more that is written and decides nothing would have all that
    follows named otherwise.
    """

    @staticmethod
    def token_hex(size: int) -> str:
        is_temp = size == 6  # what is set aside gets four bytes
        return f"{next(DICE.temps):012x}" if is_temp else DICE.token_hex(size)


class NoScratch:
    """No folder on the real disk for each run: the tests' engine needs none."""

    @staticmethod
    def mkdtemp(prefix: str) -> str:
        return f"/nowhere/{prefix}"

    @staticmethod
    def rmtree(path: object, *, ignore_errors: bool) -> None:
        pass


class NoTime:
    """Time that stands still: how slow this machine is decides nothing."""

    @staticmethod
    def monotonic() -> float:
        return 0.0


@contextlib.contextmanager
def loaded_dice(*, temps_apart: bool = False) -> Generator[Dice]:
    """Let the product draw from DICE; `temps_apart`: temp files get names of their own row."""
    places: list[tuple[ModuleType, str, object]] = [
        (files, "secrets", FileNames if temps_apart else DICE),
        (turns, "secrets", DICE),
        (ids, "os", DICE),
        (scratch, "tempfile", NoScratch),
        (scratch, "shutil", NoScratch),
        (self_awake, "folder_of", functools.cache(self_awake.folder_of)),  # of the real disk
        (sandbox, "secrets_of_home", lambda _more=(): []),  # on the real disk
        (tokens, "estimate", functools.lru_cache(10_000)(tokens.estimate)),  # always of the same
        # Records are frozen, and follow from their bytes alone: most are the same in each life.
        (files, "decode", functools.lru_cache(5_000)(files.decode)),
        (registry, "parse", functools.lru_cache(1_000)(registry.parse)),
        (shortage, "process_limits", lambda: ()),  # those of this machine
        (search, "time", NoTime),  # a look through all files is given up after some of it
        (run, "lay_out_upstream", lambda *_nothing: None),
        (run, "lay_out_files", lambda _files, given, *_nothing, **_how: given),
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
    """Let the temp files of this life belong to a process that no longer runs after it."""
    store._temp_owner = f"{NO_PROCESS + life}-sim-boot"
