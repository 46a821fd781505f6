"""The engine `local`: a small model on this machine, for talk and simple plans; the basic mode.

The model chooses one of a few actions, which code carries out, with the user's own words if
possible.
It runs nothing: a command that it proposes becomes a question to the user.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

from mimikit.clock import Clock, SystemClock
from mimikit.config import Settings
from mimikit.engine_settings import EndpointSettings
from mimikit.engines.base import CancelToken, EngineOutage, Failed, Outcome, RunSpec, stop_outcome
from mimikit.engines.kept_server import KeptServer
from mimikit.engines.local import model_server, weights
from mimikit.engines.local.server import PROGRAM, ModelProcess
from mimikit.engines.openai.answer import AnswerReader
from mimikit.engines.openai.dialogue import PATHS
from mimikit.engines.openai.endpoint import EndpointClient
from mimikit.engines.openai.failure import EndpointError
from mimikit.engines.registry import LOCAL
from mimikit.errors import EngineError
from mimikit.protocol.models import Role, Usage

if TYPE_CHECKING:
    from mimikit.engines.builtin.shell_lines import IsProgram

MISSING = "expected the package xllamacpp, got none; pip install 'mimikit-assistant[local]'"
NO_WEIGHTS = "expected the weights of a small model, got none; `mimikit local setup` fetches them"
_MAX_THREADS = 4
_GGUF = b"GGUF"


class LocalEngine:
    """Runs Teller and Planner with the small model, one request at a time. Thread-safe."""

    name = LOCAL

    def __init__(
        self,
        settings: Settings,
        is_program: IsProgram | None = None,
        *,
        program: Path = PROGRAM,
        clock: Clock | None = None,
    ) -> None:
        """`program`: see `ModelProcess`."""
        self._settings = settings.local
        self._clock = clock or SystemClock()
        self._is_program: IsProgram = is_program or (lambda word: shutil.which(word) is not None)
        self._program = program
        self.server = KeptServer[ModelProcess]()

    def unavailable(self, role: Role | None = None) -> str | None:
        if role == "worker":
            return EngineOutage("it only talks and plans", "unready")
        if self._program == PROGRAM and util.find_spec(model_server.PACKAGE) is None:
            return EngineOutage(MISSING, "missing")
        try:
            self._model_path()
        except EngineError as error:
            return EngineOutage(str(error), "missing")
        return None

    def close(self) -> None:
        self.server.close()

    def title(self) -> str:
        """The name of the model; EngineError when there is none."""
        path = self._model_path()
        known = (one.title for one in weights.KNOWN if one.file == path.name)
        return next(known, str(path))

    def run(self, request: RunSpec) -> Outcome:
        if request.cancel.reason is not None:
            return stop_outcome(request.cancel.reason)
        # Imported late, as the grammar takes a tenth of the start time.
        from mimikit.engines.local.run import LocalRun

        run = LocalRun(request, self._is_program, self._ask)
        outcome: Outcome
        try:
            outcome = run.tell() if request.role == "teller" else run.plan()
        except EndpointError as error:
            outcome = failed = _failed(error, retry_now=not run.acted)
            if failed.want is not None:  # the next request starts another process
                self.server.close()
        except EngineError as error:
            outcome = Failed.unavailable("broken", str(error))
        if run.stop.reason is not None:
            outcome = stop_outcome(run.stop.reason)
        return replace(outcome, usage=run.usage)

    def _ask(
        self,
        body: dict[str, object],
        request: RunSpec,
        stop: CancelToken,
        show: Callable[[str], None],
    ) -> tuple[str, Usage]:
        """The model's answer and usage; EndpointError or EngineError when it fails."""
        settings, now = self._settings, self._clock.now
        threads = settings.threads or min(os.cpu_count() or 1, _MAX_THREADS)
        model = str(self._model_path())
        options = {"modelPath": model, "threads": threads, "contextTokens": settings.context_tokens}
        idle_s = request.idle_timeout_s

        def start() -> ModelProcess:
            keep_s = 60 * settings.idle_minutes
            return ModelProcess(options, idle_s=keep_s, program=self._program)

        with (
            self.server.use(options, start, request.cancel) as server,
            EndpointClient(
                EndpointSettings(base_url=server.url, model=LOCAL),
                server.key,
                idle_s=idle_s,
                now=now,
            ) as client,
            client.deadline(request.cancel, request.timeout_s, stop),
        ):
            request.cancel.has_begun = True
            events = client.stream(PATHS["chat"], {"model": LOCAL, **body})
            answer = AnswerReader(show, set()).read("chat", events, client.stream_error)
        return answer.text, answer.usage

    def _model_path(self) -> Path:
        """The path of the model file; EngineError when there is none."""
        if self._settings.model_path is None:
            folder = weights.folder_of_user()
            if (found := weights.best(folder)) is None:
                raise EngineError(NO_WEIGHTS)
            return folder / found.file
        path = Path(self._settings.model_path).expanduser()
        try:
            with path.open("rb") as file:
                head = file.read(len(_GGUF))
        except OSError as error:
            message = f"expected a GGUF file at {path}, got none ({error.strerror})"
            raise EngineError(f"{message}; set local.model_path to another") from None
        if head != _GGUF:
            raise EngineError(f"expected a GGUF file at {path}, got something else")
        return path


def _failed(error: EndpointError, *, retry_now: bool) -> Failed:
    match error.trouble:
        case "too_long" | "error" as trouble:
            return Failed("error", str(error), too_long=retry_now and trouble == "too_long")
        case _:  # its process has died, or is about to
            return Failed.unavailable("broken", str(error), retry_now=retry_now)
