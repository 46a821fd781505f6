"""The circuit breaker of each engine: closed, open (until, reason) or half open.

An open one rests 5 s, doubled with each failed probe up to 5 min, or until a known reset time. Then
it is half open: one run probes it. A `Circuit` is pure, each transition gives the next one; the
`Circuits` of all engines are safe between threads. No circuit is a closed one.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from mimikit.clock import Clock
from mimikit.engines.base import EngineAbsence, Failed, Outcome, ProbedEngine
from mimikit.protocol.models import EngineStatus, EngineWant, Role

MIN_REST_S, MAX_REST_S = 5.0, 300.0
PROBE_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Circuit:
    """Of an engine that turned a run away."""

    want: EngineWant
    reason: str
    since: datetime
    """When it was opened last."""
    probe_at: datetime
    until: datetime | None = None
    """A known reset time."""
    failures: int = 0
    """Failed probes that nobody asked for; they double the rest."""
    is_asked_for: bool = False
    """Somebody wants it probed now: a failure does not double the rest."""
    probing: str | None = None
    """The run that probes it."""
    has_answered: bool = False
    """A probe was answered and is not done yet: others may start. It closes once a run is done."""

    def open_until(self, now: datetime) -> datetime | None:
        """Until when no run may start; None: half open.

        A clock that was set back makes it half open.
        """
        is_open = not self.has_answered and self.since <= now < self.probe_at
        return self.probe_at if is_open else None

    def may_start(self, now: datetime) -> bool:
        """Whether a run may start now; while it is half open that is the probe."""
        return self.has_answered or (self.open_until(now) is None and self.probing is None)

    def started(self, run_id: str) -> Circuit:
        return self if self.has_answered else replace(self, probing=run_id)

    def answered(self, run_id: str) -> Circuit:
        return replace(self, has_answered=True, probing=None) if self.probing == run_id else self

    def left(self, run_id: str) -> Circuit:
        return replace(self, probing=None) if self.probing == run_id else self

    def is_closed_by(self, run_id: str) -> bool:
        """Whether this run, which is done, closes it: not one that started before it was opened."""
        return self.has_answered or self.probing == run_id

    def probe_now(self, now: datetime, *, asked: bool) -> Circuit:
        """Let the next run probe it, however long it was to rest; `asked`: somebody wants that."""
        return replace(self, probe_at=now, until=None, is_asked_for=asked)


def opened(before: Circuit | None, run_id: str, failed: Failed, now: datetime) -> Circuit:
    """After a run was turned away; one that started before the circuit opened changes nothing."""
    if before and not before.has_answered and before.probing != run_id:
        return before
    failures = before.failures if before else 0
    until = failed.retry_at if failed.retry_at and failed.retry_at > now else None
    rest = timedelta(seconds=min(MIN_REST_S * 2 ** min(failures, 10), MAX_REST_S))
    return Circuit(
        failed.want or ("limited" if failed.reason == "rate_limited" else "unready"),
        failed.error,
        since=now,
        probe_at=until or now + rest,
        until=until,
        failures=failures + (0 if before and before.is_asked_for else 1),
    )


class Circuits:
    """By engine; a circuit for trouble of this machine (`unready`) belongs to one role."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._circuits: dict[tuple[str, Role | None], Circuit] = {}

    def restore(self, known: EngineStatus) -> None:
        """Go on from a kept status: probed at a known reset time, else with the next run."""
        now = self._clock.now()
        until = known.until if known.until and known.until > now else None
        self._circuits[known.engine, None] = Circuit(
            known.want or "unready", known.reason or "", now, until or now, known.until
        )

    def reason(self, engine: str, role: Role) -> EngineAbsence | None:
        """Why no run may start now: the engine rests, or another run probes it."""
        with self._lock:
            return self._reason(engine, role)

    def begin(self, engine: str, role: Role, run_id: str) -> EngineAbsence | None:
        """Enter a run; or why it may not start."""
        with self._lock:
            if (reason := self._reason(engine, role)) is not None:
                return reason
            for key in self._keys(engine, role):
                self._circuits[key] = self._circuits[key].started(run_id)
            return None

    def answered(self, engine: str, run_id: str) -> None:
        """A run was answered but is not done: others need not wait for its end."""
        with self._lock:
            for key in self._keys(engine):
                self._circuits[key] = self._circuits[key].answered(run_id)

    def left(self, engine: str, run_id: str) -> None:
        with self._lock:
            for key in self._keys(engine):
                self._circuits[key] = self._circuits[key].left(run_id)

    def ended(self, engine: str, role: Role, run_id: str, outcome: Outcome) -> None:
        """Open or close it by how a run went; a run that was stopped says nothing."""
        now = self._clock.now()
        with self._lock:
            if isinstance(outcome, Failed) and is_turned_away(outcome):
                is_local = outcome.want in (None, "unready") and outcome.reason != "rate_limited"
                key = engine, role if is_local else None
                self._circuits[key] = opened(self._circuits.get(key), run_id, outcome, now)
            elif says_something(outcome):
                for key in self._keys(engine, role):
                    if self._circuits[key].is_closed_by(run_id):
                        del self._circuits[key]

    def probe_now(self, engine: str | None = None, *, asked: bool = True) -> list[str]:
        """Have the next run probe it, or all, however long they were to rest; gives their names."""
        now = self._clock.now()
        with self._lock:
            found = [key for key in self._circuits if engine in (None, key[0])]
            for key in found:
                self._circuits[key] = self._circuits[key].probe_now(now, asked=asked)
        return sorted({name for name, _ in found})

    def forget(self, engine: str) -> None:
        """Its settings have changed."""
        with self._lock:
            for key in self._keys(engine):
                del self._circuits[key]

    def status(self, engine: str) -> EngineStatus | None:
        """Of one that has not answered since it turned a run away."""
        with self._lock:
            for it in (self._circuits[key] for key in self._keys(engine)):
                if not it.has_answered:
                    return EngineStatus(
                        engine=engine,
                        state="waiting",
                        want=it.want,
                        reason=it.reason,
                        until=it.until,
                        next_try_at=it.probe_at,
                    )
        return None

    def is_doubted(self, engine: str) -> bool:
        """Whether no run of it is done since it turned one away."""
        with self._lock:
            return bool(self._keys(engine))

    def is_tried(self, engine: str, role: Role) -> bool:
        """Whether only one run may start now, to probe it."""
        with self._lock:
            return any(not self._circuits[key].has_answered for key in self._keys(engine, role))

    def _keys(self, engine: str, role: Role | None = None) -> list[tuple[str, Role | None]]:
        """The circuits of an engine: all, or those that matter to a role."""
        return [
            key
            for key in self._circuits
            if key[0] == engine and (role is None or key[1] in (None, role))
        ]

    def _reason(self, engine: str, role: Role) -> EngineAbsence | None:
        now = self._clock.now()
        for it in (self._circuits[key] for key in self._keys(engine, role)):
            if not it.may_start(now):
                return EngineAbsence(it.reason, it.want, it.until)
        return None


def is_turned_away(outcome: Outcome) -> bool:
    """Whether the engine could not serve, which costs no attempt."""
    return outcome.reason in ("rate_limited", "engine_unavailable")


def says_something(outcome: Outcome) -> bool:
    """Whether something about the engine follows from how a run ended."""
    return outcome.reason not in ("killed", "canceled", "timeout")


class EngineProbe:
    """Asks an engine in the background whether what it lacks is there again."""

    def __init__(self, engine: ProbedEngine, clock: Clock) -> None:
        self._engine, self._clock = engine, clock
        self._of: datetime | None = None
        self._next_s = 0.0
        self._was_ill = self._is_well = False
        self._thread: threading.Thread | None = None

    def is_back(self, want: EngineWant, of: datetime | None) -> bool:
        """Whether it is there now and was not before; `of`: the probe time of the trouble.

        True only once.
        """
        if of != self._of:
            self._of, self._was_ill, self._is_well = of, False, False
        if self._is_well:
            self._is_well = self._was_ill = False
            return True
        is_running = self._thread is not None and self._thread.is_alive()
        if not is_running and self._clock.monotonic() >= self._next_s:
            self._next_s = self._clock.monotonic() + PROBE_EVERY_S
            run = partial(self._probe, want, of)
            self._thread = threading.Thread(target=run, daemon=True)
            self._thread.start()
        return False

    def _probe(self, want: EngineWant, of: datetime | None) -> None:
        is_mended = self._engine.is_mended(want)
        if of == self._of:
            self._is_well = is_mended and self._was_ill
            self._was_ill = self._was_ill or not is_mended
