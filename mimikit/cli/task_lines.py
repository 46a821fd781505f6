"""Renders tasks and triggers for the terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import click

from mimikit.cli import terminal
from mimikit.cli.terminal import (
    Fact,
    RenderContext,
    bold,
    dim,
    facts,
    one_line,
    plural,
    section,
    short_id,
)
from mimikit.language import phrases
from mimikit.language.plain_text import without_printed
from mimikit.protocol.models import REMINDER
from mimikit.tasks.usage import held_for
from mimikit.triggers.explain import Explanation, SlotExplanation
from mimikit.views import diffs
from mimikit.views.chains import ChainStep, TaskDetail
from mimikit.views.diffs import DiffView
from mimikit.views.job_views import JobPage, JobView
from mimikit.views.jobs import JobState
from mimikit.views.tasks import LedgerEvent, ResultView, TaskView
from mimikit.views.triggers import TriggerList, TriggerView


def _id(id_: str) -> str:
    """Short in a terminal, full in a pipe."""
    return id_ if terminal.terminal_width() is None else short_id(id_)


_JOB_WORDS = {"asked": "waiting", "planning": "running"}


def job_list(view: JobPage, context: RenderContext) -> Iterable[str]:
    rows = [
        (
            _id(job.task_id if job.kind == "request" else job.id),
            terminal.state(_JOB_WORDS.get(job.state, job.state)),
            _job_when(job, context),
            one_line(" · ".join(_job_words(job, context))),
        )
        for job in view.jobs
    ]
    yield from terminal.table(("ID", "STATE", "WHEN", "WHAT"), rows, context.empty)
    if rows:
        more = " `-n` shows more." if view.before else ""
        yield dim(f"{plural(view.found, 'job')}: {totals_words(view.totals)}.{more}")
    if any(job.waits_for for job in view.jobs):
        yield from terminal.waiting_lines(context.engines or {}, context.now, context.zone)


def totals_words(totals: Mapping[JobState, int]) -> str:
    """Counts by state; a job that is planned counts as running."""
    counts = Counter[str]()
    for state, number in totals.items():
        counts[_JOB_WORDS.get(state, state)] += number
    return ", ".join(f"{number:,} {state}" for state, number in counts.items() if number) or "none"


def _job_words(job: JobView, context: RenderContext) -> Iterator[str]:
    yield f"{job.title}: {job.headline}" if job.headline else job.title
    if job.kind == "trigger":
        yield plural(job.runs, "run")
        if job.ended_at is not None:
            yield f"last {context.moment(job.ended_at)}"
        if job.changes:
            yield f"changed {job.changes} ×"
        if job.failures:
            yield f"failed {job.failures} ×"


def _job_when(job: JobView, context: RenderContext) -> str:
    if job.state == "running" and job.started_at:
        return f"for {terminal.short_span((context.now - job.started_at).total_seconds())}"
    if job.state == "planning":
        return "is planned"
    if job.waits_for:
        return f"waits for {'tokens' if held_for(job.waits_for) else job.waits_for}"
    if job.not_before and job.not_before > context.now and not job.ended_at:
        return f"starts {context.ago(job.not_before)}"
    return context.ago(job.ended_at or job.asked_at)


_MAX_FILES, _MAX_DIFF_LINES, _MAX_EVENTS = 50, 100, 30
_MIN_WAIT_S = 0.1
_REPEATED_KEYS = frozenset(
    ("files", "moreFiles", "summary", "keyPoints", "findings", "recommendations", "references")
)
"""Data of a typed result that its text or the diff contains, too."""
_ORIGINS = {
    "teller": "the conversation",
    "planner": "a plan",
    "cli": "the terminal",
    "http": "HTTP",
    "trigger": "",
    "supervisor": "mimikit itself",
    "file": "a file",
    "builtin": "a plan",
    "self_awake": "mimikit itself",
}


def task(view: TaskDetail, context: RenderContext) -> Iterable[str]:
    task, result = view.task, view.result
    yield f"{bold(task.id)}  {terminal.state(task.state)}"
    yield from facts(_task_facts(task, result, context))
    yield from section("Prompt", task.prompt)
    if result is not None:
        yield from section("Result", result.text if result.text != result.error else "")
        reason = result.failure_reason
        error = without_printed(result.error or "", result.text)
        yield from section(f"Error ({reason})" if reason else "Error", error)
    if context.diff is not None:
        yield from section("Changes", _changes(context.diff, short_id(task.id)))
    events = view.events[-_MAX_EVENTS:]
    yield from section("Events", [_event(event, context) for event in events])
    rows = [_step(step, task.id) for step in view.chain]
    yield from section("Chain", terminal.aligned(rows) if len(rows) > 1 else ())


def _step(step: ChainStep, own: str) -> tuple[str, ...]:
    after = "; ".join(f"after {link.title}: {link.words['en']}" for link in step.after)
    return (
        "  →" if step.id == own else "   ",
        short_id(step.id) if step.kind == "task" else "trigger",
        terminal.state(step.state),
        "  " * min(step.depth, 8) + terminal.clip(one_line(step.title), 60),
        dim(terminal.clip(one_line(after), 80)),
    )


def _task_facts(task: TaskView, result: ResultView | None, context: RenderContext) -> list[Fact]:
    attempts = f", attempt {task.attempts} of {task.max_attempts}"
    if task.max_attempts == 1 and task.attempts <= 1:
        attempts = ""
    what = phrases.role(task.seat if task.seat == "planner" else task.profile)
    is_reminder = task.profile == REMINDER
    origins = {
        "": _ORIGINS.get(task.origin, task.origin),
        "trigger ": task.source_trigger_id,
        "follows ": task.parent_task_id,
        "retry of ": task.retry_of,
    }
    wait_s, run_s = (task.wait_ms or 0) / 1000, None if task.run_ms is None else task.run_ms / 1000
    running = None
    if task.state == "running" and task.started_at:
        running_s = (context.now - task.started_at).total_seconds()
        running = f"for {terminal.span(running_s)}{attempts}"
    return [
        ("title", task.title if task.title != task.prompt.strip() else None),
        ("for", "you, as a reminder" if is_reminder else f"{what}, priority {task.priority}"),
        ("from", ", ".join(f"{word}{origin}" for word, origin in origins.items() if origin)),
        ("queued", context.when(task.created_at)),
        _waiting_fact(task, context),
        ("waited", terminal.span(wait_s) if wait_s >= _MIN_WAIT_S else None),
        ("running", running),
        ("ran", None if run_s is None else f"{terminal.span(run_s)}{attempts}"),
        ("now", task.headline),
        *(_result_facts(result) if result else ()),
    ]


def _waiting_fact(task: TaskView, context: RenderContext) -> Fact:
    if task.state != "queued":
        return "", None
    if tokens_of := held_for(task.waits_for):
        return "waits for", f"tokens: it {phrases.say(f'fact_waits_{tokens_of}', 'en')}"
    if task.waits_for:
        return "waits for", f"{task.waits_for}, which is not available: `mimikit status` says why"
    return "not before", context.moment(task.not_before) if task.not_before else None


def _result_facts(result: ResultView) -> list[Fact]:
    tokens_in, tokens_out = result.usage.input_tokens, result.usage.output_tokens
    tokens = f", {tokens_in} tokens in, {tokens_out} out" if tokens_in + tokens_out else ""
    type_ = result.result_type.replace("_", " ")
    more = {key: value for key, value in result.data.items() if key not in _REPEATED_KEYS}
    return [
        ("engine", result.engine and result.engine + tokens),
        ("exit code", None if result.exit_code is None else str(result.exit_code)),
        ("result", None if type_ == "text" else type_),
        *((key, str(value)) for key, value in more.items()),
    ]


def _event(event: LedgerEvent, context: RenderContext) -> str:
    line = event.model_extra or {}
    when = context.moment(datetime.fromisoformat(str(line["at"])))
    keys = ("status", "failureReason", "state", "reason")
    details = [str(line[key]) for key in keys if line.get(key)]
    if line.get("attempt"):
        details.append(f"attempt {line['attempt']}")
    what = f"{line['event']} ({', '.join(details)})" if details else str(line["event"])
    return f"  {when}  {one_line(what)}"


def diff(view: DiffView, _context: RenderContext) -> Iterable[str]:
    return map(_coloured, diffs.unified(view)) if view.files else ["It changed no file."]


def _coloured(line: str) -> str:
    line, colour = terminal.safe(line), {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return dim(line) if line[:1] == "#" else click.style(line, fg=colour)


def _changes(diff: DiffView, task_id: str) -> Iterator[str]:
    rows = [
        (f"  {file.action}", file.path, file.unshown or f"+{file.added} −{file.removed}")
        for file in diff.files[:_MAX_FILES]
    ]
    yield from terminal.aligned(rows)
    if (more := len(diff.files) + diff.more_files - len(rows)) > 0:
        yield f"  … {more} more"
    yield ""
    lines = [*diffs.unified(diff)]
    yield from (f"  {_coloured(line)}" for line in lines[:_MAX_DIFF_LINES])
    if len(lines) > _MAX_DIFF_LINES:
        yield f"  … all {len(lines)} lines: `mimikit tasks show {task_id} --diff`"


# ---- triggers


def trigger_list(view: TriggerList, context: RenderContext) -> Iterable[str]:
    most = 44 if terminal.terminal_width() is not None else sys.maxsize
    rows = [
        (
            _id(trigger.id),
            terminal.state(_trigger_state(trigger)),
            terminal.clip(one_line(trigger.words["en"]), most),
            context.ago(trigger.last_run_at, "never"),
            context.ago(trigger.next_run_at if trigger.enabled else None),
            str(trigger.fire_count + trigger.request_count),
            ("reminder: " if trigger.profile == REMINDER else "") + one_line(trigger.title),
        )
        for trigger in view.triggers
    ]
    empty = 'No triggers. `mimikit enqueue --command "date" --every 10m` makes one.'
    return terminal.table(("ID", "STATE", "WHEN", "LAST", "NEXT", "RUNS", "WHAT"), rows, empty)


def _trigger_state(trigger: TriggerView) -> str:
    if trigger.broken:
        return "broken"
    if trigger.blocked_by:
        return "blocked"
    return "active" if trigger.enabled else "paused"


def trigger(view: TriggerView, context: RenderContext) -> Iterable[str]:
    yield f"{bold(one_line(view.id))}  {terminal.state(_trigger_state(view))}"
    yield from facts(_trigger_facts(view, context))
    yield from section("Prompt", view.prompt)


def _trigger_facts(trigger: TriggerView, context: RenderContext) -> list[Fact]:
    if trigger.type == "broken":
        return [("broken", f"{trigger.broken}; it was never valid: fix the file, or remove it")]
    is_reminder, failures = trigger.profile == REMINDER, trigger.failure_streak
    next_run = trigger.next_run_at if trigger.enabled else None
    alike = " alike" if failures > 1 else ""
    last_valid = f"{trigger.broken}; the last valid definition stays in force"
    return [
        ("broken", last_valid if trigger.broken else None),
        ("title", trigger.title if trigger.title != trigger.prompt else None),
        ("reminds you" if is_reminder else "when", trigger.words["en"]),
        ("now", trigger.headline["en"]),
        ("profile", None if is_reminder else phrases.role(trigger.profile)),
        ("made", context.when(trigger.created_at or context.now)),
        ("last run", context.when(trigger.last_run_at) if trigger.last_run_at else "never"),
        ("result", trigger.last["en"] if trigger.last else None),
        ("next run", next_run and context.when(next_run)),
        ("cooldown", terminal.span(trigger.cooldown) if trigger.cooldown else None),
        ("runs", f"{trigger.fire_count} by itself, {trigger.request_count} on request"),
        ("notify", trigger.told["en"]),
        ("failing", f"the last {failures} failed{alike}" if failures else None),
        ("last runs", ", ".join(run.state for run in trigger.recent)),
        ("last task", trigger.last_task_id),
        ("blocked by", trigger.blocked_by),
    ]


_VERDICTS = {True: ("✓", "ok"), False: ("✗", "failed"), None: ("?", "paused")}
_SLOT_COLOURS = {"ran": "done", "skipped": "paused", "missed": "failed"}


def explanation(view: Explanation, context: RenderContext) -> Iterable[str]:
    for text in (view.headline, *view.lines):
        yield from terminal.hanging("  ", one_line(text["en"]))
    nodes: list[str] = []
    for node in view.nodes:
        mark, colour = _VERDICTS[node.holds]
        since = f" ({context.moment(node.at)})" if node.at else ""
        lead = f"  {'  ' * node.depth}{terminal.coloured(mark, colour)} "
        text = f"{node.words['en']}: {node.why['en']}{since}"
        nodes += terminal.hanging(lead, one_line(text))
    yield from section("Condition", nodes)
    rows = [_slot(slot, context) for slot in view.slots]
    head = ("  AT", "STATE", "TASK", "WHY")
    yield from section("Slots", terminal.table(head, rows, "") if rows else [])


def _slot(slot: SlotExplanation, context: RenderContext) -> tuple[str, str, str, str]:
    notes = [slot.reason["en"]] if slot.reason else []
    if slot.planned_at:
        notes.append(f"planned for {context.moment(datetime.fromisoformat(slot.planned_at))}")
    state = str(slot.state)
    if slot.missed and state != "ran":  # the missed slots of a run have their own row
        notes.append(f"{slot.missed} later")
    return (
        f"  {context.moment(datetime.fromisoformat(slot.at))}",
        terminal.coloured(state, _SLOT_COLOURS.get(state, "")),
        short_id(slot.task_id) if slot.task_id else "-",
        one_line("; ".join(notes)),
    )
