"""The engine `codex`: one `codex exec` for each run, for every role.

Teller and Planner have no shell, no files and no network, only our tools over MCP. A Worker has
codex's own tools in codex's own sandbox, inside the outer one that masks the state folder; without
that it is not started. A run that is read-only has the workspace so in both of them. What git runs
as the owner is shut to a Worker; codex's own sandbox closes the login that codex has to read.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from mimikit.clock import Clock, SystemClock
from mimikit.config import Settings, system_zone
from mimikit.engines import git, mounts, process, process_tree, sandbox
from mimikit.engines.base import UPSTREAM, EngineRequest, OnEvent, Outcome
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.cli import CodexLocation, TurnReader
from mimikit.engines.codex.workspace import LITTER, odd_documents, odd_settings
from mimikit.engines.git_folders import GitFolders
from mimikit.engines.process import Program, ProgramOutcome, Stream
from mimikit.errors import EngineError, StorageError, shortage_of
from mimikit.language.phrases import MONTHS
from mimikit.language.plain_text import LineReader, PlainStream, TextTail
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import FailureReason, Role, Usage

GIT_PINS = f"{paths.CACHE}/git-folders"
"""What was found of git, as paths with zero bytes between them: where commits go, what was met."""
_LINE_BYTES = 16 * 2**20
_STDERR_CHARACTERS = 8000
_REMEMBER_S = 5.0
_SANDBOX_REMEMBER_S = 120.0
"""Looking whether a sandbox can be made starts one: not at every beat of an idle consumer."""


class CodexEngine:
    """Serves every role with the codex CLI. Safe between threads."""

    name = "codex"

    def __init__(self, settings: Settings, state: Path, clock: Clock | None = None) -> None:
        self._codex = settings.codex
        self._limits = settings.limits
        self._state = state
        self._clock = clock or SystemClock()
        self._reason = _remembered(lambda: codex_cli.unavailable(self._codex), _REMEMBER_S)
        self._sandboxed = _remembered(lambda: sandbox.ask().reason or None, _SANDBOX_REMEMBER_S)
        self._lock = threading.Lock()
        self._working, self._before = 0, set[str]()
        """How many Workers are at it, and what of codex' litter was there before the first."""
        self._proved: set[tuple[Path, bool]] = set()
        """Workspaces, each as one to work in or as a read-only one, in which the sandbox holds."""
        self._catalogue: Path | None = None

    def unavailable(self, role: Role | None = None) -> str | None:
        """Why it can not serve now; for the Worker also why there is no sandbox."""
        if reason := self._reason():
            return reason
        unsafe = self._codex.sandbox == "danger-full-access"
        return None if role != "worker" or unsafe else self._sandboxed()

    def run(self, request: EngineRequest) -> Outcome:
        place = codex_cli.find(self._codex)
        if (reason := self.unavailable(request.role)) or place is None:
            return Outcome("failed", error=reason, failure_reason="engine_unavailable")
        try:
            if request.role == "worker":
                return self._work(request, place)
            mark = process_tree.mark(request.state, request.run_id)
            catalogue = self._models(request, place)
            argv = codex_cli.talk_argv(self._codex, place, request, catalogue)
            if self._sandboxed() is None:  # it runs nothing; should it, nothing lives on
                shown = [request.scratch, place.home, *filter(None, [catalogue])]
                argv = sandbox.masked(argv, self._state, writable=shown)
            return self._carry_out(request, place, argv, mark)
        except EngineError as error:
            if request.cancel.has_begun:  # its end is what went wrong: it is not repeated for that
                return Outcome("failed", error=str(error), failure_reason="error")
            if shortage_of(error):
                raise
            return Outcome("failed", error=str(error), failure_reason="engine_unavailable")
        except (StorageError, OSError, MemoryError) as error:
            if shortage_of(error) and not request.cancel.has_begun:
                raise EngineError(f"codex can not be started: {error}") from error
            if isinstance(error, StorageError | MemoryError):
                said = str(error) or repr(error)
                return Outcome("failed", error=said, failure_reason="error")
            said = f"{error.filename or request.scratch}: {error.strerror or error}"
            return Outcome("failed", error=said, failure_reason="error")

    def _work(self, request: EngineRequest, place: CodexLocation) -> Outcome:
        workspace = Path(os.path.realpath(request.workspace))
        earlier = _usage_before(place.home, request.resume) if request.resume else Usage()
        with self._lock:
            if not self._working:
                self._before = {name for name in LITTER if os.path.lexists(workspace / name)}
            self._working += 1
            # Else each codex makes them for its shells, and removes them under those of others.
            for path in (workspace / name for name in LITTER if not request.read_only):
                with contextlib.suppress(OSError):
                    path.mkdir()
        left = list[str]()
        try:
            if request.read_only:  # the whole workspace is, git's folders with it
                outcome = self._work_with(GitFolders(), request, place)
            else:
                went, met = self._git_pins()
                with git.held(request.workspace, self._state, met) as folders:
                    self._pin(folders, went, request.on_event)
                    outcome = self._work_with(folders, request, place)
                left = folders.left
                for note in left:
                    request.on_event("note", note, {})
        finally:
            with self._lock:  # what others work with stays until the last is done
                self._working -= 1
                came = [name for name in LITTER if name not in self._before and not self._working]
                for path in (request.workspace / name for name in came):
                    if path.is_dir() and not path.is_symlink():
                        with contextlib.suppress(OSError):  # not empty: not litter
                            path.rmdir()
        if request.resume and outcome.error and "no rollout found" in outcome.error:
            request.on_event("note", "its earlier session is gone: it begins anew", {})
            outcome, earlier = self._work(replace(request, resume=None), place), Usage()
        text = "\n\n".join([outcome.text, *left]).strip()
        return replace(outcome, text=text, usage=codex_cli.minus(outcome.usage, earlier))

    def _git_pins(self) -> tuple[list[Path], list[Path]]:
        """Where commits went first, and what was met of git before."""
        with contextlib.closing(RealDisk(self._state)) as disk:
            went, _, met = (Files(disk).read(GIT_PINS) or b"").partition(b"\0\0")
        first, second = (
            [Path(os.fsdecode(path)) for path in part.split(b"\0") if path] for part in (went, met)
        )
        return first, second

    def _pin(self, folders: GitFolders, went: list[Path], on_event: OnEvent) -> None:
        """Keep what was found of git for the runs to come; say what is not as it was."""
        commits = folders.writable or went
        parts = (b"\0".join(map(os.fsencode, paths)) for paths in (commits, folders.met))
        with self._lock:
            self._write(GIT_PINS, b"\0\0".join(parts))
        for note in folders.notes:
            on_event("note", note, {})
        if went and commits != went:
            now, before = (", ".join(map(str, paths)) for paths in (commits, went))
            on_event("note", f"commits go to {now} now, no longer to {before}", {})

    def _work_with(
        self, folders: GitFolders, request: EngineRequest, place: CodexLocation
    ) -> Outcome:
        if said := odd_settings(request.workspace):
            raise EngineError(said)
        odd = odd_documents(request.workspace, place.logins())
        for said in odd:
            request.on_event("note", said, {})
        mark = process_tree.mark(request.state, request.run_id)
        argv = codex_cli.work_argv(
            self._codex,
            place,
            request,
            self._models(request, place),
            mark=mark,
            writable=folders.writable,
            documents=not odd,
        )
        argv = self._masked(folders, request, place, argv)
        outcome = self._carry_out(request, place, argv, mark)
        return replace(outcome, text="\n\n".join([outcome.text, *odd]).strip())

    def _masked(
        self, folders: GitFolders, request: EngineRequest, place: CodexLocation, argv: list[str]
    ) -> list[str]:
        """`argv` in the outer sandbox, after the proof that it holds.

        Raises:
            EngineError: it does not hold; where there is none the owner may choose to do without.
        """
        if reason := self._unproved(request, place):
            unsafe = self._codex.sandbox == "danger-full-access"
            if not unsafe or sandbox.ask().can != "not here":
                raise EngineError(reason)
            request.on_event("note", f"no sandbox, as the settings allow: {reason}", {})
            return argv
        workspace = request.workspace
        own, sealed = sandbox.own_files(workspace)
        for path in sealed if not request.read_only else ():
            said = f"{path}: nothing can be made or removed right in it, this program starts there"
            request.on_event("note", said, {})
        shown = [request.scratch / UPSTREAM, self._catalogue]
        states = [path for path in folders.states if os.path.realpath(path) == str(path)]
        secret = [*sandbox.secrets_of_home(self._codex.secrets), *states]
        return sandbox.masked(
            argv,
            self._state,
            writable=[request.scratch, place.home, workspace],
            shown=[path for path in shown if path and path.exists()],
            read_only=[*own, *folders.shut],
            reopened=folders.opened,
            pinned=[*folders.pinned, *sandbox.folders_around([*own, *sealed], workspace)],
            hidden=[*secret, *sandbox.doors()],
            sealed=sealed if not request.read_only else (),
            frozen=workspace if request.read_only else None,
            logins=place.login_paths() if codex_cli.is_confined(self._codex, request) else (),
        )

    def _unproved(self, request: EngineRequest, place: CodexLocation) -> str | None:
        """Why the sandbox does not hold here; looked at once for each workspace."""
        workspace, read_only = request.workspace, request.read_only
        with self._lock:
            if (workspace, read_only) in self._proved:
                return None
            inner: list[str] = []
            if codex_cli.is_confined(self._codex, request):
                inner = codex_cli.confined_argv(self._codex, place, request)
            reason = sandbox.canary(self._state, workspace, inner=inner, frozen=read_only)
            if reason is None:
                self._proved.add((workspace, read_only))
            return reason

    def _models(self, request: EngineRequest, place: CodexLocation) -> Path | None:
        """The catalogue that shows our tools to every model; None when it is not needed."""
        if not request.tools or "model_catalog_json" in self._codex.config:
            return None
        with self._lock:
            if self._catalogue is None and (data := codex_cli.models(place)):
                self._write(name := f"{paths.CACHE}/codex-models.json", data)
                self._catalogue = self._state / name
            return self._catalogue

    def _write(self, name: str, data: bytes) -> None:
        with contextlib.closing(RealDisk(self._state)) as disk:
            files = Files(disk, durable=False)
            files.make_folders()
            files.write(name, data)

    def _carry_out(
        self, request: EngineRequest, place: CodexLocation, argv: list[str], mark: str
    ) -> Outcome:
        program = Program(
            argv=argv,
            cwd=request.workspace if request.role == "worker" else request.scratch,
            env=codex_cli.surroundings(self._codex, place, request),
            mark=mark,
            timeout_s=request.timeout_s,
            idle_timeout_s=request.idle_timeout_s,
            kill_after_s=self._limits.kill_after_s,
            output_bytes=process.FLOOD * self._limits.output_bytes,
            stdin=request.prompt.encode(errors="replace"),
            kept=argv[0] == place.program,  # no sandbox stands in front
        )
        output = _Output(request.on_event)
        turn = output.turn
        ended = process.run(program, output.take, request.cancel, busy=lambda: bool(turn.working))
        return replace(
            self._judge(request.role, program, ended, output),
            usage=turn.usage,
            session_id=turn.session_id if request.role == "worker" else None,
        )

    def _judge(
        self, role: Role, program: Program, ended: ProgramOutcome, output: _Output
    ) -> Outcome:
        """How the turn ended, from what codex said and how it went."""
        turn = output.turn
        text = (turn.message or "")[: self._limits.result_bytes]
        canceled = ended.stopped in ("canceled", "killed")
        if turn.completed and not canceled:
            # Who has tools of ours says what there is to say through them.
            if turn.message or (turn.acted and role != "worker"):
                return Outcome("done", text, exit_code=0)
            said = "codex ended the turn without a word; ask again"
            return Outcome("failed", error=said, failure_reason="error", exit_code=0)
        if stopped := process.stopped_outcome(ended, program, text):
            return stopped
        code = ended.exit_code or 0
        # The signal that ended it in the midst of a turn, told by itself or by bubblewrap.
        signum = -code if code < 0 else max(0, code - 128)
        if signum and not turn.failed:
            said = f"codex was ended by {process.signal_name(-signum)} before it was done"
            return Outcome("failed", text, said, "error", exit_code=128 + signum)
        said = turn.failed or output.complaint() or turn.trouble or "codex ended without a word"
        reason, again = failure_reason(said), None
        if said.rpartition("\n")[2].startswith(mounts.ENDED if turn.session_id else "bwrap: "):
            reason = "engine_unavailable"  # what it had to mount was gone, or is now
        if reason == "rate_limited":
            again = retry_at(said, self._clock.now(), ZoneInfo(system_zone()))
        return Outcome("failed", text, said, reason, exit_code=code, retry_at=again)


class _Output:
    """Sorts what codex prints: events to the turn, complaints kept for the case of a failure."""

    def __init__(self, on_event: OnEvent) -> None:
        self.turn = TurnReader(on_event)
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


def _usage_before(home: Path, session: str) -> Usage:
    """What a session had used before it is taken up again."""
    for path in (home / "sessions").rglob(f"*{session}.jsonl"):
        with contextlib.suppress(OSError):
            return codex_cli.usage_in_rollout(path.read_bytes().splitlines())
    return Usage()


# ---- what a failure means: codex gives no code, only prose

_LIMITED = re.compile(
    r"\b429\b|too many requests|rate limit|usage limit|quota exceeded|insufficient_quota"
    r"|at capacity|\b503\b|overloaded",
    re.IGNORECASE,
)
_UNAVAILABLE = re.compile(
    r"\b40[13]\b|unauthorized|forbidden|not logged in|log ?in again|sign in again|refresh token"
    r"|missing environment variable|error sending request|connection refused|dns error"
    r"|connection failed|network is unreachable",
    re.IGNORECASE,
)
_AGAIN_AT = re.compile(
    r"try again at (?:(?P<month>[a-z]{3}) (?P<day>\d{1,2})[a-z]{0,2}, (?P<year>\d{4}) )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d) ?(?P<half>[ap]m)",
    re.IGNORECASE,
)
_PIECE = (
    r"(\d+(?:\.\d+)?) ?"
    r"(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
)
_AGAIN_IN = re.compile(rf"try again in ((?:{_PIECE}[ ,]*(?:and )?)+)", re.IGNORECASE)
_UNIT_S = {"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def failure_reason(said: str) -> FailureReason:
    """What kind of failure codex speaks of."""
    if _LIMITED.search(said):
        return "rate_limited"
    return "engine_unavailable" if _UNAVAILABLE.search(said) else "error"


def retry_at(said: str, now: datetime, zone: tzinfo) -> datetime | None:
    """When codex says to try again; `zone` is the one its clock times are in."""
    if found := _AGAIN_IN.search(said):
        seconds = 0.0
        for number, unit in re.findall(_PIECE, found[1].lower()):
            unit_s = _UNIT_S.get(unit[:3]) or _UNIT_S.get(unit) or _UNIT_S[unit[0]]
            seconds += float(number) * unit_s
        return now + timedelta(seconds=min(seconds, 366 * 86400))
    found = _AGAIN_AT.search(said)
    if found is None:
        return None
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    local = now.astimezone(zone).replace(second=0, microsecond=0)
    try:
        if found["year"]:
            month = MONTHS[found["month"].lower()]
            local = local.replace(year=int(found["year"]), month=month, day=int(found["day"]))
        at = local.replace(hour=hour, minute=int(found["minute"]))
    except (KeyError, ValueError):
        return None
    if not found["year"] and at < now - timedelta(minutes=1):
        at += timedelta(days=1)
    return at.astimezone(now.tzinfo)
