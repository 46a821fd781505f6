"""Asks a model about `llm_eval` conditions: all that are due in one internal run.

The interval doubles while the answers stay false and no event occurs.
"""

from __future__ import annotations

import itertools
import json
import re
from datetime import datetime, timedelta
from typing import cast

from mimikit.language.phrases import fence
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Task, time_text
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import NodeAnswer
from mimikit.roles.run import RunContext
from mimikit.supervisor.store import Store
from mimikit.supervisor.trigger_scheduler import TriggerScheduler
from mimikit.tasks import queue
from mimikit.triggers import conditions, registry

TEMPLATE = "llm-eval-batch"
PROFILE = "standard"
MOST_AT_ONCE = 50
LONGEST_PAUSE_S = 3600.0
MOST_CHARACTERS = 150_000
_CHECK_EVERY = timedelta(seconds=5)
_TRIES = 50
"""Brackets that are tried as the beginning of the JSON answer."""


class LlmEvalBatch:
    def __init__(self, store: Store, triggers: TriggerScheduler, context: RunContext) -> None:
        self._store, self._triggers, self._context = store, triggers, context
        self._checked_at: datetime | None = None
        self._events_when_asked: dict[str, int] = {}
        """Trigger → the scheduler's event count when it was last asked."""

    def step(self, now: datetime) -> bool:
        last = self._checked_at
        is_early = last is not None and abs(now - last) < _CHECK_EVERY
        if is_early or not self._triggers.asks:
            return False
        self._checked_at = now
        asking, files = self._store.runtime.asking, self._store.files
        is_asking = asking and queue.where(files, "worker", asking) in ("queued", "running")
        if is_asking or self.unavailable() is not None:
            return False
        due: dict[str, dict[str, str]] = {}
        room, space = MOST_AT_ONCE, MOST_CHARACTERS
        for trigger_id, prompts in sorted(self._triggers.asks.items()):
            size = sum(len(json.dumps(prompt)) for prompt in prompts.values())
            if len(prompts) <= room and size <= space and self._is_due(trigger_id, now):
                due[trigger_id] = prompts
                room, space = room - len(prompts), space - size
        if due:
            self._ask(due, now)
        return bool(due)

    def unavailable(self) -> str | None:
        choice = self._context.engines.for_role("worker", PROFILE)
        if choice.waiting:
            return choice.waiting
        return "no language model is connected" if choice.engine.name == "builtin" else None

    def apply_answers(self, task: Task, result: TaskResult) -> None:
        """Store the answers, then have the conditions evaluated; an unusable answer counts as no.

        A failed run only lengthens the interval. Crash: the run ends after this, so it is repeated.
        """
        answers = parse_answers(result.text, task.prompt) if result.status == "done" else None
        if answers is None:
            self._store.log.write(
                "audit", "answers_unusable", taskId=task.id, status=result.status,
                text=result.text[:500],
            )  # fmt: skip
            answers = {}
        files = self._store.files
        for trigger_id in task.source_trigger_ids or []:
            trigger, _ = registry.active(files, trigger_id)
            if trigger is None or trigger.condition is None:
                continue
            new: dict[str, NodeAnswer] = {}
            for path, prompt in conditions.questions(trigger.condition).items():
                # A statement that was edited meanwhile has another id.
                id_ = _question_id(task.created_at, trigger_id, path, prompt)
                if result.status == "done" and id_ in task.prompt:
                    new[path] = NodeAnswer(result=answers.get(id_, False), at=result.completed_at)
            state = registry.state(files, trigger_id)
            streak = 0 if any(answer.result for answer in new.values()) else state.false_streak + 1
            noted = state.but(answers={**state.answers, **new}, false_streak=streak)
            registry.save_state(files, trigger_id, noted)
            shown = ", ".join(f"{path}: {answer.result}" for path, answer in new.items())
            self._store.log.write("audit", "llm_eval", triggerId=trigger_id, answers=shown)
            self._triggers.index.mark_due(trigger_id)

    def _ask(self, due: dict[str, dict[str, str]], now: datetime) -> None:
        """Queue the run. Crash: its id is saved first, so that no second run starts beside it."""
        lines = [
            json.dumps({"id": _question_id(now, trigger_id, path, prompt), "statement": prompt})
            for trigger_id, prompts in due.items()
            for path, prompt in prompts.items()
        ]
        statements = fence("\n".join(lines), "json")
        task = Task(
            id=derived_id("task", TEMPLATE, time_text(now), *due),
            profile=PROFILE,
            title=TEMPLATE,
            prompt=self._context.prompts.fill(TEMPLATE, {"statements": statements}),
            created_at=now,
            trace_id=derived_id("trace", TEMPLATE, time_text(now)),
            source_trigger_ids=list(due),
            internal=True,
            notify="none",
            origin="supervisor",
        )
        self._store.save_runtime(asking=task.id)
        queue.submit(self._store.files, task)
        for trigger_id in due:
            state = registry.state(self._store.files, trigger_id)
            registry.save_state(self._store.files, trigger_id, state.but(last_eval_at=now))
            self._events_when_asked[trigger_id] = self._triggers.event_count
        self._store.log.write("audit", "llm_eval_asked", taskId=task.id, triggers=len(due))

    def _is_due(self, trigger_id: str, now: datetime) -> bool:
        state = registry.state(self._store.files, trigger_id)
        if state.last_eval_at is None or state.last_eval_at > now:
            return True
        quiet = self._events_when_asked.setdefault(trigger_id, self._triggers.event_count)
        streak = state.false_streak if quiet == self._triggers.event_count else 0
        interval = self._store.settings.triggers.llm_eval_interval_s
        pause = min(interval * 2 ** min(streak, 20), max(interval, LONGEST_PAUSE_S))
        return now - state.last_eval_at >= timedelta(seconds=pause)


def parse_answers(text: str, prompt: str) -> dict[str, bool] | None:
    """The answers in a model's text: its first JSON array that answers an id in `prompt`.

    Other entries are skipped; None: there is no such array.
    """
    for start in itertools.islice((found.start() for found in re.finditer(r"\[", text)), _TRIES):
        try:
            value: object = json.JSONDecoder().raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
        found: dict[str, bool] = {}
        for entry in cast("list[object]", value):
            match entry:
                case {"id": str(id_), "result": bool(result)} if f'"{id_}"' in prompt:
                    found[id_] = result
                case _:
                    pass
        if found:
            return found
    return None


def _question_id(asked_at: datetime, trigger_id: str, path: str, prompt: str) -> str:
    """The id of one question of one run; no other statement can guess it."""
    return derived_id("q", time_text(asked_at), trigger_id, path, prompt)
