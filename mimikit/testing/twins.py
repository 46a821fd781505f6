"""Twins for tests and demonstrations: an engine that plays a script, a clock, the Teller in place.

A script is a list of steps for every run; or, by role, such a list or a list of such lists (one a
run, the last of them again and again); or a callable that makes the steps of a request. In JSON:

    {"teller": [[{"call": "delegate", "args": {"prompt": "…"}}, {"say": "On it."}]],
     "planner": [{"wait": 0.5}, {"fail": "error", "error": "no plan"}],
     "worker": [{"hang": true}]}

`{"hold": "/a/path"}` goes on once that file is there.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import Field, InstanceOf, TypeAdapter, ValidationError

from mimikit.engines.base import EngineRequest, EventKind, Outcome, ToolReply
from mimikit.errors import BadInput
from mimikit.protocol.models import FailureReason, Role, Usage
from mimikit.roles.run import RunContext
from mimikit.roles.teller import TurnJob, TurnOutcome, outcome_of

Step = Mapping[str, Any]
Steps = Sequence[Step]
Script = Steps | Mapping[str, Steps | Sequence[Steps]] | Callable[[EngineRequest], Steps]

_ROLES = get_args(Role)
_SECONDS: TypeAdapter[Any] = TypeAdapter(Annotated[float, Field(ge=0, le=7 * 86400)])
_TEXT: TypeAdapter[Any] = TypeAdapter(str)
_OBJECT: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
_STEPS: dict[str, tuple[str, dict[str, TypeAdapter[Any]]]] = {
    "call": ("a tool's name, with its args as an object", {"call": _TEXT, "args": _OBJECT}),
    "say": ("text", {"say": _TEXT}),
    "event": (
        f"one of the events {', '.join(get_args(EventKind))}, with a text",
        {"event": TypeAdapter(EventKind), "text": _TEXT, "data": _OBJECT},
    ),
    "wait": ("seconds", {"wait": _SECONDS}),
    "hold": (
        "a threading.Event, or the path of a file that will be there",
        {"hold": TypeAdapter(InstanceOf[threading.Event] | str)},
    ),
    "hang": ("true", {"hang": TypeAdapter(Literal[True])}),
    "fail": (
        f"one of the reasons {', '.join(get_args(FailureReason))}, with an error",
        {"fail": TypeAdapter(FailureReason), "error": _TEXT, "retryAfter": _SECONDS},
    ),
    "raise": ("text", {"raise": _TEXT}),
    "usage": ("an object of token counts", {"usage": TypeAdapter(Usage)}),
}
"""By kind: what is expected of a step, in words, and the type of each of its keys."""
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

    def ended(self) -> Outcome | None:
        """The outcome of a run that was told to stop or is out of time."""
        reason = self.request.cancel.reason
        if reason is None and monotonic() >= self.deadline:
            reason = "timeout"
        return Outcome.stopped(reason) if reason is not None else None


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
        self.name = name
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

    def unavailable(self, role: Role | None = None) -> str | None:
        """`reason_unavailable`: a test sets it to make work wait."""
        return self.reason_unavailable

    def run(self, request: EngineRequest) -> Outcome:
        """Play the steps for this run.

        Raises:
            RuntimeError: the script says so (`raise`).
            BadInput: the script's callable gave no steps.
        """
        with self._lock:
            self.requests.append(request)
            number = self._runs.get(request.role, 0)
            self._runs[request.role] = number + 1
        if self._make is not None:
            steps = _steps(self._make(request), f"the steps made for {request.run_id}")
        else:
            runs = self._script.get(request.role, [[]])
            steps = runs[min(number, len(runs) - 1)]
        run = _Run(request, monotonic() + request.timeout_s)
        request.cancel.on_cancel(lambda _reason: run.stop.set())
        if self._obedient:
            self._obey(run)
        for step in steps:
            outcome = run.ended() or self._play(run, step)
            if outcome is not None:
                return outcome
        return run.ended() or Outcome("done", "".join(run.said), usage=run.usage)

    def _obey(self, run: _Run) -> None:
        """Do what lines of the prompt say, as a mind without judgement would."""
        for match in _CALL_LINE.finditer(run.request.prompt):
            try:
                arguments = json.loads(match[2])
            except (json.JSONDecodeError, RecursionError):
                self.ignored.append(match[0])
                continue
            reply = self._call(run.request, match[1], arguments)
            run.said.append(f"{match[1]}: {'ok' if reply.ok else 'refused'}, {reply.text}\n")

    def _call(self, request: EngineRequest, name: str, arguments: dict[str, Any]) -> ToolReply:
        reply = request.call_tool(name, arguments)
        with self._lock:
            self.calls.append(ScriptedCall(request.run_id, request.role, name, arguments, reply))
        request.on_event("tool", name, {"arguments": arguments, "ok": reply.ok})
        return reply

    def _play(self, run: _Run, step: Step) -> Outcome | None:
        """Play one step; an outcome ends the run."""
        kind = next(key for key in step if key in _STEPS)
        value = step[kind]
        match kind:
            case "call":
                self._call(run.request, value, dict(step.get("args", {})))
            case "say":
                run.said.append(value)
                run.request.on_event("delta", value, {})
            case "event":
                run.request.on_event(value, step.get("text", ""), dict(step.get("data", {})))
            case "usage":
                run.usage = Usage.model_validate(value)
                run.request.on_event("usage", "", run.usage.to_dict())
            case "raise":
                raise RuntimeError(value)
            case "fail":
                after = step.get("retryAfter")
                now = run.request.input.now
                return Outcome(
                    "canceled" if value == "canceled" else "failed",
                    "".join(run.said),
                    step.get("error", f"the script fails: {value}"),
                    value,
                    run.usage,
                    retry_at=None if after is None else now + timedelta(seconds=after),
                )
            case _:
                return _wait(run, kind, value)
        return None


def _wait(run: _Run, kind: str, value: Any) -> Outcome | None:
    """Wait for time, an event, or the end of the run."""
    if kind == "hang":
        run.stop.wait(max(0.0, run.deadline - monotonic()))
        return run.ended() or Outcome.stopped("timeout")
    until = min(run.deadline, monotonic() + value) if kind == "wait" else run.deadline
    while monotonic() < until and not run.stop.is_set():
        if kind == "wait":
            run.stop.wait(until - monotonic())
        elif _is_released(cast("threading.Event | str", value)):
            return None
    return run.ended()


def _is_released(hold: threading.Event | str) -> bool:
    """Whether a run may go on; it is looked at again and again."""
    if isinstance(hold, threading.Event):
        return hold.wait(0.01)
    if Path(hold).exists():
        return True
    threading.Event().wait(0.05)
    return False


def _checked(script: object, where: str) -> dict[str, list[Steps]]:
    """The runs of each role.

    Raises:
        BadInput: it is no script.
    """
    if isinstance(script, list | tuple):
        return dict.fromkeys(_ROLES, _runs(cast("Sequence[object]", script), where))
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
    items = _items(value, where)
    if not items or not all(isinstance(item, list | tuple) for item in items):
        return [_steps(items, where)]
    return [_steps(item, f"{where}[{number}]") for number, item in enumerate(items)]


def _steps(value: object, where: str) -> Steps:
    steps = _items(value, where)
    for number, step in enumerate(steps):
        _check_step(step, f"{where}[{number}]")
    return cast(Steps, steps)


def _items(value: object, where: str) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise BadInput(f"expected a list of steps in {where}, got {_named(value)}")
    return cast("Sequence[object]", value)


def _check_step(step: object, where: str) -> None:
    if not isinstance(step, Mapping):
        raise BadInput(f"expected a step such as {{'say': '…'}} at {where}, got {_named(step)}")
    values = cast("Mapping[str, object]", step)
    keys = [str(key) for key in values]
    kinds = [key for key in keys if key in _STEPS]
    if len(kinds) != 1:
        raise BadInput(
            f"expected one of {', '.join(_STEPS)} in the step at {where}, got {', '.join(keys)!r}"
        )
    expected, types = _STEPS[kinds[0]]
    for key in keys:
        if key not in types:
            allowed = ", ".join(sorted(types.keys() - {kinds[0]})) or "nothing"
            raise BadInput(f"expected {allowed} beside {kinds[0]!r} at {where}, got {key!r}")
    try:
        for key, value in values.items():
            types[key].validate_python(value, strict=True)
    except ValidationError:
        got = _named(values[kinds[0]])
        raise BadInput(f"expected {expected} at {where}, got {got}") from None


def _named(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"


class FakeClock:
    """A clock for tests and simulations."""

    def __init__(self, start: datetime) -> None:
        self._now = start.astimezone(UTC)
        self._monotonic = self._slept = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        """Seconds advanced so far."""
        return self._monotonic

    def uptime(self) -> float:
        return self._monotonic + self._slept

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass for both times."""
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def sleep(self, seconds: float) -> None:
        """Suspend the machine: wall time goes on, the steady time of processes does not."""
        self._now += timedelta(seconds=seconds)
        self._slept += seconds

    def jump(self, to: datetime) -> None:
        """Set the wall clock, as a user or NTP would; steady time is untouched."""
        self._now = to.astimezone(UTC)


class TellerInPlace:
    """Takes a turn at once: what it changes is there when `start` returns."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._done: list[TurnOutcome] = []

    def start(self, job: TurnJob) -> None:
        self._done.append(outcome_of(self._context, job))

    def outcomes(self) -> list[TurnOutcome]:
        found, self._done = self._done, []
        return found
