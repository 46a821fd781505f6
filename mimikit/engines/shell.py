"""The engine `command`: the prompt is a shell line, the result is what it prints.

The shell is /bin/sh, so that a line means the same on every machine; who wants another names it
(`bash -c '…'`). A line may be silent as long as its deadline allows: it is its own tool call.

It has the owner's rights, but runs scripts that a Worker may have written: so it does not see the
state folder either, and leaves nothing running. Where no sandbox can be made no line runs, unless
the settings say that they may without.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

from mimikit.config import Settings
from mimikit.engines import process, process_tree, resources, sandbox
from mimikit.engines.base import FILES, UPSTREAM, EngineRequest, OnEvent, Outcome
from mimikit.engines.program import Program, Stream
from mimikit.engines.sandbox import SandboxAnswer
from mimikit.errors import EngineError, shortage_of
from mimikit.language.plain_text import PlainStream, TextTail
from mimikit.protocol.models import Role

SHELL = "/bin/sh"
UPSTREAM_VARIABLE = "MIMIKIT_UPSTREAM"
FILES_VARIABLE = "MIMIKIT_FILES"
"""Names the folder with the results a step of a chain builds on, a file each."""
MAX_LINE_BYTES = 131_000
"""Linux takes no longer argument than 128 KiB."""
_EVENTS_EVERY_S = 0.11
_EVENT_CHARACTERS = 65_536
_ERROR_LINES = 5
_ERROR_CHARACTERS = 2000
_REMEMBER_S = {"works": math.inf, "not here": 15.0, "not now": 1.0}
"""How long it is not asked again what a sandbox can do here, by what it could."""
OR_WITHOUT = '`command.sandbox = "off"` lets command lines run without it, and see the state folder'


class ShellEngine:
    """Runs shell lines of the owner, as the owner, in the workspace."""

    name = "command"

    def __init__(self, settings: Settings) -> None:
        self._limits = settings.limits
        self._sandbox = settings.command.sandbox
        self._secrets = settings.codex.secrets
        self._lock = threading.Lock()
        self._answer: SandboxAnswer | None = None
        self._until = -math.inf

    def unavailable(self, role: Role | None = None) -> str | None:
        if not os.access(SHELL, os.X_OK):
            return f"expected a shell at {SHELL}, got none; install one"
        if self._sandbox == "off" or (answer := self._can_box()).can != "not here":
            return None
        return f"{answer.reason}; {OR_WITHOUT}"

    def _hidden(self) -> list[Path]:
        return [*sandbox.secrets_of_home(self._secrets), *sandbox.doors()]

    def _can_box(self) -> SandboxAnswer:
        with self._lock:
            if self._answer is None or time.monotonic() > self._until:
                self._answer = sandbox.ask()
                self._until = time.monotonic() + _REMEMBER_S[self._answer.can]
            return self._answer

    def run(self, request: EngineRequest) -> Outcome:
        size = len(request.prompt.encode(errors="replace"))
        if size > MAX_LINE_BYTES:
            said = f"expected a shell line of at most {MAX_LINE_BYTES} bytes, got {size}"
            return Outcome("failed", error=f"{said}; put it into a script", failure_reason="error")
        folders = {UPSTREAM_VARIABLE: UPSTREAM, FILES_VARIABLE: FILES}
        laid = {variable: request.scratch / name for variable, name in folders.items()}
        given = {variable: str(folder) for variable, folder in laid.items() if folder.is_dir()}
        if self._sandbox == "off" and request.kept:
            said = 'expected a sandbox to keep the user\'s files as they are, got `sandbox = "off"`'
            return Outcome("failed", error=said, failure_reason="refused")
        if self._sandbox == "off":
            request.on_event("note", "run without the sandbox: the settings say so", {})
            return self._run(request, given, None)
        if said := self.unavailable():
            return Outcome("failed", error=said, failure_reason="refused")
        if (answer := self._can_box()).can != "works":
            return Outcome("failed", error=answer.reason, failure_reason="engine_unavailable")
        try:
            with os.fdopen(os.memfd_create("sandbox", 0), "rb") as told:
                return self._run(request, given, told.fileno())
        except (OSError, MemoryError, RuntimeError) as error:
            if request.cancel.has_begun or not shortage_of(error):
                raise
            raise EngineError(f"no program can be started: {error}") from error

    def _run(self, request: EngineRequest, given: dict[str, str], boxed: int | None) -> Outcome:
        """Run a line; `boxed`: in the sandbox, which tells in this file how it went."""
        argv = [SHELL, "-c", request.prompt]
        if boxed is not None:
            inside = [request.workspace, request.scratch]
            kept = [path for path in request.kept if os.path.lexists(path)]
            argv = sandbox.masked(
                argv,
                request.state,
                writable=inside,
                read_only=kept,
                # It runs what a Worker has just written, and nobody has looked at.
                hidden=self._hidden() if request.kept else (),
                as_owner=True,
                told=boxed,
            )
        program = Program(
            argv=argv,
            cwd=request.workspace,
            env=process.environment(more=given),
            mark=process_tree.mark(request.state, request.run_id),
            timeout_s=request.timeout_s,
            kill_after_s=self._limits.kill_after_s,
            output_bytes=process.FLOOD * self._limits.output_bytes,
            most=resources.most_of(self._limits),
            boxed=boxed,
            kept=boxed is None,
        )
        output = _Output(request.on_event, self._limits.result_bytes)
        try:
            ended = process.run(program, output.take, request.cancel, tick=output.tick)
        except EngineError as error:
            if shortage_of(error):
                raise
            return Outcome("failed", error=str(error), failure_reason="error")
        output.close()
        text = output.text()
        if not ended.begun and not ended.stopped:
            self._until = -math.inf  # one could be made before: it is asked anew
            said = f"its sandbox could not be made: {output.errors.text().strip()}"
            return Outcome("failed", error=said, failure_reason="engine_unavailable")
        data = {"cutCharacters": output.cut} if output.cut else {}
        if stopped := process.stopped_outcome(ended, program, text):
            return replace(stopped, data=data)
        if ended.leftovers:
            data["endedLeftovers"] = len(ended.leftovers)
        code = ended.exit_code or 0
        if code == 0:
            return Outcome("done", text, exit_code=0, data=data)
        if boxed is not None and code - 128 in signal.valid_signals():  # bubblewrap says it so
            code = 128 - code
        said = f"exit code {code}" if code > 0 else f"ended by {process.signal_name(code)}"
        if last := output.errors.text().strip().splitlines()[-_ERROR_LINES:]:
            said = "\n".join([said, *last])
        shown_code = code if code > 0 else 128 - code
        return Outcome("failed", text, said, "error", exit_code=shown_code, data=data)


class _Output:
    """Both streams of a run: shown as they come, a little batched; the end of both is kept."""

    def __init__(self, on_event: OnEvent, result_bytes: int) -> None:
        self._on_event = on_event
        self._streams: dict[Stream, PlainStream] = {
            "stdout": PlainStream(),
            "stderr": PlainStream(),
        }
        self._result_bytes = result_bytes
        self._result = TextTail(result_bytes)
        self.errors = TextTail(_ERROR_CHARACTERS)
        self._batch: dict[Stream, list[str]] = {}
        self._batched = 0
        self._shown_at = 0.0
        self.cut = 0
        """Characters that the result lacks: it is too long."""

    def take(self, stream: Stream, data: bytes, *, last: bool = False) -> None:
        text = self._streams[stream].feed(data, last=last)
        if not text:
            return
        self._result.add(text)
        if stream == "stderr":
            self.errors.add(text)
        self._batch.setdefault(stream, []).append(text)
        self._batched += len(text)
        if self._batched >= _EVENT_CHARACTERS:
            self._show()

    def tick(self) -> float:
        """Show what came, if the last time is long enough ago; gives when to ask again."""
        if not self._batch:
            return math.inf
        wait_s = self._shown_at + _EVENTS_EVERY_S - time.monotonic()
        if wait_s > 0:
            return wait_s
        self._show()
        return math.inf

    def close(self) -> None:
        for stream in self._streams:
            self.take(stream, b"", last=True)
        self._show()

    def text(self) -> str:
        """The end of all that was printed, within the limit of a result."""
        kept = self._result.text().encode()
        text = kept[-self._result_bytes :].decode(errors="ignore")
        self.cut = self._result.total - len(text)
        return f"[the first {self.cut} characters are left out]\n{text}" if self.cut else text

    def _show(self) -> None:
        for stream, parts in self._batch.items():
            self._on_event("output", "".join(parts), {"stream": stream})
        self._batch.clear()
        self._batched = 0
        self._shown_at = time.monotonic()
