"""The tasks of an improvement: what a Planner, a Worker, the checks and a reviewer are given.

Each has an id that follows from the run and the stage: it is queued once, whatever dies meanwhile,
and how it ended is found by that id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from mimikit.language import phrases
from mimikit.language.phrases import fence
from mimikit.memory import notes
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Command, Task
from mimikit.protocol.results import TaskResult
from mimikit.protocol.self_awake import Improvement
from mimikit.protocol.triggers import PlanResult
from mimikit.roles.prompts import Prompts
from mimikit.tasks import queue

PLAN, REVIEW = "self-awake", "self-awake-review"
_PRIORITY = 1
"""Below whatever anybody asked for."""
_MOST_MEMORY = 20_000
_RULES = """

You work in a worktree of the repository, on the branch {branch}, which is yours alone. Change as \
little as does the job, and only files of this folder. Commit nothing, and leave git's own files, \
`.mimikit/` and links alone: what stands in the files when you are done is what counts, so leave \
nothing there that a test or a build has made. It is kept \
only if these succeed there: {checks}. Say in a few sentences what you changed and why; if there \
is nothing to be done, change nothing and say so."""


class ImprovementTasks:
    """Has them carried out; the supervisor's thread alone."""

    def __init__(
        self,
        files: Files,
        prompts: Prompts,
        submit: Callable[[Task], None],
        language: Callable[[], str],
    ) -> None:
        """`submit` queues a task, `language` is its user's."""
        self._files, self._prompts = files, prompts
        self._submit, self._language = submit, language

    def plan(
        self, run: Improvement, waiting: Sequence[str], now: datetime
    ) -> TaskResult | PlanResult | None:
        """What a Planner made of the item; None: nothing yet, as with the others.

        waiting: the titles of improvements that nobody has merged yet.
        """
        facts = self._subject_words(run)
        if waiting:
            listed = "\n".join(f"- {title}" for title in waiting)
            facts = f"{facts}\n\ndone already, and waiting on branches to be merged:\n{listed}"
        values = {
            "item": run.kind,
            "facts": fence(facts, least=5),
            "checks": _listed(run),
        }
        fields = {"role": "planner", "title": PLAN, "internal": True}
        return self._outcome(run, "plan", now, lambda: self._prompts.fill(PLAN, values), fields)

    def work(self, run: Improvement, now: datetime) -> TaskResult | PlanResult | None:
        """How the task went in the worktree. It is shown as any other, and can be canceled."""
        rules = _RULES.format(branch=run.branch, checks=_listed(run))
        fields = {"profile": run.profile, "title": run.title, "worktree": run.id}
        return self._outcome(run, "work", now, lambda: run.prompt + rules, fields)

    def check(
        self, run: Improvement, now: datetime, timeout_s: float
    ) -> TaskResult | PlanResult | None:
        """How the check that is next went there."""
        line = run.checks[run.check]
        fields = {"profile": "command", "title": line[:200], "timeout": timeout_s}
        fields |= {"worktree": run.id, "internal": True}
        return self._outcome(run, f"check-{run.check}", now, lambda: line, fields)

    def review(self, run: Improvement, diff: str, now: datetime) -> TaskResult | PlanResult | None:
        """What a mind said of the change."""
        values = {"task": fence(run.prompt, least=5), "change": fence(diff, "diff", least=5)}
        fields = {"profile": run.profile, "title": REVIEW, "worktree": run.id, "internal": True}
        made = lambda: self._prompts.fill(REVIEW, values)  # noqa: E731 - it is costly, and rare
        return self._outcome(run, "review", now, made, fields)

    def _outcome(
        self,
        run: Improvement,
        part: str,
        now: datetime,
        prompt: Callable[[], str],
        fields: Mapping[str, Any],
    ) -> TaskResult | PlanResult | None:
        """How the task of a stage ended; it is queued if it never was, and canceled by a stop.

        Crash: its id follows from the run's: it is queued once.
        """
        id_ = task_id(run, part)
        where = queue.where(self._files, "planner" if part == "plan" else "worker", id_)
        view = queue.show(self._files, id_) if where == "ended" else None
        if view is not None and view.outcome is not None:
            return view.outcome
        if where == "ended" or (where is None and run.stop):
            task = self._made(run, part, now, "-", fields)
            return _unbegun(task, run.stop or "its result is gone", now)
        if where is None:
            self._submit(self._made(run, part, now, prompt(), fields))
        elif run.stop:
            self._cancel(id_, now)  # the end of it says that it is over
        return None

    def _made(
        self, run: Improvement, part: str, now: datetime, prompt: str, fields: Mapping[str, Any]
    ) -> Task:
        return Task(
            id=task_id(run, part),
            trace_id=derived_id("trace", run.id),
            prompt=prompt,
            priority=_PRIORITY,
            created_at=now,
            notify="none",
            notify_given=True,
            origin="self_awake",
            locale=self._language(),
        ).but(**fields)

    def _cancel(self, id_: str, now: datetime) -> None:
        order = derived_id("cmd", id_, "cancel")
        if not self._files.exists(paths.command_done(order)):
            given = Command(
                id=order, action="cancel", target=id_, created_at=now, origin="supervisor"
            )
            queue.give_command(self._files, given)

    def _subject_words(self, run: Improvement) -> str:
        """What code knows of the item, for the Planner: data, whoever wrote it."""
        if run.kind == "retry" and (view := queue.show(self._files, run.subject)):
            error = view.outcome.error if view.outcome else ""
            return f"title: {view.task.title}\nit failed: {error}\nprompt:\n{view.task.prompt}"
        if run.kind == "memory":
            memory = notes.read(self._files, paths.MEMORY)
            return memory.text[:_MOST_MEMORY] if memory else ""
        return run.subject or "nothing more is known"


def task_id(run: Improvement, part: str) -> str:
    """That of a stage's task: `plan`, `work`, `check-0`, `review`; another after each cut."""
    times = run.cut.count(part)
    return derived_id("task", run.id, part, *([str(times)] if times else []))


def _listed(run: Improvement) -> str:
    return ", ".join(map(phrases.code, run.checks)) or "no checks"


def _unbegun(task: Task, why: str, now: datetime) -> TaskResult:
    """The end of a task that never began, or whose result is gone."""
    facts = {"failure_reason": "canceled", "error": why, "attempts": 0}
    return TaskResult.of(task, "canceled", started_at=now, completed_at=now, **facts)  # pyright: ignore[reportArgumentType]
