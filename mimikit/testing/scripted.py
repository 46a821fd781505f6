"""The engine `scripted`: a deterministic twin that plays a script, for tests and demonstrations.

A script is a list of steps for every run; or, by role, such a list or a list of such lists (one a
run, the last of them again and again); or a callable that makes the steps of a request. In JSON:

    {"teller": [[{"call": "delegate", "args": {"prompt": "…"}}, {"say": "On it."}]],
     "planner": [{"wait": 0.5}, {"fail": "error", "error": "no plan"}],
     "worker": [{"hang": true}]}
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any, cast, get_args

from pydantic import ValidationError

from mimikit.engines.base import EngineRequest, EventKind, Outcome, ToolReply
from mimikit.errors import BadInput
from mimikit.protocol.models import FailureReason, Role, Usage

Step = Mapping[str, Any]
Steps = Sequence[Step]
Script = Steps | Mapping[str, Steps | Sequence[Steps]] | Callable[[EngineRequest], Steps]

_ROLES = get_args(Role)
_REASONS = get_args(FailureReason)
_EVENTS = get_args(EventKind)
_KEYS: dict[str, frozenset[str]] = {
    "call": frozenset({"args"}),
    "say": frozenset(),
    "event": frozenset({"text", "data"}),
    "wait": frozenset(),
    "hold": frozenset(),
    "hang": frozenset(),
    "fail": frozenset({"error", "retryAfter"}),
    "raise": frozenset(),
    "usage": frozenset(),
}
_CALL_LINE = re.compile(r"^[ \t>*-]*CALL[ \t]+([a-z_]{1,64})[ \t]+(\{.*\})[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call that was made, and its answer."""

    run_id: str
    role: Role
    name: str
    arguments: dict[str, Any]
    reply: ToolReply


@dataclass
class _Run:
    """What one run has gathered."""

    request: EngineRequest
    deadline: float
    said: list[str] = field(default_factory=list[str])
    usage: Usage = field(default_factory=Usage)
    stop: threading.Event = field(default_factory=threading.Event)


class ScriptedEngine:
    """Plays its script. Safe between threads; keeps every request and call in order."""

    def __init__(
        self, script: Script = (), *, name: str = "scripted", obedient: bool = False
    ) -> None:
        """Check the script.

        Args:
            script: see the module's text.
            name: as which engine it stands in settings and results.
            obedient: first carry out every line `CALL tool {json}` of the request's own prompt, as
                a model would that takes data for instructions.

        Raises:
            BadInput: the script is not one; the message says where.
        """
        self._name = name
        self._obedient = obedient
        self._make = script if callable(script) else None
        self._script = {} if callable(script) else _checked(script, "script")
        self._lock = threading.Lock()
        self._runs: dict[str, int] = {}
        self.requests: list[EngineRequest] = []
        self.calls: list[ScriptedCall] = []
        self.ignored: list[str] = []
        """`CALL` lines that were no calls."""
        self.reason_unavailable: str | None = None

    @classmethod
    def from_file(cls, path: Path, *, obedient: bool = False) -> ScriptedEngine:
        """Play the script in a JSON file.

        Raises:
            BadInput: it can not be read or is no script; the message says where.
        """
        try:
            script = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"expected a script in {path}, could not read it: {error}") from None
        except (json.JSONDecodeError, RecursionError) as error:
            raise BadInput(f"expected JSON in {path}, got something else: {error}") from None
        _checked(script, str(path))
        return cls(script, obedient=obedient)

    @property
    def name(self) -> str:
        return self._name

    def unavailable(self, role: Role | None = None) -> str | None:
        """`reason_unavailable`: a test sets it to make work wait."""
        return self.reason_unavailable

    def run(self, request: EngineRequest) -> Outcome:
        """Play the steps for this run.

        Raises:
            RuntimeError: the script says so (`raise`).
            BadInput: the script's callable gave no steps.
        """
        steps = self._steps(request)
        run = _Run(request, monotonic() + request.timeout_s)
        request.cancel.on_cancel(lambda _reason: run.stop.set())
        if self._obedient:
            self._obey(run)
        for step in steps:
            outcome = self._ended(run) or self._play(run, step)
            if outcome is not None:
                return outcome
        return self._ended(run) or Outcome("done", "".join(run.said), usage=run.usage)

    def _steps(self, request: EngineRequest) -> Steps:
        with self._lock:
            self.requests.append(request)
            number = self._runs.get(request.role, 0)
            self._runs[request.role] = number + 1
        if self._make is not None:
            steps = self._make(request)
            _check_steps(steps, f"the steps made for {request.run_id}")
            return steps
        runs = self._script.get(request.role, [[]])
        return runs[min(number, len(runs) - 1)]

    def _obey(self, run: _Run) -> None:
        """Do what lines of the prompt say, as a mind without judgement would."""
        for match in _CALL_LINE.finditer(run.request.prompt):
            try:
                arguments = json.loads(match[2])
            except (json.JSONDecodeError, RecursionError):
                self.ignored.append(match[0])
                continue
            reply = self._call(run, match[1], arguments)
            run.said.append(f"{match[1]}: {'ok' if reply.ok else 'refused'}, {reply.text}\n")

    def _call(self, run: _Run, name: str, arguments: dict[str, Any]) -> ToolReply:
        request = run.request
        reply = request.call_tool(name, arguments)
        with self._lock:
            self.calls.append(ScriptedCall(request.run_id, request.role, name, arguments, reply))
        request.on_event("tool", name, {"arguments": arguments, "ok": reply.ok})
        return reply

    def _play(self, run: _Run, step: Step) -> Outcome | None:
        """Play one step; an outcome ends the run."""
        kind, value = _kind(step), step[_kind(step)]
        match kind:
            case "call":
                self._call(run, value, dict(step.get("args", {})))
            case "say":
                run.said.append(value)
                run.request.on_event("delta", value, {})
            case "event":
                run.request.on_event(value, step.get("text", ""), dict(step.get("data", {})))
            case "usage":
                run.usage = Usage.model_validate(value)
            case "raise":
                raise RuntimeError(value)
            case "fail":
                return self._fail(run, step)
            case _:
                return self._wait(run, kind, value)
        return None

    def _fail(self, run: _Run, step: Step) -> Outcome:
        reason = cast(FailureReason, step["fail"])
        after = step.get("retryAfter")
        return Outcome(
            "canceled" if reason == "canceled" else "failed",
            "".join(run.said),
            step.get("error", f"the script fails: {reason}"),
            reason,
            run.usage,
            retry_at=None if after is None else run.request.input.now + timedelta(seconds=after),
        )

    def _wait(self, run: _Run, kind: str, value: Any) -> Outcome | None:
        """Wait for time, an event, or the end of the run."""
        if kind == "hang":
            run.stop.wait(max(0.0, run.deadline - monotonic()))
            return self._ended(run) or Outcome.stopped("timeout")
        until = min(run.deadline, monotonic() + value) if kind == "wait" else run.deadline
        released = cast(threading.Event, value) if kind == "hold" else None
        while monotonic() < until and not run.stop.is_set():
            if released is not None and released.wait(0.01):
                return None
            if released is None:
                run.stop.wait(until - monotonic())
        return self._ended(run)

    def _ended(self, run: _Run) -> Outcome | None:
        """The outcome of a run that was told to stop or is out of time."""
        reason = run.request.cancel.reason
        if reason is None and monotonic() >= run.deadline:
            reason = "timeout"
        return Outcome.stopped(reason) if reason is not None else None


def _kind(step: Step) -> str:
    return next(key for key in step if key in _KEYS)


def _checked(script: object, where: str) -> dict[str, list[Steps]]:
    """The runs of each role.

    Raises:
        BadInput: it is no script.
    """
    if isinstance(script, Sequence) and not isinstance(script, str | bytes):
        runs = _runs(cast("Sequence[object]", script), where)
        return dict.fromkeys(_ROLES, runs)
    if not isinstance(script, Mapping):
        raise BadInput(
            f"expected a list of steps, or an object of {', '.join(_ROLES)}, in {where}; "
            f"got {_named(script)}"
        )
    by_role = cast("Mapping[object, object]", script)
    for role in by_role:
        if role not in _ROLES:
            raise BadInput(f"expected roles {', '.join(_ROLES)} in {where}; got {role!r}")
    return {str(role): _runs(value, f"{where} at {role}") for role, value in by_role.items()}


def _runs(value: object, where: str) -> list[Steps]:
    """One list of steps for each run; a flat list is every run's."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise BadInput(f"expected a list of steps in {where}, got {_named(value)}")
    items = cast("Sequence[object]", value)
    nested = bool(items) and all(isinstance(item, list | tuple) for item in items)
    if not nested:
        return [_check_steps(items, where)]
    return [_check_steps(item, f"{where}[{number}]") for number, item in enumerate(items)]


def _check_steps(steps: object, where: str) -> Steps:
    if not isinstance(steps, Sequence) or isinstance(steps, str | bytes):
        raise BadInput(f"expected a list of steps in {where}, got {_named(steps)}")
    for number, step in enumerate(cast("Sequence[object]", steps)):
        _check_step(step, f"{where}[{number}]")
    return cast(Steps, steps)


def _check_step(step: object, where: str) -> None:
    """Raise BadInput, saying what was expected, unless it is a step."""
    if not isinstance(step, Mapping):
        raise BadInput(f"expected a step such as {{'say': '…'}} at {where}, got {_named(step)}")
    keys = [str(key) for key in cast("Mapping[object, object]", step)]
    kinds = [key for key in keys if key in _KEYS]
    if len(kinds) != 1:
        raise BadInput(
            f"expected one of {', '.join(_KEYS)} in the step at {where}, got {', '.join(keys)!r}"
        )
    kind = kinds[0]
    for key in keys:
        if key != kind and key not in _KEYS[kind]:
            allowed = ", ".join(sorted(_KEYS[kind])) or "nothing"
            raise BadInput(f"expected {allowed} beside {kind!r} at {where}, got {key!r}")
    values = cast("Mapping[str, object]", step)
    problem = _problem(kind, values)
    if problem:
        raise BadInput(f"expected {problem} at {where}, got {_named(values[kind])}")


def _problem(kind: str, step: Mapping[str, object]) -> str | None:
    """What was expected of the step's values; None when they fit."""
    value = step[kind]
    match kind:
        case "call":
            fits = isinstance(value, str) and isinstance(step.get("args", {}), Mapping)
            return None if fits else "a tool's name, with its args as an object"
        case "event":
            fits = value in _EVENTS and isinstance(step.get("text", ""), str)
            return None if fits else f"one of the events {', '.join(_EVENTS)}, with a text"
        case "fail":
            fits = value in _REASONS and isinstance(step.get("error", ""), str)
            fits = fits and _is_seconds(step.get("retryAfter", 0))
            return None if fits else f"one of the reasons {', '.join(_REASONS)}, with an error"
        case "wait":
            return None if _is_seconds(value) else "seconds"
        case "hold":
            return None if isinstance(value, threading.Event) else "a threading.Event"
        case "hang":
            return None if value is True else "true"
        case "usage":
            return None if _is_usage(value) else "an object of token counts"
        case _:
            return None if isinstance(value, str) else "text"


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 7 * 86400


def _is_usage(value: object) -> bool:
    try:
        Usage.model_validate(value)
    except ValidationError:
        return False
    return True


def _named(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"
