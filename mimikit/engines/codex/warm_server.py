"""The app-server that is kept warm for Teller and Planner, and when `codex exec` takes its place.

It is started for the first turn, and anew when it ended, or when codex, its login or how it is
started has changed; turns in the one before end there. If it misbehaves twice in a row, turns go
through `codex exec` for a while.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import mimikit
from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.engines import process_marks
from mimikit.engines.base import Failed, Outcome, RunSpec, stop_outcome
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.app_server import AppServer, ServerTrouble
from mimikit.engines.codex.cli import CodexLocation
from mimikit.engines.codex.exec_events import text_of, value_of
from mimikit.engines.codex.failures import typed_failure, used_up_until
from mimikit.engines.codex.server_turn import ServerTurn, TurnEnd
from mimikit.engines.program import Program
from mimikit.sandbox import worker as sandbox
from mimikit.sandbox.worker import real

_TRIES = 2
_REST_S = 600.0
"""How long turns go through `codex exec` after it misbehaved."""
_RUN = "codex-server"
_SETTINGS, _EMPTY = "config.toml", "empty"

Stamp = tuple[int, int, int] | None


class WarmServer:
    """Safe between threads."""

    def __init__(self, settings: Settings, state: Path, clock: Clock) -> None:
        self._codex, self._limits = settings.codex, settings.limits
        self._state, self._clock = state, clock
        self._lock = threading.Lock()
        self._server: AppServer | None = None
        self._key: object = None
        self._folder: Path | None = None
        self._rests_until, self._why = 0.0, ""
        self._is_closed = False

    def run(self, request: RunSpec, place: CodexLocation) -> Outcome | None:
        """The turn's outcome; None where `codex exec` is to carry it out, which is told."""
        if not self._codex.app_server:  # the owner's choice is no news
            return None
        reason = self._not_now(place)
        for _ in range(_TRIES):
            if reason is not None:
                break
            turn = server = None
            try:
                server = self._serving(place)
                turn = ServerTurn(server, request, kill_after_s=self._limits.kill_after_s)
                end = turn.carry_out(str(self._place() / _EMPTY), self._effort(request))
            except ServerTrouble as trouble:
                if server is not None:
                    server.retire()
                if request.cancel.reason is not None:
                    return stop_outcome(request.cancel.reason)
                said = f"codex app-server: {trouble}"
                request.callbacks.on_event("note", said, {})
                if turn is not None and turn.acted:  # what was called once is not called again
                    outcome = Failed.unavailable("broken", said, text=turn.text)
                    return replace(outcome, usage=turn.usage)
                self._why = said
                continue
            if end.hung:
                server.close()
            return replace(self._judged(request, turn, end, server), usage=turn.usage)
        else:
            self._rests_until, reason = time.monotonic() + _REST_S, self._why
        request.callbacks.on_event("note", f"this turn goes through `codex exec`: {reason}", {})
        return None

    def look(self, place: CodexLocation) -> str | None:
        """Start it as for a turn, to see whether it serves; why it does not. It is ended again."""
        if reason := self._not_now(place):
            return reason
        try:
            self._serving(place)
        except ServerTrouble as trouble:
            return f"codex app-server: {trouble}"
        finally:
            self.close()
        return None

    def close(self) -> None:
        """End it, and wait until it has ended."""
        self._is_closed = True
        if (server := self._server) is not None:
            server.close()
            server.wait(self._limits.kill_after_s + 1)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _not_now(self, place: CodexLocation) -> str | None:
        """Why no turn is to go there."""
        if not self._codex.app_server:
            return "the settings say so (`codex.app_server`)"
        if self._is_closed:
            return "mimikit is about to end"
        if time.monotonic() < self._rests_until:
            return self._why
        settings = place.home / _SETTINGS
        if settings.exists() and sandbox.namespaced([]) is None:
            # `codex exec` can be told to ignore it, the app-server cannot.
            return f"the app-server would take up {settings}, and without bubblewrap none hides it"
        return None

    def _serving(self, place: CodexLocation) -> AppServer:
        """The one that serves, started where there is none that fits.

        Raises:
            ServerTrouble: it does not start.
        """
        env = codex_cli.surroundings(self._codex, place, talks=True)
        argv = codex_cli.server_argv(self._codex, place)
        settings = place.home / _SETTINGS
        watched = (Path(place.program), place.home / "auth.json", settings)
        key = tuple(argv), tuple(env.items()), tuple(map(stamp, watched))
        with self._lock:
            if self._server is not None and self._server.serves and self._key == key:
                return self._server
            if self._server is not None:
                self._server.retire()
            folder = self._place()
            covers = {real(settings): folder / _SETTINGS} if settings.exists() else {}
            boxed = sandbox.namespaced(
                argv, hidden=[self._state], writable=[real(place.home)], covers=covers
            )
            program = Program(
                boxed or argv,
                folder,
                env,
                process_marks.mark(self._state, _RUN),
                timeout_s=0,
                kill_after_s=self._limits.kill_after_s,
                boxed=boxed is not None,
            )
            server = AppServer(program, f"mimikit {mimikit.__version__}")
            self._server, self._key = server, key
            try:
                server.start()
            except ServerTrouble:
                server.close()
                raise
            return server

    def _place(self) -> Path:
        """The folder it works in, which holds nothing but an empty file and an empty folder.

        Raises:
            ServerTrouble: none can be made.
        """
        try:
            if self._folder is None or not (self._folder / _EMPTY).is_dir():
                prefix = process_marks.scratch_prefix(self._state)
                folder = Path(tempfile.mkdtemp(prefix=prefix))
                (folder / _EMPTY).mkdir()
                (folder / _SETTINGS).touch()
                self._folder = folder
        except OSError as error:
            raise ServerTrouble(f"it has no folder to work in: {error}") from error
        return self._folder

    def _effort(self, request: RunSpec) -> str | None:
        return None if "model_reasoning_effort" in self._codex.config else request.effort

    def _judged(
        self, request: RunSpec, turn: ServerTurn, end: TurnEnd, server: AppServer
    ) -> Outcome:
        if end.outcome is not None:
            text = end.outcome.text[: self._limits.result_bytes]
            return replace(end.outcome, text=text)
        said = text_of(end.failed, "message") or "the turn failed"
        request.callbacks.on_event("error", said, {})
        info, resets = value_of(end.failed, "codexErrorInfo"), used_up_until(server.limits)
        failure = typed_failure(said, info, resets, self._clock.now())
        return failure.outcome(turn.text, acted=end.acted, code=1)


def stamp(path: Path) -> Stamp:
    """Which file stands there: another, or one that was written since, has another stamp."""
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size
    return None
