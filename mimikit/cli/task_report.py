"""How the terminal shows one task."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo

import click

from mimikit.cli import client, terminal
from mimikit.language import phrases
from mimikit.protocol.models import REMINDER
from mimikit.tasks.usage import held_for
from mimikit.views import diffs
from mimikit.views import tasks as shown
from mimikit.views.chains import ChainStep, TaskReport
from mimikit.views.diffs import DiffView

_MOST_CHANGED = 50
_MOST_DIFF_LINES = 100
_MOST_EVENTS = 30
_WORTH_TELLING_MS = 100
_TYPED = frozenset(
    ("files", "moreFiles", "summary", "keyPoints", "findings", "recommendations", "references")
)
"""What a result of a type holds beside its text: the text or the diff says it."""
_ORIGINS = {
    "teller": "the Teller",
    "planner": "the Planner",
    "cli": "the terminal",
    "http": "HTTP",
    "trigger": "",
    "supervisor": "the supervisor",
    "file": "a file",
    "builtin": "the built-in engine",
    "self_awake": "mimikit itself",
}


def report_lines(
    report: TaskReport, diff: DiffView | None, now: datetime, zone: tzinfo
) -> Iterator[str]:
    """A task for people: what was asked, what came of it, what it changed, how it got there."""
    task, result = report.task, report.result
    yield f"{terminal.bold(task.id)}  {terminal.state(task.state)}"
    yield from terminal.facts(_facts(report, now, zone))
    yield from _section("Prompt", task.prompt)
    if result is not None:
        yield from _section("Result", result.text if result.text != result.error else "")
        reason = result.failure_reason
        yield from _section(f"Error ({reason})" if reason else "Error", result.error or "")
    if diff is not None:
        yield from _changes(diff, client.short_id(task.id))
    if report.events:
        yield ""
        yield terminal.bold("Events")
        yield from (_event(event, now, zone) for event in report.events[-_MOST_EVENTS:])
    if len(report.chain) > 1:
        yield ""
        yield terminal.bold("Chain")
        yield from terminal.aligned([_step(step, task.id) for step in report.chain])


def _step(step: ChainStep, own: str) -> tuple[str, ...]:
    after = "; ".join(f"after {link.title}: {link.words['en']}" for link in step.after)
    return (
        "  →" if step.id == own else "   ",
        client.short_id(step.id) if step.kind == "task" else "trigger",
        terminal.state(step.state),
        "  " * min(step.depth, 8) + terminal.clip(terminal.one_line(step.title), 60),
        terminal.dim(terminal.clip(terminal.one_line(after), 80)),
    )


def _facts(report: TaskReport, now: datetime, zone: tzinfo) -> Iterator[tuple[str, str]]:
    task, result = report.task, report.result
    created = task.created_at
    attempts = f", attempt {task.attempts} of {task.max_attempts}"
    if task.max_attempts == 1 and task.attempts <= 1:
        attempts = ""
    if task.title != task.prompt.strip():
        yield "title", task.title
    what = "planner" if task.seat == "planner" else f"worker, profile {task.profile}"
    is_reminder = task.profile == REMINDER
    yield "for", "you, as a reminder" if is_reminder else f"{what}, priority {task.priority}"
    origins = {
        "": _ORIGINS.get(task.origin, task.origin),
        "trigger ": task.source_trigger_id,
        "follows ": task.parent_task_id,
        "retry of ": task.retry_of,
    }
    yield "from", ", ".join(f"{word}{origin}" for word, origin in origins.items() if origin)
    yield "queued", f"{terminal.moment(created, now, zone)}, {terminal.ago(created, now)}"
    if (tokens_of := held_for(task.waits_for)) and task.state == "queued":
        yield "waits for", f"tokens: it {phrases.say(f'fact_waits_{tokens_of}', 'en')}"
    elif task.waits_for and task.state == "queued":
        yield "waits for", f"{task.waits_for}, which can not serve: `mimikit status` says why"
    if task.not_before and task.state == "queued" and not task.waits_for:
        yield "not before", terminal.moment(task.not_before, now, zone)
    if task.wait_ms is not None and task.wait_ms >= _WORTH_TELLING_MS:
        yield "waited", terminal.span(task.wait_ms / 1000)
    if task.state == "running" and task.started_at:
        since = (now - task.started_at).total_seconds()
        yield "running", f"for {terminal.span(since)}{attempts}"
    if task.run_ms is not None:
        yield "ran", f"{terminal.span(task.run_ms / 1000)}{attempts}"
    if task.headline:
        yield "now", task.headline
    if result is not None:
        yield from _result_facts(result)


def _result_facts(result: shown.TaskOutcome) -> Iterator[tuple[str, str]]:
    if result.engine:
        used, made = result.usage.input_tokens, result.usage.output_tokens
        tokens = f", {used} tokens in, {made} out" if used + made else ""
        yield "engine", result.engine + tokens
    if result.exit_code is not None:
        yield "exit code", str(result.exit_code)
    if result.result_type != "text":
        yield "result", result.result_type.replace("_", " ")
    for key, value in result.data.items():
        if key not in _TYPED:
            yield key, str(value)


def _section(heading: str, text: str) -> Iterator[str]:
    if text.strip():
        yield ""
        yield terminal.bold(heading)
        yield terminal.indented(text)


def _event(event: shown.LedgerEvent, now: datetime, zone: tzinfo) -> str:
    line = event.model_extra or {}
    when = terminal.moment(datetime.fromisoformat(str(line["at"])), now, zone)
    keys = ("status", "failureReason", "state", "reason")
    facts = [str(line[key]) for key in keys if line.get(key)]
    if line.get("attempt"):
        facts.append(f"attempt {line['attempt']}")
    what = f"{line['event']} ({', '.join(facts)})" if facts else str(line["event"])
    return f"  {when}  {terminal.one_line(what)}"


# ---- what it changed


def diff_lines(diff: DiffView) -> Iterator[str]:
    """The whole of it, as `diff -u` writes it."""
    return map(_coloured, diffs.unified(diff))


def _coloured(line: str) -> str:
    line, colour = terminal.safe(line), {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return terminal.dim(line) if line[:1] == "#" else click.style(line, fg=colour)


def _changes(diff: DiffView, task_id: str) -> Iterator[str]:
    """The files that changed, and as many lines of what as are read at a glance."""
    yield ""
    yield terminal.bold("Changes")
    rows = [
        (f"  {file.action}", file.path, file.unshown or f"+{file.added} −{file.removed}")
        for file in diff.files[:_MOST_CHANGED]
    ]
    yield from terminal.aligned(rows)
    if (more := len(diff.files) + diff.more_files - len(rows)) > 0:
        yield f"  … {more} more"
    yield ""
    lines = [*diffs.unified(diff)]
    yield from (f"  {_coloured(line)}" for line in lines[:_MOST_DIFF_LINES])
    if len(lines) > _MOST_DIFF_LINES:
        yield f"  … all {len(lines)} lines: `mimikit tasks show {task_id} --diff`"
