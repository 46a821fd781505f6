"""Shell and file tools of a Worker for engines without their own; each call is sandboxed."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from mimikit.config import LimitSettings
from mimikit.engines import file_tool, process
from mimikit.engines.base import UPSTREAM, RunSpec, ToolReply, ToolSpec, tool_spec
from mimikit.engines.process import Program, ProgramOutcome, Stream
from mimikit.errors import EngineError, ProgramLost
from mimikit.language.plain_text import PlainStream, TextTail, for_screen
from mimikit.language.screen import ScreenText
from mimikit.protocol.json import parse_object
from mimikit.protocol.models import MAX_TEXT
from mimikit.protocol.records import bad_record
from mimikit.sandbox import programs
from mimikit.sandbox.worker import BoxSpec, WorkerSandbox, python_folders

_SHOWN_CHARACTERS = 16_000
_EVENT_CHARACTERS = 4000
_LINE_BYTES = 131_000
"""Linux's limit of one argument is 128 KiB."""
_SHELL_S, _FILE_S = 120.0, 30.0

PathText = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]
Content = Annotated[str, StringConstraints(max_length=MAX_TEXT)]


def _one_line(command: object) -> object:
    """Some models send a list of words, or `["bash", "-c", line]`."""
    words = cast("list[object]", command if isinstance(command, list) else [])
    if not words or not all(isinstance(word, str) for word in words):
        return cast("object", command)
    line = [str(word) for word in words]
    is_shell = len(line) == 3 and line[0].rpartition("/")[2] in ("bash", "sh") and "c" in line[1]
    return line[2] if is_shell else shlex.join(line)


class WorkArguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ShellArguments(WorkArguments):
    """Run a command line in the workspace with bash, and see what it prints and its exit code.

    Each call is a new shell in the workspace; processes that it leaves are killed. There is no
    network unless the owner allows it, and only the workspace and $TMPDIR are writable. The middle
    of a long output is left out.
    """

    command: Annotated[
        str, BeforeValidator(_one_line), StringConstraints(min_length=1, pattern=r"^[^\x00]+$")
    ]
    timeout: Annotated[
        float, Field(ge=1, le=3600, description="seconds after which it is ended; at most 3600")
    ] = _SHELL_S


class ReadFileArguments(WorkArguments):
    """Read a text file, or some lines of it."""

    path: PathText
    offset: Annotated[int, Field(ge=1, description="the first line, counted from 1")] = 1
    limit: Annotated[int, Field(ge=1, le=5000, description="how many lines, at most 5000")] = 1000


class WriteFileArguments(WorkArguments):
    """Write a text file, new or replacing its content; creates missing folders."""

    path: PathText
    content: Content


class EditFileArguments(WorkArguments):
    """Replace text in a file: `old`, exactly as in the file and unique, becomes `new`."""

    path: PathText
    old: Annotated[Content, StringConstraints(min_length=1)]
    new: Content
    replace_all: Annotated[bool, Field(description="replace every occurrence")] = False


class WorkTools:
    _ARGUMENTS: ClassVar[dict[str, type[WorkArguments]]] = {
        "shell": ShellArguments,
        "read_file": ReadFileArguments,
        "write_file": WriteFileArguments,
        "edit_file": EditFileArguments,
    }

    def __init__(
        self,
        request: RunSpec,
        sandbox: WorkerSandbox,
        limits: LimitSettings,
        *,
        network: bool,
        left_s: Callable[[], float],
        max_call_s: float = 3600.0,
    ) -> None:
        """`left_s`: seconds left for the run; `max_call_s`: for one call. Raises EngineError."""
        self._request, self._limits, self._left_s = request, limits, left_s
        self._max_call_s = max_call_s
        if sandbox.is_off:
            request.callbacks.on_event(
                "note", "it runs without the sandbox, as the settings say", {}
            )
        box = BoxSpec(
            request.workspace,
            request.scratch,
            read_only=request.read_only,
            network=network,
            shown=[request.scratch / UPSTREAM, Path(file_tool.__file__), *python_folders()],
        )
        if reason := sandbox.why_unsafe(box):
            raise EngineError(reason)
        # Built once, so that files a Worker creates later cannot change its mounts.
        self._box = sandbox.argv([], box)
        self._temporary = request.scratch / "tmp"
        self._temporary.mkdir(exist_ok=True)
        self._count = 0
        writes = ("write_file", "edit_file")
        names = (name for name in self._ARGUMENTS if not request.read_only or name not in writes)
        self.specs: tuple[ToolSpec, ...] = tuple(
            tool_spec(name, self._ARGUMENTS[name]) for name in names
        )

    def call(self, name: str, given: dict[str, object]) -> ToolReply:
        """Errors are replies, not exceptions."""
        if name not in (spec.name for spec in self.specs):
            known = ", ".join(spec.name for spec in self.specs)
            return ToolReply(False, f"expected one of {known}; got {name[:100]!r}")
        try:
            args = self._ARGUMENTS[name].model_validate(given)
        except ValidationError as error:
            return ToolReply(False, str(bad_record(error)))
        self._count += 1
        try:
            return self._shell(args) if isinstance(args, ShellArguments) else self._file(name, args)
        except (EngineError, ProgramLost) as error:
            return ToolReply(False, f"it could not be run: {error}")

    def _shell(self, args: ShellArguments) -> ToolReply:
        if len(args.command.encode(errors="replace")) > _LINE_BYTES:
            message = (
                f"expected a command of at most {_LINE_BYTES} bytes; write a script and run that"
            )
            return ToolReply(False, message)
        on_event, facts = self._request.callbacks.on_event, {"id": f"shell-{self._count}"}
        on_event("command", args.command, {**facts, "status": "in_progress"})
        shell = programs.find("bash") or "/bin/sh"
        output = _MiddleCut(_SHOWN_CHARACTERS)
        timeout_s = min(args.timeout, self._max_call_s)
        ended = self._run([shell, "-c", args.command], output.take, timeout_s)
        text, code = output.text(), ended.exit_code
        head = f"exit code {code}"
        if ended.stopped:
            why = {"timeout": f"not done within {timeout_s:g} s", "flood": "it printed too much"}
            head = f"ended: {why.get(ended.stopped, ended.stopped)}"
        elif code is not None and code < 0:
            head = f"ended by {process.signal_name(code)}"
        is_well = code == 0 and not ended.stopped
        facts |= {"status": "completed" if is_well else "failed"}
        shown = text[-_EVENT_CHARACTERS:]
        on_event("command", args.command, {**facts, "exitCode": code, "output": shown})
        return ToolReply(True, f"{head}\n{text}".strip())

    def _file(self, name: str, args: WorkArguments) -> ToolReply:
        call = {"tool": name, **args.model_dump()}
        data: list[bytes] = []
        errors: list[bytes] = []
        ended = self._run(
            [os.path.realpath(sys.executable), "-I", "-S", file_tool.__file__],
            lambda stream, piece: (data if stream == "stdout" else errors).append(piece),
            _FILE_S,
            stdin=json.dumps(call).encode(errors="replace"),
        )
        if ended.stopped or ended.exit_code != 0:
            reason = b"".join(errors).decode(errors="replace").strip()[-500:] or ended.stopped
            return ToolReply(False, f"{name} failed: {reason}")
        answer = parse_object(b"".join(data))
        if "error" in answer:
            return ToolReply(False, str(answer["error"]))
        is_write = isinstance(args, WriteFileArguments | EditFileArguments)
        if is_write:
            self._request.callbacks.on_event("file", args.path, {"kind": "update"})
        else:
            self._request.callbacks.on_event("tool", name, {"tool": name, "status": "completed"})
        return ToolReply(True, str(answer.get("text", "")))

    def _run(
        self,
        argv: list[str],
        take: Callable[[Stream, bytes], None],
        timeout_s: float,
        *,
        stdin: bytes = b"",
    ) -> ProgramOutcome:
        request = self._request
        program = Program(
            argv=[*self._box, *argv],
            cwd=request.workspace,
            env=process.environment(more={"TMPDIR": str(self._temporary)}),
            timeout_s=max(0.0, min(timeout_s, self._left_s())),
            kill_after_s=self._limits.kill_after_s,
            output_bytes=self._limits.output_bytes,
            stdin=stdin,
        )
        return process.run(program, take, request.cancel)


class _MiddleCut:
    """Program output as plain text, without the middle if it is too long."""

    def __init__(self, limit: int) -> None:
        self._room = limit // 2
        self._head: list[str] = []
        self._tail = TextTail(limit - self._room)
        self._streams: dict[Stream, PlainStream] = {
            "stdout": PlainStream(for_screen),
            "stderr": PlainStream(for_screen),
        }
        self._screen = ScreenText()

    def take(self, stream: Stream, data: bytes) -> None:
        self._add(self._screen.feed(self._streams[stream].feed(data)))

    def text(self) -> str:
        for stream in self._streams.values():
            self._add(self._screen.feed(stream.feed(b"", last=True)))
        self._add(self._screen.rest())
        tail = self._tail.text()
        cut = self._tail.total - len(tail)
        between = f"\n[… {cut} characters are left out here …]\n" if cut else ""
        return f"{''.join(self._head)}{between}{tail}"

    def _add(self, text: str) -> None:
        head, rest = text[: self._room], text[self._room :]
        if head:
            self._head.append(head)
            self._room -= len(head)
        if rest:
            self._tail.add(rest)
