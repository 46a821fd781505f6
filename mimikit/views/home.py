"""The home page: what needs the user, what runs, what fires next, the last day, today's usage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from mimikit.language.plain_text import first_line
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import EngineStatus, Instant, LiveRun
from mimikit.tasks import ledger
from mimikit.tasks.queue import TaskState
from mimikit.views import messages, tasks
from mimikit.views.base import Title, View
from mimikit.views.messages import QuestionView
from mimikit.views.status import StatusView
from mimikit.views.tasks import TaskView
from mimikit.views.triggers import TriggerView
from mimikit.views.usage import UsageTodayView

WINDOW = timedelta(hours=24)
MAX_RUNS, MAX_READ, MAX_FIRINGS = 200, 400, 5  # internal runs are read, and not shown


class RunView(View):
    """A task with the times of its wait and its run."""

    id: str
    title: Title
    state: TaskState
    created_at: Instant
    started_at: Instant | None
    completed_at: Instant | None
    headline: str
    failure_reason: str | None
    error: str | None
    count: int = 1
    """Of a failure: how often it came in the last 24 hours."""


class NeedsView(View):
    """What waits for the user."""

    question: QuestionView | None
    failures: list[RunView]
    """Of the last 24 hours, not retried, newest first."""
    triggers: list[TriggerView]
    """Paused after repeated failures."""
    engines: list[EngineStatus]
    """Those that work waits for."""


class HomeView(View):
    needs: NeedsView
    running: list[RunView]
    next: list[TriggerView]
    """The triggers that fire next, soonest first."""
    timeline: list[RunView]
    """Runs of the last 24 hours, running ones first, then the newest."""
    more_runs: bool
    """Whether older ones are left out."""
    usage: UsageTodayView


def open_failures(
    ended: Iterable[ledger.Line], retried: Collection[str], paused: Collection[str]
) -> dict[str, int]:
    """Failed tasks, each with how often it failed, from the ledger's ends, newest first.

    A step of a trigger is counted once, and no more after it went well. Left out: retried tasks,
    and those of `paused` triggers.
    """
    counts: dict[str, int] = {}
    newest: dict[tuple[str, str], str] = {}
    for id_, line in {str(line["id"]): line for line in ended}.items():
        trigger, status = line.get("sourceTriggerId"), line.get("status")
        if status == "canceled" or trigger in paused:
            continue
        key = (str(trigger), str(line.get("title"))) if trigger else ("", id_)
        first = newest.setdefault(key, id_)
        if status == "failed" and id_ not in retried and (first == id_ or first in counts):
            counts[first] = counts.get(first, 0) + 1
    return counts


def sampled(ended: Iterable[ledger.Line]) -> list[ledger.Line]:
    """Of one trigger's ends with the same status, the newest in each ten minutes; all others."""
    kept: dict[object, ledger.Line] = {}
    for line in ended:
        trigger = line.get("sourceTriggerId")
        key = (trigger, line.get("status"), str(line["at"])[:15]) if trigger else line["id"]
        kept.setdefault(key, line)
    return list(kept.values())


class HomeReader:
    """Reads the runs of the last day; ended ones once. Thread-safe."""

    def __init__(self, files: ReadOnlyFiles) -> None:
        self._files = files
        self._known: dict[str, RunView | None] = {}
        """None: an internal one, or gone."""

    def read(
        self,
        now: datetime,
        status: StatusView,
        triggers: Sequence[TriggerView],
        live: dict[str, LiveRun],
    ) -> HomeView:
        files, since = self._files, now - WINDOW
        running = tasks.listed(files, live, "running", MAX_RUNS)  # first: one may end meanwhile
        lines = ledger.lines_since(files, since, b'"ended"')
        ended = [it for it in lines if it.get("event") == "ended" and is_id(str(it.get("id")))]
        again = ledger.lines_since(files, since, b'"retryOf"')
        paused = [trigger for trigger in triggers if trigger.paused_by]
        due = [it for it in triggers if it.enabled and it.next_run_at and not it.blocked_by]
        retried = {str(line.get("retryOf")) for line in again}
        counts = open_failures(ended, retried, {trigger.id for trigger in paused})
        drawn = sampled([it for it in ended if it.get("seat") != "planner"])
        recent = [str(line["id"]) for line in drawn[:MAX_READ]]
        found = self._ended([*recent, *counts])
        runs = {task.id: run for task in running if (run := run_view(task))}
        runs |= {id_: found[id_] for id_ in recent if id_ in found}
        needs = NeedsView(
            question=messages.open_question(files),
            failures=[RunView.of(found[it], count=counts[it]) for it in counts if it in found],
            triggers=paused,
            engines=[it for it in status.by_engine.values() if it.state == "waiting"],
        )
        return HomeView(
            needs=needs,
            running=[run for run in runs.values() if run.state == "running"],
            next=sorted(due, key=lambda it: (it.next_run_at or now, it.id))[:MAX_FIRINGS],
            timeline=list(runs.values())[:MAX_RUNS],
            more_runs=len(drawn) > MAX_READ or len(runs) > MAX_RUNS,
            usage=status.usage,
        )

    def _ended(self, ids: Iterable[str]) -> dict[str, RunView]:
        known, files = self._known, self._files
        found = {
            id_: known[id_] if id_ in known else run_view(tasks.find(files, id_, {})) for id_ in ids
        }
        self._known = found
        return {id_: run for id_, run in found.items() if run}


def run_view(task: TaskView | None) -> RunView | None:
    """None for an internal one."""
    if task is None or task.internal:
        return None
    return RunView.of(task, error=first_line(task.error or "") or None)
