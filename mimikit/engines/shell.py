"""The engine `command`: the prompt is a shell line, the result is what it prints.

The shell is /bin/sh, so that a line means the same on every machine; who wants another names it
(`bash -c '…'`). A line may be silent as long as its deadline allows: it is its own tool call.

It is run as cron would: with the owner's rights and environment, less mimikit's own keys. It leaves
nothing running: bubblewrap makes it a process namespace where it can, else its process group ends.
"""

from __future__ import annotations

import math
import os
import signal
import time

from mimikit.config import Settings
from mimikit.engines import process, process_marks
from mimikit.engines.base import UPSTREAM, Done, Failed, OnEvent, Outcome, RunSpec
from mimikit.engines.process import Program, Stream
from mimikit.errors import EngineError, shortage_of
from mimikit.language.plain_text import PlainStream, TextTail
from mimikit.protocol.models import Role
from mimikit.sandbox import worker as sandbox

SHELL = "/bin/sh"
UPSTREAM_VARIABLE = "MIMIKIT_UPSTREAM"
"""The folder with the results that a step of a chain builds on."""
MAX_LINE_BYTES = 131_000
"""Linux's limit of one argument is 128 KiB."""
_EVENTS_EVERY_S = 0.11
_EVENT_CHARACTERS = 65_536
_ERROR_LINES = 5
_ERROR_CHARACTERS = 2000
_KEYS = ("CODEX_API_KEY",)
"""Removed from the environment, with those that the settings name."""


class ShellEngine:
    name = "command"

    def __init__(self, settings: Settings) -> None:
        self._limits = settings.limits
        self._sandbox = settings.command.sandbox
        self._keys = {*_KEYS, *settings.codex.env, *settings.opencode.env}
        self._keys |= {one.api_key_env for one in settings.engines.values() if one.api_key_env}

    def unavailable(self, role: Role | None = None) -> str | None:
        if os.access(SHELL, os.X_OK):
            return None
        return f"expected a shell at {SHELL}, got none; install one"

    def run(self, request: RunSpec) -> Outcome:
        size = len(request.prompt.encode(errors="replace"))
        if size > MAX_LINE_BYTES:
            message = f"expected a shell line of at most {MAX_LINE_BYTES} bytes, got {size}"
            return Failed("error", f"{message}; put it into a script")
        upstream = request.scratch / UPSTREAM
        of_chain = {UPSTREAM_VARIABLE: str(upstream)} if upstream.is_dir() else {}
        argv = [SHELL, "-c", request.prompt]
        boxed = None if self._sandbox == "off" else sandbox.namespaced(argv)
        program = Program(
            argv=boxed or argv,
            cwd=request.workspace,
            env=process.owners_environment(self._keys, of_chain),
            mark=process_marks.mark(request.state, request.run_id),
            timeout_s=request.timeout_s,
            kill_after_s=self._limits.kill_after_s,
            output_bytes=process.OUTPUT_FACTOR * self._limits.output_bytes,
            boxed=boxed is not None,
        )
        output = _Output(
            request.callbacks.on_event, self._limits.result_bytes, self._limits.output_bytes
        )
        try:
            ended = process.run(program, output.take, request.cancel, tick=output.tick)
        except EngineError as error:
            if shortage_of(error):
                raise
            return Failed("error", str(error))
        output.close()
        text = output.text()
        if stopped := process.stopped_outcome(ended, program, text):
            return stopped
        data = {"unshownCharacters": output.unshown} if output.unshown else {}
        code = ended.exit_code or 0
        if code == 0:
            return Done(text, exit_code=0, data=data)
        if boxed is not None and code - 128 in signal.valid_signals():  # bubblewrap's exit code
            code = 128 - code
        message = f"exit code {code}" if code > 0 else f"ended by {process.signal_name(code)}"
        if last := output.errors.text().strip().splitlines()[-_ERROR_LINES:]:
            message = "\n".join([message, *last])
        shown_code = code if code > 0 else 128 - code
        return Failed("error", message, text, exit_code=shown_code, data=data)


class _Output:
    """Shows both streams in batches; keeps the end of both."""

    def __init__(self, on_event: OnEvent, result_bytes: int, output_bytes: int) -> None:
        self._on_event = on_event
        self._streams: dict[Stream, PlainStream] = {
            "stdout": PlainStream(),
            "stderr": PlainStream(),
        }
        self._result_bytes = result_bytes
        self._result = TextTail(result_bytes)
        self.errors = TextTail(_ERROR_CHARACTERS)
        self._batch: dict[Stream, TextTail] = {}
        self._room = output_bytes
        self._shown_at = 0.0
        self.unshown = 0
        """Characters left out of the live view."""

    def take(self, stream: Stream, data: bytes, *, last: bool = False) -> None:
        text = self._streams[stream].feed(data, last=last)
        if not text:
            return
        self._result.add(text)
        if stream == "stderr":
            self.errors.add(text)
        self._batch.setdefault(stream, TextTail(_EVENT_CHARACTERS)).add(text)

    def tick(self) -> float:
        """Show what is due; returns when to call again."""
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
        """The end of the output, within the limit of a result."""
        kept = self._result.text().encode()
        text = kept[-self._result_bytes :].decode(errors="ignore")
        if cut := self._result.total - len(text):
            return f"[the first {cut} characters are left out]\n{text}"
        return text

    def _show(self) -> None:
        for stream, tail in self._batch.items():
            text = tail.text()[: self._room]
            self.unshown += tail.total - len(text)
            self._room -= len(text.encode())
            if text:
                self._on_event("output", text, {"stream": stream})
        self._batch.clear()
        self._shown_at = time.monotonic()
