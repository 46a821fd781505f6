"""What conditions are judged by: results, deliveries, files, answers. Others give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from mimikit.triggers.patterns import Pattern, Seen

Standing: TypeAlias = Literal["awaited", "live", "done", "failed", "canceled", "unknown", "blocked"]
"""Of a task or trigger that a condition names. awaited: a trigger that may run again; blocked: one
that never will; unknown: nobody knows the id."""


class ConditionFacts(Protocol):
    """What conditions are judged by."""

    def results(self, subject: str, status: Literal["done", "failed"]) -> Sequence[str]:
        """The task named, its retries, or a trigger's runs that ended so, oldest first."""
        ...

    def files(self, pattern: Pattern) -> Seen | None:
        """The files that are meant; None when they are too many."""
        ...

    def exists(self, pattern: Pattern) -> bool | None:
        """Whether anything that is meant exists; None when that is too much to look through."""
        ...

    def delivered(self, hook: str, after: int) -> Sequence[tuple[int, str]]:
        """What came by a webhook after the one of this number: numbers and ids, oldest first."""
        ...

    def delivered_before(self, hook: str) -> int:
        """The number of the newest that is older than the trigger, or than its new condition."""
        ...

    def answer(self, path: str) -> bool | None:
        """What a model said of this node a short time ago; None when it was not asked."""
        ...

    def standing(self, subject: str) -> Standing: ...
