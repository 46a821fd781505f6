"""The conversation, or one request with all that came of it, to be read or kept elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from mimikit.conversation.history import every_message
from mimikit.language.plain_text import plain
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import Instant, LiveRun, Message, Usage
from mimikit.views import messages, tasks
from mimikit.views.base import Title, View
from mimikit.views.tasks import TaskOutcome, TaskView, find_view, task_outcome

_WHO = {"user": "You", "agent": "mimikit", "system": "Note"}


class ExportedMessage(View):
    """A message as it stands in the history."""

    id: str
    role: str
    text: str
    created_at: Instant
    in_reply_to: list[str]
    task_ids: list[str]
    usage: Usage | None
    engine: str | None


class ExportedTask(View):
    """A task with how it ended."""

    task: TaskView
    prompt: str
    outcome: TaskOutcome | None


class ExportedTrace(View):
    """Everything that came of one request, oldest first."""

    trace_id: str
    title: Title
    tasks: list[ExportedTask]


def conversation(files: ReadOnlyFiles) -> Iterator[Message]:
    """Every message as the page shows them: at the end, what is not answered yet."""
    waiting = messages.waiting(
        files
    )  # first: what is answered meanwhile is in both, not in neither
    seen: set[str] = set()
    for message in every_message(files):
        seen.add(message.id)
        yield message
    for item in waiting:
        if item.id not in seen:
            yield Message(id=item.id, role="user", text=item.text, created_at=item.created_at)


def trace(files: ReadOnlyFiles, trace_id: str, live: dict[str, LiveRun]) -> ExportedTrace | None:
    """None where nothing came of such a trace, or nothing is kept."""
    found = tasks.in_trace(files, trace_id, live)
    if not found:
        return None
    known = ((one, find_view(files, one.id)) for one in found)
    made = [
        ExportedTask(task=one, prompt=it.task.prompt if it else "", outcome=it and task_outcome(it))
        for one, it in known
    ]
    return ExportedTrace(trace_id=trace_id, title=found[0].title, tasks=made)


def trace_markdown(found: ExportedTrace, zone: ZoneInfo) -> Iterator[str]:
    yield f"# {found.title}\n"
    for one in found.tasks:
        task, outcome = one.task, one.outcome
        yield f"\n## {task.title}\n\n"
        yield f"- {task.state} · {_moment(task.created_at, zone)}\n"
        yield f"\n{_fenced(one.prompt)}\n"
        if outcome is not None and (text := plain(outcome.text or outcome.error or "")):
            yield f"\n{text.rstrip()}\n"


def chat_markdown(said: Iterable[Message], zone: ZoneInfo) -> Iterator[str]:
    """One heading for each day, and one for each message."""
    yield "# mimikit\n"
    day = None
    for message in said:
        at = message.created_at.astimezone(zone)
        if at.date() != day:
            day = at.date()
            yield f"\n## {day.isoformat()}\n"
        yield f"\n### {at:%H:%M} {_WHO[message.role]}\n\n{plain(message.text).rstrip()}\n"


def chat_json(said: Iterable[Message]) -> Iterator[bytes]:
    """A list of messages, one a line."""
    lead = b"[\n"
    for message in said:
        yield lead + dump_line(ExportedMessage.of(message).to_dict()).rstrip(b"\n")
        lead = b",\n"
    yield b"\n]\n" if lead == b",\n" else b"[]\n"


def _moment(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S}"


def _fenced(text: str) -> str:
    """A text that is no markdown, in a fence longer than any within."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{plain(text).rstrip()}\n{fence}"
