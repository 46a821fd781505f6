"""Runs turns of Teller and Planner in one `codex app-server`.

The server is restarted when it has ended, or when codex, its login or its settings have changed.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.engines import process_marks
from mimikit.engines.base import CancelToken, Failed, Outcome, RunSpec, stop_outcome
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.app_server import AppServer
from mimikit.engines.codex.cli import CodexLocation
from mimikit.engines.codex.server_turn import ServerTurn
from mimikit.engines.kept_server import KeptServer
from mimikit.engines.process import Program
from mimikit.engines.program import file_stamp
from mimikit.errors import EngineError
from mimikit.sandbox import worker as sandbox
from mimikit.sandbox.worker import real

_ATTEMPTS = 2
_CONFIG, _EMPTY = "config.toml", "empty"


class TalkServer:
    """Runs turns in the app-server, which it starts on demand. Thread-safe."""

    def __init__(self, settings: Settings, state: Path, clock: Clock) -> None:
        self._codex, self._limits = settings.codex, settings.limits
        self._state, self._clock = state, clock
        self._server = KeptServer[AppServer]()
        self._lock = threading.Lock()
        self._folder: Path | None = None

    def unavailable(self) -> str | None:
        """Why the user's config.toml cannot be hidden: the app-server has no flag to ignore it."""
        place = codex_cli.find(self._codex)
        if place is None or not (place.home / _CONFIG).exists() or sandbox.namespaced([]):
            return None
        return (
            f"expected bubblewrap, to hide {place.home / _CONFIG} from codex, got none; install it "
            "or set `codex.home` to a home without that file"
        )

    def run(self, request: RunSpec, place: CodexLocation) -> Outcome:
        """Run a turn; retried once if the server fails before a tool was called."""
        failed = Failed.unavailable("unready", "codex app-server was not tried")
        effort = None if "model_reasoning_effort" in self._codex.config else request.effort
        for _ in range(_ATTEMPTS):
            turn: ServerTurn | None = None
            try:
                with self._use_server(place, request.cancel) as server:
                    now, kill_after_s = self._clock.now, self._limits.kill_after_s
                    turn = ServerTurn(server, request, now, kill_after_s=kill_after_s)
                    try:
                        outcome = turn.run(str(self._work_folder() / _EMPTY), effort)
                    except EngineError:
                        server.retire()
                        raise
                    if turn.hung:
                        server.stop()
                    text = outcome.text[: self._limits.result_bytes]
                    return replace(outcome, text=text, usage=turn.usage)
            except EngineError as error:
                if request.cancel.reason is not None:
                    return stop_outcome(request.cancel.reason)
                reason = f"codex app-server: {error}"
                request.callbacks.on_event("note", reason, {})
                if turn is None:  # it does not start
                    failed = Failed.unavailable("unready", reason)
                    continue
                failed = Failed.unavailable("broken", reason, text=turn.text)
                failed = replace(failed, usage=turn.usage)
                if turn.acted:  # a tool call is not repeated
                    break
        return failed

    def check(self, place: CodexLocation) -> str | None:
        """Start the server once; returns why that fails."""
        try:
            with self._use_server(place, CancelToken()):
                return None
        except EngineError as error:
            return str(error)
        finally:
            self.close()

    def close(self) -> None:
        self._server.close()
        with self._lock:
            folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _use_server(
        self, place: CodexLocation, cancel: CancelToken
    ) -> contextlib.AbstractContextManager[AppServer]:
        env = codex_cli.environment(self._codex, place, is_talk=True)
        argv = codex_cli.server_argv(self._codex, place)
        watched = (Path(place.program), place.home / "auth.json", place.home / _CONFIG)
        key = tuple(argv), tuple(env.items()), tuple(map(file_stamp, watched))
        return self._server.use(key, lambda: self._start(argv, env, place), cancel)

    def _start(self, argv: list[str], env: dict[str, str], place: CodexLocation) -> AppServer:
        """Create the process, with an empty file mounted over the user's config.toml.

        Raises:
            EngineError: that file cannot be hidden, or there is no temporary folder.
        """
        if reason := self.unavailable():
            raise EngineError(reason)
        folder = self._work_folder()
        config = place.home / _CONFIG
        covers = {real(config): folder / _CONFIG} if config.exists() else {}
        boxed = sandbox.namespaced(
            argv, hidden=[self._state], writable=[real(place.home)], covers=covers
        )
        program = Program(
            boxed or argv,
            folder,
            env,
            timeout_s=0,
            boxed=boxed is not None,
        )
        return AppServer(program, kill_after_s=self._limits.kill_after_s)

    def _work_folder(self) -> Path:
        with self._lock:
            try:
                if self._folder is None or not (self._folder / _EMPTY).is_dir():
                    prefix = process_marks.scratch_prefix(self._state)
                    folder = Path(tempfile.mkdtemp(prefix=prefix))
                    (folder / _EMPTY).mkdir()
                    (folder / _CONFIG).touch()
                    self._folder = folder
            except OSError as error:
                raise EngineError(f"it has no folder to work in: {error}") from error
            return self._folder
