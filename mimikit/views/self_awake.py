"""Self-awake as it is shown: whether it is on, what it does now, what it did."""

from __future__ import annotations

from datetime import datetime

from mimikit import config_file
from mimikit.config import Settings
from mimikit.errors import BadSettings
from mimikit.language.reasons import reason_words
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Instant
from mimikit.protocol.self_awake import (
    Improvement,
    ImprovementEnd,
    ImprovementStage,
    PastImprovement,
    SelfAwakeState,
)
from mimikit.self_awake_settings import ImprovementKind, SelfAwakeSettings
from mimikit.views.base import Title, View, Words


class ImprovementView(View):
    """The improvement in progress."""

    id: str
    kind: ImprovementKind
    stage: ImprovementStage
    title: Title
    """Empty until its task is written."""
    branch: str
    asked: bool
    """Somebody asked for it."""
    started_at: Instant


class PastImprovementView(View):
    """One that has ended."""

    id: str
    kind: ImprovementKind
    title: Title
    end: ImprovementEnd
    why: Title
    """Why it ended so, in the words of whoever said it."""
    why_words: Words | None
    """The same in each language, where code has said it."""
    branch: str
    """Where it was committed; empty: nothing is left of it."""
    files: int
    task_id: str | None
    """The Worker's, which has the rest."""
    left: str
    """The path of its worktree, if that stayed as somebody else worked there."""
    ended_at: Instant


class SelfAwakeView(View):
    """All of it."""

    enabled: bool
    idle_minutes: float
    items: list[ImprovementKind]
    checks: list[str]
    run: ImprovementView | None
    left: list[str]
    """Paths of worktrees that stay, as somebody may work there."""
    blocked: Title | None
    """Why the last one could not even begin."""
    blocked_words: Words | None
    """The same in each language."""
    blocked_at: Instant | None
    last_at: Instant | None
    """When one began last."""
    past: list[PastImprovementView]
    """The newest first."""


def self_awake_view(files: Files, settings: Settings, most: int = 50) -> SelfAwakeView:
    """`most`: so many of those that have ended."""
    state = files.peek(paths.SELF_AWAKE, SelfAwakeState) or SelfAwakeState()
    own, run = current_settings(files, settings), state.run
    return SelfAwakeView(
        enabled=own.enabled,
        idle_minutes=own.idle_minutes,
        items=own.items,
        checks=own.checks,
        run=_in_progress(run) if run else None,
        left=state.left,
        blocked=state.blocked or None,
        blocked_words=reason_words(state.blocked),
        blocked_at=state.blocked_at,
        last_at=_last(state, run),
        past=[
            PastImprovementView.of(one, why_words=reason_words(one.why))
            for one in reversed(state.past[-most:])
        ],
    )


def current_settings(files: Files, settings: Settings) -> SelfAwakeSettings:
    """As they stand in the file now, which may have changed since `settings` were read."""
    try:
        return config_file.settings_of(files).self_awake
    except BadSettings:
        return settings.self_awake


def _in_progress(run: Improvement) -> ImprovementView:
    return ImprovementView.of(run)


def _last(state: SelfAwakeState, run: Improvement | None) -> datetime | None:
    ended: list[PastImprovement] = state.past
    return run.started_at if run else max((one.started_at for one in ended), default=None)
