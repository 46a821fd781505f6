"""The engine `command`: the prompt is a line for bash, the result is its output.

It runs as in cron: with the owner's rights and environment, without mimikit's own keys, and without
an idle timeout. Processes that it leaves are killed, and named: with bubblewrap its process
namespace, else its process group. Output is rendered as a terminal would (`ScreenText`).
"""

from __future__ import annotations

import math
import os
import re
import signal
import time
from pathlib import Path

from mimikit.config import Settings
from mimikit.engines import process
from mimikit.engines.base import UPSTREAM, Done, Failed, OnEvent, Outcome, RunSpec
from mimikit.engines.process import Program, Stream
from mimikit.errors import EngineError, shortage_of
from mimikit.language import phrases
from mimikit.language.plain_text import PlainStream, TextTail, for_screen, plain
from mimikit.language.screen import ScreenText, highest_move
from mimikit.protocol.models import Role
from mimikit.sandbox import programs
from mimikit.sandbox import worker as sandbox

SHELL = "/bin/sh"
_WRAPPER = Path(__file__).with_suffix(".sh").read_text("utf-8")
_BASHISMS = re.compile(r"\bsource\s|\[\[|\{\w+\.\.\w+\}|<\(|<<<|\bpushd\b|\bdeclare\b")
_MAX_LEFT, _LEFT_CHARACTERS = 5, 200
UPSTREAM_VARIABLE = "MIMIKIT_UPSTREAM"
"""Environment variable: the folder with the results of earlier steps."""
MAX_LINE_BYTES = 131_000
"""Linux's limit of one argument is 128 KiB."""
_EVENT_INTERVAL_S = 0.11
_LINE_INTERVAL_S = 1.0
_LINE_INTERVAL_GROWTH = 0.02
"""An unfinished line is shown ever more seldom: by this part of the run so far."""
_EVENT_CHARACTERS = 1_000_000
_ERROR_LINES = 5
_ERROR_CHARACTERS = 2000
_KEYS = ("CODEX_API_KEY",)
"""Removed from the environment, like those that the settings name."""


class ShellEngine:
    name = "command"

    def __init__(self, settings: Settings) -> None:
        self._limits = settings.limits
        self._sandbox = settings.command.sandbox
        passed = {*settings.codex.env, *settings.opencode.env}
        self._keys = {*_KEYS, *filter(process.is_secret, passed)}
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
        left = request.scratch / "left-running"
        shell = programs.find("bash") or SHELL
        argv = [SHELL, "-c", _WRAPPER, shell, request.prompt, str(left)]
        boxed = None if self._sandbox == "off" else sandbox.namespaced(argv)
        program = Program(
            argv=boxed or argv,
            cwd=request.workspace,
            env=process.owners_environment(self._keys, of_chain),
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
        text = output.text() + left_note(left, request.input.locale)
        if stopped := process.stopped_outcome(ended, program, text):
            return stopped
        data = {"unshownCharacters": output.unshown} if output.unshown else {}
        code = ended.exit_code or 0
        if code == 0:
            return Done(text, exit_code=0, data=data)
        if code - 128 in signal.valid_signals():  # the wrapper's and bubblewrap's exit code
            code = 128 - code
        message = f"exit code {code}" if code > 0 else f"ended by {process.signal_name(code)}"
        if last := output.errors().strip().splitlines()[-_ERROR_LINES:]:
            message = "\n".join([message, *last])
        if shell == SHELL and code in (2, 127) and _BASHISMS.search(request.prompt):
            message += (
                "\nthe line is for bash, which this machine lacks: install it, or write it for sh"
            )
        shown_code = code if code > 0 else 128 - code
        return Failed("error", message, text, exit_code=shown_code, data=data)


def left_note(path: Path, locale: str) -> str:
    """What the command left running, which ended with it, and how to keep such a program."""
    try:
        lines = plain(path.read_text("utf-8", "replace")).splitlines()
    except OSError:
        return ""
    left = [line.strip()[:_LEFT_CHARACTERS] for line in lines if line.strip()]
    if not left:
        return ""
    names = ", ".join(f"`{line}`" for line in left[:_MAX_LEFT])
    language = phrases.language("", locale)
    return phrases.say("left_running", language, names=names, first=left[0]) + "\n"


class _Output:
    """Reports output as batched events; keeps its end as the result."""

    def __init__(self, on_event: OnEvent, result_bytes: int, output_bytes: int) -> None:
        self._on_event = on_event
        self._streams: dict[Stream, PlainStream] = {
            "stdout": PlainStream(for_screen),
            "stderr": PlainStream(for_screen),
        }
        self._result_bytes = result_bytes
        self._result, self._screen = TextTail(result_bytes), ScreenText()
        self._errors, self._error_screen = TextTail(_ERROR_CHARACTERS), ScreenText()
        self._live: dict[Stream, _LiveLines] = {"stdout": _LiveLines(), "stderr": _LiveLines()}
        self._batch: dict[Stream, TextTail] = {}
        self._room = output_bytes
        self._started_at = time.monotonic()
        self._shown_at = self._lines_shown_at = 0.0
        self.unshown = 0
        """Characters that were not reported as events."""

    def take(self, stream: Stream, data: bytes, *, last: bool = False) -> None:
        text = self._streams[stream].feed(data, last=last)
        self._result.add(self._screen.feed(text))
        if stream == "stderr":
            self._errors.add(self._error_screen.feed(text))
        self._add(stream, self._live[stream].feed(text))

    def tick(self) -> float:
        """Report what is due; returns the seconds until the next call."""
        now, wait_s = time.monotonic(), math.inf
        if self._batch:
            wait_s = self._shown_at + _EVENT_INTERVAL_S - now
            if wait_s <= 0:
                self._show()
                wait_s = math.inf
        if any(lines.has_news for lines in self._live.values()):
            pause_s = max(_LINE_INTERVAL_S, (now - self._started_at) * _LINE_INTERVAL_GROWTH)
            line_wait_s = self._lines_shown_at + pause_s - now
            if line_wait_s <= 0:
                self._show_lines()
            else:
                wait_s = min(wait_s, line_wait_s)
        return wait_s

    def close(self) -> None:
        for stream, lines in self._live.items():
            self.take(stream, b"", last=True)
            self._add(stream, lines.rest())
        self._result.add(self._screen.rest())
        self._errors.add(self._error_screen.rest())
        self._show()

    def errors(self) -> str:
        return self._errors.text()

    def text(self) -> str:
        """The end of the output, at most `result_bytes`."""
        end = self._result.text().encode()
        text = end[-self._result_bytes :].decode(errors="ignore")
        if cut := self._result.total - len(text):
            return f"[the first {cut} characters are left out]\n{text}"
        return text

    def _add(self, stream: Stream, text: str) -> None:
        if text:
            self._batch.setdefault(stream, TextTail(_EVENT_CHARACTERS)).add(text)

    def _show(self) -> None:
        for stream, tail in self._batch.items():
            text = tail.text()[: self._room]
            self.unshown += tail.total - len(text)
            self._room -= len(text.encode())
            if text:
                self._on_event("output", text, {"stream": stream})
        self._batch.clear()
        self._shown_at = time.monotonic()

    def _show_lines(self) -> None:
        """Report the unfinished lines, after all that is before them."""
        self._show()
        for stream, lines in self._live.items():
            if lines.has_news and (text := lines.rest()):
                self._on_event("line", text, {"stream": stream})
            lines.has_news = False
        self._lines_shown_at = time.monotonic()


class _LiveLines:
    """Lines of one stream: final when they end, or later once the cursor has gone up."""

    def __init__(self) -> None:
        self._screen = ScreenText(lines=1)
        self.has_news = False

    def feed(self, text: str) -> str:
        self._screen.reach(highest_move(text) + 1)
        self.has_news = self.has_news or bool(text)
        return self._screen.feed(text)

    def rest(self) -> str:
        return self._screen.rest()
