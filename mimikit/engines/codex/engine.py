"""The engine `codex`: one that stays for Teller and Planner, one `codex exec` for a Worker's run.

Teller and Planner have no shell, no files and no network, only our tools: called in this process,
or over MCP where a `codex exec` of their own takes the place of the one that stays. A Worker has
codex's own tools in codex's own sandbox, inside the box; without that it is not started. A run that
is read-only has the workspace so in both of them. The box has a network, for codex itself, and
shows codex's home; codex's own sandbox shuts both to its shells.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mimikit.clock import Clock, SystemClock
from mimikit.config import Settings
from mimikit.engines import process, process_marks
from mimikit.engines.base import UPSTREAM, Done, Failed, Outcome, RunSpec
from mimikit.engines.cache import write_cache
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.cli import CodexLocation
from mimikit.engines.codex.exec_events import TurnReader, minus, usage_in_rollout
from mimikit.engines.codex.failures import told_failure, told_too_long
from mimikit.engines.codex.warm_server import WarmServer, stamp
from mimikit.engines.program import Program, ProgramOutcome, Stream
from mimikit.errors import EngineError, StorageError, shortage_of
from mimikit.language.plain_text import LineReader, PlainStream, TextTail
from mimikit.protocol import paths
from mimikit.protocol.models import EngineWant, Role, Usage
from mimikit.sandbox import worker as sandbox
from mimikit.sandbox.worker import WorkerSandbox

_LINE_BYTES = 16 * 2**20
_STDERR_CHARACTERS = 8000
_REMEMBER_S = 5.0
_ARTIFACTS = (".git", ".codex", ".agents", ".aws")
"""Empty folders that codex leaves in a workspace when it is stopped in the midst of a command."""

_GO_ON = (
    "You worked on the task below before, in this conversation, and were interrupted or did not "
    "come to its end. Look at what stands of it, go on from there, and finish.\n\n"
)


class CodexEngine:
    """Serves every role with the codex CLI. Safe between threads."""

    name = "codex"

    def __init__(self, settings: Settings, state: Path, clock: Clock | None = None) -> None:
        self._codex = settings.codex
        self._limits = settings.limits
        self._state = state
        self._clock = clock or SystemClock()
        self._sandbox = WorkerSandbox(settings.sandbox, state)
        self.look_anew()
        self._refused: object = None
        """The login with which it was turned away as logged out."""
        self._warm = WarmServer(settings, state, self._clock)
        self._lock = threading.Lock()
        self._working, self._before = 0, set[str]()
        """How many Workers are at it, and what of codex's artifacts was there before the first."""
        self._catalogue: Path | None = None

    def unavailable(self, role: Role | None = None) -> str | None:
        """Why it can not serve now; for the Worker also why there is no sandbox."""
        if reason := self._reason():
            return reason
        return self._sandbox.unavailable() if role == "worker" else None

    def look_anew(self) -> None:
        self._reason = _remembered(lambda: codex_cli.unavailable(self._codex), _REMEMBER_S)

    def is_mended(self, want: EngineWant) -> bool:
        """Whether the program is there, or another login; for the rest a run has to try."""
        self.look_anew()
        if want == "logged_out" and self._refused == self._login():
            return False
        return want in ("missing", "logged_out") and self.unavailable() is None

    def _login(self) -> object:
        place = codex_cli.find(self._codex)
        return stamp(place.home / "auth.json") if place else None

    def close(self) -> None:
        """End the codex that stays."""
        self._warm.close()

    def turns_go(self) -> str | None:
        """Why turns of Teller and Planner go through `codex exec`; None: a warm one serves them."""
        place = codex_cli.find(self._codex)
        return "codex is not installed" if place is None else self._warm.look(place)

    def run(self, request: RunSpec) -> Outcome:
        login = self._login()
        outcome = self._run(request)
        if isinstance(outcome, Failed) and outcome.want == "logged_out":
            self._refused = login
        return outcome

    def _run(self, request: RunSpec) -> Outcome:
        place = codex_cli.find(self._codex)
        if (reason := self.unavailable(request.role)) or place is None:
            return Failed("engine_unavailable", reason or "codex is gone")
        try:
            if request.role == "worker":
                return self._work(request, place)
            if (outcome := self._warm.run(request, place)) is not None:
                return outcome
            mark = process_marks.mark(request.state, request.run_id)
            catalogue = self._models(request, place)
            argv = codex_cli.talk_argv(self._codex, place, request, catalogue)
            shown = [request.scratch, place.home, *filter(None, [catalogue])]
            shown = [sandbox.real(path) for path in shown]
            boxed = sandbox.namespaced(argv, hidden=[self._state], writable=shown)
            return self._carry_out(request, place, boxed or argv, mark)
        except EngineError as error:
            if request.cancel.has_begun:  # its end is what went wrong: it is not repeated for that
                return Failed("error", str(error))
            if shortage_of(error):
                raise
            return Failed("engine_unavailable", str(error))
        except (StorageError, OSError, MemoryError) as error:
            if shortage_of(error) and not request.cancel.has_begun:
                raise EngineError(f"codex can not be started: {error}") from error
            if isinstance(error, StorageError | MemoryError):
                said = str(error) or repr(error)
                return Failed("error", said)
            said = f"{error.filename or request.scratch}: {error.strerror or error}"
            return Failed("error", said)

    def _work(self, request: RunSpec, place: CodexLocation) -> Outcome:
        workspace = Path(os.path.realpath(request.workspace))
        earlier = _usage_before(place.home, request.resume) if request.resume else Usage()
        with self._lock:
            if not self._working:
                self._before = {name for name in _ARTIFACTS if os.path.lexists(workspace / name)}
            self._working += 1
            # Else each codex makes them for its shells, and removes them under those of others.
            for path in (workspace / name for name in _ARTIFACTS if not request.read_only):
                with contextlib.suppress(OSError):
                    path.mkdir()
        try:
            asked = (
                replace(request, prompt=f"{_GO_ON}{request.prompt}") if request.resume else request
            )
            outcome = self._work_in_box(asked, place)
        finally:
            with self._lock:  # what others work with stays until the last is done
                self._working -= 1
                came = [
                    name for name in _ARTIFACTS if name not in self._before and not self._working
                ]
                for path in (request.workspace / name for name in came):
                    if path.is_dir() and not path.is_symlink():
                        with contextlib.suppress(OSError):  # not empty: somebody works with it
                            path.rmdir()
        if request.resume and (said := _no_way_on(outcome.error or "")):
            request.callbacks.on_event("note", f"its earlier session is {said}: it begins anew", {})
            outcome, earlier = self._work(replace(request, resume=None), place), Usage()
        return replace(outcome, usage=minus(outcome.usage, earlier))

    def _work_in_box(self, request: RunSpec, place: CodexLocation) -> Outcome:
        """Work in the box, after the proof that it holds.

        Raises:
            EngineError: there is none, or it does not hold.
        """
        if self._sandbox.is_off:
            request.callbacks.on_event("note", "it runs without the box: the settings say so", {})
        inner: list[str] = []
        if codex_cli.is_confined(self._codex, request):
            inner = codex_cli.confined_argv(self._codex, place, request)
        catalogue = self._models(request, place)
        writable = [place.home]
        shown = [*codex_cli.shown_to(place), request.scratch / UPSTREAM]
        shown += [catalogue] if catalogue else []
        where = request.workspace, request.scratch
        if reason := self._sandbox.unproved(
            *where,
            read_only=request.read_only,
            network=True,
            inner=inner,
            # As codex itself is started: what runs its shells lies in its home.
            env=codex_cli.surroundings(self._codex, place, talks=False),
            writable=writable,
            shown=shown,
        ):
            raise EngineError(reason)
        mark = process_marks.mark(request.state, request.run_id)
        commits_in = self._sandbox.commits_in(request.workspace)
        argv = codex_cli.work_argv(
            self._codex, place, request, catalogue, mark=mark, writable=commits_in
        )
        argv = self._sandbox.argv(
            argv,
            *where,
            read_only=request.read_only,
            network=True,
            nests=True,
            writable=writable,
            shown=shown,
        )
        return self._carry_out(request, place, argv, mark)

    def _models(self, request: RunSpec, place: CodexLocation) -> Path | None:
        """The catalogue that shows our tools to every model; None when it is not needed."""
        if not request.tools.specs or "model_catalog_json" in self._codex.config:
            return None
        with self._lock:
            if self._catalogue is None and (data := codex_cli.models(place)):
                write_cache(self._state, name := f"{paths.CACHE}/codex-models.json", data)
                self._catalogue = self._state / name
            return self._catalogue

    def _carry_out(
        self, request: RunSpec, place: CodexLocation, argv: list[str], mark: str
    ) -> Outcome:
        program = Program(
            argv=argv,
            cwd=request.workspace if request.role == "worker" else request.scratch,
            env=codex_cli.surroundings(
                self._codex,
                place,
                talks=request.role != "worker",
                tools_token=request.tools.token,
            ),
            mark=mark,
            timeout_s=request.timeout_s,
            idle_timeout_s=request.idle_timeout_s,
            kill_after_s=self._limits.kill_after_s,
            output_bytes=process.FLOOD * self._limits.output_bytes,
            stdin=request.prompt.encode(errors="replace"),
            boxed=argv[0] != place.program,
        )
        output = _Output(request)
        turn = output.turn
        ended = process.run(program, output.take, request.cancel, busy=lambda: bool(turn.working))
        return replace(
            self._judge(request, program, ended, output),
            usage=turn.usage,
            session_id=turn.session_id if request.role == "worker" else None,
        )

    def _judge(
        self, request: RunSpec, program: Program, ended: ProgramOutcome, output: _Output
    ) -> Outcome:
        """How the turn ended, from what codex said and how it went."""
        turn = output.turn
        text = (turn.message or "")[: self._limits.result_bytes]
        canceled = ended.stopped in ("canceled", "killed")
        if turn.completed and not canceled:
            # Who has tools of ours says what there is to say through them.
            if turn.message or (turn.acted and request.role != "worker"):
                return Done(text, exit_code=0)
            said = "codex ended the turn without a word; ask again"
            return Failed("error", said, exit_code=0)
        if stopped := process.stopped_outcome(ended, program, text):
            return stopped
        code = ended.exit_code or 0
        # The signal that ended it in the midst of a turn, told by itself or by bubblewrap.
        signum = -code if code < 0 else max(0, code - 128)
        if signum and not turn.failed:
            said = f"codex was ended by {process.signal_name(-signum)} before it was done"
            return Failed("error", said, text, exit_code=128 + signum)
        said = turn.failed or output.complaint() or turn.trouble or "codex ended without a word"
        failure = told_failure(said, self._clock.now())
        if said.rpartition("\n")[2].startswith("bwrap: ") and not turn.session_id:
            failure = replace(failure, want="unready")  # what it had to mount was gone
        return failure.outcome(text, acted=turn.acted, code=code)


class _Output:
    """Sorts what codex prints: events to the turn, complaints kept for the case of a failure."""

    def __init__(self, request: RunSpec) -> None:
        self.turn = TurnReader(request.callbacks.on_event, request.callbacks.on_session)
        self._lines = LineReader(_LINE_BYTES)
        self._stderr = PlainStream()
        self._complaints = TextTail(_STDERR_CHARACTERS)

    def take(self, stream: Stream, data: bytes) -> None:
        if stream == "stderr":
            self._complaints.add(self._stderr.feed(data))
            return
        for line in self._lines.feed(data):
            self.turn.take(line)

    def complaint(self) -> str:
        """What it complained of last, warnings left out."""
        lines = self._complaints.text().strip().splitlines()
        return "\n".join([line for line in lines if not line.startswith("WARNING")][-5:])


def _remembered(work_out: Callable[[], str | None], for_s: float) -> Callable[[], str | None]:
    """What is asked for often, worked out now and then."""

    @functools.lru_cache(maxsize=1)
    def kept(_slot: float) -> str | None:
        return work_out()

    return lambda: kept(time.monotonic() // for_s)


def _no_way_on(said: str) -> str | None:
    """Why a session can not be gone on with; None: what failed is something else."""
    if "no rollout found" in said:
        return "gone"
    return "too long" if told_too_long(said) else None


def _usage_before(home: Path, session: str) -> Usage:
    """What a session had used before it is taken up again."""
    for path in (home / "sessions").rglob(f"*{session}.jsonl"):
        with contextlib.suppress(OSError):
            return usage_in_rollout(path.read_bytes().splitlines())
    return Usage()
