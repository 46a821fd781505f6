"""Chooses the engine for a role or profile; knows their status and the tasks that wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple
from zoneinfo import ZoneInfo

from mimikit.clock import Clock, SystemClock
from mimikit.config import OWN_ENGINES, ProfileSettings, Settings
from mimikit.engines.base import (
    CodeEngine,
    Engine,
    EngineOutage,
    Failed,
    Outcome,
    ProbedEngine,
    WarmEngine,
)
from mimikit.engines.circuit import Circuits, HealthCheck, is_conclusive, is_rejection
from mimikit.errors import BadInput, BadSettings
from mimikit.language.phrases import Words, local_time, say_both
from mimikit.protocol.models import EngineProblem, EngineStatus, QueueName, Role

CODE = "builtin"
CODE_ENGINES = frozenset({CODE, "command"})
CODEX = "codex"
OPENCODE = "opencode"
"""`auto` prefers codex, then opencode, then the endpoints in the order of the settings."""
LOCAL = "local"
"""`auto` uses it last: for chat, and for planning if no better engine is set up."""
WITH_LOGIN = frozenset({CODEX})
"""Engines that take any model name; each other one has its own model."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    engine: Engine
    profile: ProfileSettings
    waiting: str | None = None
    """Why it is unavailable now."""
    skipped: tuple[str, ...] = ()
    """`name: reason` of each preferred engine that is unavailable."""
    instead_of: str | None = None
    """The preferred engine if this one is a fallback."""

    @property
    def model(self) -> str | None:
        """The model set for the role; ignored by an endpoint in a list of several engines."""
        is_meant = self.engine.name in WITH_LOGIN or self.profile.order == [self.engine.name]
        return self.profile.model if is_meant else None


class TaskWait(NamedTuple):
    engine: str
    profile: str


class EngineRegistry:
    """Thread-safe."""

    def __init__(
        self,
        engines: list[Engine],
        settings: Settings,
        known: Mapping[str, EngineStatus] = MappingProxyType({}),
        make: Callable[[Settings], list[Engine]] = lambda _settings: [],
        clock: Clock | None = None,
    ) -> None:
        """`known`: status before the restart; `make`: creates engines for changed settings."""
        self._engines = {engine.name: engine for engine in engines}
        self._settings, self._make, self._clock = settings, make, clock or SystemClock()
        self._lock = threading.Lock()
        self._used = {*known, *settings.engines}
        self._fallbacks = {
            name: status.fallback for name, status in known.items() if status.fallback
        }
        self.circuits = Circuits(self._clock)
        for status in known.values():
            if status.state == "waiting":
                self.circuits.restore(status)
        self._tasks: dict[tuple[QueueName, str], TaskWait] = {}
        self._health_checks: dict[str, HealthCheck] = {}

    def reload(self, settings: Settings) -> None:
        created = self._make(settings)
        with self._lock:
            for name in set(self._settings.engines) - set(settings.engines):
                self._engines.pop(name, None)
                self._used.discard(name)
                self._fallbacks.pop(name, None)
                self.circuits.forget(name)
            same = {
                name
                for name, one in settings.engines.items()
                if self._settings.engines.get(name) == one and name in self._engines
            }
            changed = {engine.name: engine for engine in created if engine.name not in same}
            for name in changed:
                self.circuits.forget(name)
            self._engines |= changed
            self._used |= set(settings.engines)
            self._settings = settings

    def close(self) -> None:
        for engine in self._engines.values():
            if isinstance(engine, WarmEngine):
                engine.close()

    def for_role(
        self,
        role: Role,
        profile: str = "standard",
        *,
        by_code: bool = False,
        without: Collection[str] = (),
    ) -> EngineChoice:
        """`by_code`: prefer the engine without a model. Raises BadSettings for a bad profile."""
        roles, profiles = self._settings.roles, self._settings.profiles
        if role != "worker":
            seat = roles.teller if role == "teller" else roles.planner
            return self._choose(seat, role, by_code, without)
        names = type(profiles).model_fields
        if profile not in names:
            raise BadSettings(f"profile: expected one of {', '.join(names)}; got {profile!r}")
        return self._choose(getattr(profiles, profile), role, by_code, without)

    def next_choice(
        self, role: Role, profile: str, without: Collection[str]
    ) -> EngineChoice | None:
        """The next engine with a model that can run now, after those that were tried."""
        try:
            choice = self.for_role(role, profile, without=without)
        except BadSettings:
            return None
        is_none = choice.waiting or choice.engine.name in CODE_ENGINES
        return None if is_none else replace(choice, instead_of=None)

    def status(self) -> dict[str, EngineStatus]:
        choices = {name: self.for_role(name) for name in ("teller", "planner")}
        for name in type(self._settings.profiles).model_fields:
            choices[name] = self.for_role("worker", name)
        return {
            name: EngineStatus(
                engine=choice.engine.name,
                state="waiting" if choice.waiting else "ready",
                problem=problem_of(choice.waiting),
                until=getattr(choice.waiting, "until", None),
                reason=choice.waiting or "; ".join(choice.skipped) or None,
            )
            for name, choice in choices.items()
        }

    @property
    def code(self) -> CodeEngine | None:
        """Answers plain commands while the chosen engine is unavailable."""
        engine = self._engines.get(CODE)
        return engine if isinstance(engine, CodeEngine) else None

    # ---- the status of each engine

    def engine_status(self) -> dict[str, EngineStatus]:
        """By name, of the engines that are or once were in use, or that the settings name."""
        named = _named_engines(self._settings)
        with self._lock:
            used, waiting = self._used | named, [wait.engine for wait in self._tasks.values()]
            fallbacks = dict(self._fallbacks)
        found: dict[str, EngineStatus] = {}
        for name in (name for name in self._auto_order() if name in used and name in self._engines):
            status = EngineStatus(engine=name)
            if reason := self._engines[name].unavailable():
                if name not in named and not self._is_awaited(name, [], reason):
                    continue
                status = EngineStatus(
                    engine=name, state="waiting", problem=problem_of(reason), reason=reason
                )
            status = self.circuits.status(name) or status
            found[name] = status.but(tasks=waiting.count(name), fallback=fallbacks.get(name))
        return found

    def begin(self, engine: str, role: Role, run_id: str) -> Failed | None:
        """Register a run; or its outcome if the circuit is open."""
        reason = self.circuits.begin(engine, role, run_id)
        if reason is None:
            return None
        return Failed.unavailable(reason.want, reason, retry_at=reason.until)

    def record_outcome(
        self, engine: str, role: Role, run_id: str, outcome: Outcome, instead_of: str | None = None
    ) -> None:
        """Update circuit and fallbacks; `instead_of`: as in `EngineChoice`."""
        known, is_away = self._engines.get(engine), is_rejection(outcome)
        if engine in CODE_ENGINES or known is None or (is_away and known.unavailable(role)):
            return
        self.circuits.ended(engine, role, run_id, outcome)
        with self._lock:
            if is_away:
                self._used.add(engine)
            elif is_conclusive(outcome):
                self._fallbacks.pop(engine, None)
                if instead_of is not None:
                    self._fallbacks[instead_of] = engine

    def try_now(self, engine: str | None = None) -> list[str]:
        """Let the next run probe an engine, or all; returns their names. Raises BadInput."""
        if engine is not None and engine not in self._engines:
            raise BadInput(f"expected one of {', '.join(self._engines)}; got {engine!r}")
        names = [engine] if engine else [*self._engines]
        for one in (self._engines[name] for name in names):
            if isinstance(one, ProbedEngine):
                one.recheck()
        return self.circuits.probe_now(engine)

    def check_if_back(self, engine: str) -> None:
        """Make its circuit half open once a cheap check shows that it has recovered."""
        status, one = self.circuits.status(engine), self._engines.get(engine)
        if status is None or status.problem is None or not isinstance(one, ProbedEngine):
            self._health_checks.pop(engine, None)
            return
        probe = self._health_checks.setdefault(engine, HealthCheck(one, self._clock))
        if probe.has_recovered(status.problem, status.next_try_at):
            self.circuits.probe_now(engine, manual=False)

    # ---- what waits

    def set_waiting(
        self, queue_name: QueueName, task_id: str, engine: str | None, profile: str = "standard"
    ) -> None:
        """Mark a queued task as waiting for an engine; None: no longer."""
        with self._lock:
            self._tasks.pop((queue_name, task_id), None)
            if engine is not None:
                self._tasks[queue_name, task_id] = TaskWait(engine, profile)

    def waiting_tasks(self) -> dict[tuple[QueueName, str], TaskWait]:
        with self._lock:
            return dict(self._tasks)

    def wait_reason(self, engine: str, role: Role) -> EngineOutage | None:
        """Why no run of that role can start now; None if one can."""
        reason = self._engines[engine].unavailable(role) if engine in self._engines else None
        if reason is not None:
            return reason if isinstance(reason, EngineOutage) else EngineOutage(reason)
        return self.circuits.reason(engine, role)

    # ---- the choice

    def _auto_order(self) -> list[str]:
        return [CODEX, OPENCODE, *self._settings.engines, LOCAL]

    def _choose(
        self, profile: ProfileSettings, role: Role, by_code: bool, without: Collection[str]
    ) -> EngineChoice:
        order = _expand_auto(profile.order, self._settings.engine_order)
        code, has_code = self._engines.get(CODE), not {"auto", LOCAL}.isdisjoint(order)
        if by_code and has_code and code is not None:
            return EngineChoice(code, profile)
        names = _expand_auto(order, self._auto_order())
        if role == "worker" or (role == "planner" and self._has_other(names, order)):
            names = [name for name in names if name != LOCAL]
        reasons: dict[str, str] = {}
        preferred: list[str] = []
        resting: EngineChoice | None = None
        missing: EngineChoice | None = None
        for name in dict.fromkeys(names):
            if (engine := self._engines.get(name)) is None or name in without:
                continue
            unavailable = engine.unavailable(role)
            reason = unavailable or self.circuits.reason(name, role)
            if reason is None:
                if name in self._auto_order():
                    self._used.add(name)
                skipped = tuple(reasons[one] for one in (reasons if name == LOCAL else preferred))
                instead_of = preferred[0] if preferred else None
                return EngineChoice(engine, profile, None, skipped, instead_of)
            reasons[name] = f"{name}: {reason}"
            if is_awaited := self._is_awaited(name, order, reason):
                preferred.append(name)
            if unavailable is None:
                resting = resting or EngineChoice(engine, profile, reason)
            elif is_awaited:
                missing = missing or EngineChoice(engine, profile, reason)
        if (choice := resting or missing) is not None:
            return choice
        if code is None or not has_code:
            raise BadSettings(f"none of the engines {', '.join(order)} is available; set another")
        return EngineChoice(code, profile, None, tuple(reasons.values()))

    def _has_other(self, names: list[str], order: list[str]) -> bool:
        others = (name for name in names if name not in (LOCAL, CODE) and name in self._engines)
        return any(name in self._used or name in order for name in others)

    def _is_awaited(self, name: str, order: list[str], reason: str | None) -> bool:
        """Whether work waits for an unavailable engine: not for a removed local model."""
        is_gone = name == LOCAL and problem_of(reason) == "missing"
        return name in order or (name in self._used and not is_gone)


def _named_engines(settings: Settings) -> set[str]:
    seats = [settings.roles.teller, settings.roles.planner]
    seats += [profile for _, profile in settings.profiles]
    orders = [settings.engine_order, *(seat.order for seat in seats)]
    return {name for order in orders for name in order} - {"auto"}


def _expand_auto(names: list[str], engines: list[str]) -> list[str]:
    return [one for name in names for one in (engines if name == "auto" else [name])]


def problem_of(reason: str | None) -> EngineProblem | None:
    if reason is None:
        return None
    return reason.want if isinstance(reason, EngineOutage) else "unready"


def problem_words(status: EngineStatus, now: datetime, zone: ZoneInfo) -> Words:
    """Why an engine is unavailable, in each language."""
    if status.problem == "limited" and status.until is not None:
        until = local_time(status.until, zone)
        today = until.date() == local_time(now, zone).date()
        at = f"{until:%H:%M}" if today else f"{until:%Y-%m-%d %H:%M}"
        return say_both("engine_limited_until", engine=status.engine, until=at)
    lacks_key = status.problem == "logged_out" and status.engine not in OWN_ENGINES
    what = "no_key" if lacks_key else status.problem or "unready"
    return say_both(f"engine_{what}", engine=status.engine)
