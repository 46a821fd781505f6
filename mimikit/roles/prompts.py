"""What an engine is told: a role's template, and its input in words within its budgets.

Templates are shipped with the product; the user's own in the state folder go before them.
"""

from __future__ import annotations

import re
from pathlib import Path

from mimikit.config import BudgetSettings, asset_folder
from mimikit.engines.base import ToolSpec, TurnInput
from mimikit.errors import BadSettings, UnsafeFile
from mimikit.language.phrases import fence
from mimikit.language.plain_text import indented
from mimikit.memory import markdown, tokens
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Role, time_text
from mimikit.tools.world import line_text

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
_MOST_BYTES = 2**20
_MARK_TOKENS = 8
"""Of the mark of a cut, should the newest note alone be too long."""
_EMPTY_LINES = re.compile(r"\n(?:[ \t\r]*\n)+")
_PLACEHOLDER = re.compile(r"\{\{\s*([a-zA-Z_]*)\s*\}\}")


class Prompts:
    """The templates in force."""

    def __init__(self, files: Files) -> None:
        """Read and check every template; in place of what is no text of yours serves ours.

        Raises:
            BadSettings: one is missing or empty, names an unknown placeholder, or lacks one.
        """
        self.passed_over: list[str] = []
        """Files that are no templates, each with its reason: the shipped ones serve for them."""
        self._templates = {name: self._read(files, name) for name in NAMES}

    def fill(self, name: str, values: dict[str, str]) -> str:
        return _PLACEHOLDER.sub(lambda m: values.get(m.group(1), ""), self._templates[name])

    def instructions(
        self, role: Role, turn_input: TurnInput, tools: tuple[ToolSpec, ...], workspace: Path
    ) -> str:
        """What the role is and how it behaves, and which tools it has."""
        values = {
            "tools": "\n".join(f"- `{tool.name}`: {tool.description}" for tool in tools),
            "workspace": str(workspace),
            "now": time_text(turn_input.now),
            "timezone": turn_input.timezone,
        }
        return self.fill(role, values)

    def _read(self, files: Files, name: str) -> str:
        own, shipped = f"{paths.PROMPTS}/{name}.md", asset_folder("prompts") / f"{name}.md"
        try:
            data = files.read(own, most=_MOST_BYTES)
            if data is not None:
                return _checked(f".mimikit/{own}", name, data.decode())
        except (UnsafeFile, UnicodeDecodeError) as error:
            why = str(error) if isinstance(error, UnsafeFile) else f"{own}: {error}"
            self.passed_over.append(f"{why}; the shipped one serves in its place")
        where = f"prompts/{name}.md (shipped)"
        if not shipped.is_file():
            raise BadSettings(
                f"{where}: expected a prompt template, got none; install mimikit anew"
            )
        return _checked(where, name, shipped.read_text("utf-8"))


def _checked(where: str, name: str, text: str) -> str:
    text = text.strip()
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


def prompt_of(role: Role, turn_input: TurnInput, budgets: BudgetSettings, upstream: Path) -> str:
    """A run's input in words: labelled blocks of data, and what is asked.

    At the margin of a block stand only its entries' heads, which are ours; all further lines of
    what others wrote are set in, so that no result or page can pass for a line of the user's.

    upstream: the folder with the whole text of the results a Worker builds on.
    """
    task = turn_input.task.prompt if turn_input.task else ""
    if role == "worker":
        results = [
            indented(f"[{r.id}] {r.status}\n{tokens.cut(r.text, MAX_UPSTREAM_CHARACTERS)}")
            for r in turn_input.upstream
        ]
        where = f"The whole of each stands in {upstream}, in a file named by its id."
        told = [_section("Upstream results", "\n\n".join(results)), where] if results else []
        return "\n\n".join([task, *told])
    blocks = _context_blocks(turn_input, budgets)
    if role == "planner":
        where = paths.running("planner", turn_input.task.id) if turn_input.task else ""
        request = tokens.fit_together([(task, _whole(where))], budgets.input_tokens)
        blocks.append(_section("Request", request[0]))
    else:
        blocks.insert(0, FIRST_LINE)
        if (question := turn_input.question) is not None:
            said = indented(f"[{question.question_id}] {question.question}")
            options = indented(f"options: {', '.join(question.options)}")
            blocks.append(_section("Question", f"{said}\n{options}" if question.options else said))
        inputs: list[tuple[str, str]] = []
        for item in turn_input.inputs:
            quote = f"(quoting: {tokens.cut(item.quote, 300)})\n" if item.quote else ""
            said = indented(f"[{item.id}] {quote}{item.text}")
            inputs.append((said, _whole(paths.inbox(item.id))))
        fitting = tokens.fit_together(inputs, budgets.input_tokens)
        blocks.append(_section("Input", "\n\n".join(fitting)))
    at = time_text(turn_input.now)
    environment = [f"now: {at}", f"timezone: {turn_input.timezone}", f"locale: {turn_input.locale}"]
    blocks.append(_section("Environment", "\n".join(map(indented, environment))))
    return "\n\n".join(block for block in blocks if block)


def _whole(path: str) -> str:
    return f" (all of it: {path})"


def _context_blocks(turn_input: TurnInput, budgets: BudgetSettings) -> list[str]:
    conversation = [
        indented(f"{time_text(m.created_at)} {m.role}: {m.text}")
        for m in tokens.fit(
            list(turn_input.conversation),
            budgets.conversation_tokens,
            most=budgets.conversation_messages,
            least=budgets.conversation_least,
        )
    ]
    hits = turn_input.memory[: budgets.memory_hits]
    memory = [indented(f"[{hit.source}] {hit.text}") for hit in hits]
    tasks = [line_text(task) for task in turn_input.tasks]
    results = [
        indented(
            f"[{r.task_id}] {r.title} — {r.status}"
            + (f" ({r.failure_reason})" if r.failure_reason else "")
            + "\n"
            + tokens.cut(r.text or r.error or "", MAX_RESULT_CHARACTERS)
        )
        for r in turn_input.results
    ]
    left = budgets.memory_tokens - tokens.count(turn_input.user)
    return [
        _section("User", turn_input.user),
        _section("Conversation", "\n".join(conversation)),
        _section("Memory", "\n".join(tokens.fit_parts(memory, left))),
        _section("Tasks", "\n".join(tokens.fit_parts(tasks, budgets.tasks_tokens))),
        _section("Results", "\n\n".join(tokens.fit_parts(results, budgets.results_tokens))),
    ]


def user_block(text: str, budget: int) -> str:
    """What a prompt always has of `memory.md`: whole notes and paragraphs, within tokens.

    Where that is not all of it the newest are kept, which stand last, and it says where all are.
    """
    parts: list[str] = []
    for entry in markdown.entries(text):
        if entry.kind == "note":
            parts.append(indented(f"- {entry.text}"))
        else:
            paragraphs = _EMPTY_LINES.split(entry.text)
            parts += [indented(paragraph) for paragraph in paragraphs if paragraph.strip()]
    if tokens.count(whole := "\n".join(parts)) <= budget:
        return whole
    note = f"… (what is older is left out; all of it: {paths.MEMORY})"
    room = budget - tokens.count(note) - _MARK_TOKENS
    kept = tokens.fit_parts(parts[::-1], room, lambda part: tokens.count(part) + 1)
    return "\n".join([note, *kept[::-1]])


def _section(label: str, body: str) -> str:
    """A fenced block: data, whatever it says."""
    return f"## {label}\n{fence(body)}" if body else ""
