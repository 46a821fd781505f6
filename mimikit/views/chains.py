"""A chain as an indented list: the tasks of a trace, the triggers around them, and their links."""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mimikit.errors import UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.ids import derived_id, is_id
from mimikit.protocol.models import LiveRun
from mimikit.protocol.triggers import TaskDone, TaskFailed, Trigger, TriggerState
from mimikit.tasks import queue
from mimikit.tasks.queue import TaskSnapshot
from mimikit.tools import world
from mimikit.triggers import conditions, registry
from mimikit.triggers.explain import Explanation, ExplanationContext
from mimikit.views import tasks, triggers
from mimikit.views.base import Render, Title, View, Words
from mimikit.views.job_views import JobView
from mimikit.views.tasks import LedgerEvent, ResultView, TaskView
from mimikit.views.triggers import TriggerView
from mimikit.views.usage import TokenCounts

MAX_RUNS = 5
_TASK_IDS = re.compile(rb'"taskId"\s*:\s*"([^"]{1,128})"')

_WORDS: dict[str, Words] = {
    "task_done": {"en": "when done", "zh": "当完成时"},
    "task_failed": {"en": "when it fails", "zh": "当失败时"},
    "runs": {"en": "starts", "zh": "启动"},
    "planned": {"en": "planned", "zh": "计划"},
    "then": {"en": "then", "zh": "然后"},
    "retry": {"en": "tried again", "zh": "重试"},
}


class ChainLink(View):
    id: str
    title: Title
    words: Words


class ChainStep(View):
    id: str
    kind: Literal["task", "trigger"]
    title: Title
    state: str
    depth: int
    after: list[ChainLink]


class TaskDetail(View):
    """A task with its result, events, trace and chain."""

    task: TaskView
    result: ResultView | None
    events: list[LedgerEvent]
    trace: list[TaskView]
    chain: list[ChainStep]
    usage: TokenCounts


class TriggerDetail(View):
    """A trigger with the explanation of its state, its chain, and its usage today."""

    trigger: TriggerView | None
    explanation: Explanation
    chain: list[ChainStep]
    usage: TokenCounts = TokenCounts()
    job: JobView | None = None
    """Its runs as one job, with the result of the last."""


class TraceView(View):
    tasks: list[TaskView]
    triggers: list[TriggerView]
    chain: list[ChainStep]


@dataclass(frozen=True, slots=True)
class ChainTrigger:
    trigger: Trigger | None
    """None while its file is broken."""
    state: TriggerState

    @property
    def status(self) -> str:
        if self.trigger is not None and not self.trigger.enabled:
            return "paused"
        return "blocked" if self.trigger is None or self.state.blocked_by else "waiting"


@dataclass(frozen=True, slots=True)
class Chain:
    tasks: dict[str, TaskView] = field(default_factory=dict[str, TaskView])
    triggers: dict[str, ChainTrigger] = field(default_factory=dict[str, ChainTrigger])

    def title(self, id_: str) -> str:
        if id_ in self.tasks:
            return self.tasks[id_].title
        trigger = self.triggers[id_].trigger
        return world.title(trigger) if trigger else id_

    def order(self, id_: str) -> tuple[str, str]:
        source = self.tasks.get(id_) or self.triggers[id_].trigger
        return source.created_at.isoformat() if source else "", id_


def task_detail(
    files: ReadOnlyFiles,
    known: TaskSnapshot,
    live: dict[str, LiveRun],
    usage: TokenCounts,
    render: Render | None = None,
) -> TaskDetail:
    trace_id = known.task.trace_id
    trace = tasks.in_trace(files, trace_id, live, known)
    return TaskDetail(
        task=tasks.task_view(files, known, live),
        result=tasks.result_of(known, render),
        events=tasks.events_of(files, known.task),
        trace=trace,
        chain=steps_of(around(files, trace_id, trace), known.task.id),
        usage=usage,
    )


def trigger_detail(
    files: ReadOnlyFiles,
    trigger_id: str,
    situation: ExplanationContext,
    live: dict[str, LiveRun],
) -> TriggerDetail | None:
    """None for an unknown trigger."""
    explanation = triggers.explained(files, trigger_id, situation)
    if explanation.state == "unknown":
        return None
    # A removed trigger is shown with the trace of its last run.
    trace_id = centre = trigger_id
    trigger, broken = world.active(files, trigger_id)
    last_run = next((slot.task_id for slot in explanation.slots if slot.task_id), None)
    if trigger is not None:
        trace_id = trigger.trace_id
    elif broken is None and last_run is not None and is_id(last_run):
        centre = last_run
        if task := queue.find(files, last_run):
            trace_id = task.task.trace_id
    trace = tasks.in_trace(files, trace_id, live)
    return TriggerDetail(
        trigger=triggers.find(files, trigger_id, situation),
        explanation=explanation,
        chain=steps_of(around(files, trace_id, trace, trigger_id), centre),
    )


# ---- collecting


def around(
    files: ReadOnlyFiles,
    trace_id: str,
    trace: Iterable[TaskView],
    trigger_id: str | None = None,
) -> Chain:
    """The tasks of a trace, its triggers, and the triggers that wait for these.

    `trigger_id`: a trigger to include, whatever its trace.
    """
    chain = Chain({task.id: task for task in trace})
    defined = _definitions(files)

    def load(id_: str) -> None:
        trigger, state = world.active(files, id_)[0], registry.state(files, id_)
        chain.triggers[id_] = ChainTrigger(trigger, state)

    own = {task.source_trigger_id for task in chain.tasks.values()} | {trigger_id}
    in_file = f'"{trace_id}"'.encode()
    for id_, data in defined.items():
        if in_file in data or derived_id("trace", id_) == trace_id or id_ in own:
            load(id_)
    ids = {id_.encode() for id_ in (*chain.tasks, *chain.triggers)}
    for id_, data in defined.items():
        if id_ not in chain.triggers and ids.intersection(_TASK_IDS.findall(data)):
            load(id_)
    return chain


def _definitions(files: ReadOnlyFiles) -> dict[str, bytes]:
    """Every trigger's file by id, unparsed: parsing all of them would be slow."""
    definitions: dict[str, bytes] = {}
    for id_ in registry.ids(files):
        with contextlib.suppress(UnsafeFile):
            data = files.read(paths.trigger(id_))
            if data is not None and is_id(id_):
                definitions[id_] = data
    return definitions


# ---- the list


def steps_of(chain: Chain, centre: str | None = None) -> list[ChainStep]:
    """All steps in order, each below its cause; of a trigger's runs the last ones and `centre`."""
    chain = _limit_runs(chain, centre)
    ids = sorted({**chain.triggers, **chain.tasks}, key=chain.order)
    links = {id_: _links(chain, id_) for id_ in ids}
    return [
        ChainStep(
            id=id_,
            kind="task" if id_ in chain.tasks else "trigger",
            title=chain.title(id_),
            state=chain.tasks[id_].state if id_ in chain.tasks else chain.triggers[id_].status,
            depth=depth,
            after=[
                ChainLink(id=cause, title=chain.title(cause), words=_WORDS[key])
                for cause, key in links[id_].items()
            ],
        )
        for id_, depth in _depths(links).items()
    ]


def _limit_runs(chain: Chain, centre: str | None) -> Chain:
    """Only the last MAX_RUNS runs of each trigger, and `centre`."""
    runs: defaultdict[str, list[str]] = defaultdict(list)
    for id_ in sorted(chain.tasks, key=chain.order):
        if source := chain.tasks[id_].source_trigger_id:
            runs[source].append(id_)
    hidden = {id_ for ids in runs.values() for id_ in ids[:-MAX_RUNS]} - {centre}
    return Chain({id_: it for id_, it in chain.tasks.items() if id_ not in hidden}, chain.triggers)


def _depths(links: Mapping[str, Mapping[str, str]]) -> dict[str, int]:
    """The ids in topological order, each with its depth.

    In a cycle, which only edited files can make, the oldest comes first.
    """
    depths: dict[str, int] = {}
    roots = [id_ for id_, causes in links.items() if not causes]
    for root in (*roots, *links):
        stack = [(root, 0)]
        while stack:
            step, depth = stack.pop()
            if step not in depths and (step == root or links[step].keys() <= depths.keys()):
                depths[step] = depth
                after = [id_ for id_, causes in links.items() if step in causes]
                stack += [(id_, depth + 1) for id_ in reversed(after)]
    return depths


def _links(chain: Chain, id_: str) -> dict[str, str]:
    """What leads to a step, each with the key of its words."""
    if known := chain.triggers.get(id_):
        condition = known.trigger and known.trigger.condition
        leaves = [leaf for _, leaf in conditions.walk(condition)] if condition else []
        waits = {
            it.params.task_id: it.type for it in leaves if isinstance(it, TaskDone | TaskFailed)
        }
        links = {it: key for it, key in waits.items() if it in chain.tasks or it in chain.triggers}
        parent = known.trigger and known.trigger.parent_task_id
        return {parent: "planned"} if parent in chain.tasks and not links else links
    task = chain.tasks[id_]
    if task.retry_of in chain.tasks:
        return {task.retry_of: "retry"}
    if task.source_trigger_id in chain.triggers:
        return {task.source_trigger_id: "runs"}
    causes: dict[str, str] = {}
    for parent in task.upstream or [task.parent_task_id]:
        if (cause := chain.tasks.get(parent or "")) and cause is not task:
            after = "task_failed" if cause.state == "failed" else "task_done"
            planned = "planned" if cause.seat == "planner" else "then"
            # With a trigger: it fired once and was removed.
            causes[cause.id] = after if task.source_trigger_id else planned
    return causes
