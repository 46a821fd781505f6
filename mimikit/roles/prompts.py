"""Builds a run's prompts: the role's template, and its input within the token budgets."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from mimikit.config import BudgetSettings, asset_folder
from mimikit.engines.base import Attachment, ToolSpec, TurnInput
from mimikit.errors import BadInput, BadSettings, UnsafeFile
from mimikit.language.phrases import fence
from mimikit.language.plain_text import indented
from mimikit.memory import markdown, notes, tokens
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import FileRef, Message, Role, time_text
from mimikit.tasks import queue
from mimikit.tools.world import line_text
from mimikit.triggers.schedule import time_zone

CHECK_LIST, REVIEW = "self-awake", "self-awake-review"
NAMES = (
    *("teller", "planner", "worker", "llm-eval-batch", "daily-summary", "monthly-summary"),
    *(CHECK_LIST, REVIEW),
)
PLACEHOLDERS = frozenset(
    {"tools", "workspace", "now", "timezone", "statements", "period", "messages", "task", "change"}
)
REQUIRED = {
    "llm-eval-batch": "statements",
    "daily-summary": "messages",
    "monthly-summary": "messages",
    REVIEW: "change",
}
FIRST_LINE = "You are the Mimikit runtime teller."
MAX_RESULT_CHARACTERS = 2000
MAX_UPSTREAM_CHARACTERS = 4000
_MAX_BYTES = 2**20
_FENCE_TICKS = 5
"""Longer than any fence in a message."""
_SCRIPTS = {"Hans": " (Chinese, simplified)", "CN": " (Chinese, simplified)"} | dict.fromkeys(
    ("Hant", "TW", "HK"), " (Chinese, traditional)"
)
_MAX_TAG = 64
_MARK_TOKENS = 8
"""Reserved for the mark of a cut."""
_EMPTY_LINES = re.compile(r"\n(?:[ \t\r]*\n)+")
_PLACEHOLDER = re.compile(r"\{\{\s*([a-zA-Z_]*)\s*\}\}")
_ITEM = re.compile(r"## ([a-z][a-z-]{0,31}) \(every (\d{1,4})([mhd])\)")
_RETRY_WITHIN, _MAX_SUBJECT = timedelta(days=2), 20_000
_TRANSIENT = ("timeout", "killed", "rate_limited", "engine_unavailable")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


class CheckListItem(NamedTuple):
    """An item of self-awake's check list: the least time between two, and what it is about."""

    name: str
    every: timedelta
    text: str


class Prompts:
    def __init__(self, files: Files) -> None:
        """Raises BadSettings for an invalid template."""
        self.skipped: list[str] = []
        """Unreadable templates with their reasons."""
        self._templates = {name: self._read(files, name) for name in NAMES}

    def fill(self, name: str, values: dict[str, str]) -> str:
        return _PLACEHOLDER.sub(lambda m: values.get(m.group(1), ""), self._templates[name])

    def check_list(self) -> tuple[str, list[CheckListItem]]:
        """Its introduction, and its items in order of priority."""
        return parsed_check_list(self._templates[CHECK_LIST])

    def instructions(
        self, role: Role, turn_input: TurnInput, tools: tuple[ToolSpec, ...], workspace: Path
    ) -> str:
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
            data = files.read(own, max_bytes=_MAX_BYTES)
            if data is not None:
                return _checked(f".mimikit/{own}", name, data.decode("utf-8-sig"))
        except (UnsafeFile, UnicodeDecodeError) as error:
            reason = str(error) if isinstance(error, UnsafeFile) else f"{own}: {error}"
            self.skipped.append(f"{reason}; the shipped one is used")
        where = f"prompts/{name}.md (shipped)"
        if not shipped.is_file():
            raise BadSettings(f"{where}: expected a prompt template, got none; install again")
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
    if name in REQUIRED and REQUIRED[name] not in named:
        raise BadSettings(
            f"{where}: expected {{{{{REQUIRED[name]}}}}} where the data goes, got none; "
            "add it or remove the file"
        )
    if name == CHECK_LIST and not parsed_check_list(text)[1]:
        raise BadSettings(f"{where}: expected headings such as `## lint (every 1d)`, got none")
    return text


def parsed_check_list(text: str) -> tuple[str, list[CheckListItem]]:
    """The text before the first heading, and the items. Pure. Raises BadSettings."""
    intro, *parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    items: list[CheckListItem] = []
    for part in parts:
        head, _, body = part.partition("\n")
        if (found := _ITEM.fullmatch(head.strip())) is None:
            raise BadSettings(f"expected a heading such as `## lint (every 1d)`, got {head[:80]!r}")
        items.append(CheckListItem(found[1], int(found[2]) * _UNITS[found[3]], body.strip()))
    return intro.strip(), items


def next_item(
    items: Sequence[CheckListItem],
    taken: Mapping[str, datetime],
    about: Mapping[str, str],
    now: datetime,
    asked: str | None = None,
) -> CheckListItem | None:
    """The first that is due, or the one that is asked for; an empty `asked` is any. Pure.

    `taken`: when each was taken last. `about`: see `subjects`.
    """
    for item in items:
        at = taken.get(item.name)
        is_due = at is None or abs(now - at) >= item.every
        is_wanted = item.name == asked or (not asked and is_due)
        if is_wanted and about.get(item.name) != "":
            return item
    return None


def subjects(files: Files, taken: Mapping[str, datetime], now: datetime) -> dict[str, str]:
    """What some items of the check list are about; empty: there is nothing of the kind."""
    since = now - _RETRY_WITHIN
    since = max(since, taken.get("retry", since))
    failed = (view for view in queue.recent(files, 20, {"failed"}) if _is_retried(view, since))
    retry = (f"{view.task.title}\n{view.error}\n\n{view.task.prompt}" for view in failed)
    backlog = (item.text for item in notes.load_backlog(files).items if not item.done)
    return {"retry": next(retry, "")[:_MAX_SUBJECT], "backlog": next(backlog, "")}


def _is_retried(view: queue.TaskSnapshot, since: datetime) -> bool:
    task, outcome = view.task, view.outcome
    if task.improvement or task.internal or task.source_trigger_id or outcome is None:
        return False
    return outcome.completed_at > since and outcome.failure_reason in _TRANSIENT


# ---- conversation


class HistoryWindow:
    """The part of the conversation in prompts. Its start moves rarely, for the prompt cache."""

    def __init__(self) -> None:
        self._first_id: str | None = None

    def select(self, messages: Sequence[Message], budgets: BudgetSettings) -> list[Message]:
        """The newest messages that fit the budget, oldest first."""
        most, least = budgets.conversation_messages, budgets.conversation_least
        ids = [message.id for message in messages]
        if self._first_id is None:
            selected = list(messages)
        else:
            selected = list(messages[ids.index(self._first_id) :]) if self._first_id in ids else []
        is_full = _counted(selected) > most or tokens.spent(selected) > budgets.conversation_tokens
        if not selected or is_full:
            half = budgets.conversation_tokens // 2
            selected = _newest(messages, max(least, most // 2))
            while _counted(selected) > least and tokens.spent(selected) > half:
                selected = _newest(selected, _counted(selected) - 1)
        self._first_id = selected[0].id if selected else None
        return selected


def _counted(messages: Sequence[Message]) -> int:
    return sum(not message.is_by_code for message in messages)


def _newest(messages: Sequence[Message], most: int) -> list[Message]:
    """The newest messages; those by code are not counted."""
    counted = [number for number, message in enumerate(messages) if not message.is_by_code]
    return list(messages[counted[-most] :] if len(counted) >= most else messages)


# ---- user prompt; pure


def prompt_of(role: Role, turn_input: TurnInput, budgets: BudgetSettings, upstream: Path) -> str:
    """The user prompt: labelled blocks of data, stable ones first, for the prompt cache.

    Only our own heads start at the margin of a block; other people's text is indented, so that it
    cannot pass for the user's words. `upstream`: the folder with the results of earlier steps.
    """
    task = turn_input.task.prompt if turn_input.task else ""
    environment, files = _section("Environment", _environment(turn_input)), turn_input.attachments
    if role == "worker":
        results = [
            indented(f"[{r.id}] {r.status}\n{tokens.cut(r.text, MAX_UPSTREAM_CHARACTERS)}")
            for r in turn_input.upstream
        ]
        where = f"The full text of each is in {upstream}, in a file named by its id."
        blocks = [_section("Upstream results", "\n\n".join(results)), where] if results else []
        sent = [
            f"- {upstream / file_name(it.ref)} ({it.ref.kind}, {it.ref.bytes:,} bytes)"
            for it in files
        ]
        blocks += [_section("Files from the user", "\n".join(map(indented, sent)))]
        return "\n\n".join(block for block in [task, *blocks, environment] if block)
    blocks = _context_blocks(turn_input, budgets)
    if role == "planner":
        where = paths.running("planner", turn_input.task.id) if turn_input.task else ""
        request, *sent = tokens.fit_together(
            [(task, f" (all of it: {where})"), *map(_file_text, files)], budgets.input_tokens
        )
        blocks += [environment, _files_section(sent), _section("Request", request)]
    else:
        blocks = [FIRST_LINE, *blocks, *_input_blocks(turn_input, budgets, environment)]
    return "\n\n".join(block for block in blocks if block)


def _input_blocks(turn_input: TurnInput, budgets: BudgetSettings, environment: str) -> list[str]:
    question = ""
    if (open_question := turn_input.question) is not None:
        question = indented(f"[{open_question.question_id}] {open_question.question}")
        options = indented(f"options: {', '.join(open_question.options)}")
        question = f"{question}\n{options}" if open_question.options else question
    inputs: list[tuple[str, str]] = []
    for item in turn_input.inputs:
        quote = f"(quoting: {tokens.cut(item.quote, 300)})\n" if item.quote else ""
        text = indented(f"[{item.id}] {quote}{item.text}")
        inputs.append((text, f" (all of it: {paths.inbox(item.id)})"))
    files = map(_file_text, turn_input.attachments)
    fitting = tokens.fit_together([*inputs, *files], budgets.input_tokens)
    input_ = _section("Input", "\n\n".join(fitting[: len(inputs)]))
    sent = _files_section(fitting[len(inputs) :])
    return [_section("Question", question), environment, sent, input_, turn_input.note]


def _file_text(file: Attachment) -> tuple[str, str]:
    """A file's part of the prompt, and the note if it is cut."""
    ref, picture = file.ref, "picture" if file.picture else "picture that you cannot see"
    facts = {"text": "text", "image": picture, "other": "its content cannot be shown"}[ref.kind]
    text = indented(f"[{ref.name}] {facts}, {ref.bytes:,} bytes\n{file.text}".strip())
    return text, f" (cut; the file has {ref.bytes:,} bytes)"


def _files_section(texts: Sequence[str]) -> str:
    section = _section("Files from the user", "\n\n".join(texts), least=_FENCE_TICKS)
    return f"{section}\nThe tasks that you make get these files." if section else ""


def file_name(ref: FileRef) -> str:
    """Of its copy for a task; equal names of different files differ in it."""
    return f"{ref.id[:4]}-{ref.name}"


def _environment(turn_input: TurnInput) -> str:
    zone = ZoneInfo("UTC")
    with contextlib.suppress(BadInput):
        zone = time_zone(turn_input.timezone)
    now, locale = turn_input.now.astimezone(zone), turn_input.locale[:_MAX_TAG]
    lines = [
        f"now: {now:%A, %Y-%m-%d %H:%M} {now.isoformat()[-6:]}",
        f"timezone: {turn_input.timezone[:_MAX_TAG]}",
        f"locale: {locale}{_SCRIPTS.get(locale.rpartition('-')[2], '')}",
    ]
    return "\n".join(map(indented, lines))


def _context_blocks(turn_input: TurnInput, budgets: BudgetSettings) -> list[str]:
    conversation = [
        indented(f"{time_text(m.created_at)} {m.role}: {_with_files(m)}")
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
        _section("User", turn_input.user, least=_FENCE_TICKS),
        _section("Conversation", "\n".join(conversation), least=_FENCE_TICKS),
        _section("Memory", "\n".join(tokens.fit_parts(memory, left))),
        _section("Tasks", "\n".join(tokens.fit_parts(tasks, budgets.tasks_tokens))),
        _section("Results", "\n\n".join(tokens.fit_parts(results, budgets.results_tokens))),
    ]


def _with_files(message: Message) -> str:
    names = ", ".join(ref.name for ref in message.files)
    return f"{message.text} (files: {names})" if names else message.text


def user_block(text: str, budget: int) -> str:
    """The newest notes of `memory.md`, within `budget` tokens, for every prompt."""
    parts: list[str] = []
    for entry in markdown.entries(text):
        if entry.kind == "note":
            day = f"{entry.at:%Y-%m-%d}: " if entry.at else ""
            parts.append(indented(f"- {day}{entry.text}"))
        else:
            paragraphs = _EMPTY_LINES.split(entry.text)
            parts += [indented(paragraph) for paragraph in paragraphs if paragraph.strip()]
    if tokens.count(full := "\n".join(parts)) <= budget:
        return full
    note = f"… (what is older is left out; all of it: {paths.MEMORY})"
    room = budget - tokens.count(note) - _MARK_TOKENS
    newest = tokens.fit_parts(parts[::-1], room, lambda part: tokens.count(part) + 1)
    return "\n".join([note, *newest[::-1]])


def _section(label: str, body: str, *, least: int = 3) -> str:
    return f"## {label}\n{fence(body, least=least)}" if body else ""
