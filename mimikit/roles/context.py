"""What a role is told: the structured brief, and the same in words within its budgets. Pure."""

from __future__ import annotations

from mimikit.config import Budgets
from mimikit.engines.base import Brief
from mimikit.memory import tokens
from mimikit.protocol.models import time_text

FIRST_LINE = "You are the Mimikit runtime teller."
MAX_RESULT_CHARACTERS = 2000
MAX_UPSTREAM_CHARACTERS = 4000


def teller_prompt(brief: Brief, budgets: Budgets) -> str:
    """The Teller's turn in words: labelled blocks of data, the input last."""
    return "\n\n".join(
        [
            FIRST_LINE,
            *_blocks(brief, budgets),
            _question(brief),
            _section("Input", "\n\n".join(_inputs(brief, budgets))),
            _environment(brief),
        ]
    ).replace("\n\n\n\n", "\n\n")


def planner_prompt(brief: Brief, budgets: Budgets) -> str:
    """The Planner's turn in words: its request with the context it came from."""
    request = brief.task.prompt if brief.task else ""
    return "\n\n".join(
        [
            *_blocks(brief, budgets),
            _section("Request", tokens.cut_tokens(request, budgets.input_tokens)),
            _environment(brief),
        ]
    )


def worker_prompt(brief: Brief, folder: str) -> str:
    """A Worker's task in words, with the results it builds on; their whole text is in `folder`."""
    parts = [brief.task.prompt if brief.task else ""]
    if brief.upstream:
        told = [
            f"[{r.id}] {r.status}\n{tokens.cut(r.text, MAX_UPSTREAM_CHARACTERS)}"
            for r in brief.upstream
        ]
        parts.append(_section("Upstream results", "\n\n".join(told)))
        parts.append(f"The whole of each stands in {folder}, in a file named by its id.")
    return "\n\n".join(parts)


def _blocks(brief: Brief, budgets: Budgets) -> list[str]:
    conversation = [
        f"{time_text(m.created_at)} {m.role}: {m.text}"
        for m in tokens.fit(
            list(brief.conversation),
            budgets.conversation_tokens,
            most=budgets.conversation_messages,
            least=budgets.conversation_least,
        )
    ]
    memory = [f"[{hit.source}] {hit.text}" for hit in brief.memory[: budgets.memory_hits]]
    tasks = [f"{task.id} [{task.state}] {task.title}" for task in brief.tasks]
    results = [
        f"[{r.task_id}] {r.title} — {r.status}"
        + (f" ({r.failure_reason})" if r.failure_reason else "")
        + "\n"
        + tokens.cut(r.text or r.error or "", MAX_RESULT_CHARACTERS)
        for r in brief.results
    ]
    sections = [
        _section("Conversation", "\n".join(conversation)),
        _section("Memory", "\n".join(tokens.fit_parts(memory, budgets.memory_tokens))),
        _section("Tasks", "\n".join(tokens.fit_parts(tasks, budgets.tasks_tokens))),
        _section("Results", "\n\n".join(tokens.fit_parts(results, budgets.results_tokens))),
    ]
    return [section for section in sections if section]


def _inputs(brief: Brief, budgets: Budgets) -> list[str]:
    shown: list[str] = []
    for item in brief.inputs:
        quote = f"(quoting: {tokens.cut(item.quote, 300)})\n" if item.quote else ""
        text = tokens.cut_tokens(item.text, budgets.input_tokens)
        shown.append(f"[{item.id}] {quote}{text}")
    return shown


def _question(brief: Brief) -> str:
    if brief.question is None:
        return ""
    q = brief.question
    options = f"\noptions: {', '.join(q.options)}" if q.options else ""
    return _section("Question", f"[{q.question_id}] {q.question}{options}")


def _environment(brief: Brief) -> str:
    lines = [
        f"now: {time_text(brief.now)}",
        f"timezone: {brief.timezone}",
        f"locale: {brief.locale}",
    ]
    return _section("Environment", "\n".join(lines))


def _section(label: str, body: str) -> str:
    """A fenced block: data, whatever it says. The fence is longer than any inside it."""
    if not body:
        return ""
    fence = "```"
    while fence in body:
        fence += "`"
    return f"## {label}\n{fence}text\n{body}\n{fence}"
