"""The engine `builtin`: an assistant without a model, for every role."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mimikit.engines.base import Done, Failed, Outcome, RunSpec, TaskLine, stop_outcome
from mimikit.language import phrases
from mimikit.language.phrases import say
from mimikit.protocol.models import Question, Role

if TYPE_CHECKING:
    from mimikit.engines.builtin.shell_lines import IsProgram

Summarise = Callable[[str], str]
"""Extractive summary of a prompt; empty when it cannot."""


class BuiltinEngine:
    name = "builtin"

    def __init__(
        self, is_program: IsProgram | None = None, summarise: Summarise | None = None
    ) -> None:
        """`is_program`: None searches PATH; `summarise`: None declines summaries."""
        self._is_program: IsProgram = is_program or (lambda word: shutil.which(word) is not None)
        self._summarise = summarise

    def unavailable(self, role: Role | None = None) -> str | None:
        return None

    def understands(self, text: str, tasks: Callable[[], Sequence[TaskLine]]) -> bool:
        from mimikit.engines.builtin import assistant

        return assistant.is_command(text, tasks, self._is_program)

    def answers(
        self, text: str, tasks: Callable[[], Sequence[TaskLine]], question: Question | None
    ) -> bool:
        from mimikit.engines.builtin import assistant

        options = question.options if question else ()
        return assistant.is_answered(text, tasks, options, self._is_program)

    def run(self, request: RunSpec) -> Outcome:
        if request.cancel.reason is not None:
            return stop_outcome(request.cancel.reason)
        if request.role != "worker":
            # Imported late: compiling its patterns takes a tenth of the start-up time.
            from mimikit.engines.builtin import assistant, planner

            if request.role == "teller":
                return assistant.Turn(request, self._is_program).run()
            return planner.plan(request, self._is_program)
        task = request.input.task
        if self._summarise is not None and task is not None and task.covers is not None:
            return Done(self._summarise(task.prompt) or "- (nothing of note)")
        prompt = task.prompt if task else request.prompt
        error = say("worker_unavailable", phrases.language(prompt, request.input.locale))
        request.callbacks.on_event("note", error, {})
        return Failed("engine_unavailable", error)
