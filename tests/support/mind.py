"""A deterministic fake engine: its answer follows from the prompt, in a small test language.

Teller: `plan: …` is delegated word for word · `fail…` fails · `remember …`, `backlog …` are done ·
`wait…` calls the hook · anything else is heard. Planner: `plan: a; b` plans a task for each part ·
`ask: … | a; b` asks first · `every 60: x` schedules · `chain: a > b` chains · `change: id action`
changes a trigger · `find: …` finds and tells. Worker: `bad…` fails, `bad anew` each time in
another way · `flaky…` fails at its first attempt · `session` in it begins one · `long` tells much ·
`change a` says it changed the file a, and fails but for the last attempt · anything else is done. A
plan or part that holds `~` calls the hook while it runs. `limited` is turned away the first time,
`patient` too, for a quarter of an hour. Summaries of memory count what they cover. An improvement
is planned, made and agreed to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from mimikit.engines.base import Canceled, Done, Failed, Outcome, RunSpec
from mimikit.protocol.models import Role, SummaryScope, Usage

PATIENCE_S = 900
USED = Usage(input_tokens=90, cached_input_tokens=40, output_tokens=10)
"""Usage of each run that is not rate-limited."""


class Mind:
    """Serves every role. `runs` is the list outside the state folder to which each run appends."""

    name = "scripted"

    def __init__(self, runs: list[tuple[str, int]]) -> None:
        self.runs = runs
        self.resumed = list[str | None]()
        """The session that each run was to resume."""
        self.waiting: str | None = None
        self.heals = False
        """Whether `bad` prompts succeed from now on."""
        self.hook: Callable[[RunSpec], None] = lambda request: None

    def unavailable(self, role: Role | None = None) -> str | None:
        return self.waiting

    def run(self, request: RunSpec) -> Outcome:
        self.runs.append((request.run_id, request.attempt))
        self.resumed.append(request.resume)
        outcome = {"teller": self._teller, "planner": self._planner, "worker": self._worker}[
            request.role
        ](request)
        if request.cancel.reason is not None:
            return Canceled()
        return outcome if outcome.reason == "rate_limited" else replace(outcome, usage=USED)

    def _teller(self, request: RunSpec) -> Outcome:
        said: list[str] = []
        for item in request.input.inputs:
            text = item.text
            if text == "limited" and self.runs.count((request.run_id, request.attempt)) == 1:
                return Failed("rate_limited", "wait")
            if text.startswith("wait"):
                self.hook(request)
            if text.startswith("fail"):
                return Failed("error", "the mind fails")
            if text.startswith(("plan:", "ask:", "every", "find:", "chain:", "change:")):
                reply = request.tools.call("delegate", {"prompt": text})
                said.append(reply.text)
            elif text.startswith("remember "):
                request.tools.call("remember", {"content": text[9:], "longTerm": "long" in text})
                said.append("kept")
            elif text.startswith("forget "):
                request.tools.call("forget", {"what": text[7:]})
                said.append("gone")
            elif text.startswith("backlog "):
                request.tools.call("update_backlog", {"action": "add", "item": text[8:]})
                said.append("noted")
            elif text.startswith("cancel "):
                request.tools.call("cancel_task", {"id": text[7:]})
                said.append("canceling")
            elif text.startswith("wonder "):
                request.tools.call("ask_user", {"question": text[7:], "timeout": 600})
            else:
                said.append(f"heard {text}")
        said += [f"{result.task_id} is {result.status}" for result in request.input.results]
        return Done("\n".join(said))

    def _planner(self, request: RunSpec) -> Outcome:
        prompt = request.input.task.prompt if request.input.task else ""
        head, _, rest = prompt.partition(":")
        if "~" in prompt:
            self.hook(request)
        if prompt.startswith("Nobody needs anything"):
            request.tools.call("delegate", {"prompt": "improve", "title": "improve"})
            return Done("planned")
        if head == "ask" and "The user answered:" not in prompt:
            question, _, default = rest.partition("|")
            arguments: dict[str, object] = {"question": question.strip(), "timeout": 600}
            if default.strip().startswith("default"):
                arguments["default"] = "red"
            request.tools.call("needs_input", arguments)
            return Done("needs to know")
        if head == "ask":
            answer = prompt.rpartition("The user answered:")[2].strip()
            request.tools.call("delegate", {"prompt": f"paint {answer}", "title": "paint"})
            return Done("painting")
        if head.startswith("every"):
            interval = float(head.split()[1])
            request.tools.call("schedule", {"prompt": rest.strip(), "interval": interval})
            return Done("scheduled")
        if head == "plan":
            for part in rest.split(";"):
                request.tools.call("delegate", {"prompt": part.strip(), "title": part.strip()})
            return Done("planned")
        if head in ("change", "chain"):
            return self._about_triggers(request, head, rest)
        if "bad" in rest:
            return Failed("error", "no plan")
        return Done(f"found{rest}")

    def _about_triggers(self, request: RunSpec, head: str, rest: str) -> Outcome:
        if head == "change":
            for part in rest.split(";"):
                trigger_id, action = part.split()
                request.tools.call("change_trigger", {"id": trigger_id, "action": action})
            return Done("changed")
        before: list[str] = []
        for part in rest.split(">"):
            step = part.strip()
            arguments = {"prompt": step, "title": step, "label": step, "after": before}
            request.tools.call("delegate", arguments)
            before = [step]
        return Done("chained")

    def _worker(self, request: RunSpec) -> Outcome:
        task = request.input.task
        prompt = task.prompt if task else ""
        if "~" in prompt:
            self.hook(request)
        if prompt.startswith("A program made the change"):
            return Done("yes")
        if prompt.startswith("Decide for each statement"):
            return Done(_judged(prompt))
        if task is not None and task.covers is not None:
            return _summed_up(prompt, task.covers)
        if "session" in prompt and request.resume is None:
            request.callbacks.on_session(f"session-{request.attempt}")
        if (prompt.startswith("bad") and not self.heals) or (
            prompt.startswith("flaky") and request.attempt == 1
        ):
            how = f" ({request.run_id})" if "anew" in prompt else ""
            return Failed("error", f"it broke{how}", exit_code=1)
        if prompt.startswith("change "):
            request.callbacks.on_event("file", prompt.removeprefix("change "), {"kind": "add"})
            if request.attempt < (task.max_attempts if task else 1):
                return Failed("error", "not yet")
        is_first = self.runs.count((request.run_id, request.attempt)) == 1
        if prompt.startswith("limited") and is_first:
            return Failed("rate_limited", "wait")
        if (
            prompt.startswith("patient")
            and [id_ for id_, _ in self.runs].count(request.run_id) == 1
        ):
            until = request.input.now + timedelta(seconds=PATIENCE_S)
            return Failed("rate_limited", "wait", retry_at=until)
        if prompt == "long":
            return Done("a long story " * 100)
        return Done(f"did {prompt}")


def _summed_up(prompt: str, covers: SummaryScope) -> Outcome:
    """What is `unspeakable` is never summed up, what is `difficult` not at the first attempt."""
    if "unspeakable" in prompt or ("difficult" in prompt and covers.attempt == 0):
        return Failed("error", "it broke")
    return Done(f"- {covers.name}: {len(covers.sources)} things")


def _judged(prompt: str) -> str:
    """Statements that hold `yes` are true; one that holds `babble` is answered by no JSON."""
    lines = [json.loads(line) for line in prompt.splitlines() if line.startswith('{"id"')]
    if any("babble" in line["statement"] for line in lines):
        return "I would rather not say."
    answers = [{"id": line["id"], "result": "yes" in line["statement"]} for line in lines]
    return f"Here it is:\n{json.dumps(answers)}"
