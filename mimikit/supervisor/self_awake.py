"""Self-awake: while nothing else is to do, one improvement at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from mimikit.config import SelfAwakeSettings
from mimikit.engines.registry import CODE_ENGINES, LOCAL
from mimikit.errors import BadInput
from mimikit.language.phrases import Words, fence, paragraphs, say_both
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Task, time_text
from mimikit.protocol.results import TaskResult
from mimikit.protocol.runtime import Improvement, SelfAwakeState
from mimikit.protocol.triggers import PlanResult
from mimikit.roles.prompts import next_item, subjects
from mimikit.roles.run import RunContext
from mimikit.roles.worktree import BRANCHES
from mimikit.supervisor.store import Store
from mimikit.tasks import queue

LONGEST = timedelta(hours=12)
MAX_BRANCHES, MAX_PAST = 5, 50
_LOOK_EVERY = timedelta(seconds=30)
_MAX_REASON = 1000


def why_not_now(settings: SelfAwakeSettings, idle_since: datetime, now: datetime) -> Words | None:
    """Why none may begin by itself, before files are read. Pure."""
    if not settings.enabled:
        return say_both("awake_off")
    idle = timedelta(seconds=settings.idle_after)
    return say_both("awake_busy") if timedelta() <= now - idle_since < idle else None


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
        self._idle_since: datetime = store.clock.now()
        self._ends: int = len(store.ledger)
        self._look_at: datetime | None = None
        self.why = say_both("awake_busy")
        """Why none begins now."""
        if self._state.run is None:
            context.worktrees.remove()  # left by a kill

    def begin(self, item: str, command_id: str, now: datetime) -> str:
        """Begin one that the owner asks for, idle or not. Idempotent. Raises BadInput."""
        runs, mark = [*self._state.past, self._state.run], _mark(command_id)
        if not any(run and run.id.endswith(mark) for run in runs):
            why = say_both("awake_running")
            if self._state.run is not None or (why := self._begin(mark, now, item)):
                raise BadInput(f"no improvement begins: {why['en']}")
        return "an improvement has begun"

    def step(self, now: datetime) -> bool:
        settings, ends = self._store.settings.self_awake, len(self._store.ledger)
        if ends != self._ends or self._inputs() or self._store.live.list():
            self._ends, self._idle_since = ends, now
        if self._state.run is not None:
            self.why = say_both("awake_running")
            return self._follow(self._state.run, now)
        why = why_not_now(settings, self._idle_since, now)
        if why is None:
            look_at = self._look_at
            if look_at is not None and timedelta() < look_at - now <= _LOOK_EVERY:
                return False
            self._look_at = now + _LOOK_EVERY
            why = self._begin(_mark(time_text(now)), now)
        self.why = why or say_both("awake_running")
        return why is None

    def _follow(self, run: Improvement, now: datetime) -> bool:
        """Cancel or end the one in progress; returns whether it ended."""
        task_id = run.plan
        view = queue.show(self._files, task_id)
        if view is not None and isinstance(view.outcome, PlanResult) and view.outcome.tasks:
            task_id = view.outcome.tasks[0].id
            view = queue.show(self._files, task_id)
        outcome = view and view.outcome
        is_late = abs(now - run.started_at) > LONGEST
        is_off = not (run.asked or self._store.settings.self_awake.enabled)
        if outcome is None and (is_late or is_off or self._user_waits()):
            id_ = derived_id("cmd", task_id, "self-awake")
            queue.submit_cancel(self._files, id_, task_id, now)
        if outcome is None and not is_late:
            return False
        self._end(ended(run, outcome))
        return True

    # ---- facts

    def _user_waits(self) -> bool:
        seats = {"planner": 1, "worker": self._store.settings.max_concurrency}
        taken = [run.role for run in self._store.live.list()]
        for name in paths.QUEUES:
            files = self._upcoming(name, 5) if taken.count(name) >= seats[name] else ()
            tasks = [queue.read(self._files, name, f"{name}/queue/{file}") for file in files]
            if any(one and not one.improvement and one.not_before is None for one in tasks):
                return True
        return False

    def _blocked(self) -> Words | None:
        context = self._context
        cap = context.usage.caps.daily_tokens
        if self._store.runtime.paused:
            return say_both("awake_paused")
        if cap is not None and context.usage.used_today() >= cap:
            return say_both("awake_budget")
        for choice in map(context.engines.for_role, ("planner", "worker")):
            if choice.waiting:
                return say_both("awake_waits", reason=choice.waiting)
            if choice.engine.name in CODE_ENGINES | {LOCAL}:
                return say_both("awake_no_model")
        waiting = len(context.worktrees.branches(context.workspace))
        return say_both("awake_branches", count=waiting) if waiting >= MAX_BRANCHES else None

    # ---- steps

    def _begin(self, mark: str, now: datetime, asked: str | None = None) -> Words | None:
        """Begin the item that is asked for, or is due; returns why none begins."""
        if blocked := self._blocked():
            return blocked
        taken = self._state.taken
        about = subjects(self._files, taken, self._store.clock.now())
        item = next_item(self._items, taken, about, now, asked)
        if item is None:
            return say_both("awake_none_due")
        name = item.name
        run = Improvement(
            id=f"{name}-{mark}",
            item=name,
            started_at=now,
            plan=derived_id("task", name, mark),
            asked=asked is not None,
        )
        subject = about.get(name)
        data = fence(subject, least=5) if subject else ""
        task = Task(
            id=run.plan,
            role="planner",
            title=f"self-awake: {name}",
            prompt=paragraphs(self._intro, f"The item: {name}. {item.text}", data),
            priority=0,
            created_at=now,
            trace_id=derived_id("trace", run.id),
            improvement=run.id,
            max_attempts=2,
            notify="none",
            origin="self_awake",
        )
        self._submit(task)
        self._save(run=run, taken={**taken, name: now})
        self._store.log.write("audit", "self_awake_began", run=run.id)
        return None

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


def _mark(basis: str) -> str:
    return derived_id("awake", basis)[-8:]
