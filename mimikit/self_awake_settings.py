"""The settings of self-awake. They are part of `config.Settings`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, StringConstraints

from mimikit.engine_settings import SettingsSection

ImprovementKind: TypeAlias = Literal[
    "retry", "lint", "types", "docs", "memory", "quality", "dependencies", "clean_up", "backlog"
]
"""What self-awake looks for, in the order in which it does."""


Hours = Annotated[float, Field(ge=0.1, le=10_000)]
ShellLine = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]


class SelfAwakeSettings(SettingsSection):
    """`[self_awake]`: improving the workspace while nobody needs anything. Units in the names."""

    enabled: bool = False
    idle_minutes: Annotated[float, Field(ge=1, le=10_080)] = 5
    """So long nothing was said and nothing ran before an improvement begins."""
    items: list[ImprovementKind] = Field(default_factory=lambda: list(get_args(ImprovementKind)))
    """What of the check list is done, the most important first."""
    hours: dict[ImprovementKind, Hours] = Field(default_factory=dict[ImprovementKind, float])
    """The least time between two of a kind, where it is not the usual."""
    checks: list[ShellLine] = Field(default_factory=lambda: ["make check"])
    """Command lines that have to succeed in the worktree before a change is kept."""
    check_minutes: Annotated[float, Field(gt=0, le=1440)] = 30
    """The longest that one of them may take."""
    profile: Literal["standard", "specialist", "deferred"] = "standard"
    """Who does the task, and judges the change."""
    most_branches: Annotated[int, Field(ge=1, le=100)] = 5
    """With so many branches of its own that nobody has merged or removed it rests."""
    folder: str | None = None
    """Where worktrees are made; None: in the user's cache folder."""
    notify: Literal["message", "none"] = "message"
    """Whether a change that is kept is told in the chat."""
