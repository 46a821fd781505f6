"""The engine `codex`: one app-server for Teller and Planner, a `codex exec` per Worker run.

Teller and Planner have no shell, files or network, only our tools, called in this process. A Worker
has codex's own tools, in codex's own sandbox inside the box; without the box it is not started. In
a read-only run both have the workspace read-only. The box has a network, for codex itself, and
shows codex's home; codex's own sandbox denies both to its shells.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.engines import process
from mimikit.engines.base import FAULTS, UPSTREAM, Done, Failed, Outcome, RunSpec, fault_outcome
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.cli import CodexLocation
from mimikit.engines.codex.exec_events import TurnReader, minus, usage_in_rollout
from mimikit.engines.codex.failures import failure_of, is_context_overflow
from mimikit.engines.codex.talk import TalkServer
from mimikit.engines.process import Program, ProgramOutcome
from mimikit.engines.program import ProgramEngine
from mimikit.errors import EngineError
from mimikit.protocol.models import Role, Usage
from mimikit.sandbox.worker import BoxSpec

_ARTIFACTS = (".git", ".codex", ".agents", ".aws")
"""Empty folders that codex leaves in a workspace when it is stopped during a command."""

_RESUME_PROMPT = (
    "You worked on the task below before, in this conversation, and were interrupted or did not "
    "come to its end. Look at what stands of it, go on from there, and finish.\n\n"
)


class CodexEngine(ProgramEngine):
    name = "codex"

    def __init__(self, settings: Settings, state: Path, clock: Clock | None = None) -> None:
        super().__init__(settings, state, clock)
        self._codex = settings.codex
        self._talk = TalkServer(settings, state, self._clock)
        self._lock = threading.Lock()
        self._workers = 0
        self._artifacts_before = set[str]()
        """The _ARTIFACTS that existed before the first of the running Workers."""

    def unavailable(self, role: Role | None = None) -> str | None:
        if (reason := super().unavailable(role)) or role != "worker":
            return reason or self._talk.unavailable()
        is_hidden = codex_cli.is_in_keyring(self._codex)
        return f"{codex_cli.KEYRING}: {codex_cli.KEYRING_REMEDY}" if is_hidden else None

    def recheck(self) -> None:
        super().recheck()
        codex_cli.recheck_login()

    def check_program(self) -> str | None:
        return codex_cli.unavailable(self._codex)

    def login_files(self) -> list[Path]:
        place = codex_cli.find(self._codex)
        return [place.home / "auth.json"] if place else []

    def close(self) -> None:
        self._talk.close()

    def check_talk(self) -> str | None:
        place = codex_cli.find(self._codex)
        return "codex is not installed" if place is None else self._talk.check(place)

    def carry_out(self, request: RunSpec) -> Outcome:
        place = codex_cli.find(self._codex)
        if (reason := self.unavailable(request.role)) or place is None:
            return Failed("engine_unavailable", reason or "codex is not installed")
        try:
            if request.role == "worker":
                return self._work(request, place)
            return self._talk.run(request, place)
        except FAULTS as error:
            return fault_outcome(self.name, request, error, "unready")

    def _work(self, request: RunSpec, place: CodexLocation) -> Outcome:
        earlier = _usage_of_session(place.home, request.resume) if request.resume else Usage()
        prompt = f"{_RESUME_PROMPT}{request.prompt}" if request.resume else request.prompt
        with self._artifact_folders(request):
            outcome = self._work_in_box(replace(request, prompt=prompt), place)
        if request.resume and (reason := _why_not_resumed(outcome.error or "")):
            note = f"its earlier session is {reason}: it starts over"
            request.callbacks.on_event("note", note, {})
            return self._work(replace(request, resume=None), place)
        return replace(outcome, usage=minus(outcome.usage, earlier))

    @contextlib.contextmanager
    def _artifact_folders(self, request: RunSpec) -> Generator[None]:
        """Create codex's artifact folders for all running Workers, and remove the new, empty ones.

        Else each codex would create them, and remove them while others use them.
        """
        workspace = Path(os.path.realpath(request.workspace))
        with self._lock:
            if not self._workers:
                before = {name for name in _ARTIFACTS if os.path.lexists(workspace / name)}
                self._artifacts_before = before
            self._workers += 1
            if not request.read_only:
                for name in _ARTIFACTS:
                    with contextlib.suppress(OSError):
                        (workspace / name).mkdir()
        try:
            yield
        finally:
            with self._lock:
                self._workers -= 1
                created = set(_ARTIFACTS) - self._artifacts_before if not self._workers else ()
                for path in (workspace / name for name in created):
                    if path.is_dir() and not path.is_symlink():
                        with contextlib.suppress(OSError):  # not empty
                            path.rmdir()

    def _work_in_box(self, request: RunSpec, place: CodexLocation) -> Outcome:
        """Run a Worker in the box, after the canary. Raises EngineError."""
        if self._sandbox.is_off:
            request.callbacks.on_event(
                "note", "it runs without the sandbox, as the settings say", {}
            )
        place.home.mkdir(mode=0o700, parents=True, exist_ok=True)  # its sessions outlive the box
        inner: list[str] = []
        if codex_cli.is_confined(self._codex, request):
            inner = codex_cli.confined_argv(self._codex, place, request)
        box = BoxSpec(
            request.workspace,
            request.scratch,
            read_only=request.read_only,
            network=True,
            nests=True,
            writable=[place.home],
            shown=[*codex_cli.shown_to(place), request.scratch / UPSTREAM],
        )
        env = codex_cli.environment(self._codex, place, is_talk=False)
        # In the environment that codex has: the helper of its sandbox is in its home.
        if reason := self._sandbox.why_unsafe(box, inner=inner, env=env):
            raise EngineError(reason)
        git_folders = self._sandbox.commits_in(request.workspace)
        argv = codex_cli.work_argv(self._codex, place, request, git_folders)
        argv = self._sandbox.argv(argv, box)
        program = Program(
            argv=argv,
            cwd=request.workspace,
            env=env,
            timeout_s=request.timeout_s,
            idle_timeout_s=request.idle_timeout_s,
            kill_after_s=self._limits.kill_after_s,
            output_bytes=process.OUTPUT_FACTOR * self._limits.output_bytes,
            stdin=request.prompt.encode(errors="replace"),
            boxed=argv[0] != place.program,
        )
        turn = TurnReader(request.callbacks.on_event, request.callbacks.on_session)
        ended = process.run(program, turn.take, request.cancel, busy=lambda: bool(turn.working))
        outcome = self._outcome(program, ended, turn)
        return replace(outcome, usage=turn.usage, session_id=turn.session_id)

    def _outcome(self, program: Program, ended: ProgramOutcome, turn: TurnReader) -> Outcome:
        text = (turn.message or "")[: self._limits.result_bytes]
        canceled = ended.stopped in ("canceled", "killed")
        if turn.completed and not canceled:
            if turn.message:
                return Done(text, exit_code=0)
            return Failed("error", "codex ended the turn without an answer; try again", exit_code=0)
        if stopped := process.stopped_outcome(ended, program, text):
            is_failed = isinstance(stopped, Failed)
            return replace(stopped, acted=turn.acted) if is_failed else stopped
        code = ended.exit_code or 0
        # The signal that ended it during a turn, as reported by itself or by bubblewrap.
        signum = -code if code < 0 else max(0, code - 128)
        if signum and not turn.failed:
            reason = f"codex was ended by {process.signal_name(-signum)} before it was done"
            return replace(Failed.unavailable("broken", reason, text=text), acted=turn.acted)
        reason = (
            turn.failed or turn.errors() or turn.trouble or "codex ended without an error message"
        )
        if reason.rpartition("\n")[2].startswith("bwrap: ") and not turn.session_id:
            return Failed.unavailable("unready", reason, text=text)  # a path to mount was gone
        failed = failure_of(reason, self._clock.now())
        return replace(failed, text=text, acted=turn.acted, exit_code=code)


def _why_not_resumed(error: str) -> str | None:
    """Why a session could not be resumed; None: another failure."""
    if "no rollout found" in error:
        return "gone"
    return "too long" if is_context_overflow(error) else None


def _usage_of_session(home: Path, session: str) -> Usage:
    for path in (home / "sessions").rglob(f"*{session}.jsonl"):
        with contextlib.suppress(OSError):
            return usage_in_rollout(path.read_bytes().splitlines())
    return Usage()
