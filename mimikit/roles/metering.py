"""Runs an engine within the budget: checked before it, followed on the way, written down after."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from pydantic import ValidationError

from mimikit.engines.base import (
    CancelToken,
    EventKind,
    Failed,
    Outcome,
)
from mimikit.errors import StorageError
from mimikit.memory import tokens
from mimikit.protocol.models import FailureReason, Usage
from mimikit.roles.run import Attempt, RunContext, run_engine
from mimikit.tasks.budget import BudgetHold
from mimikit.tasks.usage import RunMeter

_TURNED_AWAY: frozenset[FailureReason] = frozenset(
    {"rate_limited", "engine_unavailable", "refused"}
)
"""Such a run has used nothing, unless it tells otherwise."""


def run_metered(context: RunContext, attempt: Attempt) -> Outcome:
    """Run one engine as `run_engine` does, if there are tokens for it.

    Else it waits as `budget`, and `retry_at` says until when; without one no tokens are left for
    its task, ever.
    Crash: see `tasks/usage.py`.
    """
    book, cancel, engine = context.usage, attempt.cancel, attempt.choice.engine.name
    model = attempt.choice.model or context.settings.model_of(engine)
    facts = attempt.run_id, attempt.number, attempt.role, engine, model, attempt.input.task
    try:
        meter = context.insist(lambda: book.begin(*facts))
    except StorageError as error:
        return Failed("engine_unavailable", str(error))
    if isinstance(meter, BudgetHold):
        said = held_words(meter)
        return Failed("budget", said, retry_at=meter.until)

    def heard(kind: EventKind, text: str, data: dict[str, object]) -> None:
        if kind == "usage" and meter is not None:
            with contextlib.suppress(ValidationError):
                meter.told = Usage.model_validate(data, strict=False)
            if meter.is_over:
                cancel.cancel("budget")
        else:
            attempt.on_event(kind, text, data)

    told: Outcome | None = None
    try:
        told = outcome = run_engine(context, replace(attempt, on_event=heard))
    finally:
        if meter is not None:
            _settle(context, meter, told, cancel)
    if meter is not None and outcome.status != "done":
        outcome = replace(outcome, usage=outcome.usage if outcome.usage.tokens else meter.told)
        if cancel.reason == "budget":
            said = held_words(BudgetHold("task", meter.cap, meter.cap))
            outcome = Failed(
                "budget", said, outcome.text, usage=outcome.usage, session_id=outcome.session_id
            )
    return outcome


def held_words(hold: BudgetHold) -> str:
    """Why a run waits, or has to end, in plain words; those of pages are in the catalogue."""
    what = {
        "day": f"the {hold.cap:,} tokens of today are used up (`daily_tokens`)",
        "trigger": f"its trigger has used its {hold.cap:,} tokens of today "
        "(`per_trigger_daily_tokens`)",
        "task": f"the task has used its {hold.cap:,} tokens (`per_task_tokens` in [budget] allows "
        "no more)",
    }
    return what[hold.held_for]


def _settle(
    context: RunContext, meter: RunMeter, outcome: Outcome | None, cancel: CancelToken
) -> None:
    """Write down what a run has used; where its engine told nothing, about how much that was.

    At a stop on a disk that refuses nothing is written.
    """
    usage, estimated = used_by(meter, outcome, has_begun=cancel.has_begun)
    if usage is not None:
        with contextlib.suppress(StorageError):
            context.insist(lambda: context.usage.settle(meter, usage, estimated=estimated))
    context.feed.tell("usage")


def used_by(
    meter: RunMeter, outcome: Outcome | None, *, has_begun: bool
) -> tuple[Usage | None, bool]:
    """What a run has used (None: nothing), and whether that is estimated. Pure."""
    if outcome is None:
        return (meter.told, True) if meter.told.tokens else (None, False)
    if outcome.usage.tokens:
        return outcome.usage, False
    if meter.told.tokens:  # it was cut short: what it was at by then is not known
        return meter.told, True
    if not has_begun or outcome.reason in _TURNED_AWAY:
        return None, False
    return Usage(input_tokens=outcome.asked, output_tokens=tokens.count(outcome.text)), True
