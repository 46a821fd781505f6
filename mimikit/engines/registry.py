"""Which engine serves a role or profile, and why not another."""

from __future__ import annotations

from dataclasses import dataclass

from mimikit.config import ProfileSettings, Settings
from mimikit.engines.base import Engine
from mimikit.errors import BadSettings
from mimikit.protocol.models import EngineStatus, Role

AUTO_ORDER = ("codex", "builtin")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine for one run. `waiting` says why it can not serve now; then the work waits."""

    engine: Engine
    seat: ProfileSettings
    waiting: str | None = None
    passed_over: tuple[str, ...] = ()
    """`name: reason` of each engine that `auto` would have preferred."""

    @property
    def status(self) -> EngineStatus:
        """As status and doctor show it."""
        if self.waiting:
            return EngineStatus(engine=self.engine.name, state="waiting", reason=self.waiting)
        return EngineStatus(engine=self.engine.name, reason="; ".join(self.passed_over) or None)


class EngineRegistry:
    """All engines of this process, by name."""

    def __init__(self, engines: list[Engine], settings: Settings) -> None:
        self._engines = {engine.name: engine for engine in engines}
        self._settings = settings

    def for_role(self, role: Role, profile: str = "standard") -> EngineChoice:
        """Choose for a Teller, a Planner, or a Worker of a profile.

        Raises:
            BadSettings: the profile is unknown.
        """
        roles, profiles = self._settings.roles, self._settings.profiles
        if role != "worker":
            return self._choose(roles.teller if role == "teller" else roles.planner, role)
        names = type(profiles).model_fields
        if profile not in names:
            raise BadSettings(f"profile: expected one of {', '.join(names)}; got {profile!r}")
        return self._choose(getattr(profiles, profile), role)

    def status(self) -> dict[str, EngineStatus]:
        """Who serves each role and each profile of the Worker, by its name."""
        shown = {name: self.for_role(name).status for name in ("teller", "planner")}
        for name in type(self._settings.profiles).model_fields:
            shown[name] = self.for_role("worker", name).status
        return shown

    def _choose(self, seat: ProfileSettings, role: Role) -> EngineChoice:
        if seat.engine != "auto":
            engine = self._engines[seat.engine]
            return EngineChoice(engine, seat, engine.unavailable(role))
        passed: list[str] = []
        for name in AUTO_ORDER:
            if engine := self._engines.get(name):
                reason = engine.unavailable(role)
                if reason is None:
                    return EngineChoice(engine, seat, None, tuple(passed))
                passed.append(f"{name}: {reason}")
        raise BadSettings("no engine is left for `auto`; set one by name")
