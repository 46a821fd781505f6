"""One look at a conditional trigger: what was found, and what follows from it.

Reads the world through `FactsNow`; changes nothing. `firing` does what is decided here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from mimikit import permission
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import (
    Condition,
    FiringIntent,
    NodeVerdict,
    Trigger,
    TriggerState,
    time_text,
)
from mimikit.supervisor.facts import FactsNow
from mimikit.supervisor.store import Books
from mimikit.tasks import queue
from mimikit.triggers import conditions
from mimikit.triggers.conditions import Verdict
from mimikit.triggers.decide import make_run
from mimikit.triggers.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found. `state` is what is known now; equal to the old one if nothing is new."""

    state: TriggerState
    fires: FiringIntent | None
    more: bool
    """Whether more has happened than this firing uses up."""
    asks: dict[str, str]
    """The questions (by node path) on which the condition depends."""
    cools_until: datetime | None
    waits_for: str | None
    """The run before, whose end is waited for."""


def look(
    books: Books,
    workspace: Workspace,
    trigger: Trigger,
    condition: Condition,
    state: TriggerState,
    now: datetime,
) -> Look:
    """Judge a condition and decide whether its trigger fires."""
    if state.last_triggered_at is not None and state.last_triggered_at > now:
        state = state.but(last_triggered_at=now)  # the clock was set back
    confined = permission.is_confined(trigger.origin)
    facts = FactsNow(books, workspace, state, now, confined=confined)
    cooldown = conditions.cooldown_of(condition, trigger.cooldown)
    verdict = conditions.evaluate(condition, facts, state.seen, cooldown=cooldown)
    found = _found(state, verdict, now)
    cools_until = cool_at(state.last_triggered_at, cooldown)
    if cools_until is not None and cools_until > now:
        said = "cooling" if verdict.root.holds else "waits"
        return Look(found.but(last_verdict=said), None, False, {}, cools_until, None)
    waits_for = _waits_for(books, trigger, verdict, found)
    if verdict.fires(cooldown) and waits_for is None:
        uses = verdict.root.uses
        after = conditions.evaluate(condition, facts, {**found.seen, **uses}, cooldown=cooldown)
        told = found.but(verdicts=_verdicts(found, after, now))
        return Look(told, _edge(books, trigger, found, verdict, now), verdict.more, {}, None, None)
    said = "overlap" if waits_for else "waits"
    asks = _questions(condition, verdict)
    return Look(found.but(last_verdict=said), None, False, asks, None, waits_for)


def cool_at(last: datetime | None, cooldown: float) -> datetime | None:
    """When a cooldown ends; None when there is none."""
    return None if last is None or not cooldown else last + timedelta(seconds=cooldown)


def is_at_it(books: Books, state: TriggerState) -> bool:
    """Whether the run before is not over."""
    if state.last_task_id is None or books.ledger.end_of(state.last_task_id):
        return False
    return queue.find(books.files, state.last_task_id) is not None


def _waits_for(books: Books, trigger: Trigger, verdict: Verdict, state: TriggerState) -> str | None:
    """The run before, if a change is kept until it is over.

    A task's result is never added to another: each has a firing of its own.
    """
    can_wait = trigger.overlap == "skip" and verdict.root.holds and verdict.root.keeps
    return state.last_task_id if can_wait and is_at_it(books, state) else None


def _edge(
    books: Books, trigger: Trigger, state: TriggerState, verdict: Verdict, now: datetime
) -> FiringIntent:
    """The firing of a condition; its slot is named by its number and what it uses up."""
    uses = verdict.root.uses
    digest = hashlib.sha256(dump_line(uses)).hexdigest()[:12]
    slot = f"{time_text(trigger.created_at)} #{state.fire_count + 1} {digest}"
    run = make_run(trigger, slot, now, upstream=verdict.root.upstream)
    first = books.ledger.end_of(run.upstream[0]) if run.upstream else None
    if first is not None and trigger.origin == "file":
        run = run.but(trace_id=first.trace_id)  # a step made by hand knows no trace of its own
    return FiringIntent(slot=slot, task=run, fired_at=now, seen=uses)


def _found(state: TriggerState, verdict: Verdict, now: datetime) -> TriggerState:
    kept = {path: used for path, used in state.seen.items() if path not in verdict.forgets}
    return state.but(
        seen={**kept, **verdict.baseline},
        initialized=True,
        verdicts=_verdicts(state, verdict, now),
        blocked_by=verdict.blocked_by,
    )


def _verdicts(state: TriggerState, verdict: Verdict, now: datetime) -> dict[str, NodeVerdict]:
    """What each node was found to be; one that is as it was keeps the time it became so."""
    found: dict[str, NodeVerdict] = {}
    for path, node in verdict.nodes.items():
        new = NodeVerdict(holds=node.holds, why=node.why, facts=node.facts, at=now)
        old = state.verdicts.get(path)
        found[path] = old if old is not None and old.but(at=now) == new else new
    return found


def _questions(condition: Condition, verdict: Verdict) -> dict[str, str]:
    prompts = conditions.questions(condition) if verdict.asks else {}
    return {path: prompts[path] for path in verdict.asks}
