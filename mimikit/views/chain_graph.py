"""A chain as a graph: the tasks of a trace, the triggers around them, and what leads to what.

Two steps: `around` gathers from the state folder what belongs together, `draw` (pure) makes nodes,
edges and layers of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import Field

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

MAX_NODES = 50
MAX_RUNS = 5
"""Of the runs of one trigger the last ones are drawn."""
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


class GraphNode(View):
    id: str
    kind: Literal["task", "trigger"]
    title: Title
    state: str
    layer: int
    """The longest way to it from a root."""


class GraphEdge(View):
    from_: str = Field(serialization_alias="from")
    to: str
    words: Words


class GraphView(View):
    """What follows from what."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]


class TaskReport(View):
    """One task with its outcome as it was written down, and all that belongs to it."""

    task: TaskView
    prompt: str
    result: TaskOutcome | None
    events: list[LedgerEvent]
    trace: list[TaskView]
    graph: GraphView


class TaskDetail(View):
    """One task with its result, its events and the tasks it belongs with."""

    task: TaskView
    prompt: str
    result: ResultView | None
    events: list[LedgerEvent]
    trace: list[TaskView]
    graph: GraphView
    usage: TokenCounts
    """Of all its attempts."""


class TriggerDetail(View):
    """One trigger, why it waits and what it did; also when it is gone: then null."""

    trigger: TriggerView | None
    explanation: Explanation
    graph: GraphView
    usage: TokenCounts = TokenCounts()
    """Of its runs, today."""


class TraceView(View):
    """The tasks and triggers of one trace."""

    tasks: list[TaskView]
    triggers: list[TriggerView]
    graph: GraphView


@dataclass(frozen=True, slots=True)
class ChainTrigger:
    """One trigger with what its consumer knows; no definition while its file is broken."""

    id: str
    trigger: Trigger | None
    state: TriggerState


@dataclass(frozen=True, slots=True)
class Chain:
    """What belongs together, by id."""

    tasks: dict[str, TaskView] = field(default_factory=dict[str, TaskView])
    triggers: dict[str, ChainTrigger] = field(default_factory=dict[str, ChainTrigger])

    def neighbours(self) -> list[str]:
        """What its triggers wait for, what made them, and their last runs, if not in it yet."""
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
        prompt=known.task.prompt,
        result=tasks.task_outcome(known),
        events=tasks.events_of(files, known.task),
        trace=trace,
        graph=draw(around(files, trace_id, trace, live), known.task.id),
    )


def trigger_detail(
    files: ReadOnlyFiles,
    trigger_id: str,
    situation: ExplanationContext,
    live: dict[str, LiveRun],
    zone: ZoneInfo,
) -> TriggerDetail | None:
    """Times are told in `zone`. None when there never was such a trigger, as far as is known."""
    told = dataclasses.replace(situation, zone=zone)
    explanation = triggers.explained(files, trigger_id, told)
    if explanation.state == "unknown":
        return None
    # It stands in its own trace; one that is gone, in that of its last run.
    trace_id = centre = trigger_id
    trigger, broken = world.active(files, trigger_id)
    ran = next((slot.task_id for slot in explanation.slots if slot.task_id), None)
    if trigger is not None:
        trace_id = trigger.trace_id
    elif broken is None and ran is not None and is_id(ran):
        centre = ran
        if found := queue.find(files, ran):
            trace_id = found.task.trace_id
    trace = tasks.in_trace(files, trace_id, live)
    return TriggerDetail(
        trigger=triggers.find(files, trigger_id, situation),
        explanation=explanation,
        graph=draw(around(files, trace_id, trace, live, trigger_id), centre),
    )


# ---- what belongs together


def around(
    files: ReadOnlyFiles,
    trace_id: str,
    trace: Iterable[TaskView],
    live: dict[str, LiveRun],
    trigger_id: str | None = None,
) -> Chain:
    """The tasks of a trace, its triggers, the triggers that wait for these, and what those name.

    Args:
        files: of the state folder.
        trace_id: of the trace.
        trace: its tasks, as they are shown.
        live: live runs by id.
        trigger_id: a trigger that belongs to it, whatever its trace.
    """
    chain = Chain({task.id: task for task in trace})
    defined = _definitions(files)

    def add(id_: str, *, is_sure: bool) -> None:
        trigger, _ = world.active(files, id_)
        if is_sure or (trigger is not None and trigger.trace_id == trace_id):
            chain.triggers[id_] = ChainTrigger(id_, trigger, registry.state(files, id_))

    # The triggers of its runs, and those that stand in the trace.
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
    """Every trigger's, unparsed: few of them will matter."""
    found: dict[str, bytes] = {}
    for id_ in registry.ids(files):
        with contextlib.suppress(UnsafeFile):
            data = files.read(paths.trigger(id_))
            if data is not None and is_id(id_):
                found[id_] = data
    return found


def _named(trigger: Trigger) -> list[tuple[str, str]]:
    """What its condition names, each with the kind of event waited for."""
    if trigger.condition is None:
        return []
    return [
        (leaf.condition.params.task_id, leaf.condition.type)
        for leaf in conditions.walk(trigger.condition)
        if isinstance(leaf.condition, (TaskDone, TaskFailed))
    ]


# ---- the graph


def draw(chain: Chain, centre: str | None = None) -> GraphView:
    """The graph of a chain, around the node `centre`; else around its newest task. Pure."""
    chain = _with_few_runs(chain, centre)
    edges = _edges(chain)
    every = {**chain.triggers, **chain.tasks}
    if centre is None or centre not in every:
        centre = max(chain.tasks, key=lambda id_: _made(chain, id_), default=next(iter(every), ""))
    kept = _nearest(centre, every, edges)
    edges = {pair: said for pair, said in edges.items() if kept.keys() >= {*pair}}
    layers = _layers(kept, edges)
    nodes = [_node(chain, id_, layers[id_]) for id_ in kept]
    nodes.sort(key=lambda node: (node.layer, _made(chain, node.id)))
    return GraphView(
        nodes=nodes,
        edges=[
            GraphEdge(from_=start, to=end, words=_WORDS[said])
            for (start, end), said in edges.items()
        ],
    )


def _with_few_runs(chain: Chain, centre: str | None) -> Chain:
    """Without all but the last runs of each trigger; the one that was asked for stays."""
    runs: defaultdict[str, list[str]] = defaultdict(list)
    for task in sorted(chain.tasks.values(), key=lambda task: _made(chain, task.id)):
        if task.source_trigger_id:
            runs[task.source_trigger_id].append(task.id)
    left_out = {id_ for ids in runs.values() for id_ in ids[:-MAX_RUNS]} - {centre}
    kept = {id_: task for id_, task in chain.tasks.items() if id_ not in left_out}
    return Chain(kept, chain.triggers)


def _edges(chain: Chain) -> dict[tuple[str, str], str]:
    """What leads to what, each pair once, with the name of its words."""
    found: dict[tuple[str, str], str] = {}
    for known in chain.triggers.values():
        if known.trigger is None:
            continue
        for subject, kind in _named(known.trigger):
            for start in _standing_for(chain, subject):
                found.setdefault((start, known.id), kind)
        parent = known.trigger.parent_task_id
        if parent in chain.tasks and not any(end == known.id for _, end in found):
            found[parent, known.id] = "planned"
    for task in chain.tasks.values():
        for start, said in _leading_to(chain, task):
            if start != task.id:
                found.setdefault((start, task.id), said)
    return found


def _standing_for(chain: Chain, subject: str) -> list[str]:
    """The nodes of an id that a condition names; of a trigger that is gone, its runs."""
    if subject in chain.triggers or subject in chain.tasks:
        return [subject]
    return [task.id for task in chain.tasks.values() if task.source_trigger_id == subject]


def _leading_to(chain: Chain, task: TaskView) -> list[tuple[str, str]]:
    """The nodes that lead to a task, each with the name of its words."""
    retried = task.retry_of
    if retried in chain.tasks:
        return [(retried, "retry")]
    parents = [id_ for id_ in task.upstream or [task.parent_task_id] if id_ in chain.tasks]
    source = chain.triggers.get(task.source_trigger_id or "")
    if source is not None:
        waited_for: set[str] = set()
        for subject, _ in _named(source.trigger) if source.trigger else ():
            waited_for.update(_standing_for(chain, subject))
        results = [id_ for id_ in task.upstream if id_ in parents and id_ not in waited_for]
        return [(source.id, "runs"), *((id_, "result") for id_ in results)]
    found: list[tuple[str, str]] = []
    for id_ in parents:
        parent = chain.tasks[id_]
        if task.source_trigger_id:  # its trigger fired once and is gone
            said = "task_failed" if parent.state == "failed" else "task_done"
        else:
            said = "planned" if parent.seat == "planner" else "then"
        found.append((id_, said))
    return found


def _nearest(
    centre: str, every: Iterable[str], edges: Iterable[tuple[str, str]]
) -> dict[str, None]:
    """As many nodes as are drawn, the nearest to the centre first."""
    beside: defaultdict[str, list[str]] = defaultdict(list)
    for start, end in edges:
        beside[start].append(end)
        beside[end].append(start)
    found = dict.fromkeys([centre] if centre in every else [])
    waiting = deque(found)
    while waiting:
        for other in beside[waiting.popleft()]:
            if other not in found:
                found[other] = None
                waiting.append(other)
    found |= dict.fromkeys(every)  # those known already keep their places
    return dict.fromkeys(islice(found, MAX_NODES))


def _layers(kept: Iterable[str], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The longest way from a root to each node; a circle, which only hands can make, is cut."""
    before: defaultdict[str, list[str]] = defaultdict(list)
    for start, end in edges:
        before[end].append(start)
    layers: dict[str, int] = {}
    under_way: set[str] = set()

    def layer(id_: str) -> int:
        if id_ not in layers:
            under_way.add(id_)
            layers[id_] = 1 + max((layer(b) for b in before[id_] if b not in under_way), default=-1)
            under_way.discard(id_)
        return layers[id_]

    return {id_: layer(id_) for id_ in kept}


def _node(chain: Chain, id_: str, layer: int) -> GraphNode:
    known = chain.triggers.get(id_)
    if known is None:
        task = chain.tasks[id_]
        return GraphNode(id=id_, kind="task", title=task.title, state=task.state, layer=layer)
    title, state = id_, "blocked"  # a broken one
    if known.trigger is not None:
        title = world.title(known.trigger)
        if not known.trigger.enabled:
            state = "paused"
        elif not known.state.blocked_by:
            state = "waiting"
    return GraphNode(id=id_, kind="trigger", title=title, state=state, layer=layer)


def _made(chain: Chain, id_: str) -> tuple[str, str]:
    """When a node was made; by this they are put in order."""
    known = chain.triggers.get(id_)
    made = chain.tasks[id_] if known is None else known.trigger
    return made.created_at.isoformat() if made else "", id_
