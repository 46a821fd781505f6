"""Self-awake: while nothing else is to do, one improvement at a time. `decide` is pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from mimikit.config import SelfAwakeSettings
from mimikit.engines.registry import CODE_ENGINES, LOCAL
from mimikit.errors import BadInput
from mimikit.language.phrases import fence, paragraphs
from mimikit.memory import notes
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Command, Task, time_text
from mimikit.protocol.results import TaskResult
from mimikit.protocol.runtime import Improvement, SelfAwakeState
from mimikit.protocol.triggers import PlanResult
from mimikit.roles.prompts import CheckListItem
from mimikit.roles.run import RunContext
from mimikit.roles.worktree import BRANCHES
from mimikit.supervisor.store import Store
from mimikit.tasks import queue

LONGEST = timedelta(hours=12)
MAX_BRANCHES, MAX_PAST = 5, 50
_RETRY_WITHIN, _LOOK_EVERY = timedelta(days=2), timedelta(seconds=30)
_TRANSIENT = ("timeout", "killed", "rate_limited", "engine_unavailable")
_MAX_SUBJECT, _MAX_REASON = 20_000, 1000


@dataclass(frozen=True, slots=True)
class SelfAwakeFacts:
    idle_since: datetime
    blocked: str | None = None
    subjects: Mapping[str, str] = field(default_factory=dict[str, str])
    """What some items are about; empty: there is nothing of the kind."""
    outcome: PlanResult | TaskResult | None = None
    task_id: str | None = None
    user_waits: bool = False
    asked: str | None = None
    """The item that the owner wants now; empty: any."""


Step: TypeAlias = tuple[Literal["wait", "begin", "cancel", "end"], str]
"""What is done, and why; of `begin` the item."""


def decide(
    state: SelfAwakeState,
    items: Sequence[CheckListItem],
    settings: SelfAwakeSettings,
    facts: SelfAwakeFacts,
    now: datetime,
) -> Step:
    if state.run is not None:
        if facts.outcome is not None or abs(now - state.run.started_at) > LONGEST:
            return "end", "it took too long"
        return "cancel" if facts.user_waits else "wait", "an improvement is in progress"
    idle = timedelta(seconds=settings.idle_after)
    if facts.asked is None and not settings.enabled:
        return "wait", "it is off"
    if facts.asked is None and timedelta() <= now - facts.idle_since < idle:
        return "wait", "something happened a short time ago"
    if facts.blocked is not None:
        return "wait", facts.blocked
    for item in items:
        taken = state.taken.get(item.name)
        is_due = taken is None or abs(now - taken) >= item.every
        is_wanted = item.name == facts.asked or (not facts.asked and is_due)
        if is_wanted and facts.subjects.get(item.name) != "":
            return "begin", item.name
    return "wait", "nothing of the check list is due"


def ended(run: Improvement, outcome: PlanResult | TaskResult | None) -> Improvement:
    if outcome is None or outcome.status != "done":
        error = outcome.error or outcome.status if outcome else "it took too long"
        return run.but(end="dropped", reason=error[:_MAX_REASON])
    if isinstance(outcome, PlanResult):
        return run.but(end="nothing", reason=(outcome.summary or "")[:_MAX_REASON])
    branch = outcome.result.get("branch")
    return run.but(branch=branch, end="committed" if branch else "proposed")


class ImprovementScheduler:
    """Crash: a plan that `self_awake.json` does not name yet is carried out all the same."""

    def __init__(
        self,
        store: Store,
        context: RunContext,
        submit: Callable[[Task], None],
        inputs: Callable[[], int],
        upcoming: queue.Upcoming,
    ) -> None:
        """`inputs`: how many wait in the inbox."""
        self._store, self._context, self._files = store, context, store.files
        self._submit, self._inputs, self._upcoming = submit, inputs, upcoming
        self._intro, self._items = context.prompts.check_list()
        self._state = self._files.load(paths.SELF_AWAKE, SelfAwakeState) or SelfAwakeState()
        self._idle_since, self._ends = store.clock.now(), len(store.ledger)
        self._look_at: datetime | None = None
        if self._state.run is None:
            context.worktrees.remove()  # left by a kill

    def begin(self, item: str, command_id: str, now: datetime) -> str:
        """Begin one that the owner asks for, idle or not. Idempotent. Raises BadInput."""
        runs, mark = [*self._state.past, self._state.run], _mark(command_id)
        if not any(run and run.id.endswith(mark) for run in runs):
            facts = replace(self._facts(), asked=item)
            settings = self._store.settings.self_awake
            action, reason = decide(self._state, self._items, settings, facts, now)
            if action != "begin":
                raise BadInput(f"no improvement begins: {reason}")
            self._begin(reason, mark, facts.subjects, now)
        return "an improvement has begun"

    def step(self, now: datetime) -> bool:
        state, settings, look_at = self._state, self._store.settings.self_awake, self._look_at
        ends = len(self._store.ledger)
        if ends != self._ends or self._inputs() or self._store.live.list():
            self._ends, self._idle_since = ends, now
        if state.run is None:
            is_early = look_at is not None and timedelta() < look_at - now <= _LOOK_EVERY
            idle = timedelta(seconds=settings.idle_after)
            is_busy = timedelta() <= now - self._idle_since < idle
            if not settings.enabled or is_busy or is_early:  # before files are read
                return False
            self._look_at = now + _LOOK_EVERY
        facts = self._facts()
        action, item = decide(state, self._items, settings, facts, now)
        if action == "begin":
            self._begin(item, _mark(time_text(now)), facts.subjects, now)
        elif action != "wait" and state.run is not None:
            if facts.outcome is None:
                self._cancel(facts.task_id or state.run.plan, now)
            if action == "end":
                self._end(ended(state.run, facts.outcome))
        return action in ("begin", "end")

    # ---- facts

    def _facts(self) -> SelfAwakeFacts:
        facts = SelfAwakeFacts(self._idle_since)
        if self._state.run is None:
            return replace(facts, blocked=self._blocked(), subjects=self._subjects())
        task_id = self._state.run.plan
        view = queue.show(self._files, task_id)
        if view is not None and isinstance(view.outcome, PlanResult) and view.outcome.tasks:
            task_id = view.outcome.tasks[0].id
            view = queue.show(self._files, task_id)
        outcome, waits = view and view.outcome, self._user_waits()
        return replace(facts, outcome=outcome, task_id=task_id, user_waits=waits)

    def _user_waits(self) -> bool:
        seats = {"planner": 1, "worker": self._store.settings.max_concurrency}
        taken = [run.role for run in self._store.live.list()]
        for name in paths.QUEUES:
            files = self._upcoming(name, 5) if taken.count(name) >= seats[name] else ()
            tasks = [queue.read(self._files, name, f"{name}/queue/{file}") for file in files]
            if any(one and not one.improvement and one.not_before is None for one in tasks):
                return True
        return False

    def _blocked(self) -> str | None:
        context = self._context
        cap = context.usage.caps.daily_tokens
        if self._store.runtime.paused:
            return "the queues are paused"
        if cap is not None and context.usage.used_today() >= cap:
            return "the tokens of today are used up"
        for choice in map(context.engines.for_role, ("planner", "worker")):
            if choice.waiting or choice.engine.name in CODE_ENGINES | {LOCAL}:
                return choice.waiting or "no language model that can do it is connected"
        waiting = len(context.worktrees.branches(context.workspace))
        return f"{waiting} branches wait for a merge" if waiting >= MAX_BRANCHES else None

    def _subjects(self) -> dict[str, str]:
        files = self._files
        since = self._store.clock.now() - _RETRY_WITHIN
        since = max(since, self._state.taken.get("retry", since))
        failed = (view for view in queue.recent(files, 20, {"failed"}) if _is_retried(view, since))
        retry = (f"{view.task.title}\n{view.error}\n\n{view.task.prompt}" for view in failed)
        backlog = (item.text for item in notes.load_backlog(files).items if not item.done)
        return {"retry": next(retry, "")[:_MAX_SUBJECT], "backlog": next(backlog, "")}

    # ---- steps

    def _begin(self, item: str, mark: str, subjects: Mapping[str, str], now: datetime) -> None:
        run = Improvement(
            id=f"{item}-{mark}", item=item, started_at=now, plan=derived_id("task", item, mark)
        )
        about = next(one.text for one in self._items if one.name == item)
        subject = subjects.get(item)
        data = fence(subject, least=5) if subject else ""
        task = Task(
            id=run.plan,
            role="planner",
            title=f"self-awake: {item}",
            prompt=paragraphs(self._intro, f"The item: {item}. {about}", data),
            priority=0,
            created_at=now,
            trace_id=derived_id("trace", run.id),
            improvement=run.id,
            max_attempts=2,
            notify="none",
            origin="self_awake",
        )
        self._submit(task)
        self._save(run=run, taken={**self._state.taken, item: now})
        self._store.log.write("audit", "self_awake_began", run=run.id)

    def _cancel(self, task_id: str, now: datetime) -> None:
        id_ = derived_id("cmd", task_id, "self-awake")
        command = Command(
            id=id_, action="cancel", target=task_id, created_at=now, origin="supervisor"
        )
        queue.submit_command(self._files, command)

    def _end(self, run: Improvement) -> None:
        context = self._context
        if run.end == "dropped" and context.worktrees.branches(context.workspace, run.id):
            run = run.but(end="committed", branch=BRANCHES + run.id)  # killed right after that
        context.worktrees.remove()
        self._save(run=None, past=[*self._state.past, run][-MAX_PAST:])
        facts = {"run": run.id, "end": run.end, "reason": run.reason, "branch": run.branch}
        self._store.log.write("audit", "self_awake_ended", **facts)

    def _save(self, **changes: object) -> None:
        new = self._state.but(**changes)
        self._files.save(paths.SELF_AWAKE, new)
        self._state = new


def _is_retried(view: queue.TaskSnapshot, since: datetime) -> bool:
    task, outcome = view.task, view.outcome
    if task.improvement or task.internal or task.source_trigger_id or outcome is None:
        return False
    return outcome.completed_at > since and outcome.failure_reason in _TRANSIENT


def _mark(basis: str) -> str:
    return derived_id("awake", basis)[-8:]
