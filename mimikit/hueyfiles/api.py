"""Huey on `ClaimStorage` with JSON: a message is done when it was executed, not when read."""

# Huey carries no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from huey.api import Huey
from huey.api import Task as HueyTask
from huey.signals import SIGNAL_INTERRUPTED

from mimikit.hueyfiles.claims import OwnedClaims
from mimikit.hueyfiles.serializer import JsonSerializer
from mimikit.hueyfiles.storage import ClaimStorage


class ClaimHuey(Huey):
    """Huey on files, for any program: `huey = ClaimHuey("my-app", path="queue")`.

    Crash: a message is acknowledged after it was executed and what follows from it (result, retry,
    next in the pipeline) was written. Killed before that, it runs again at the next start.
    """

    storage_class = ClaimStorage

    def __init__(self, name: str = "huey", *, path: str | Path, **options: Any) -> None:
        """Take Huey's own options and `ClaimStorage`'s."""
        options.setdefault("serializer", JsonSerializer())
        super().__init__(name, path=path, **options)
        self.signal(SIGNAL_INTERRUPTED)(self._interrupted)

    def dequeue(self) -> HueyTask | None:
        """The next task; a message that is none, or of an unknown function, goes to `corrupt/`."""
        try:
            task = super().dequeue()
        except Exception as error:
            claims = self._claims()
            if claims is not None:
                claims.reject_held(f"expected a task of this program, got {error!r}")
            raise
        claims = self._claims()
        if task is not None and claims is not None:
            task.claim = claims.held()
        return task

    def execute(self, task: HueyTask, timestamp: datetime | None = None) -> Any:
        """Run a task; its message is done when this returns."""
        claims = self._claims()
        claim = getattr(task, "claim", None)
        if claims is None or claim is None:
            return super().execute(task, timestamp)
        try:
            value = super().execute(task, timestamp)
        except BaseException:
            # The thread ends: the claim is neither done nor to be repeated at once.
            claims.keep_held()
            raise
        if claims.held() == claim:
            claims.finish_held()
        return value

    def _interrupted(self, _signal: str, task: HueyTask) -> None:
        """A task was broken off in this thread: its message goes back to the queue.

        Huey also tells this of tasks that other threads are still at: those keep their claims, and
        the next start finds them without an owner.
        """
        claims = self._claims()
        claim = getattr(task, "claim", None)
        if claims is not None and claim is not None and claims.held() == claim:
            claims.return_held()

    def _claims(self) -> OwnedClaims | None:
        return self.storage.owned() if isinstance(self.storage, ClaimStorage) else None
