"""Runs an engine within the token budget; gives what is too long for it to the next one."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from pydantic import ValidationError

from mimikit.engines.base import EventKind, Failed, Outcome
from mimikit.engines.circuit import is_rejection
from mimikit.errors import StorageError
from mimikit.language import phrases
from mimikit.memory import tokens
from mimikit.protocol.models import FailureReason, Usage
from mimikit.roles.run import Attempt, RunContext, RunOutput, language_of, run_engine, sentence
from mimikit.tasks.usage import BudgetHold, RunMeter

_UNUSED: frozenset[FailureReason] = frozenset({"rate_limited", "engine_unavailable", "refused"})
"""Such a run used no tokens, unless the engine reports some."""


def run_with_failover(context: RunContext, attempt: Attempt) -> Outcome:
    """Run it; what never fits an engine is given whole to the next of the role's order.

    Crash: nothing of that is saved, so another attempt begins with the first engine.
    """
    task, language = attempt.input.task, language_of(attempt.input)
    profile = task.profile if task else "standard"
    tried: list[str] = []
    notices: tuple[str, ...] = ()
    too_long: Failed | None = None
    while True:
        name = attempt.choice.engine.name
        outcome = replace(run_metered(context, attempt), engine=name)
        if isinstance(outcome, Failed) and outcome.too_long:
            too_long = outcome
        elif too_long is None or not is_rejection(outcome):
            return replace(outcome, notices=(*notices, *outcome.notices))
        facts = {"engine": too_long.engine, "error": sentence(too_long.error)}
        tried.append(name)
        choice = context.engines.next_choice(attempt.role, profile, tried)
        if choice is None or too_long.acted:
            return replace(too_long, error=phrases.say("context_too_long", language, **facts))
        facts |= {"other": choice.engine.name}
        notices += (phrases.say("context_next_engine", language, **facts),)
        RunOutput(context, attempt).event("note", notices[-1], {})
        attempt = replace(attempt, choice=choice)
        attempt.cancel.has_begun = False  # nothing was done yet


def run_metered(context: RunContext, attempt: Attempt) -> Outcome:
    """Run the engine unless the token budget is used up: then fails as `budget`.

    Crash: see `tasks/usage.py`.
    """
    book, cancel, engine = context.usage, attempt.cancel, attempt.choice.engine.name
    model = attempt.choice.model or context.settings.model_of(engine)
    facts = attempt.run_id, attempt.number, attempt.role, engine, model, attempt.input.task
    try:
        meter = context.retry_on_storage_error(lambda: book.begin(*facts))
    except StorageError as error:
        return Failed("engine_unavailable", str(error))
    if isinstance(meter, BudgetHold):
        message = hold_message(meter)
        return Failed("budget", message, retry_at=meter.until)

    def on_event(kind: EventKind, text: str, data: dict[str, object]) -> None:
        if kind == "usage" and meter is not None:
            with contextlib.suppress(ValidationError):
                meter.reported = Usage.model_validate(data, strict=False)
            if meter.is_over:
                cancel.cancel("budget")
        else:
            attempt.on_event(kind, text, data)

    settled: Outcome | None = None
    try:
        settled = outcome = run_engine(context, replace(attempt, on_event=on_event))
    finally:
        if meter is not None:
            usage, estimated = used_by(meter, settled, has_begun=cancel.has_begun)
            if usage is not None:
                with contextlib.suppress(StorageError):
                    context.retry_on_storage_error(
                        lambda: book.settle(meter, usage, estimated=estimated)
                    )
            context.feed.publish("usage")
    if meter is not None and outcome.status != "done":
        outcome = replace(outcome, usage=outcome.usage if outcome.usage.tokens else meter.reported)
        if cancel.reason == "budget":
            message = hold_message(BudgetHold("task", meter.cap, meter.cap))
            outcome = Failed(
                "budget", message, outcome.text, usage=outcome.usage, session_id=outcome.session_id
            )
    return outcome


def hold_message(hold: BudgetHold) -> str:
    messages = {
        "day": f"the {hold.cap:,} tokens of today are used up (`daily_tokens`)",
        "trigger": f"its trigger has used its {hold.cap:,} tokens of today "
        "(`per_trigger_daily_tokens`)",
        "task": f"the task has used its {hold.cap:,} tokens (`per_task_tokens` in [budget])",
    }
    return messages[hold.held_for]


def used_by(
    meter: RunMeter, outcome: Outcome | None, *, has_begun: bool
) -> tuple[Usage | None, bool]:
    """The usage of a run, and whether it is estimated. Pure."""
    if outcome is None:
        return (meter.reported, True) if meter.reported.tokens else (None, False)
    if outcome.usage.tokens:
        return outcome.usage, False
    if meter.reported.tokens:  # a canceled run: its last report is a lower bound
        return meter.reported, True
    is_refused = isinstance(outcome, Failed) and outcome.never_fits
    if not has_begun or is_refused or outcome.reason in _UNUSED:
        return None, False
    return Usage(input_tokens=outcome.prompt_tokens, output_tokens=tokens.count(outcome.text)), True
