"""What an engine is told: a role's template, and its input in words within its budgets.

Templates are shipped with the product; the user's own in the state folder go before them.
"""

from __future__ import annotations

import re

from mimikit.assets import asset_folder
from mimikit.config import BudgetSettings
from mimikit.engines.base import TurnInput
from mimikit.errors import BadSettings
from mimikit.memory import tokens
from mimikit.protocol.files import Files
from mimikit.protocol.models import time_text

NAMES = ("teller", "planner", "worker", "llm-eval-batch", "daily-summary", "monthly-summary")
PLACEHOLDERS = frozenset(
    {"tools", "workspace", "now", "timezone", "statements", "period", "messages"}
)
NEEDED = {
    "llm-eval-batch": "statements",
    "daily-summary": "messages",
    "monthly-summary": "messages",
}
"""Without it the answer would be made of nothing, and taken for one of something."""
FIRST_LINE = "You are the Mimikit runtime teller."
MAX_RESULT_CHARACTERS = 2000
MAX_UPSTREAM_CHARACTERS = 4000
_PLACEHOLDER = re.compile(r"\{\{\s*([a-zA-Z_]*)\s*\}\}")


class Prompts:
    """The templates in force."""

    def __init__(self, files: Files) -> None:
        """Read and check every template.

        Raises:
            BadSettings: one is missing or empty, names an unknown placeholder, or lacks one.
        """
        self._templates = {name: _read(files, name) for name in NAMES}

    def fill(self, name: str, values: dict[str, str]) -> str:
        return _PLACEHOLDER.sub(lambda m: values.get(m.group(1), ""), self._templates[name])


def _read(files: Files, name: str) -> str:
    own = files.read(f"prompts/{name}.md")
    where = f".mimikit/prompts/{name}.md" if own is not None else f"prompts/{name}.md (shipped)"
    if own is None:
        path = asset_folder("prompts") / f"{name}.md"
        if not path.is_file():
            raise BadSettings(
                f"{where}: expected a prompt template, got none; install mimikit anew"
            )
        own = path.read_bytes()
    text = own.decode("utf-8", "replace").strip()
    if not text:
        raise BadSettings(
            f"{where}: expected a prompt template, got an empty file; fill or remove it"
        )
    named = _PLACEHOLDER.findall(text)
    for found in named:
        if found not in PLACEHOLDERS:
            known = ", ".join(sorted(PLACEHOLDERS))
            raise BadSettings(f"{where}: expected placeholders among {known}; got {found!r}")
    if name in NEEDED and NEEDED[name] not in named:
        raise BadSettings(
            f"{where}: expected {{{{{NEEDED[name]}}}}} where the data goes, got none; "
            "add it or remove the file"
        )
    return text


# ---- the input in words; pure


def teller_prompt(turn_input: TurnInput, budgets: BudgetSettings) -> str:
    """The Teller's turn in words: labelled blocks of data, the input last."""
    question = ""
    if turn_input.question is not None:
        q = turn_input.question
        options = f"\noptions: {', '.join(q.options)}" if q.options else ""
        question = _section("Question", f"[{q.question_id}] {q.question}{options}")
    inputs: list[str] = []
    for item in turn_input.inputs:
        quote = f"(quoting: {tokens.cut(item.quote, 300)})\n" if item.quote else ""
        text = tokens.cut_tokens(item.text, budgets.input_tokens)
        inputs.append(f"[{item.id}] {quote}{text}")
    body = [question, _section("Input", "\n\n".join(inputs)), _environment(turn_input)]
    return "\n\n".join([FIRST_LINE, *_blocks(turn_input, budgets), *body]).replace(
        "\n\n\n\n", "\n\n"
    )


def planner_prompt(turn_input: TurnInput, budgets: BudgetSettings) -> str:
    """The Planner's turn in words: its request with the context it came from."""
    request = turn_input.task.prompt if turn_input.task else ""
    asked = _section("Request", tokens.cut_tokens(request, budgets.input_tokens))
    return "\n\n".join([*_blocks(turn_input, budgets), asked, _environment(turn_input)])


def worker_prompt(turn_input: TurnInput, folder: str) -> str:
    """A Worker's task in words, with the results it builds on; their whole text is in `folder`."""
    parts = [turn_input.task.prompt if turn_input.task else ""]
    if turn_input.upstream:
        told = [
            f"[{r.id}] {r.status}\n{tokens.cut(r.text, MAX_UPSTREAM_CHARACTERS)}"
            for r in turn_input.upstream
        ]
        parts.append(_section("Upstream results", "\n\n".join(told)))
        parts.append(f"The whole of each stands in {folder}, in a file named by its id.")
    return "\n\n".join(parts)


def _blocks(turn_input: TurnInput, budgets: BudgetSettings) -> list[str]:
    conversation = [
        f"{time_text(m.created_at)} {m.role}: {m.text}"
        for m in tokens.fit(
            list(turn_input.conversation),
            budgets.conversation_tokens,
            most=budgets.conversation_messages,
            least=budgets.conversation_least,
        )
    ]
    memory = [f"[{hit.source}] {hit.text}" for hit in turn_input.memory[: budgets.memory_hits]]
    tasks = [f"{task.id} [{task.state}] {task.title}" for task in turn_input.tasks]
    results = [
        f"[{r.task_id}] {r.title} — {r.status}"
        + (f" ({r.failure_reason})" if r.failure_reason else "")
        + "\n"
        + tokens.cut(r.text or r.error or "", MAX_RESULT_CHARACTERS)
        for r in turn_input.results
    ]
    sections = [
        _section("Conversation", "\n".join(conversation)),
        _section("Memory", "\n".join(tokens.fit_parts(memory, budgets.memory_tokens))),
        _section("Tasks", "\n".join(tokens.fit_parts(tasks, budgets.tasks_tokens))),
        _section("Results", "\n\n".join(tokens.fit_parts(results, budgets.results_tokens))),
    ]
    return [section for section in sections if section]


def _environment(turn_input: TurnInput) -> str:
    at = time_text(turn_input.now)
    text = f"now: {at}\ntimezone: {turn_input.timezone}\nlocale: {turn_input.locale}"
    return _section("Environment", text)


def _section(label: str, body: str) -> str:
    """A fenced block: data, whatever it says. The fence is longer than any inside it."""
    if not body:
        return ""
    fence = "```"
    while fence in body:
        fence += "`"
    return f"## {label}\n{fence}text\n{body}\n{fence}"
