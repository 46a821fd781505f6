"""The engine `builtin`: an honest assistant without a model, for every role."""

from __future__ import annotations

import contextlib
import importlib
import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mimikit.engines.base import EngineRequest, Outcome, TaskLine
from mimikit.language import phrases
from mimikit.language.phrases import say
from mimikit.protocol.models import Question, Role
from mimikit.protocol.watch import BoundedThread

if TYPE_CHECKING:
    from mimikit.engines.builtin.shell_lines import IsProgram

_SENTENCES = "mimikit.engines.builtin.assistant"
"""To read in what it knows takes seconds on a busy machine."""
Summarise = Callable[[str], str]
"""Makes the summary that a prompt asks for; empty when it can not."""


class BuiltinEngine:
    """Answers, plans commands, and declines what needs a mind."""

    name = "builtin"

    def __init__(
        self,
        is_program: IsProgram | None = None,
        summarise: Summarise | None = None,
        *,
        aside: bool = False,
    ) -> None:
        """Without `is_program` the PATH is asked; without `summarise` summaries are declined.

        aside: its sentences are read in on a thread of their own, whoever asks is not held up.
        """
        self._is_program: IsProgram = is_program or (lambda word: shutil.which(word) is not None)
        self._summarise = summarise
        self._has_sentences = not aside
        self._reading: BoundedThread | None = None

    def unavailable(self, role: Role | None = None) -> str | None:
        return None

    def is_ready(self) -> bool:
        if not self._has_sentences and (self._reading is None or not self._reading.is_alive()):
            self._reading = BoundedThread(self._read_in, "sentences")
            with contextlib.suppress(RuntimeError, MemoryError):  # no thread: the next ask tries
                self._reading.start()
        return self._has_sentences

    def _read_in(self) -> None:
        with contextlib.suppress(OSError, ImportError, MemoryError):  # the next ask tries
            importlib.import_module(_SENTENCES)
            self._has_sentences = True

    def understands(self, text: str, tasks: Callable[[], Sequence[TaskLine]]) -> bool:
        """Whether a message is exactly a command: to run, to cancel, to show how it goes."""
        from mimikit.engines.builtin import assistant

        return assistant.is_command(text, tasks, self._is_program)

    def answers(
        self, text: str, tasks: Callable[[], Sequence[TaskLine]], question: Question | None
    ) -> bool:
        """Whether it needs no mind for a message: a sentence it knows, or an option chosen."""
        from mimikit.engines.builtin import assistant

        options = question.options if question else ()
        return assistant.is_answered(text, tasks, options, self._is_program)

    def run(self, request: EngineRequest) -> Outcome:
        if request.cancel.reason is not None:
            return Outcome.stopped(request.cancel.reason)
        if request.role != "worker":
            # Only here: to read in its sentences takes a tenth of a start, and where another engine
            # serves these roles nobody needs them.
            from mimikit.engines.builtin import assistant, planner

            if request.role == "teller":
                return assistant.Turn(request, self._is_program).take()
            return planner.plan(request, self._is_program)
        task = request.input.task
        if self._summarise is not None and task is not None and task.covers is not None:
            # The text's own sentences, as no mind is there to write others.
            return Outcome("done", self._summarise(task.prompt) or "- (nothing of note)")
        prompt = task.prompt if task else request.prompt
        error = say("worker_unavailable", phrases.language(prompt, request.input.locale))
        request.on_event("note", error, {})
        return Outcome("failed", error=error, failure_reason="engine_unavailable")
