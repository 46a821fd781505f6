"""Circuit breakers of the engines: closed, open or half open.

A circuit stays open for 5 s, doubled with each failed probe up to 5 min, or until a known reset
time. Then it is half open: one run probes it. There is no `Circuit` object for a closed one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mimikit.clock import Clock
from mimikit.engines.base import EngineOutage, Failed, Outcome, ProbedEngine
from mimikit.protocol.models import EngineProblem, EngineStatus, Role

MIN_REST_S, MAX_REST_S = 5.0, 300.0
PROBE_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Circuit:
    """An open or half-open circuit breaker. Immutable: each transition returns a new one."""

    want: EngineProblem
    reason: str
    since: datetime
    probe_at: datetime
    until: datetime | None = None
    failures: int = 0
    """Failed automatic probes; each doubles the time it stays open."""
    is_manual_probe: bool = False
    """The user requested the next probe: its failure is not counted."""
    probing: str | None = None
    has_answered: bool = False
    """The probe got a first answer, so other runs may start. It closes once a run completes."""

    def open_until(self, now: datetime) -> datetime | None:
        """None if half open, also after the clock was set back."""
        is_open = not self.has_answered and self.since <= now < self.probe_at
        return self.probe_at if is_open else None

    def may_start(self, now: datetime) -> bool:
        return self.has_answered or (self.open_until(now) is None and self.probing is None)

    def started(self, run_id: str) -> Circuit:
        return self if self.has_answered else replace(self, probing=run_id)

    def answered(self, run_id: str) -> Circuit:
        return replace(self, has_answered=True, probing=None) if self.probing == run_id else self

    def released(self, run_id: str) -> Circuit:
        return replace(self, probing=None) if self.probing == run_id else self

    def is_closed_by(self, run_id: str) -> bool:
        """False for a completed run that started before the circuit opened."""
        return self.has_answered or self.probing == run_id

    def probe_now(self, now: datetime, *, manual: bool) -> Circuit:
        return replace(self, probe_at=now, until=None, is_manual_probe=manual)


def opened(before: Circuit | None, run_id: str, failed: Failed, now: datetime) -> Circuit:
    """The circuit after a rejected run; unchanged if the run started before it opened."""
    if before and not before.has_answered and before.probing != run_id:
        return before
    failures = before.failures if before else 0
    until = failed.retry_at if failed.retry_at and failed.retry_at > now else None
    back_off = timedelta(seconds=min(MIN_REST_S * 2 ** min(failures, 10), MAX_REST_S))
    return Circuit(
        failed.want or ("limited" if failed.reason == "rate_limited" else "unready"),
        failed.error,
        since=now,
        # A short limit that repeats does not end by waiting that long.
        probe_at=max(until, now + back_off) if until and failures else until or now + back_off,
        until=until,
        failures=failures + (0 if before and before.is_manual_probe else 1),
    )


class Circuits:
    """The circuits of all engines. Thread-safe.

    A local problem (`unready`) opens the circuit of one role, any other that of the engine.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._circuits: dict[tuple[str, Role | None], Circuit] = {}

    def restore(self, known: EngineStatus) -> None:
        """Reopen after a restart: until a known reset time, else the next run probes."""
        now = self._clock.now()
        until = known.until if known.until and known.until > now else None
        self._circuits[known.engine, None] = Circuit(
            known.problem or "unready", known.reason or "", now, until or now, known.until
        )

    def reason(self, engine: str, role: Role) -> EngineOutage | None:
        """Why no run may start now; None if one may."""
        with self._lock:
            return self._reason(engine, role)

    def begin(self, engine: str, role: Role, run_id: str) -> EngineOutage | None:
        """Register a run; or why it may not start."""
        with self._lock:
            if (reason := self._reason(engine, role)) is not None:
                return reason
            for key in self._keys(engine, role):
                self._circuits[key] = self._circuits[key].started(run_id)
            return None

    def answered(self, engine: str, run_id: str) -> None:
        """The run got a first answer: other runs need not wait for its end."""
        self._change(engine, lambda circuit: circuit.answered(run_id))

    def release(self, engine: str, run_id: str) -> None:
        self._change(engine, lambda circuit: circuit.released(run_id))

    def _change(self, engine: str, change: Callable[[Circuit], Circuit]) -> None:
        with self._lock:
            for key in self._keys(engine):
                self._circuits[key] = change(self._circuits[key])

    def ended(self, engine: str, role: Role, run_id: str, outcome: Outcome) -> None:
        now = self._clock.now()
        with self._lock:
            if isinstance(outcome, Failed) and is_rejection(outcome):
                is_local = outcome.want in (None, "unready") and outcome.reason != "rate_limited"
                key = engine, role if is_local else None
                self._circuits[key] = opened(self._circuits.get(key), run_id, outcome, now)
            elif is_conclusive(outcome):
                for key in self._keys(engine, role):
                    if self._circuits[key].is_closed_by(run_id):
                        del self._circuits[key]

    def probe_now(self, engine: str | None = None, *, manual: bool = True) -> list[str]:
        """Make an engine, or all, half open now; returns their names."""
        now = self._clock.now()
        with self._lock:
            found = [key for key in self._circuits if engine in (None, key[0])]
            for key in found:
                self._circuits[key] = self._circuits[key].probe_now(now, manual=manual)
        return sorted({name for name, _ in found})

    def forget(self, engine: str) -> None:
        with self._lock:
            for key in self._keys(engine):
                del self._circuits[key]

    def status(self, engine: str) -> EngineStatus | None:
        """None unless it is open or half open."""
        with self._lock:
            for it in (self._circuits[key] for key in self._keys(engine)):
                if not it.has_answered:
                    return EngineStatus(
                        engine=engine,
                        state="waiting",
                        problem=it.want,
                        reason=it.reason,
                        until=it.until,
                        next_try_at=it.probe_at,
                    )
        return None

    def is_tripped(self, engine: str) -> bool:
        with self._lock:
            return bool(self._keys(engine))

    def needs_probe(self, engine: str, role: Role) -> bool:
        """Whether one run at most may start, as the probe."""
        with self._lock:
            return any(not self._circuits[key].has_answered for key in self._keys(engine, role))

    def _keys(self, engine: str, role: Role | None = None) -> list[tuple[str, Role | None]]:
        """All circuits of an engine, or those that affect a role."""
        return [
            key
            for key in self._circuits
            if key[0] == engine and (role is None or key[1] in (None, role))
        ]

    def _reason(self, engine: str, role: Role) -> EngineOutage | None:
        now = self._clock.now()
        for it in (self._circuits[key] for key in self._keys(engine, role)):
            if not it.may_start(now):
                return EngineOutage(it.reason, it.want, it.until)
        return None


def is_rejection(outcome: Outcome) -> bool:
    """Whether the engine was unavailable, which costs no attempt."""
    return outcome.reason in ("rate_limited", "engine_unavailable")


def is_conclusive(outcome: Outcome) -> bool:
    return outcome.reason not in ("killed", "canceled", "timeout")


class HealthCheck:
    """Polls an unavailable engine in the background until it has recovered."""

    def __init__(self, engine: ProbedEngine, clock: Clock) -> None:
        self._engine, self._clock = engine, clock
        self._probe_at: datetime | None = None
        self._next_s = 0.0
        self._was_down = self._is_up = False
        self._thread: threading.Thread | None = None

    def has_recovered(self, want: EngineProblem, probe_at: datetime | None) -> bool:
        """True once, when it is up after it was down. A new `probe_at` is a new outage."""
        if probe_at != self._probe_at:
            self._probe_at, self._was_down, self._is_up = probe_at, False, False
        if self._is_up:
            self._is_up = self._was_down = False
            return True
        is_running = self._thread is not None and self._thread.is_alive()
        if not is_running and self._clock.monotonic() >= self._next_s:
            self._next_s = self._clock.monotonic() + PROBE_EVERY_S
            self._thread = threading.Thread(target=self._check, args=(want, probe_at), daemon=True)
            self._thread.start()
        return False

    def _check(self, want: EngineProblem, probe_at: datetime | None) -> None:
        is_up = self._engine.has_recovered(want)
        if probe_at == self._probe_at:
            self._is_up = is_up and self._was_down
            self._was_down = self._was_down or not is_up
