"""The tools of a Worker whose engine has none: a shell, and files, each inside the sandbox.

No such call is carried out by this process: each starts a program of its own in the sandbox, with
which all it has started ends. What else a run is provided with is passed on to who provides it.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable
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
from mimikit.engines import file_tool, process, process_tree, resources
from mimikit.engines.base import EngineRequest, ToolReply, ToolSpec, tool_spec
from mimikit.engines.git_folders import GitFolders
from mimikit.engines.program import Program, ProgramOutcome, Stream
from mimikit.engines.worker_sandbox import WorkerSandbox
from mimikit.errors import EngineError, ProgramLost
from mimikit.language.plain_text import PlainStream, TextTail, ending, plain
from mimikit.protocol.json import parse_object
from mimikit.protocol.models import MAX_TEXT
from mimikit.protocol.records import bad_record

_SHOWN_CHARACTERS = 16_000
_EVENT_CHARACTERS = 4000
_LINE_BYTES = 131_000
"""Linux takes no longer argument than 128 KiB."""
_SHELL_S, _FILE_S = 120.0, 30.0

PathText = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]
Content = Annotated[str, StringConstraints(max_length=MAX_TEXT)]


def _one_line(command: object) -> object:
    """Some models give the words of a line, or the shell with it."""
    words = cast("list[object]", command if isinstance(command, list) else [])
    if not words or not all(isinstance(word, str) for word in words):
        return cast("object", command)
    line = [str(word) for word in words]
    is_shell = len(line) == 3 and line[0].rpartition("/")[2] in ("bash", "sh") and "c" in line[1]
    return line[2] if is_shell else shlex.join(line)


class WorkArguments(BaseModel):
    """What one of these tools takes; anything else is refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ShellArguments(WorkArguments):
    """Run a command line in the workspace with bash, and see what it prints and its exit code.

    Each call is a shell of its own: it starts in the workspace, and what it leaves running is ended
    with it. There is no network unless the owner allows it, and nothing outside the workspace can
    be written but $TMPDIR. Of a long output the middle is left out.
    """

    command: Annotated[
        str, BeforeValidator(_one_line), StringConstraints(min_length=1, pattern=r"^[^\x00]+$")
    ]
    timeout: Annotated[
        float, Field(ge=1, le=3600, description="seconds after which it is ended; at most 3600")
    ] = _SHELL_S


class ReadFileArguments(WorkArguments):
    """Read a text file, whole or some lines of it."""

    path: PathText
    offset: Annotated[int, Field(ge=1, description="the first line, counted from 1")] = 1
    limit: Annotated[int, Field(ge=1, le=5000, description="how many lines, at most 5000")] = 1000


class WriteFileArguments(WorkArguments):
    """Write a text file, new or in place of what it held; folders are made."""

    path: PathText
    content: Content


class EditFileArguments(WorkArguments):
    """Replace a piece of a text file: `old`, exactly as it stands there, once, becomes `new`."""

    path: PathText
    old: Annotated[Content, StringConstraints(min_length=1)]
    new: Content
    replace_all: Annotated[bool, Field(description="replace each place where it stands")] = False


class WorkTools:
    """The tools of one Worker's run, for its thread."""

    _ARGUMENTS: ClassVar[dict[str, type[WorkArguments]]] = {
        "shell": ShellArguments,
        "read_file": ReadFileArguments,
        "write_file": WriteFileArguments,
        "edit_file": EditFileArguments,
    }

    def __init__(
        self,
        request: EngineRequest,
        sandbox: WorkerSandbox,
        folders: GitFolders,
        limits: LimitSettings,
        *,
        network: bool,
        left_s: Callable[[], float],
        most_s: float = 3600.0,
    ) -> None:
        """`left_s`: how long the run may still take; `most_s`: and one call, in seconds."""
        self._request, self._limits, self._left_s = request, limits, left_s
        self._most_s = most_s
        # Made once: what the Worker makes between its calls changes nothing of where it may go.
        box = sandbox.masked(["all"], request, folders, confined=True, network=network)
        self._box = box[:-1]
        self._temporary = request.scratch / "tmp"
        self._temporary.mkdir(exist_ok=True)
        self._count = 0
        writes = ("write_file", "edit_file")
        names = (name for name in self._ARGUMENTS if not request.read_only or name not in writes)
        own = tuple(tool_spec(name, self._ARGUMENTS[name]) for name in names)
        provided = (spec for spec in request.tools if spec.name not in self._ARGUMENTS)
        self.specs: tuple[ToolSpec, ...] = (*own, *provided)

    def call(self, name: str, given: dict[str, object]) -> ToolReply:
        """Carry one call out; whatever goes wrong is an answer."""
        if name not in (spec.name for spec in self.specs):
            known = ", ".join(spec.name for spec in self.specs)
            return ToolReply(False, f"expected one of {known}; got {name[:100]!r}")
        self._count += 1
        if name not in self._ARGUMENTS:
            return self._provided(name, given)
        try:
            args = self._ARGUMENTS[name].model_validate(given)
        except ValidationError as error:
            return ToolReply(False, str(bad_record(error)))
        try:
            return self._shell(args) if isinstance(args, ShellArguments) else self._file(name, args)
        except (EngineError, ProgramLost) as error:
            return ToolReply(False, f"it could not be run: {error}")

    def _shell(self, args: ShellArguments) -> ToolReply:
        if len(args.command.encode(errors="replace")) > _LINE_BYTES:
            said = f"expected a command of at most {_LINE_BYTES} bytes; write a script and run that"
            return ToolReply(False, said)
        tell, facts = self._request.on_event, {"id": f"shell-{self._count}"}
        tell("command", args.command, {**facts, "status": "in_progress"})
        shell = shutil.which("bash") or "/bin/sh"
        output = _MiddleCut(_SHOWN_CHARACTERS)
        most_s = min(args.timeout, self._most_s)
        ended = self._run([shell, "-c", args.command], output.take, most_s)
        text, code = output.text(), ended.exit_code
        head = f"exit code {code}"
        if ended.stopped:
            why = {
                "timeout": f"not done within {most_s:g} s",
                "flood": "it printed too much",
                "memory": "it took too much memory",
                "processes": "it started too many processes",
            }
            head = f"ended: {why.get(ended.stopped, ended.stopped)}"
        elif code is not None and code < 0:
            head = f"ended by {process.signal_name(code)}"
        is_well = code == 0 and not ended.stopped
        facts |= {"status": "completed" if is_well else "failed"}
        shown, cut = ending(text, _EVENT_CHARACTERS)
        tell(
            "command",
            args.command,
            {**facts, "exitCode": code, "output": shown, "cutBytes": cut + output.cut},
        )
        return ToolReply(True, f"{head}\n{text}".strip())

    def _provided(self, name: str, given: dict[str, object]) -> ToolReply:
        """Have a call carried out that is none of a shell or of files: outside the sandbox."""
        tell, facts = self._request.on_event, {"tool": name, "id": f"provided-{self._count}"}
        tell("tool", name, {**facts, "status": "in_progress"})
        reply = self._request.call_tool(name, given)
        facts |= {"status": "completed" if reply.ok else "failed"}
        facts |= {} if reply.ok else {"error": plain(reply.text)[:_EVENT_CHARACTERS]}
        tell("tool", name, facts)
        return reply

    def _file(self, name: str, args: WorkArguments) -> ToolReply:
        order = {"tool": name, **args.model_dump()}
        data: list[bytes] = []
        said: list[bytes] = []
        ended = self._run(
            [sys.executable, "-I", "-S", file_tool.__file__],
            lambda stream, piece: (data if stream == "stdout" else said).append(piece),
            _FILE_S,
            stdin=json.dumps(order).encode(errors="replace"),
        )
        if ended.stopped or ended.exit_code != 0:
            why = b"".join(said).decode(errors="replace").strip()[-500:] or ended.stopped
            return ToolReply(False, f"{name} could not be carried out: {why}")
        answer = parse_object(b"".join(data))
        if "error" in answer:
            return ToolReply(False, str(answer["error"]))
        is_write = isinstance(args, WriteFileArguments | EditFileArguments)
        if is_write:
            self._request.on_event("file", args.path, {"kind": "update"})
        else:
            self._request.on_event("tool", name, {"tool": name, "status": "completed"})
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
            mark=process_tree.mark(request.state, request.run_id),
            timeout_s=max(0.0, min(timeout_s, self._left_s())),
            kill_after_s=self._limits.kill_after_s,
            output_bytes=self._limits.output_bytes,
            most=resources.most_of(self._limits),
            stdin=stdin,
        )
        return process.run(program, take, request.cancel)


class _MiddleCut:
    """What a program prints, plain and as it came; of too much the middle is left out."""

    def __init__(self, limit: int) -> None:
        self._room = limit // 2
        self._head: list[str] = []
        self.cut = 0
        self._tail = TextTail(limit - self._room)
        self._streams: dict[Stream, PlainStream] = {
            "stdout": PlainStream(),
            "stderr": PlainStream(),
        }

    def take(self, stream: Stream, data: bytes) -> None:
        self._add(self._streams[stream].feed(data))

    def text(self) -> str:
        for stream in self._streams.values():
            self._add(stream.feed(b"", last=True))
        tail = self._tail.text()
        self.cut = self._tail.total - len(tail)
        between = f"\n[… {self.cut} characters are left out here …]\n" if self.cut else ""
        return f"{''.join(self._head)}{between}{tail}"

    def _add(self, text: str) -> None:
        head, rest = text[: self._room], text[self._room :]
        if head:
            self._head.append(head)
            self._room -= len(head)
        if rest:
            self._tail.add(rest)
