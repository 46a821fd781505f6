"""What self-awake looks at before it chooses: what there is to be done, and what hinders it."""

from __future__ import annotations

from datetime import datetime, timedelta

from mimikit.memory import notes
from mimikit.protocol import paths
from mimikit.protocol.results import TaskResult
from mimikit.roles.run import RunContext
from mimikit.supervisor.improvement_choice import ImprovementFacts
from mimikit.supervisor.store import Store
from mimikit.tasks import ledger, queue

TRANSIENT = frozenset({"timeout", "killed", "rate_limited", "engine_unavailable"})
"""Why a task failed that may go well another time."""
_YOUNG = timedelta(days=2)
_MOST_FAILED = 20


class ImprovementFactsReader:
    """Reads them; the supervisor's thread alone."""

    def __init__(self, store: Store, context: RunContext) -> None:
        self._store, self._context, self._files = store, context, store.files

    def read(self, now: datetime, busy_at: datetime, profile: str) -> ImprovementFacts:
        """All of it. `busy_at`: when something ran last; `profile`: who does the work."""
        store, files = self._store, self._files
        messages = store.conversation.messages
        said_at = messages[-1].created_at if messages else busy_at
        backlog = notes.read(files, paths.BACKLOG)
        items = notes.backlog_items(backlog.text) if backlog else []
        memory = files.stat(paths.MEMORY)
        return ImprovementFacts(
            busy_at=max(busy_at, min(said_at, now)),
            short=self._short(),
            no_mind=self._no_mind(profile),
            failed=self._failed(now),
            backlog=[item.text for item in items if not item.done],
            memory_bytes=memory.size if memory else 0,
        )

    def _short(self) -> str:
        """Why nothing new may begin."""
        if self._store.runtime.paused:
            return "the queues are paused"
        if self._store.runtime.budget is not None or self._context.usage.is_full():
            return "the tokens of today are used up"
        return self._context.shortage.reason() or ""

    def _no_mind(self, profile: str) -> str:
        engines = self._context.engines
        for choice in (
            engines.for_role("planner"),
            engines.for_role("worker", profile),
        ):
            if choice.waiting:
                return choice.waiting
            if choice.engine.name in ("builtin", "local"):
                return "no model that can do this is connected"
        return ""

    def _failed(self, now: datetime) -> list[str]:
        """Tasks that failed a short while ago for a passing cause and are nobody's to retry."""
        found: list[str] = []
        for id_ in ledger.ended_ids(self._files, _MOST_FAILED, ("failed",)):
            view = queue.show(self._files, id_)
            result = view.outcome if view else None
            if view is None or not isinstance(result, TaskResult):
                continue
            task = view.task
            is_work = task.profile in ("standard", "specialist") and not task.internal
            is_own = task.worktree is not None or task.source_trigger_id is not None
            is_over = self._files.exists(paths.command_done(queue.dismissal_id(id_)))
            newest = [*self._store.ledger.results_of(id_)][-1:]
            is_young = now - result.completed_at < _YOUNG
            passes = result.failure_reason in TRANSIENT
            if passes and is_work and is_young and not is_own and not is_over and newest == [id_]:
                found.append(id_)
        return found
