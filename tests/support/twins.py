"""Fakes: an engine that plays a script, a clock, a synchronous Teller.

A script is a list of steps for every run; or, by role, such a list or a list of such lists (one a
run, the last of them again and again); or a callable that makes the steps of a request. In JSON:

    {"teller": [[{"call": "delegate", "args": {"prompt": "…"}}, {"say": "On it."}]],
     "planner": [{"wait": 0.5}, {"fail": "error", "error": "no plan"}],
     "worker": [{"hang": true}]}
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from mimikit.engines.base import Canceled, Done, Failed, Outcome, RunSpec, stop_outcome
from mimikit.protocol.models import Role, Usage
from mimikit.roles.run import RunContext
from mimikit.roles.teller import TurnJob, TurnOutcome, turn_outcome

Step = Mapping[str, Any]
Steps = Sequence[Step]
Script = Steps | Mapping[str, Steps | Sequence[Steps]] | Callable[[RunSpec], Steps]


@dataclass
class _Run:
    """What one run has gathered."""

    request: RunSpec
    deadline: float
    said: list[str] = field(default_factory=list[str])
    usage: Usage = field(default_factory=Usage)
    stop: threading.Event = field(default_factory=threading.Event)

    def ended(self) -> Outcome | None:
        """The outcome of a run that was told to stop or is out of time."""
        reason = self.request.cancel.reason
        if reason is None and monotonic() >= self.deadline:
            reason = "timeout"
        return stop_outcome(reason) if reason is not None else None


class ScriptedEngine:
    """Plays its script (see the module's text) under any name. Safe between threads."""

    def __init__(self, script: Script = (), *, name: str = "scripted") -> None:
        self.name = name
        self._script = script
        self._lock = threading.Lock()
        self._runs: dict[str, int] = {}
        self.reason_unavailable: str | None = None

    def unavailable(self, role: Role | None = None) -> str | None:
        """`reason_unavailable`: a test sets it to make work wait."""
        return self.reason_unavailable

    def run(self, request: RunSpec) -> Outcome:
        """Play the steps for this run.

        Raises:
            RuntimeError: the script says so (`raise`).
        """
        run = _Run(request, monotonic() + request.timeout_s)
        request.cancel.on_cancel(lambda _reason: run.stop.set())
        for step in self._steps(request):
            outcome = run.ended() or self._play(run, step)
            if outcome is not None:
                return outcome
        return run.ended() or Done("".join(run.said), usage=run.usage)

    def _steps(self, request: RunSpec) -> Steps:
        with self._lock:
            number = self._runs.get(request.role, 0)
            self._runs[request.role] = number + 1
        script = self._script
        if callable(script):
            return script(request)
        given: Any = script.get(request.role, ()) if isinstance(script, Mapping) else script
        if not given or isinstance(given[0], Mapping):
            return given
        return given[min(number, len(given) - 1)]

    def _play(self, run: _Run, step: Step) -> Outcome | None:
        """Play one step; an outcome ends the run."""
        match step:
            case {"call": name}:
                arguments = dict(step.get("args", {}))
                reply = run.request.tools.call(name, arguments)
                run.request.callbacks.on_event(
                    "tool", name, {"arguments": arguments, "ok": reply.ok}
                )
            case {"say": text}:
                run.said.append(text)
                run.request.callbacks.on_event("delta", text, {})
            case {"event": kind}:
                run.request.callbacks.on_event(
                    kind, step.get("text", ""), dict(step.get("data", {}))
                )
            case {"usage": counts}:
                run.usage = Usage.model_validate(counts)
                run.request.callbacks.on_event("usage", "", run.usage.to_dict())
            case {"raise": text}:
                raise RuntimeError(text)
            case {"fail": reason}:
                after = step.get("retryAfter")
                now = run.request.input.now
                said = "".join(run.said)
                if reason == "canceled":
                    return Canceled(said, usage=run.usage)
                return Failed(
                    reason,
                    step.get("error", f"the script fails: {reason}"),
                    said,
                    None if after is None else now + timedelta(seconds=after),
                    usage=run.usage,
                )
            case {"wait": seconds}:
                run.stop.wait(max(0.0, min(run.deadline - monotonic(), seconds)))
                return run.ended()
            case {"hang": True}:
                run.stop.wait(max(0.0, run.deadline - monotonic()))
                return run.ended() or stop_outcome("timeout")
            case _:
                raise ValueError(f"expected a step such as {{'say': '…'}}, got {step!r}")
        return None


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
        """Suspend the machine: wall time goes on, the monotonic time of processes does not."""
        self._now += timedelta(seconds=seconds)
        self._slept += seconds

    def jump(self, to: datetime) -> None:
        """Set the wall clock, as a user or NTP would; monotonic time is untouched."""
        self._now = to.astimezone(UTC)


class TellerInPlace:
    """Runs a turn synchronously: its outcome is there when `start` returns."""

    def __init__(self, context: RunContext, ring: Callable[[], None]) -> None:
        self._context = context
        self._done: list[TurnOutcome] = []

    def start(self, job: TurnJob) -> None:
        self._done.append(turn_outcome(self._context, job))

    def outcomes(self) -> list[TurnOutcome]:
        found, self._done = self._done, []
        return found

    def close(self, timeout_s: float) -> None: ...
