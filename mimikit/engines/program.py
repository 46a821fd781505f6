"""Base class of engines that are programs with their own login: codex, opencode."""

from __future__ import annotations

import contextlib
import functools
import time
from pathlib import Path

from mimikit.clock import Clock, SystemClock
from mimikit.config import Settings
from mimikit.engines.base import Failed, Outcome, RunSpec
from mimikit.protocol.models import EngineProblem, Role
from mimikit.sandbox.worker import WorkerSandbox

_REMEMBER_S = 5.0


class ProgramEngine:
    """Checks whether the program is installed, and whether its login has changed."""

    def __init__(self, settings: Settings, state: Path, clock: Clock | None = None) -> None:
        self._limits, self._state, self._clock = settings.limits, state, clock or SystemClock()
        self._sandbox = WorkerSandbox(settings.sandbox, state)
        self._logged_out: object = None
        """The login that the program rejected."""
        self._drop_cache()

    def check_program(self) -> str | None:
        """Why the program is unavailable; cached for some seconds."""
        raise NotImplementedError

    def login_files(self) -> list[Path]:
        raise NotImplementedError

    def carry_out(self, request: RunSpec) -> Outcome:
        raise NotImplementedError

    def unavailable(self, role: Role | None = None) -> str | None:
        """Includes, for a Worker, why there is no sandbox."""
        if (reason := self._check()) or role != "worker":
            return reason
        return self._sandbox.unavailable()

    def recheck(self) -> None:
        self._drop_cache()

    def _drop_cache(self) -> None:
        @functools.lru_cache(maxsize=1)
        def check(_slot: float) -> str | None:
            return self.check_program()

        self._check = lambda: check(time.monotonic() // _REMEMBER_S)

    def has_recovered(self, want: EngineProblem) -> bool:
        """Whether the program was installed or its login changed; other reasons need a run."""
        self._drop_cache()
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
    """Inode, mtime and size of a file, to notice a change."""
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size
    return None
