"""An engine that is a program with a login of its own: codex, opencode."""

from __future__ import annotations

import contextlib
import functools
import time
from pathlib import Path

from mimikit.engines.base import Failed, Outcome, RunSpec
from mimikit.protocol.models import EngineWant, Role

_REMEMBER_S = 5.0


class ProgramEngine:
    """Knows whether the program is there, and whether its owner has logged in anew."""

    def __init__(self) -> None:
        self._logged_out: object = None
        """The login with which the program was logged out."""
        self.recheck()

    def check_program(self) -> str | None:
        """Why the program cannot be used; the answer is remembered for some seconds."""
        raise NotImplementedError

    def login_files(self) -> list[Path]:
        raise NotImplementedError

    def carry_out(self, request: RunSpec) -> Outcome:
        raise NotImplementedError

    def unavailable(self, role: Role | None = None) -> str | None:
        return self._check()

    def recheck(self) -> None:
        @functools.lru_cache(maxsize=1)
        def check(_slot: float) -> str | None:
            return self.check_program()

        self._check = lambda: check(time.monotonic() // _REMEMBER_S)

    def is_mended(self, want: EngineWant) -> bool:
        """Whether the program, or another login, is there; for the rest a run has to try."""
        self.recheck()
        if want == "logged_out" and self._logged_out == self._login():
            return False
        return want in ("missing", "logged_out") and self.unavailable() is None

    def run(self, request: RunSpec) -> Outcome:
        login = self._login()
        outcome = self.carry_out(request)
        if isinstance(outcome, Failed) and outcome.want == "logged_out":
            self._logged_out = login
        return outcome

    def _login(self) -> object:
        return list(map(file_stamp, self.login_files()))


def file_stamp(path: Path) -> tuple[int, int, int] | None:
    """Changes when the file is replaced or written."""
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size
    return None
