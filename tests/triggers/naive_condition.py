"""A reference for conditions: slow and simple, node by node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mimikit.triggers.conditions import Standing
from mimikit.triggers.patterns import Pattern, Seen


@dataclass
class World:
    ended: defaultdict[tuple[str, str], list[str]] = field(
        default_factory=lambda: defaultdict[tuple[str, str], list[str]](list)
    )
    disk: Seen = field(default_factory=dict[str, list[int]])
    flooded: bool = False
    """Whether a glob matches too many files."""
    answers: dict[str, bool] = field(default_factory=dict[str, bool])
    standings: dict[str, Standing] = field(default_factory=dict[str, Standing])

    def results(self, subject: str, status: Literal["done", "failed"]) -> Sequence[str]:
        return list(self.ended[subject, status])

    def rests(self, entry: Sequence[int], settle: float | None) -> bool:
        return True

    def standing(self, subject: str) -> Standing:
        return self.standings.get(subject, "awaited")

    def files(self, pattern: Pattern) -> Seen | None:
        if self.flooded and not pattern.is_plain:
            return None
        return {name: list(of) for name, of in self.disk.items() if self._means(pattern, name)}

    def exists(self, pattern: Pattern) -> bool:
        return any(self._means(pattern, name) for name in self.disk)

    def answer(self, path: str) -> bool | None:
        return self.answers.get(path)

    @staticmethod
    def _means(pattern: Pattern, name: str) -> bool:
        return name == pattern.text or not pattern.is_plain


class Naive:
    """One node. An event holds until it is used; a state is new until it is used or ends."""

    def __init__(self, condition: dict[str, Any], path: str, world: World) -> None:
        self.kind, self.params = condition["type"], condition["params"]
        self.path, self.world = path, world
        inner = self.params.get("conditions") or [self.params.get("condition")]
        self.inner = [Naive(c, f"{path}.{i}", world) for i, c in enumerate(inner) if c is not None]
        self.used_results: set[str] = set()
        self.known: Seen | None = None
        self.counts_each = False
        self.was_used = False

    # -- what is so now

    def look(self) -> None:
        """Initialise the memory of files and results; reset states that ended."""
        for node in self.inner:
            node.look()
        if (
            self.kind == "file_changed"
            and self.known is None
            and (now := self._files()) is not None
        ):
            fires_on_init = self.params.get("fireOnInit") and now
            self.known = None if fires_on_init else now
        if self.kind.startswith("task_") and not self._results():
            self.counts_each = True
        if self.is_state and self.holds() is False:
            self.was_used = False

    @property
    def is_state(self) -> bool:
        return self.kind in ("file_exists", "llm_eval", "not")

    def holds(self) -> bool | None:
        if self.kind in ("and", "or"):
            values = [node.holds() for node in self.inner]
            decides = self.kind == "or"
            if decides in values:
                return decides
            return None if None in values else not decides
        if self.kind == "not":
            value = self.inner[0].holds()
            return None if value is None else not value
        if self.kind == "file_exists":
            return any(self._names())
        if self.kind == "llm_eval":
            return self.world.answers.get(self.path)
        if self.kind == "file_changed":
            now = self._files()
            return None if now is None else now != (self.known or {}) if self._was_seen() else False
        return bool(self._unused())

    def is_new(self) -> bool:
        if not self.holds():
            return False
        if self.inner and not self.is_state:
            return any(node.is_new() for node in self.inner)
        return not (self.is_state and self.was_used)

    # -- what a firing uses up

    def use(self, *, one: bool) -> dict[str, Any]:
        """Consume what holds; `one`: only the first of several events."""
        if self.kind == "and":
            parts = [node for node in self.inner if node.holds()]
            return {k: v for node in parts for k, v in node.use(one=False).items()}
        if self.kind == "or":
            parts = [node for node in self.inner if node.holds()]
            new = [node for node in parts if node.is_new()]
            parts = new[:1] if one and new else parts
            return {k: v for node in parts for k, v in node.use(one=one).items()}
        if self.is_state:
            self.was_used = True
            return {self.path: True}
        if self.kind == "file_changed":
            self.known = self._files()
            return {self.path: self.known}
        unused = self._unused()
        taken = unused[:1] if one and self.counts_each else unused
        self.used_results |= set(taken)
        self.counts_each = True
        return {self.path: taken[-1]}

    def all(self) -> list[Naive]:
        return [self, *(deep for node in self.inner for deep in node.all())]

    # -- the world

    def _names(self) -> list[str]:
        wanted = self.params["path"]
        return [name for name in self.world.disk if wanted in (name, "*")]

    def _files(self) -> Seen | None:
        if self.world.flooded and self.params["path"] == "*":
            return None
        return {name: list(self.world.disk[name]) for name in self._names()}

    def _was_seen(self) -> bool:
        return self.known is not None or bool(self.params.get("fireOnInit"))

    def _results(self) -> list[str]:
        return self.world.ended[self.params["taskId"], self.kind.removeprefix("task_")]

    def _unused(self) -> list[str]:
        return [id_ for id_ in self._results() if id_ not in self.used_results]
