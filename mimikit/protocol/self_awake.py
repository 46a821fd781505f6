"""`self_awake.json`: the improvement in progress, and what became of those before it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints

from mimikit.protocol.models import Id, Instant, Record
from mimikit.self_awake_settings import ImprovementKind

ImprovementStage: TypeAlias = Literal[
    "look", "plan", "make", "work", "inspect", "check", "weigh", "review", "commit", "tidy",
    "remove", "tell",
]  # fmt: skip
"""What is done next: find the repository; have the task written; make the worktree; do the task;
see what changed; run the checks; take the change as it is now; have a mind judge it; commit it;
remove the worktree, or all of it; say what came of it."""

ImprovementEnd: TypeAlias = Literal["committed", "proposed", "nothing", "dropped"]
"""committed: on its branch. proposed: told in words. nothing: there was nothing to be done.
dropped: it came to nothing, or was refused, and nothing of it is left."""

MOST_PAST = 50


class RepositoryPlace(Record):
    """The repository that the workspace lies in, as it was when a run began. Absolute paths."""

    top: str
    """Its working tree."""
    prefix: str
    """The workspace within that; empty: the same folder."""
    git_dir: str
    """What all its worktrees share."""
    head: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40,64}$")]
    """The commit a change builds on."""
    is_first: bool = False
    """It had no other worktrees: the folder that holds them goes with the last."""


class Improvement(Record):
    """One run of self-awake. Each stage may be done again from what stands here."""

    id: Id
    """Also the name of its worktree."""
    kind: ImprovementKind
    stage: ImprovementStage = "look"
    asked: bool = False
    """Somebody asked for it: idle or not."""
    subject: str = ""
    """What code knows of it: the failed task, the item of the backlog."""
    started_at: Instant
    branch: str
    checks: list[str] = Field(default_factory=list[str])
    """The owner's command lines, as the settings had them when it began."""
    profile: str = "standard"
    place: RepositoryPlace | None = None
    waiting: list[str] = Field(default_factory=list[str])
    """The branches of its own that were neither merged nor removed when it began."""
    title: str = ""
    prompt: str = ""
    files: list[str] = Field(default_factory=list[str])
    """What it changed, by path in the repository."""
    check: int = 0
    """The number of the check that is next."""
    tree: str = ""
    """The state of the files that is judged, and committed; as git calls it."""
    whole: str = ""
    """That of all that stood there then; empty: nothing is judged yet."""
    cut: list[str] = Field(default_factory=list[str])
    """Parts (`work`, `check-0`, …) that the end of a consumer has cut, once for each time."""
    left: str = ""
    """The path of its worktree, if that stays as somebody else works there."""
    commit: str = ""
    end: ImprovementEnd | None = None
    why: str = ""
    """Why it ended so, in the words of whoever says it."""
    stop: str = ""
    """Why it is to end; empty while it goes on."""


class PastImprovement(Record):
    """What became of one."""

    id: Id
    kind: ImprovementKind
    title: str = ""
    end: ImprovementEnd
    why: str = ""
    branch: str = ""
    """Where it is committed; empty: nowhere."""
    commit: str = ""
    files: int = 0
    task_id: Id | None = None
    """The Worker's."""
    left: str = ""
    """The path of its worktree, if somebody else worked there."""
    started_at: Instant
    ended_at: Instant

    @classmethod
    def of(cls, run: Improvement, task_id: str, now: datetime) -> Self:
        """`task_id`: the Worker's, should there have been one."""
        return cls(
            id=run.id,
            kind=run.kind,
            title=run.title,
            end=run.end or "dropped",
            why=run.why[:2000],
            branch=run.branch if run.commit else "",
            commit=run.commit,
            files=len(run.files),
            task_id=task_id if run.prompt else None,
            left=run.left,
            started_at=run.started_at,
            ended_at=now,
        )


class SelfAwakeState(Record):
    """All of it. Losing it leaves a worktree, which the next start removes."""

    schema_version: int = 1
    run: Improvement | None = None
    last: dict[ImprovementKind, Instant] = Field(default_factory=dict[ImprovementKind, datetime])
    """When each item was taken last."""
    retried: list[Id] = Field(default_factory=list[str])
    """Failed tasks that were taken up: none is twice."""
    past: list[PastImprovement] = Field(default_factory=list[PastImprovement])
    """The newest last."""
    left: list[Annotated[str, StringConstraints(max_length=5000)]] = Field(
        default_factory=list[str]
    )
    """Paths of worktrees that stay, as somebody may work there; each is told once."""
    blocked: str = ""
    """Why the last one could not even begin."""
    blocked_at: Instant | None = None
