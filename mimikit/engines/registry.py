"""Which engine serves a role or profile, how each of them is, and what waits for it.

`auto` takes the first mind that can serve. Where one ever could, no code takes its place: while it
can not, what needs a mind waits for it. How it was is kept in `runtime.json`, by the supervisor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple
from zoneinfo import ZoneInfo

from mimikit.clock import Clock, SystemClock
from mimikit.config import OWN_ENGINES, ProfileSettings, Settings
from mimikit.engines.base import (
    CodeEngine,
    Engine,
    EngineAbsence,
    Failed,
    Outcome,
    ProbedEngine,
    WarmEngine,
)
from mimikit.engines.health import EngineHealth, EngineLook
from mimikit.errors import BadInput, BadSettings
from mimikit.language.phrases import Words, local_time, say_both
from mimikit.protocol.models import EngineStatus, EngineWant, QueueName, Role

CODE = "builtin"
CODE_ENGINES = frozenset({CODE, "command"})
"""Nothing but this machine can keep these from serving."""
CODEX = "codex"
OPENCODE = "opencode"
"""What `auto` takes first, before the endpoints in the order of the settings."""
LOCAL = "local"
"""What `auto` takes last: it talks, and plans where no other mind is set up; code works then."""
WITH_LOGIN = frozenset({CODEX})
"""Engines with a login of their own, and any model; each of the others has a key, and its own."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine for one run. `waiting` says why it can not serve now; then the work waits."""

    engine: Engine
    seat: ProfileSettings
    waiting: str | None = None
    passed_over: tuple[str, ...] = ()
    """`name: reason` of each that is set up here and would have been preferred."""
    instead_of: str | None = None
    """The preferred engine that is set up here and can not serve now."""

    @property
    def model(self) -> str | None:
        """The model that is set for the seat; an endpoint among others keeps its own."""
        is_meant = self.engine.name in WITH_LOGIN or self.seat.order == [self.engine.name]
        return self.seat.model if is_meant else None


class TaskWait(NamedTuple):
    """What a task waits for."""

    engine: str
    profile: str


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
        self._health = EngineHealth(self._clock)
        for status in known.values():
            if status.state == "waiting":
                self._health.restore(status)
        self._tasks: dict[tuple[QueueName, str], TaskWait] = {}
        """Tasks that wait, by queue and id."""
        self._looks: dict[str, EngineLook] = {}

    def renew(self, settings: Settings) -> None:
        """Take the engines, and who serves what, from settings that have changed."""
        made = self._make(settings)
        with self._lock:
            for name in set(self._settings.engines) - set(settings.engines):
                self._engines.pop(name, None)
                self._served.discard(name)
                self._stand_ins.pop(name, None)
                self._health.forget(name)
            same = {
                name
                for name, one in settings.engines.items()
                if self._settings.engines.get(name) == one and name in self._engines
            }
            changed = {engine.name: engine for engine in made if engine.name not in same}
            for name in changed:
                self._health.forget(name)
            self._engines |= changed
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
                until=getattr(choice.waiting, "until", None),
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
            served, waiting = set(self._served), [wait.engine for wait in self._tasks.values()]
            stand_ins = dict(self._stand_ins)
        found: dict[str, EngineStatus] = {}
        for name in (name for name in self._minds() if name in served and name in self._engines):
            status = EngineStatus(engine=name)
            if reason := self._engines[name].unavailable():
                if not self._is_kept(name, self._settings.engine_order, reason):
                    continue
                status = EngineStatus(
                    engine=name, state="waiting", want=want_of(reason), reason=reason
                )
            status = self._health.status(name) or status
            found[name] = status.but(tasks=waiting.count(name), stand_in=stand_ins.get(name))
        return found

    def begin(self, engine: str, role: Role, run_id: str) -> Outcome | None:
        """Enter a run; or how it ends at once, as the engine rests or another run tries it."""
        reason = self._health.begin(engine, role, run_id)
        if reason is None:
            return None
        return Failed.unavailable(reason.want, reason, retry_at=reason.until)

    def answered(self, engine: str, run_id: str) -> None:
        """A run was answered, which is a sign that others may go, too."""
        self._health.answered(engine, run_id)

    def left(self, engine: str, run_id: str) -> None:
        """A run that was entered is over, however it ended."""
        self._health.left(engine, run_id)

    def heard(
        self, engine: str, role: Role, run_id: str, outcome: Outcome, instead_of: str | None = None
    ) -> None:
        """How a run of an engine went: it was turned away, or it was not.

        What can be seen of an engine needs no learning: it is asked again at each look.

        instead_of: the engine that would have been preferred.
        """
        is_turned_away = outcome.reason in ("rate_limited", "engine_unavailable")
        known = self._engines.get(engine)
        if engine in CODE_ENGINES or known is None or (is_turned_away and known.unavailable(role)):
            return
        self._health.ended(engine, role, run_id, outcome)
        with self._lock:
            if is_turned_away:
                self._served.add(engine)
            elif outcome.reason not in ("killed", "canceled", "timeout"):
                self._stand_ins.pop(engine, None)
                if instead_of is not None:
                    self._stand_ins[instead_of] = engine

    def is_doubted(self, engine: str) -> bool:
        """Whether it turned a run away, and none is done since."""
        return self._health.is_doubted(engine)

    def try_now(self, engine: str | None = None) -> list[str]:
        """Have an engine, or each, be looked at and tried without waiting; gives their names.

        Raises:
            BadInput: there is no such engine.
        """
        if engine is not None and engine not in self._engines:
            raise BadInput(f"expected one of {', '.join(self._engines)}; got {engine!r}")
        names = [engine] if engine else [*self._engines]
        for one in (self._engines[name] for name in names):
            if isinstance(one, ProbedEngine):
                one.look_anew()
        return self._health.wake(engine)

    def look_whether_mended(self, engine: str) -> None:
        """Look cheaply whether what it lacked is there again; then it is tried at once."""
        status, one = self._health.status(engine), self._engines.get(engine)
        if status is None or status.want is None or not isinstance(one, ProbedEngine):
            self._looks.pop(engine, None)
            return
        look = self._looks.setdefault(engine, EngineLook(one, self._clock))
        if look.shows(status.want, status.next_try_at):
            self._health.wake(engine, is_mended=True)

    # ---- what waits

    def waits(
        self, queue_name: QueueName, task_id: str, engine: str | None, profile: str = "standard"
    ) -> None:
        """A task went back to its queue to wait for an engine; None: it does no longer."""
        with self._lock:
            self._tasks.pop((queue_name, task_id), None)
            if engine is not None:
                self._tasks[queue_name, task_id] = TaskWait(engine, profile)

    def waiting_tasks(self) -> dict[tuple[QueueName, str], TaskWait]:
        """The tasks that wait for any engine, by queue and id, as far as that is known."""
        with self._lock:
            return dict(self._tasks)

    def wait_of(self, engine: str, role: Role) -> EngineAbsence | None:
        """Why a run of that role waits for it; None where it need not."""
        reason = self._engines[engine].unavailable(role) if engine in self._engines else None
        if reason is not None:
            return reason if isinstance(reason, EngineAbsence) else EngineAbsence(reason)
        return self._health.reason(engine, role)

    def is_tried(self, engine: str, role: Role) -> bool:
        """Whether only one run may begin, to try it."""
        return self._health.is_tried(engine, role)

    # ---- the choice

    def _minds(self) -> list[str]:
        """What `auto` takes, the best first."""
        return [CODEX, OPENCODE, *self._settings.engines, LOCAL]

    def _choose(self, seat: ProfileSettings, role: Role, by_code: bool) -> EngineChoice:
        used = self._settings.engine_order
        order = [name for given in seat.order for name in (used if given == "auto" else [given])]
        code, has_code = self._engines.get(CODE), not {"auto", LOCAL}.isdisjoint(order)
        if by_code and has_code and code is not None:
            return EngineChoice(code, seat)
        minds = [
            name for given in order for name in (self._minds() if given == "auto" else [given])
        ]
        if role == "worker" or (role == "planner" and self._has_other(minds, order)):
            minds = [name for name in minds if name != LOCAL]
        passed: dict[str, str] = {}
        """Why each can not serve: told by what serves for want of better, others tell of `kept`."""
        kept: list[str] = []
        resting: EngineChoice | None = None
        awaited: EngineChoice | None = None
        for name in dict.fromkeys(minds):
            if (engine := self._engines.get(name)) is None:
                continue
            seen = engine.unavailable(role)
            reason = seen or self._health.reason(name, role)
            if reason is None:
                if name in self._minds():
                    self._served.add(name)
                missed = tuple(passed[one] for one in (passed if name == LOCAL else kept))
                return EngineChoice(engine, seat, None, missed, kept[0] if kept else None)
            passed[name] = f"{name}: {reason}"
            if is_kept := self._is_kept(name, order, reason):
                kept.append(name)
            if seen is None:
                resting = resting or EngineChoice(engine, seat, reason)
            elif is_kept:
                awaited = awaited or EngineChoice(engine, seat, reason)
        if (choice := resting or awaited) is not None:
            return choice
        if code is None or not has_code:
            raise BadSettings(f"none of the engines {', '.join(order)} is there; set another")
        return EngineChoice(code, seat, None, tuple(passed.values()))

    def _has_other(self, minds: list[str], order: list[str]) -> bool:
        """Whether a mind is set up that can work, too: a small model does not plan for it."""
        others = (name for name in minds if name not in (LOCAL, CODE) and name in self._engines)
        return any(name in self._served or name in order for name in others)

    def _is_kept(self, name: str, order: list[str], reason: str | None) -> bool:
        """Whether an engine is waited for; weights that were removed are not."""
        is_gone = name == LOCAL and want_of(reason) == "missing"
        return name in order or (name in self._served and not is_gone)


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
    lacks_key = status.want == "logged_out" and status.engine not in OWN_ENGINES
    what = "no_key" if lacks_key else status.want or "unready"
    return say_both(f"engine_{what}", engine=status.engine)
