"""A chain as an indented list: the tasks of a trace, the triggers around them, and their links.

`around` collects them from the state folder, `steps_of` (pure) puts them in order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal
from zoneinfo import ZoneInfo

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
from mimikit.views.base import Title, View, Words
from mimikit.views.tasks import LedgerEvent, ResultView, TaskOutcome, TaskView
from mimikit.views.triggers import TriggerView
from mimikit.views.usage import TokenCounts

MAX_STEPS = 50
MAX_RUNS = 5
"""Listed runs of one trigger, the last ones."""
_NAMES = re.compile(rb'"taskId"\s*:\s*"([^"]{1,128})"')

_WORDS: dict[str, Words] = {
    "task_done": {"en": "when done", "zh": "当完成时"},
    "task_failed": {"en": "when it fails", "zh": "当失败时"},
    "runs": {"en": "starts", "zh": "启动"},
    "planned": {"en": "planned", "zh": "计划"},
    "then": {"en": "then", "zh": "然后"},
    "result": {"en": "its result", "zh": "其结果"},
    "retry": {"en": "tried again", "zh": "重试"},
}


class ChainLink(View):
    """What a step follows, and why."""

    id: str
    title: Title
    words: Words


class ChainStep(View):
    id: str
    kind: Literal["task", "trigger"]
    title: Title
    state: str
    depth: int
    """How far it is indented."""
    after: list[ChainLink]


class TaskReport(View):
    """One task with its outcome as stored, its events, trace and chain."""

    task: TaskView
    result: TaskOutcome | None
    events: list[LedgerEvent]
    trace: list[TaskView]
    chain: list[ChainStep]


class TaskDetail(View):
    """One task with its result, its events, trace and chain."""

    task: TaskView
    result: ResultView | None
    events: list[LedgerEvent]
    trace: list[TaskView]
    chain: list[ChainStep]
    usage: TokenCounts
    """Of all its attempts."""


class TriggerDetail(View):
    """One trigger, why it waits and what it did; null when it was removed."""

    trigger: TriggerView | None
    explanation: Explanation
    chain: list[ChainStep]
    usage: TokenCounts = TokenCounts()
    """Of its runs, today."""


class TraceView(View):
    tasks: list[TaskView]
    triggers: list[TriggerView]
    chain: list[ChainStep]


@dataclass(frozen=True, slots=True)
class ChainTrigger:
    """One trigger with its state; no definition while its file is broken."""

    id: str
    trigger: Trigger | None
    state: TriggerState


@dataclass(frozen=True, slots=True)
class Chain:
    tasks: dict[str, TaskView] = field(default_factory=dict[str, TaskView])
    triggers: dict[str, ChainTrigger] = field(default_factory=dict[str, ChainTrigger])

    def neighbours(self) -> list[str]:
        """Ids its triggers name, their parents and last runs, as far as they are not in it."""
        ids: list[str | None] = []
        for known in self.triggers.values():
            ids.append(known.state.last_task_id)
            if known.trigger is not None:
                ids += [known.trigger.parent_task_id, *(id_ for id_, _ in _named(known.trigger))]
        known_ids = self.tasks.keys() | self.triggers.keys()
        return [id_ for id_ in dict.fromkeys(ids) if id_ and id_ not in known_ids]


def task_report(files: ReadOnlyFiles, known: TaskSnapshot, live: dict[str, LiveRun]) -> TaskReport:
    trace_id = known.task.trace_id
    trace = tasks.in_trace(files, trace_id, live, known)
    return TaskReport(
        task=tasks.task_view(files, known, live),
        result=tasks.task_outcome(known),
        events=tasks.events_of(files, known.task),
        trace=trace,
        chain=steps_of(around(files, trace_id, trace, live), known.task.id),
    )


def trigger_detail(
    files: ReadOnlyFiles,
    trigger_id: str,
    situation: ExplanationContext,
    live: dict[str, LiveRun],
    zone: ZoneInfo,
) -> TriggerDetail | None:
    """Times in words are in `zone`. None when no such trigger is known."""
    context = dataclasses.replace(situation, zone=zone)
    explanation = triggers.explained(files, trigger_id, context)
    if explanation.state == "unknown":
        return None
    # Of a removed trigger the trace of its last run is used.
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
        chain=steps_of(around(files, trace_id, trace, live, trigger_id), centre),
    )


# ---- collecting


def around(
    files: ReadOnlyFiles,
    trace_id: str,
    trace: Iterable[TaskView],
    live: dict[str, LiveRun],
    trigger_id: str | None = None,
) -> Chain:
    """The tasks of a trace, its triggers, the triggers that wait for these, and what those name.

    `live`: live runs by id. `trigger_id`: a trigger that belongs to it, whatever its trace.
    """
    chain = Chain({task.id: task for task in trace})
    defined = _definitions(files)

    def add(id_: str, *, is_sure: bool) -> None:
        trigger, _ = world.active(files, id_)
        if is_sure or (trigger is not None and trigger.trace_id == trace_id):
            chain.triggers[id_] = ChainTrigger(id_, trigger, registry.state(files, id_))

    # The triggers of its runs, and those of the trace.
    sources = {task.source_trigger_id for task in chain.tasks.values()} | {trigger_id}
    for id_, data in defined.items():
        if id_ in sources or trace_id.encode() in data or derived_id("trace", id_) == trace_id:
            add(id_, is_sure=id_ in sources)
    # Those that wait for one of these.
    named = {id_.encode() for id_ in (*chain.tasks, *chain.triggers)}
    for id_, data in defined.items():
        if id_ not in chain.triggers and named.intersection(_NAMES.findall(data)):
            add(id_, is_sure=True)
    for id_ in chain.neighbours():
        if id_ in defined:
            add(id_, is_sure=True)
        elif task := tasks.find(files, id_, live):
            chain.tasks[id_] = task
    return chain


def _definitions(files: ReadOnlyFiles) -> dict[str, bytes]:
    """Every trigger's file, unparsed: few of them will matter."""
    definitions: dict[str, bytes] = {}
    for id_ in registry.ids(files):
        with contextlib.suppress(UnsafeFile):
            data = files.read(paths.trigger(id_))
            if data is not None and is_id(id_):
                definitions[id_] = data
    return definitions


def _named(trigger: Trigger) -> list[tuple[str, str]]:
    """The ids its condition names, each with the kind of event waited for."""
    if trigger.condition is None:
        return []
    return [
        (leaf.params.task_id, leaf.type)
        for _, leaf in conditions.walk(trigger.condition)
        if isinstance(leaf, (TaskDone, TaskFailed))
    ]


# ---- the list


def steps_of(chain: Chain, centre: str | None = None) -> list[ChainStep]:
    """A chain in order, around the step `centre`, else around its newest task."""
    chain = _limit_runs(chain, centre)
    every = sorted({**chain.triggers, **chain.tasks}, key=lambda id_: _created(chain, id_))
    if centre is None or centre not in every:
        centre = max(chain.tasks, key=lambda id_: _created(chain, id_), default=None)
    edges = _edges(chain)
    depths = _depths(every, edges)
    listed = [*depths]
    middle = listed.index(centre) if centre in depths else 0
    start = max(0, min(middle - MAX_STEPS // 2, len(listed) - MAX_STEPS))
    listed = listed[start : start + MAX_STEPS]
    least = min((depths[id_] for id_ in listed), default=0)
    return [
        ChainStep(
            id=id_,
            kind="trigger" if id_ in chain.triggers else "task",
            title=_title(chain, id_),
            state=_state(chain, id_),
            depth=depths[id_] - least,
            after=[
                ChainLink(id=before, title=_title(chain, before), words=_WORDS[key])
                for (before, after), key in edges.items()
                if after == id_
            ],
        )
        for id_ in listed
    ]


def _depths(every: Iterable[str], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The steps in their order, each after all that lead to it, with its depth.

    In a cycle, which only edited files can make, the oldest comes first.
    """
    before: defaultdict[str, set[str]] = defaultdict(set)
    after: defaultdict[str, list[str]] = defaultdict(list)
    for start, end in edges:
        before[end].add(start)
        after[start].append(end)
    depths: dict[str, int] = {}

    def put(id_: str) -> None:
        waiting = [(id_, 0)]
        while waiting:
            step, depth = waiting.pop()
            if step not in depths and (step == id_ or before[step] <= depths.keys()):
                depths[step] = depth
                waiting += [(other, depth + 1) for other in reversed(after[step])]

    for id_ in every:
        if not before[id_]:
            put(id_)
    for id_ in every:
        put(id_)
    return depths


def _limit_runs(chain: Chain, centre: str | None) -> Chain:
    """Only the last runs of each trigger, and `centre`."""
    runs: defaultdict[str, list[str]] = defaultdict(list)
    for task in sorted(chain.tasks.values(), key=lambda task: _created(chain, task.id)):
        if task.source_trigger_id:
            runs[task.source_trigger_id].append(task.id)
    left_out = {id_ for ids in runs.values() for id_ in ids[:-MAX_RUNS]} - {centre}
    kept = {id_: task for id_, task in chain.tasks.items() if id_ not in left_out}
    return Chain(kept, chain.triggers)


def _edges(chain: Chain) -> dict[tuple[str, str], str]:
    """(from, to) → the key of its words."""
    edges: dict[tuple[str, str], str] = {}
    for known in chain.triggers.values():
        if known.trigger is None:
            continue
        for subject, kind in _named(known.trigger):
            for start in _steps_for(chain, subject):
                edges.setdefault((start, known.id), kind)
        parent = known.trigger.parent_task_id
        if parent in chain.tasks and not any(end == known.id for _, end in edges):
            edges[parent, known.id] = "planned"
    for task in chain.tasks.values():
        for start, key in _causes_of(chain, task):
            if start != task.id:
                edges.setdefault((start, task.id), key)
    return edges


def _steps_for(chain: Chain, subject: str) -> list[str]:
    """The steps of an id that a condition names; of a removed trigger, its runs."""
    if subject in chain.triggers or subject in chain.tasks:
        return [subject]
    return [task.id for task in chain.tasks.values() if task.source_trigger_id == subject]


def _causes_of(chain: Chain, task: TaskView) -> list[tuple[str, str]]:
    """The steps that lead to a task, each with the key of its words."""
    retried = task.retry_of
    if retried in chain.tasks:
        return [(retried, "retry")]
    parents = [id_ for id_ in task.upstream or [task.parent_task_id] if id_ in chain.tasks]
    source = chain.triggers.get(task.source_trigger_id or "")
    if source is not None:
        waited_for: set[str] = set()
        for subject, _ in _named(source.trigger) if source.trigger else ():
            waited_for.update(_steps_for(chain, subject))
        results = [id_ for id_ in task.upstream if id_ in parents and id_ not in waited_for]
        return [(source.id, "runs"), *((id_, "result") for id_ in results)]
    links: list[tuple[str, str]] = []
    for id_ in parents:
        parent = chain.tasks[id_]
        if task.source_trigger_id:  # its trigger fired once and was removed
            key = "task_failed" if parent.state == "failed" else "task_done"
        else:
            key = "planned" if parent.seat == "planner" else "then"
        links.append((id_, key))
    return links


def _title(chain: Chain, id_: str) -> str:
    known = chain.triggers.get(id_)
    if known is None:
        return chain.tasks[id_].title
    return world.title(known.trigger) if known.trigger else id_


def _state(chain: Chain, id_: str) -> str:
    known = chain.triggers.get(id_)
    if known is None:
        return chain.tasks[id_].state
    if known.trigger is None:
        return "blocked"  # a broken one
    if not known.trigger.enabled:
        return "paused"
    return "blocked" if known.state.blocked_by else "waiting"


def _created(chain: Chain, id_: str) -> tuple[str, str]:
    """Sort key: when it was made."""
    known = chain.triggers.get(id_)
    source = chain.tasks[id_] if known is None else known.trigger
    return source.created_at.isoformat() if source else "", id_
