"""Which engine serves a role or profile, how each of them is, and what waits for it.

`auto` takes the first mind that can serve. Where one ever could, no code takes its place: while it
can not, what needs a mind waits for it. How it was is kept in `runtime.json`, by the supervisor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from zoneinfo import ZoneInfo

from mimikit.clock import Clock, SystemClock
from mimikit.config import ProfileSettings, Settings
from mimikit.engines.base import CodeEngine, Engine, EngineAbsence, Outcome, WarmEngine
from mimikit.errors import BadSettings
from mimikit.language.phrases import Words, local_time, say_both
from mimikit.protocol.models import EngineStatus, EngineWant, QueueName, Role

CODE = "builtin"
_REST_S, _MOST_REST_S = 5.0, 300.0
CODEX = "codex"
"""What `auto` takes first, before the endpoints in the order of the settings."""
WITH_LOGIN = frozenset({CODEX})
"""Engines with a login of their own, and any model; each of the others has a key, and its own."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine for one run. `waiting` says why it can not serve now; then the work waits."""

    engine: Engine
    seat: ProfileSettings
    waiting: str | None = None
    passed_over: tuple[str, ...] = ()
    """`name: reason` of each engine that would have been preferred."""
    instead_of: str | None = None
    """The preferred engine that is set up here and can not serve now."""

    @property
    def model(self) -> str | None:
        """The model that is set for the seat; an endpoint among others keeps its own."""
        is_meant = self.engine.name in WITH_LOGIN or self.seat.order == [self.engine.name]
        return self.seat.model if is_meant else None


class EngineRegistry:
    """All engines of this process, by name. Safe between threads."""

    def __init__(
        self,
        engines: list[Engine],
        settings: Settings,
        known: Mapping[str, EngineStatus] = MappingProxyType({}),
        make: Callable[[Settings], list[Engine]] = lambda _settings: [],
        clock: Clock | None = None,
    ) -> None:
        """`known`: the minds that could serve here once, and how each was last.

        `make` gives the endpoints of settings that were changed.
        """
        self._engines = {engine.name: engine for engine in engines}
        self._settings, self._make, self._clock = settings, make, clock or SystemClock()
        self._lock = threading.Lock()
        self._served = {*known, *settings.engines}
        self._stand_ins = {name: kept.stand_in for name, kept in known.items() if kept.stand_in}
        """By name of a mind that can not serve: the one that serves in its place."""
        self._last = {name: known[name] for name in self._stand_ins}
        """How each mind was when it turned a run away last, until it serves."""
        self._failed: dict[tuple[str, Role | None], EngineStatus] = {}
        """How a run of that engine as that role (None: as any) was turned away last."""
        for name, status in known.items():
            if status.want in ("limited", "unready"):
                self._failed[name, None] = status
        self._rests: dict[str, tuple[int, datetime]] = {}
        """How often a mind turned a run away since it served, and when to try it where others can.
        """
        self._tasks: dict[tuple[QueueName, str], str] = {}
        """Tasks that wait, by queue and id: the engine."""

    def renew(self, settings: Settings) -> None:
        """Take the engines, and who serves what, from settings that have changed."""
        made = self._make(settings)
        with self._lock:
            for name in set(self._settings.engines) - set(settings.engines):
                self._engines.pop(name, None)
                self._served.discard(name)
                self._stand_ins.pop(name, None)
            same = {
                name
                for name, one in settings.engines.items()
                if self._settings.engines.get(name) == one and name in self._engines
            }
            self._engines |= {engine.name: engine for engine in made if engine.name not in same}
            self._served |= set(settings.engines)
            self._settings = settings

    def close(self) -> None:
        """End what engines keep between their runs."""
        for engine in self._engines.values():
            if isinstance(engine, WarmEngine):
                engine.close()

    def for_role(
        self, role: Role, profile: str = "standard", *, by_code: bool = False
    ) -> EngineChoice:
        """Choose for a Teller, a Planner, or a Worker of a profile.

        by_code: code can do it, so `auto` takes no mind for it.

        Raises:
            BadSettings: the profile is unknown.
        """
        roles, profiles = self._settings.roles, self._settings.profiles
        if role != "worker":
            return self._choose(roles.teller if role == "teller" else roles.planner, role, by_code)
        names = type(profiles).model_fields
        if profile not in names:
            raise BadSettings(f"profile: expected one of {', '.join(names)}; got {profile!r}")
        return self._choose(getattr(profiles, profile), role, by_code)

    def status(self) -> dict[str, EngineStatus]:
        """Who serves each role and each profile of the Worker, by its name."""
        choices = {name: self.for_role(name) for name in ("teller", "planner")}
        for name in type(self._settings.profiles).model_fields:
            choices[name] = self.for_role("worker", name)
        return {
            name: EngineStatus(
                engine=choice.engine.name,
                state="waiting" if choice.waiting else "ready",
                want=want_of(choice.waiting),
                reason=choice.waiting or "; ".join(choice.passed_over) or None,
            )
            for name, choice in choices.items()
        }

    @property
    def code(self) -> CodeEngine | None:
        """Who answers plain commands while a mind is waited for."""
        engine = self._engines.get(CODE)
        return engine if isinstance(engine, CodeEngine) else None

    def named(self) -> dict[str, str]:
        """The roles and profiles that the settings give an engine of their own, by their name."""
        roles, profiles = self._settings.roles, self._settings.profiles
        seats = {"teller": roles.teller, "planner": roles.planner}
        seats |= {name: getattr(profiles, name) for name in type(profiles).model_fields}
        engines = {name: seat.order for name, seat in seats.items()}
        return {
            n: ", ".join(order)
            for n, order in engines.items()
            if order not in (["auto"], ["command"])
        }

    # ---- how each mind is

    def minds(self) -> dict[str, EngineStatus]:
        """How each mind is that serves here, or could once."""
        with self._lock:
            served, failed = set(self._served), dict(self._failed)
            waiting = list(self._tasks.values())
        found: dict[str, EngineStatus] = {}
        for name in (name for name in self._minds() if name in served and name in self._engines):
            status = EngineStatus(engine=name)
            if reason := self._engines[name].unavailable():
                status = EngineStatus(
                    engine=name, state="waiting", want=want_of(reason), reason=reason
                )
            else:
                status = next((s for (of, _), s in failed.items() if of == name), status)
                status = status.but(since=None)
            stand_in = self._stand_ins.get(name)
            if stand_in and status.state == "ready":
                status = self._last.get(name, status).but(since=None)
            found[name] = status.but(tasks=waiting.count(name), stand_in=stand_in)
        return found

    def heard(
        self, engine: str, role: Role, outcome: Outcome, instead_of: str | None = None
    ) -> None:
        """How a run of an engine went: it was turned away, or it was not.

        One that was stopped says nothing of that.

        instead_of: the engine that would have been preferred.
        """
        if outcome.failure_reason in ("killed", "canceled", "timeout"):
            return
        wants: dict[str | None, EngineWant] = {
            "rate_limited": "limited",
            "engine_unavailable": "unready",
        }
        with self._lock:
            want = outcome.want or wants.get(outcome.failure_reason)
            if want is None or engine not in self._minds():
                self._failed.pop((engine, role), None)
                self._failed.pop((engine, None), None)
                self._rests.pop(engine, None)
                self._last.pop(engine, None)
                self._stand_ins.pop(engine, None)
                if instead_of is not None:
                    self._stand_ins[instead_of] = engine
                return
            known = self._engines[engine].unavailable(role)
            want = known.want if isinstance(known, EngineAbsence) else want
            self._served.add(engine)
            times, now = self._rests.get(engine, (0, None))[0], self._clock.now()
            rest = timedelta(seconds=min(_REST_S * 2 ** min(times, 10), _MOST_REST_S))
            self._rests[engine] = times + 1, outcome.retry_at or now + rest
            self._failed.pop((engine, None), None)
            self._last[engine] = self._failed[engine, role] = EngineStatus(
                engine=engine,
                state="waiting",
                want=want,
                reason=outcome.error,
                until=outcome.retry_at,
            )

    def forget(self, engine: str) -> None:
        """Nothing waits for it any more: how it was is of no interest, until it is tried again."""
        with self._lock:
            self._failed = {key: it for key, it in self._failed.items() if key[0] != engine}

    def waits(self, queue_name: QueueName, task_id: str, engine: str | None) -> None:
        """A task went back to its queue to wait for an engine; None: it does no longer."""
        with self._lock:
            self._tasks.pop((queue_name, task_id), None)
            if engine is not None:
                self._tasks[queue_name, task_id] = engine

    def waiting_tasks(self) -> list[tuple[QueueName, str]]:
        """The tasks that wait for any engine, by queue and id, as far as that is known."""
        with self._lock:
            return list(self._tasks)

    # ---- the choice

    def _minds(self) -> list[str]:
        """What `auto` takes, the best first."""
        return [CODEX, *self._settings.engines]

    def _choose(self, seat: ProfileSettings, role: Role, by_code: bool) -> EngineChoice:
        used = self._settings.engine_order
        order = [name for given in seat.order for name in (used if given == "auto" else [given])]
        code, is_auto = self._engines.get(CODE), "auto" in order
        if by_code and is_auto and code is not None:
            return EngineChoice(code, seat)
        minds = [
            name for given in order for name in (self._minds() if given == "auto" else [given])
        ]
        passed: list[str] = []
        resting: EngineChoice | None = None
        awaited: EngineChoice | None = None
        first: str | None = None
        for name in dict.fromkeys(minds):
            if (engine := self._engines.get(name)) is None:
                continue
            reason = engine.unavailable(role)
            if reason is None and not self._is_resting(name):
                if name in self._minds():
                    self._served.add(name)
                return EngineChoice(engine, seat, None, tuple(passed), first)
            passed.append(f"{name}: {reason or 'it turned a run away'}")
            if reason is None:
                resting = resting or EngineChoice(engine, seat)
            elif awaited is None and (name in self._served or name in order):
                awaited = EngineChoice(engine, seat, reason)
            if name in self._served or name in order:
                first = first or name
        if (choice := resting or awaited) is not None:  # where no other can serve it is tried
            return choice
        if code is None or not is_auto:
            raise BadSettings(f"none of the engines {', '.join(order)} is there; set another")
        return EngineChoice(code, seat, None, tuple(passed))

    def _is_resting(self, name: str) -> bool:
        with self._lock:
            rest = self._rests.get(name)
        return rest is not None and self._clock.now() < rest[1]


def want_of(reason: str | None) -> EngineWant | None:
    """What kind of trouble it is; None when there is none."""
    if reason is None:
        return None
    return reason.want if isinstance(reason, EngineAbsence) else "unready"


def want_words(status: EngineStatus, now: datetime, zone: ZoneInfo) -> Words:
    """Why an engine can not serve, in a few words of each language."""
    if status.want == "limited" and status.until is not None:
        until = local_time(status.until, zone)
        today = until.date() == local_time(now, zone).date()
        at = f"{until:%H:%M}" if today else f"{until:%Y-%m-%d %H:%M}"
        return say_both("engine_limited_until", engine=status.engine, until=at)
    return say_both(f"engine_{status.want or 'unready'}", engine=status.engine)
