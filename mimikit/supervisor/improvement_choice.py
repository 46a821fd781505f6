"""What self-awake does next, or why it does nothing. Pure."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

from mimikit.protocol.paths import STATE_FOLDER
from mimikit.protocol.self_awake import SelfAwakeState
from mimikit.self_awake_settings import ImprovementKind, SelfAwakeSettings

HOURS: dict[ImprovementKind, float] = {
    "retry": 1,
    "lint": 24,
    "types": 24,
    "docs": 72,
    "memory": 168,
    "quality": 72,
    "dependencies": 168,
    "clean_up": 168,
    "backlog": 24,
}
"""The least time between two of a kind, unless the settings say another."""
BLOCKED = timedelta(hours=1)
"""After so long it is looked again whether there is a repository to work in."""
LEAST_MEMORY_BYTES = 2000
"""Less than this needs no clean-up."""

NoImprovement: TypeAlias = Literal[
    "off", "running", "short", "no_mind", "not_idle", "blocked", "nothing_due"
]


@dataclass(frozen=True, slots=True)
class ImprovementFacts:
    """What is so now, as far as the choice depends on it."""

    busy_at: datetime
    """When something was said or ran last."""
    short: str = ""
    """Why nothing new may begin here: paused, short of memory or tokens."""
    no_mind: str = ""
    """Why nobody can be asked."""
    failed: Sequence[str] = ()
    """Tasks that failed for a passing cause, the newest first."""
    backlog: Sequence[str] = ()
    """Its open items."""
    memory_bytes: int = 0
    """Of `memory.md`."""


class ImprovementChoice(NamedTuple):
    """The item that is due, or why none is taken."""

    kind: ImprovementKind | None = None
    subject: str = ""
    held_by: NoImprovement | None = None
    why: str = ""
    """More of the reason, for people."""
    at: datetime | None = None
    """When it is worth looking again, where that is known."""


def choose(
    now: datetime,
    facts: ImprovementFacts,
    settings: SelfAwakeSettings,
    state: SelfAwakeState,
    *,
    asked: bool = False,
    wanted: ImprovementKind | None = None,
) -> ImprovementChoice:
    """The first item of the check list that is due; at most one is in progress.

    asked: somebody wants one now: off, not idle and too soon are no reasons then.
    wanted: that one and no other.
    """
    if state.run is not None:
        return ImprovementChoice(held_by="running")
    if not settings.enabled and not asked:
        return ImprovementChoice(held_by="off")
    if facts.short:
        return ImprovementChoice(held_by="short", why=facts.short)
    if facts.no_mind:
        return ImprovementChoice(held_by="no_mind", why=facts.no_mind)
    if not asked:
        idle_at = min(facts.busy_at, now) + timedelta(minutes=settings.idle_minutes)
        if now < idle_at:
            return ImprovementChoice(held_by="not_idle", at=idle_at)
        blocked_at = state.blocked_at
        if blocked_at is not None and timedelta() <= now - blocked_at < BLOCKED:
            again_at = blocked_at + BLOCKED
            return ImprovementChoice(held_by="blocked", why=state.blocked, at=again_at)
    soonest: datetime | None = None
    kinds: list[ImprovementKind] = [wanted] if wanted else settings.items
    for kind in kinds:
        subject = _subject(kind, facts, state)
        if subject is None:
            continue
        at = due_at(kind, settings, state, now)
        if asked or at is None or at <= now:
            return ImprovementChoice(kind, subject)
        soonest = at if soonest is None else min(soonest, at)
    return ImprovementChoice(held_by="nothing_due", at=soonest)


def due_at(
    kind: ImprovementKind, settings: SelfAwakeSettings, state: SelfAwakeState, now: datetime
) -> datetime | None:
    """When an item may be taken again; None: at any time."""
    last = state.last.get(kind)
    if last is None or last > now:  # taken in what is a time to come: the clock was set back
        return None
    return last + timedelta(hours=settings.hours.get(kind, HOURS[kind]))


def _subject(kind: ImprovementKind, facts: ImprovementFacts, state: SelfAwakeState) -> str | None:
    """What an item is about; empty: nothing in particular; None: there is nothing of it."""
    match kind:
        case "retry":
            return next((id_ for id_ in facts.failed if id_ not in state.retried), None)
        case "backlog":
            return facts.backlog[0] if facts.backlog else None
        case "memory":
            return "" if facts.memory_bytes >= LEAST_MEMORY_BYTES else None
        case _:
            return ""


# ---- what becomes of a change


class ReviewAnswer(NamedTuple):
    """What a mind says of a change."""

    is_good: bool
    why: str


_TRIES = 50
"""So many brackets of a text are tried for the beginning of the answer."""
_MOST_WHY = 1000


def verdict(text: str) -> ReviewAnswer:
    """The answer in a mind's text: the last object with `ok`; what is no answer is a no."""
    starts = (found.start() for found in re.finditer(r"\{", text))
    found: ReviewAnswer | None = None
    for start in itertools.islice(starts, _TRIES):
        try:
            value: object = json.JSONDecoder().raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
        match value:
            case {"ok": bool(ok), "reason": str(reason)}:
                found = ReviewAnswer(ok, reason.strip()[:_MOST_WHY])
            case {"ok": bool(ok)}:
                found = ReviewAnswer(ok, "")
            case _:
                pass
    return found or ReviewAnswer(is_good=False, why="the review gave no answer that can be used")


def forbidden(files: Iterable[str], prefix: str, own: Sequence[str]) -> str | None:
    """The first of the changed paths that no improvement may touch; None: there is none.

    prefix: the folder of the repository that it works in; all else is the user's.
    own: paths in the repository of this program's state, prompts and package.
    """
    for name in files:
        path = PurePosixPath(name)
        parts = [part.casefold().rstrip(". ") for part in path.parts]
        is_ours = any(path.is_relative_to(PurePosixPath(one)) for one in own)
        is_outside = prefix != "" and not path.is_relative_to(PurePosixPath(prefix))
        if is_ours or is_outside or {STATE_FOLDER, ".git"} & set(parts):
            return name
    return None
