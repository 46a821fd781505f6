"""What only the terminal shows: everything on one screen, how memory is, what the doctor finds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from mimikit import __version__
from mimikit.conversation import inbox
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import (
    Health,
    Instant,
    LiveRun,
    Message,
    Question,
    TaskResult,
    Usage,
    time_text,
)
from mimikit.tasks import commands, ledger
from mimikit.tasks.queue import TaskSnapshot
from mimikit.triggers.explain import ExplanationContext
from mimikit.views import chains, tasks, triggers
from mimikit.views.base import View
from mimikit.views.chains import GraphView
from mimikit.views.consumer import Consumer, ConsumerState
from mimikit.views.memory import HitView, MemoryFile, MemoryKind
from mimikit.views.status import is_paused, queue_counts
from mimikit.views.tasks import LedgerEvent, TaskView
from mimikit.views.triggers import TriggerView

if TYPE_CHECKING:
    from mimikit.memory.search import IndexStatus

_LOG_TAIL_BYTES = 2**18
_ERRORS_SHOWN = 3
_RECENT = timedelta(hours=24)
_KINDS: tuple[MemoryKind, ...] = ("longTerm", "raw", "day", "month", "docs")


class ConsumerView(View):
    """The consumer's process. Units: seconds."""

    state: ConsumerState
    pid: int | None
    beat_age_s: float | None
    health: Health | None


class TriggerCounts(View):
    total: int
    active: int
    broken: int


class StateOverview(View):
    """Everything that matters, at one moment."""

    version: str
    workspace: str
    consumer: ConsumerView
    queues: dict[str, int]
    """Tasks that wait, by queue."""
    paused: bool
    unanswered: int
    orders_waiting: int
    triggers: TriggerCounts
    question: Question | None
    quarantined: int
    errors: list[dict[str, Any]]
    """Lines of the log of the last day, newest last."""
    failed: list[TaskView]
    """Tasks that failed within the last day, newest first."""
    listed: list[TriggerView] = Field(exclude=True)
    now: datetime = Field(exclude=True)

    @property
    def live(self) -> list[LiveRun]:
        """Live runs; none when no consumer is there."""
        is_there = self.consumer.health is not None and self.consumer.state != "down"
        return self.consumer.health.live if is_there and self.consumer.health else []


def overview(
    files: ReadOnlyFiles, consumer: Consumer, here: ExplanationContext, *, workspace: str
) -> StateOverview:
    """Look at everything at the moment of `here`."""
    listed = triggers.listed(files, here)
    recent = here.now - _RECENT
    errors = [
        line
        for line in files.tail(paths.LOG, _LOG_TAIL_BYTES)
        if line.get("type") == "error" and str(line.get("timestamp", "")) >= time_text(recent)
    ]
    ended = (tasks.find(files, id_, {}) for id_ in ledger.ended_ids(files, 3, ["failed"]))
    names = files.names(paths.INBOX)
    return StateOverview(
        version=__version__,
        workspace=workspace,
        consumer=ConsumerView(
            state=consumer.state,
            pid=consumer.holder.pid if consumer.holder else None,
            beat_age_s=consumer.age_s,
            health=consumer.health,
        ),
        queues=queue_counts(files, consumer.current),
        paused=is_paused(files, consumer.current),
        unanswered=sum(not name.startswith(paths.result_inbox_id("")) for name in names),
        orders_waiting=len(commands.waiting(files)),
        triggers=TriggerCounts(
            total=len(listed),
            active=sum(trigger.enabled for trigger in listed),
            broken=sum(trigger.broken is not None for trigger in listed),
        ),
        question=inbox.pending_question(files),
        quarantined=len(files.names(paths.CORRUPT, suffix=".reason.txt")),
        errors=errors[-_ERRORS_SHOWN:],
        failed=[
            task for task in ended if task and task.completed_at and task.completed_at >= recent
        ],
        listed=listed,
        now=here.now,
    )


# ---- one task


class TaskOutcome(View):
    """How a task ended, as it was written down."""

    status: str
    text: str
    error: str | None
    failure_reason: str | None
    exit_code: int | None
    data: dict[str, Any]
    engine: str
    usage: Usage


class TaskReport(View):
    """One task with its outcome, its events and the tasks it belongs with."""

    task: TaskView
    result: TaskOutcome | None
    events: list[LedgerEvent]
    trace: list[TaskView]
    graph: GraphView


def task_outcome(known: TaskSnapshot) -> TaskOutcome | None:
    """None while it has not ended."""
    outcome = known.outcome
    if outcome is None:
        return None
    is_run = isinstance(outcome, TaskResult)
    return TaskOutcome(
        status=outcome.status,
        text=outcome.text if is_run else outcome.summary or "",
        error=outcome.error,
        failure_reason=outcome.failure_reason,
        exit_code=outcome.exit_code if is_run else None,
        data={k: v for k, v in outcome.result.items() if k != "text"} if is_run else {},
        engine=outcome.engine,
        usage=outcome.usage,
    )


def task_report(files: ReadOnlyFiles, task_id: str, live: dict[str, LiveRun]) -> TaskReport | None:
    """None when no folder has the task."""
    known = tasks.find_view(files, task_id)
    if known is None:
        return None
    trace = tasks.in_trace(files, known.task.trace_id, live, known)
    return TaskReport(
        task=tasks.task_view(files, known, live),
        result=task_outcome(known),
        events=tasks.events_of(files, known.task),
        trace=trace,
        graph=chains.draw(chains.around(files, known.task.trace_id, trace, live), task_id),
    )


# ---- memory


class IndexReport(View):
    """How the search index is. Units: bytes."""

    files: int
    passages: int
    bytes: int
    fresh: bool
    stale_files: int
    refreshed_at: Instant | None
    words: str
    fallback: str | None
    """Why a plain scan serves."""


class MemoryReport(View):
    index: IndexReport
    files: dict[MemoryKind, int]
    tokens: str | None
    """Where the ranks come from by which tokens are counted; null: they are estimated."""
    took_ms: int | None = Field(default=None, exclude_if=lambda value: value is None)


def memory_report(
    status: IndexStatus, files: Sequence[MemoryFile], took_ms: int | None = None
) -> MemoryReport:
    from mimikit.memory import tokens

    try:
        origin = tokens.find_ranks().origin
    except tokens.NoRanks:
        origin = None
    kinds = [file.kind for file in files]
    return MemoryReport(
        index=IndexReport.model_validate(status, from_attributes=True),
        files={kind: kinds.count(kind) for kind in _KINDS},
        tokens=origin,
        took_ms=took_ms,
    )


class HitReport(HitView):
    text: str
    """The whole passage."""


class SearchReport(View):
    query: str
    hits: list[HitReport]
    fallback: str | None
    """Why a plain scan served."""


class MemoryText(MemoryFile):
    """One file as it stands."""

    text: str
    hash: str


class NoteReport(View):
    """A note that was just remembered, and where."""

    id: str
    path: str
    text: str


# ---- the conversation, the doctor


class ReplyReport(View):
    """What came of a message."""

    id: str
    messages: list[Message]
    task_ids: list[str]
    """Tasks that the reply started."""
    question: Question | None


class SettingView(View):
    key: str
    value: Any
    origin: str
    """`default`, `config.toml` or the variable's name."""


class FindingView(View):
    level: Literal["ok", "note", "warning", "broken"]
    area: str
    text: str
    mend: str | None
    fixable: bool
    """Whether `--fix` mends it."""


class DoctorReport(View):
    settings: list[SettingView]
    findings: list[FindingView]
