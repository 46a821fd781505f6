"""Which engine serves a role or profile, how each of them is, and what waits for it.

`auto` takes the first mind that can serve. Where one ever could, no code takes its place: while it
can not, what needs a mind waits for it. How it was is kept in `runtime.json`, by the supervisor.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from zoneinfo import ZoneInfo

from mimikit.config import ProfileSettings, Settings
from mimikit.engines.base import CodeEngine, Engine, EngineAbsence, Outcome
from mimikit.errors import BadSettings
from mimikit.language.phrases import Words, local_time, say_both
from mimikit.protocol.models import EngineStatus, EngineWant, QueueName, Role

CODE = "builtin"
MINDS = ("codex",)
"""What `auto` takes, the best first."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine for one run. `waiting` says why it can not serve now; then the work waits."""

    engine: Engine
    seat: ProfileSettings
    waiting: str | None = None
    passed_over: tuple[str, ...] = ()
    """`name: reason` of each engine that `auto` would have preferred."""


class EngineRegistry:
    """All engines of this process, by name. Safe between threads."""

    def __init__(
        self,
        engines: list[Engine],
        settings: Settings,
        known: Mapping[str, EngineStatus] = MappingProxyType({}),
    ) -> None:
        """`known`: the minds that could serve here once, and how each was last."""
        self._engines = {engine.name: engine for engine in engines}
        self._settings = settings
        self.used = settings.engine
        """What serves where a role or profile names none; `auto` chooses."""
        self._lock = threading.Lock()
        self._served = set(known)
        self._failed: dict[tuple[str, Role | None], EngineStatus] = {}
        """How a run of that engine as that role (None: as any) was turned away last."""
        for name, status in known.items():
            if status.want in ("limited", "unready"):
                self._failed[name, None] = status
        self._tasks: dict[tuple[QueueName, str], str] = {}
        """Tasks that wait, by queue and id: the engine."""

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
        engines = {name: seat.engine for name, seat in seats.items()}
        return {n: engine for n, engine in engines.items() if engine not in ("auto", "command")}

    # ---- how each mind is

    def minds(self) -> dict[str, EngineStatus]:
        """How each mind is that serves here, or could once."""
        with self._lock:
            served, failed = set(self._served), dict(self._failed)
            waiting = list(self._tasks.values())
        found: dict[str, EngineStatus] = {}
        for name in (name for name in MINDS if name in served and name in self._engines):
            status = EngineStatus(engine=name)
            if reason := self._engines[name].unavailable():
                status = EngineStatus(
                    engine=name, state="waiting", want=want_of(reason), reason=reason
                )
            else:
                status = next((s for (of, _), s in failed.items() if of == name), status)
                status = status.but(since=None)
            found[name] = status.but(tasks=waiting.count(name))
        return found

    def heard(self, engine: str, role: Role, outcome: Outcome) -> None:
        """How a run of an engine went: it was turned away, or it was not.

        One that was stopped says nothing of that.
        """
        if outcome.failure_reason in ("killed", "canceled", "timeout"):
            return
        wants: dict[str | None, EngineWant] = {
            "rate_limited": "limited",
            "engine_unavailable": "unready",
        }
        with self._lock:
            if (want := wants.get(outcome.failure_reason)) is None or engine not in MINDS:
                self._failed.pop((engine, role), None)
                self._failed.pop((engine, None), None)
                return
            self._served.add(engine)
            self._failed.pop((engine, None), None)
            self._failed[engine, role] = EngineStatus(
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

    def _choose(self, seat: ProfileSettings, role: Role, by_code: bool) -> EngineChoice:
        name = self.used if seat.engine == "auto" else seat.engine
        if name != "auto":
            engine = self._engines[name]
            reason = engine.unavailable(role)
            if reason is None and name in MINDS:
                self._served.add(name)
            return EngineChoice(engine, seat, reason)
        code = self._engines.get(CODE)
        if by_code and code is not None:
            return EngineChoice(code, seat)
        passed: list[str] = []
        awaited: EngineChoice | None = None
        for mind in MINDS:
            if (engine := self._engines.get(mind)) is None:
                continue
            reason = engine.unavailable(role)
            if reason is None:
                self._served.add(mind)
                return EngineChoice(engine, seat, None, tuple(passed))
            passed.append(f"{mind}: {reason}")
            if awaited is None and mind in self._served:
                awaited = EngineChoice(engine, seat, reason)
        if awaited is not None:
            return awaited
        if code is None:
            raise BadSettings("no engine is left for `auto`; set one by name")
        return EngineChoice(code, seat, None, tuple(passed))


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
