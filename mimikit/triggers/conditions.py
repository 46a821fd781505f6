"""Evaluates trigger conditions: whether one holds, and which events a firing consumes. Pure.

Two kinds of leaves. *Edges* (task_done, task_failed, file_changed) are events: true until a firing
consumes them. *Levels* (file_exists, llm_eval, not) are states: fresh when they turn true, consumed
by a firing until they turn false. What is consumed is recorded in `seen`, by node path. Source:
spec 4, edges and levels.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel, TypeAdapter, ValidationError

from mimikit.errors import BadInput
from mimikit.protocol.records import code_of
from mimikit.protocol.triggers import (
    MAX_NODES,
    AndCondition,
    BrokenCondition,
    Condition,
    FileChanged,
    FileChangedParameters,
    FileExists,
    FileExistsParameters,
    JoinedParameters,
    LlmEvalCondition,
    LlmEvalParameters,
    NotCondition,
    NotParameters,
    OrCondition,
    TaskDone,
    TaskFailed,
    TaskParameters,
)
from mimikit.triggers import patterns
from mimikit.triggers.patterns import Pattern, Seen

ROOT = "$"
MAX_DEPTH = 10
LLM_COOLDOWN_S = 86_400.0
NONE_YET = ""
"""In `seen`: the node was evaluated before there was any result."""

Consumed: TypeAlias = dict[str, Any]
"""Node path → what was consumed: the id of a result, True for a state, `patterns.Seen`."""

Standing: TypeAlias = Literal["awaited", "live", "done", "failed", "canceled", "unknown", "blocked"]
"""Status of a task or trigger that a condition names. awaited: a trigger that may run again;
blocked: one that never will; unknown: no such id."""


class ConditionFacts(Protocol):
    """The inputs of an evaluation: results, files, answers of a model."""

    def results(self, subject: str, status: Literal["done", "failed"]) -> Sequence[str]:
        """Ids of the runs of a task or trigger that ended with this status, oldest first."""
        ...

    def files(self, pattern: Pattern) -> Seen | None:
        """The matching files; None: too many."""
        ...

    def exists(self, pattern: Pattern) -> bool | None:
        """Whether any file matches; None: too many to list."""
        ...

    def rests(self, entry: Sequence[int], settle: float | None) -> bool:
        """Whether a file was last changed `settle` seconds ago or longer; None: the setting."""
        ...

    def answer(self, path: str) -> bool | None:
        """The model's recent answer for the llm_eval node at `path`; None: not asked."""
        ...

    def standing(self, subject: str) -> Standing: ...


@dataclass(frozen=True, slots=True)
class Node:
    """One evaluated node; `explain` turns `why` and `facts` into text."""

    path: str
    kind: str
    holds: bool | None
    why: str
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    fresh: bool = False
    consumes: Consumed = field(default_factory=dict[str, Any])
    """What a firing adds to `seen`, children included."""
    upstream: tuple[str, ...] = ()
    can_accumulate: bool = False
    """Whether events may accumulate for a later firing: files and levels yes, results no."""


@dataclass(frozen=True, slots=True)
class Verdict:
    root: Node
    nodes: dict[str, Node]
    baseline: Consumed
    """First listings of files: recorded whether it fires or not."""
    turned_false: frozenset[str]
    """Levels that turned false: removed from `seen`."""
    open_questions: tuple[str, ...]
    """Paths of the llm_eval nodes whose answers may make it true."""
    blocked_by: str | None
    """The task or trigger because of which it can never become true."""
    more: bool = False
    """Whether events remain for another firing."""
    unsettled: bool = False  # files are being written: evaluate again soon

    @property
    def failed_task(self) -> str | None:
        ended = (
            node.facts["subject"]
            for node in self.nodes.values()
            if node.kind == "task_done" and node.why in ("failed", "canceled")
        )
        return self.blocked_by if self.blocked_by in ended else None

    def fires(self, cooldown: float) -> bool:
        """Whether it fires once no cooldown is in effect."""
        return self.root.holds is True and (self.root.fresh or cooldown > 0)


# ---- definitions

EDGES = frozenset({"task_done", "task_failed", "file_changed"})
_PARAMS: dict[str, type[BaseModel]] = {
    "file_changed": FileChangedParameters,
    "file_exists": FileExistsParameters,
    "task_done": TaskParameters,
    "task_failed": TaskParameters,
    "llm_eval": LlmEvalParameters,
    "and": JoinedParameters,
    "or": JoinedParameters,
    "not": NotParameters,
}
_ADAPTER: TypeAdapter[Condition] = TypeAdapter(Condition)


def read(value: object) -> Condition:
    """Parse a condition, unchecked; raises ValidationError."""
    return _ADAPTER.validate_python(value)


def all_of(parts: Sequence[Condition]) -> Condition:
    """Join conditions by `and`."""
    if len(parts) == 1:
        return parts[0]
    return read({"type": "and", "params": {"conditions": [*parts]}})


def _inner(params: object) -> Sequence[Condition]:
    if isinstance(params, JoinedParameters):
        return params.conditions
    return [params.condition] if isinstance(params, NotParameters) else ()


def _children(condition: Condition, path: str) -> list[tuple[str, Condition]]:
    return [(f"{path}.{number}", it) for number, it in enumerate(_inner(condition.params))]


def walk(condition: Condition, path: str = ROOT) -> Iterator[tuple[str, Condition]]:
    yield path, condition
    for place, child in _children(condition, path):
        yield from walk(child, place)


def check(condition: Condition) -> None:
    """Raise BadInput, with its field, unless every node can be evaluated."""
    _check(condition, "condition", 0, itertools.count(1))


def _check(condition: Condition, place: str, depth: int, nodes: Iterator[int]) -> None:
    if next(nodes) > MAX_NODES:
        message = f"condition: expected at most {MAX_NODES} nodes"
        raise BadInput(message, field="condition", code="too_long", params={"max": MAX_NODES})
    if condition.type not in _PARAMS:
        raise BadInput(
            f"{place}.type: expected one of {', '.join(_PARAMS)}; got {condition.type[:40]!r}",
            field=f"{place}.type",
        )
    if depth >= MAX_DEPTH:
        raise BadInput(f"{place}: expected at most {MAX_DEPTH} levels", field=place)
    params = _params_of(condition, f"{place}.params")
    if isinstance(params, (FileChangedParameters, FileExistsParameters)):
        try:
            patterns.parse_all(params.path)
        except BadInput as error:
            where = f"{place}.params.path"
            raise BadInput(f"{where}: {error}", field=where, code=error.code) from None
    for number, child in enumerate(_inner(params)):
        below = "condition" if isinstance(params, NotParameters) else f"conditions.{number}"
        _check(child, f"{place}.params.{below}", depth + 1, nodes)
    edge = next((it.type for _, it in walk(condition) if it.type in EDGES), None)
    if isinstance(condition, NotCondition) and edge is not None:
        raise BadInput(
            f"{place}: expected a state inside `not` (file_exists, llm_eval), got "
            f"{edge}, which is an event; an event that did not happen has no time",
            field=place,
        )


_COMPLAINTS = {
    "missing": "expected a value, got none",
    "extra_forbidden": "expected no such parameter",
    "string_pattern_mismatch": "expected the id of a task or trigger",
    "model_type": "Input should be a valid dictionary",
}


def _params_of(condition: Condition, place: str) -> BaseModel:
    """The parameters, also where a node below is invalid."""
    if not isinstance(condition, BrokenCondition):
        return condition.params
    try:
        return _PARAMS[condition.type].model_validate(condition.params)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join([place, *(str(part) for part in first["loc"])])
        complaint = _COMPLAINTS.get(first["type"], first["msg"])
        code, params = code_of(first)
        message = f"{where}: {complaint}"
        raise BadInput(message, field=where, code=code, params=params) from None


def subjects(condition: Condition) -> frozenset[str]:
    return frozenset(
        it.params.task_id for _, it in walk(condition) if isinstance(it, (TaskDone, TaskFailed))
    )


def watched(condition: Condition) -> tuple[Pattern, ...]:
    looking = (it for _, it in walk(condition) if isinstance(it, (FileChanged, FileExists)))
    return tuple(one for it in looking for one in patterns.parse_all(it.params.path))


def questions(condition: Condition) -> dict[str, str]:
    asking = ((path, it) for path, it in walk(condition) if isinstance(it, LlmEvalCondition))
    return {path: it.params.prompt for path, it in asking}


def cooldown_of(condition: Condition, configured: float | None) -> float:
    """The effective cooldown in seconds. Source: spec 4: a day by default for llm_eval."""
    if configured is not None:
        return configured
    return LLM_COOLDOWN_S if questions(condition) else 0.0


def cooldown_end(cooldown: float, last: datetime | None) -> datetime | None:
    if last is None or not cooldown:
        return None
    try:
        return last + timedelta(seconds=cooldown)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def still_valid(old: Condition | None, new: Condition, seen: Consumed) -> Consumed:
    """The entries of `seen` that stay valid after an edit: those of unchanged nodes."""
    if old is None:
        return {}
    before = {path: condition for path, condition in walk(old) if path in seen}
    valid: Consumed = {}
    for path, condition in walk(new):
        same = [known for known, was in before.items() if was == condition]
        if same:  # at its own path, if several are equal
            valid[path] = seen[path if path in same else same[0]]
    return valid


# ---- evaluation


def evaluate(
    condition: Condition, facts: ConditionFacts, seen: Consumed, *, cooldown: float = 0
) -> Verdict:
    """Evaluate a checked condition; `seen`: the events that earlier firings consumed.

    Without a cooldown (in seconds) each result fires separately, as if evaluated when it was
    written. With one, or below an `and`, all pending events are consumed together.
    """
    evaluation = _Evaluation(facts, seen)
    evaluation.node(condition, ROOT, each=cooldown == 0)
    evaluation.ask(condition, ROOT, wanted=True)
    nodes = evaluation.nodes
    levels = {path: node for path, node in nodes.items() if node.kind not in EDGES}
    return Verdict(
        root=nodes[ROOT],
        nodes=nodes,
        baseline=evaluation.baseline,
        turned_false=frozenset(p for p, n in levels.items() if n.holds is False and p in seen),
        open_questions=tuple(
            p for p, n in levels.items() if n.kind == "llm_eval" and n.why == "to_ask"
        ),
        blocked_by=_blocked_by(condition, ROOT, nodes),
        more=evaluation.more,
        unsettled=evaluation.unsettled,
    )


class _Evaluation:
    def __init__(self, facts: ConditionFacts, seen: Consumed) -> None:
        self._facts, self._seen = facts, seen
        self.nodes: dict[str, Node] = {}
        self.baseline: Consumed = {}
        self.more = self.unsettled = False

    def node(self, condition: Condition, path: str, *, each: bool = False) -> Node:
        """Evaluate a node and its descendants; `each`: consume events one by one."""
        match condition:
            case AndCondition() | OrCondition():
                evaluated = self._joined(condition, path, each=each)
            case NotCondition():
                child = self.node(condition.params.condition, f"{path}.0")
                if child.holds is None:
                    evaluated = Node(path, condition.type, None, child.why, child.facts)
                else:
                    evaluated = self._level(condition, path, not child.holds, "turned")
            case TaskDone() | TaskFailed():
                evaluated = self._task(condition, path, each=each)
            case FileChanged():
                evaluated = self._changed(condition, path)
            case FileExists():
                evaluated = self._exists(condition, path)
            case LlmEvalCondition():
                holds = self._facts.answer(path)
                why = {True: "said_yes", False: "said_no", None: "not_needed"}[holds]
                evaluated = self._level(condition, path, holds, why)
            case BrokenCondition():
                raise BadInput(f"condition: expected a checked one, got {condition.type!r}")
        self.nodes[path] = evaluated
        return evaluated

    def ask(self, condition: Condition, path: str, *, wanted: bool) -> None:
        """Mark the llm_eval nodes whose answers may give an undecided node the wanted value."""
        node = self.nodes[path]
        if node.holds is not None or not self._may_become(condition, path, wanted=wanted):
            return
        is_not = isinstance(condition, NotCondition)
        for place, child in _children(condition, path):
            self.ask(child, place, wanted=wanted is not is_not)
        if isinstance(condition, LlmEvalCondition):
            self.nodes[path] = replace(node, why="to_ask")
        elif is_not:
            child_node = self.nodes[f"{path}.0"]
            self.nodes[path] = replace(node, why=child_node.why, facts=child_node.facts)

    def _may_become(self, condition: Condition, path: str, *, wanted: bool) -> bool:
        """Whether answers may give a node this value; nodes with too many files cannot change."""
        holds = self.nodes[path].holds
        if holds is not None or isinstance(condition, LlmEvalCondition):
            return holds is None or holds is wanted
        goal = wanted is not isinstance(condition, NotCondition)
        may = [self._may_become(it, place, wanted=goal) for place, it in _children(condition, path)]
        one_is_enough = isinstance(condition, OrCondition) is wanted
        return any(may) if one_is_enough else bool(may) and all(may)

    def _joined(self, condition: AndCondition | OrCondition, path: str, *, each: bool) -> Node:
        decisive = isinstance(condition, OrCondition)
        one_by_one = each and decisive
        below = _children(condition, path)
        evaluated = [self.node(child, place, each=one_by_one) for place, child in below]
        values = [node.holds for node in evaluated]
        holds = decisive if decisive in values else (None if None in values else not decisive)
        true = sorted((node for node in evaluated if node.holds), key=lambda node: not node.fresh)
        if one_by_one and len(true) > 1 and true[0].fresh:
            self.more |= true[1].fresh
            true = true[:1]
        return Node(
            path,
            condition.type,
            holds,
            "joined",
            {"true": values.count(True), "of": len(evaluated)},
            fresh=holds is True and any(node.fresh for node in true),
            consumes={key: value for node in true for key, value in node.consumes.items()},
            upstream=tuple(dict.fromkeys(id_ for node in true for id_ in node.upstream)),
            can_accumulate=all(node.can_accumulate for node in true if node.fresh),
        )

    def _exists(self, condition: FileExists, path: str) -> Node:
        params = condition.params
        there = [self._facts.exists(pattern) for pattern in patterns.parse_all(params.path)]
        holds = True if True in there else None if None in there else False
        why = {True: "exists", False: "missing", None: "too_many"}[holds]
        if holds and path not in self._seen:
            files = patterns.list_all(params.path, self._facts.files)
            if files and not any(self._facts.rests(it, params.settle) for it in files.values()):
                self.unsettled, holds, why = True, False, "unsettled"
        return self._level(condition, path, holds, why)

    def _level(self, condition: Condition, path: str, holds: bool | None, why: str) -> Node:
        fresh = holds is True and path not in self._seen
        consumes = {path: True} if holds else {}
        return Node(
            path, condition.type, holds, why, fresh=fresh, consumes=consumes, can_accumulate=True
        )

    def _task(self, condition: TaskDone | TaskFailed, path: str, *, each: bool) -> Node:
        kind, subject = condition.type, condition.params.task_id
        results = self._facts.results(subject, "done" if kind == "task_done" else "failed")
        used: str | None = self._seen.get(path)
        facts: dict[str, Any] = {"subject": subject}
        if not results:
            if used is None:
                self.baseline[path] = NONE_YET
            return Node(path, kind, False, self._facts.standing(subject), facts)
        unseen = results[results.index(used) + 1 :] if used in results else results
        if not unseen:
            return Node(path, kind, False, "used", {**facts, "taskId": used})
        one_by_one = each and used is not None  # results older than the trigger fire once
        ended = unseen[0] if one_by_one else unseen[-1]
        self.more |= one_by_one and len(unseen) > 1
        facts["taskId"] = ended
        return Node(path, kind, True, "ended", facts, True, {path: ended}, upstream=(ended,))

    def _changed(self, condition: FileChanged, path: str) -> Node:
        files = patterns.list_all(condition.params.path, self._facts.files)
        if files is None:
            return Node(path, condition.type, None, "too_many")
        known: Seen | float | None = self._seen.get(path)
        if isinstance(known, (int, float)):  # an earlier format: the newest time, in ms
            known = {name: entry for name, entry in files.items() if entry[0] <= known * 1e6}
        if known is None:
            if not (condition.params.fire_on_init and files):
                self.baseline[path] = files
                return Node(path, condition.type, False, "first_look", {"files": len(files)})
            known = {}
        names = list(patterns.changes(known, files))
        if not names:
            return Node(path, condition.type, False, "unchanged", {"files": len(files)})
        settle = condition.params.settle
        moving = [n for n in names if n in files and not self._facts.rests(files[n], settle)]
        self.unsettled |= bool(moving)
        files = patterns.as_before(files, known, moving)
        names = sorted(set(names) - set(moving))
        if not names:
            return Node(path, condition.type, False, "unsettled")
        facts = {"changed": len(names), "names": names[:5]}
        return Node(
            path, condition.type, True, "changed", facts, True, {path: files}, can_accumulate=True
        )


_NEVER: dict[str, frozenset[Standing]] = {
    "task_done": frozenset({"failed", "canceled", "unknown", "blocked"}),
    "task_failed": frozenset({"done", "canceled", "unknown", "blocked"}),
}
"""The standings from which a task can no longer end as required."""


def _blocked_by(condition: Condition, path: str, nodes: dict[str, Node]) -> str | None:
    node = nodes[path]
    if node.holds:
        return None
    if condition.type in _NEVER:
        return node.facts["subject"] if node.why in _NEVER[condition.type] else None
    below = [_blocked_by(child, place, nodes) for place, child in _children(condition, path)]
    is_never = any(below) if condition.type == "and" else condition.type == "or" and all(below)
    return next(filter(None, below), None) if is_never else None
