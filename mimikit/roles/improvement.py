"""Carries out an improvement of self-awake: in a copy of the repository, checked and reviewed.

Crash: nothing but the branch reaches the user's repository, last and in one step; a rerun begins
with a fresh copy, unless the branch is there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from mimikit.config import asset_folder
from mimikit.engines import process
from mimikit.engines.base import CancelToken, Done, Failed, Outcome, TurnInput
from mimikit.engines.registry import EngineChoice
from mimikit.errors import BadInput, EngineError
from mimikit.language import phrases
from mimikit.language.phrases import fence
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import MAX_TEXT, Task
from mimikit.roles.metering import run_metered
from mimikit.roles.prompts import REVIEW
from mimikit.roles.run import Attempt, RunContext
from mimikit.roles.scratch import make_scratch, remove_scratch
from mimikit.roles.worktree import BRANCHES
from mimikit.sandbox import programs
from mimikit.sandbox.worker import BoxSpec, WorkerSandbox, python_folders
from mimikit.tools.session import Effects

_SUMMARY_CHARACTERS, _OUTPUT_CHARACTERS, _DIFF_LINES = 600, 2000, 20
_RULES = """

You work in a copy of the repository of your own. Change as little as does the job, in files of this
folder only. Commit nothing, make no links, and leave nothing that a test or a build has made. If
there is nothing to be done, change nothing and say so."""


def improvement_plan(
    context: RunContext, task: Task, effects: Effects, outcome: Outcome
) -> Outcome:
    """Complete the one task of an improvement's plan; any other plan fails."""
    if outcome.status != "done":
        return outcome
    others = effects.triggers or effects.cancels or effects.commands or effects.question
    if others or len(effects.tasks) > 1:
        return Failed("refused", "expected a plan of at most one task, and nothing else")
    effects.tasks = [
        one.but(
            improvement=task.improvement,
            prompt=one.prompt + _RULES,
            profile="standard",
            priority=0,
            timeout=context.settings.self_awake.timeout,
            max_attempts=2,
            notify="message",
        )
        for one in effects.tasks
    ]
    return outcome


@dataclass(frozen=True, slots=True)
class ImprovementRun:
    context: RunContext
    task: Task
    choice: EngineChoice
    cancel: CancelToken

    def prepare(self) -> Path | Outcome:
        """A folder to work in, or why none is needed."""
        context, name = self.context, self.task.improvement or ""
        if context.worktrees.branches(context.workspace, name):  # a crash came before the result
            return self._committed(name)
        if name.startswith("memory-"):  # notes are no files of the repository
            return self._proposal("self_awake_notes")
        try:
            return context.worktrees.create(context.workspace, name)
        except BadInput as error:
            return self._proposal("self_awake_proposed", reason=str(error))

    def finish(self, folder: Path, outcome: Outcome) -> Outcome:
        """After the Worker: a branch, or why there is none; the folder goes."""
        try:
            judged = self._judged(folder, outcome) if outcome.status == "done" else outcome
        except (BadInput, EngineError) as error:
            judged = Failed("refused", str(error), outcome.text)
        finally:
            self.context.worktrees.remove()
        return replace(judged, usage=outcome.usage, engine=outcome.engine)

    def _judged(self, folder: Path, outcome: Outcome) -> Outcome:
        context, name = self.context, self.task.improvement or ""
        workspace, worktrees = context.workspace, context.worktrees
        own = [context.state, asset_folder("prompts")]
        stat, diff = worktrees.commit(workspace, name, self.task.title or name, own)
        for line in context.settings.self_awake.checks:
            self._check(line, folder)
        review = self._review(diff, folder)
        if review.status != "done":
            return review
        if not re.match(r"\W*yes\b", review.text, re.IGNORECASE):
            raise BadInput(f"the review did not agree: {review.text.strip()[:1000]}")
        worktrees.publish(workspace, name)
        shown = "\n".join(diff.splitlines()[:_DIFF_LINES])
        return self._committed(name, outcome.text.strip()[:_SUMMARY_CHARACTERS], stat, shown)

    def _committed(self, name: str, *parts: str) -> Outcome:
        branch = BRANCHES + name
        head = phrases.say("self_awake_committed", self.task.locale or "en", branch=branch)
        return Done(phrases.paragraphs(head, *parts), data={"branch": branch})

    def _proposal(self, key: str, **values: str) -> Outcome:
        head = phrases.say(key, self.task.locale or "en", **values)
        prompt = self.task.prompt.removesuffix(_RULES)
        return Done(phrases.paragraphs(head, self.task.title, prompt))

    def _check(self, line: str, folder: Path) -> None:
        """Run a check of the owner in the box. Raises BadInput, EngineError if it fails."""
        state, settings = self.context.state, self.context.settings
        sandbox, scratch = WorkerSandbox(settings.sandbox, state), make_scratch(state)
        box = BoxSpec(folder, scratch, shown=python_folders())
        timeout_s = settings.self_awake.timeout
        try:
            if reason := sandbox.why_unsafe(box):
                raise EngineError(reason)
            argv = sandbox.argv([programs.find("bash") or "/bin/sh", "-c", line], box)
            code, *output = process.output(
                argv, cwd=folder, timeout_s=timeout_s, cancel=self.cancel
            )
        finally:
            remove_scratch(scratch)
        if code != 0:
            said = "\n".join(output)[-_OUTPUT_CHARACTERS:]
            raise BadInput(f"the check {line!r} ended with {code}: {said}")

    def _review(self, diff: str, folder: Path) -> Outcome:
        """Ask an engine, which can only read, whether the owner would want the change."""
        task, context = self.task, self.context
        values = {"task": fence(task.prompt, least=5), "change": fence(diff, least=5)}
        prompt = context.prompts.fill(REVIEW, values)
        if len(prompt) > MAX_TEXT:
            raise BadInput("the change is too large for a review")
        id_ = derived_id("task", task.id, "review")
        asked = task.but(id=id_, title=REVIEW, prompt=prompt, internal=True)
        turn_input = TurnInput(context.clock.now(), task.timezone or "UTC", "en", task=asked)
        number, choice = task.attempts + 1, self.choice
        attempt = Attempt(id_, number, "worker", turn_input, choice, self.cancel, workspace=folder)
        return run_metered(context, attempt)
