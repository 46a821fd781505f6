"""The circuits of all engines, safe between threads, and the look whether one is there again."""

from __future__ import annotations

import contextlib
import threading
from datetime import datetime

from mimikit.clock import Clock
from mimikit.engines import circuit
from mimikit.engines.base import EngineAbsence, Failed, Outcome, ProbedEngine
from mimikit.engines.circuit import Circuit
from mimikit.protocol.models import EngineStatus, EngineWant, Role
from mimikit.protocol.watch import BoundedThread

LOOK_EVERY_S = 2.0
_SAYS_NOTHING = frozenset({"killed", "canceled", "timeout"})
"""How a run ends of which nothing follows for its engine."""


class EngineHealth:
    """Circuits by engine; those of this machine's own trouble (`unready`) by its role, too."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._circuits: dict[tuple[str, Role | None], Circuit] = {}

    def restore(self, known: EngineStatus) -> None:
        """Go on from how it was kept: probed at the end of a known limit, else with what comes."""
        now = self._clock.now()
        until = known.until if known.until and known.until > now else None
        self._circuits[known.engine, None] = Circuit(
            known.want or "unready", known.reason or "", now, until or now, known.until
        )

    def reason(self, engine: str, role: Role) -> EngineAbsence | None:
        """Why no run may begin now: it rests, or another run probes it."""
        with self._lock:
            return self._reason(engine, role)

    def begin(self, engine: str, role: Role, run_id: str) -> EngineAbsence | None:
        """Enter a run; or why it may not begin."""
        with self._lock:
            if (reason := self._reason(engine, role)) is not None:
                return reason
            for key in self._keys(engine, role):
                self._circuits[key] = circuit.started(self._circuits[key], run_id)
            return None

    def answered(self, engine: str, run_id: str) -> None:
        """A run was answered, if it is not done yet: others need not wait for its end."""
        with self._lock:
            for key in self._keys(engine):
                self._circuits[key] = circuit.answered(self._circuits[key], run_id)

    def left(self, engine: str, run_id: str) -> None:
        """A run is over, however it ended."""
        with self._lock:
            for key in self._keys(engine):
                self._circuits[key] = circuit.left(self._circuits[key], run_id)

    def ended(self, engine: str, role: Role, run_id: str, outcome: Outcome) -> None:
        """Learn from how a run went."""
        failed = outcome if isinstance(outcome, Failed) else None
        want = failed and _want_of(failed)
        with self._lock:
            if failed is not None and want is not None:
                key = engine, role if want == "unready" else None
                facts = want, failed.error, failed.retry_at, self._clock.now()
                self._circuits[key] = circuit.turned_away(self._circuits.get(key), run_id, *facts)
            elif outcome.reason not in _SAYS_NOTHING:
                for key in self._keys(engine, role):
                    if circuit.done(self._circuits[key], run_id) is None:
                        del self._circuits[key]

    def wake(self, engine: str | None = None, *, is_mended: bool = False) -> list[str]:
        """Have the next run probe it, or all, however long they were to rest; gives their names.

        is_mended: nobody asked for it, it only looks so.
        """
        now = self._clock.now()
        with self._lock:
            found = [key for key in self._circuits if engine in (None, key[0])]
            for key in found:
                self._circuits[key] = circuit.probe_now(
                    self._circuits[key], now, asked=not is_mended
                )
        return sorted({name for name, _ in found})

    def forget(self, engine: str) -> None:
        """It is another one now."""
        with self._lock:
            for key in self._keys(engine):
                del self._circuits[key]

    def status(self, engine: str) -> EngineStatus | None:
        """How it is, of one that has not answered since."""
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
        """Whether only one run may begin now, to probe it."""
        with self._lock:
            return any(not self._circuits[key].has_answered for key in self._keys(engine, role))

    # ---- with the lock

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
            if not circuit.may_start(it, now):
                return EngineAbsence(it.reason, it.want, it.until)
        return None


class EngineLook:
    """Looks, on threads of its own, whether what an engine lacks is there again."""

    def __init__(self, engine: ProbedEngine, clock: Clock) -> None:
        self._engine, self._clock = engine, clock
        self._of: datetime | None = None
        self._next_s = 0.0
        self._was_ill = self._is_well = False
        self._thread: BoundedThread | None = None

    def shows(self, want: EngineWant, of: datetime | None) -> bool:
        """Whether it is there now and was not before, of the trouble that rests until `of`.

        What looks well though the engine turns runs away is no sign of anything: one says so once.
        """
        if of != self._of:
            self._of, self._was_ill, self._is_well = of, False, False
        if self._is_well:
            self._is_well = self._was_ill = False
            return True
        is_at_it = self._thread is not None and self._thread.is_alive()
        if not is_at_it and self._clock.monotonic() >= self._next_s:
            self._next_s = self._clock.monotonic() + LOOK_EVERY_S
            self._thread = BoundedThread(lambda: self._look(want, of))
            with contextlib.suppress(RuntimeError, MemoryError):  # no thread: the next look tries
                self._thread.start()
        return False

    def _look(self, want: EngineWant, of: datetime | None) -> None:
        is_mended = self._engine.is_mended(want)
        if of == self._of:
            self._is_well = is_mended and self._was_ill
            self._was_ill = self._was_ill or not is_mended


def _want_of(failed: Failed) -> EngineWant | None:
    if failed.want is not None:
        return failed.want
    if failed.reason == "rate_limited":
        return "limited"
    return "unready" if failed.reason == "engine_unavailable" else None
