"""The circuit breaker of one engine: may a run start, and what follows from how one went.

Pure: each transition takes the circuit and gives the next one; `now` is handed in. None is a closed
one. An open one rests 5 s, doubled with each failed probe up to 5 min, or until a known reset time.
Then it is half open: one run probes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from mimikit.protocol.models import EngineWant

MIN_REST_S, MAX_REST_S = 5.0, 300.0
CircuitState: TypeAlias = Literal["closed", "open", "half_open"]


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


def state(circuit: Circuit | None, now: datetime) -> CircuitState:
    """A clock that was set back to before it was opened makes it half open."""
    if circuit is None or circuit.has_answered:
        return "closed"
    return "half_open" if now >= circuit.probe_at or now < circuit.since else "open"


def may_start(circuit: Circuit, now: datetime) -> bool:
    """Whether a run may start now; while it is half open that is the probe."""
    if state(circuit, now) == "half_open":
        return circuit.probing is None
    return state(circuit, now) == "closed"


def started(circuit: Circuit, run_id: str) -> Circuit:
    """A run that `may_start` starts."""
    return circuit if circuit.has_answered else replace(circuit, probing=run_id)


def answered(circuit: Circuit, run_id: str) -> Circuit:
    """A run was answered, if it is not done yet."""
    if circuit.probing != run_id:
        return circuit
    return replace(circuit, has_answered=True, probing=None)


def left(circuit: Circuit, run_id: str) -> Circuit:
    """A run is over, however it ended."""
    return replace(circuit, probing=None) if circuit.probing == run_id else circuit


def done(circuit: Circuit | None, run_id: str) -> Circuit | None:
    """A run is done: the circuit closes, unless that run started before it was opened."""
    closes = circuit is not None and (circuit.has_answered or circuit.probing == run_id)
    return None if closes else circuit


def turned_away(
    circuit: Circuit | None,
    run_id: str,
    want: EngineWant,
    reason: str,
    retry_at: datetime | None,
    now: datetime,
) -> Circuit:
    """A run was turned away; one that started before the circuit was opened changes nothing."""
    if circuit and not circuit.has_answered and circuit.probing != run_id:
        return circuit
    failures = circuit.failures if circuit else 0
    until = retry_at if retry_at and retry_at > now else None
    rest = timedelta(seconds=min(MIN_REST_S * 2 ** min(failures, 10), MAX_REST_S))
    return Circuit(
        want,
        reason,
        since=now,
        probe_at=until or now + rest,
        until=until,
        failures=failures + (0 if circuit and circuit.is_asked_for else 1),
    )


def probe_now(circuit: Circuit, now: datetime, *, asked: bool) -> Circuit:
    """Let the next run probe it, however long it was to rest; `asked`: somebody wants that."""
    return replace(circuit, probe_at=now, until=None, is_asked_for=asked)
