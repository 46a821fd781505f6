"""Renders views as lines for the terminal; tasks and triggers: `task_lines`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from functools import singledispatch
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel

from mimikit import __version__
from mimikit.cli import task_lines, terminal
from mimikit.cli.terminal import RenderContext, bold, dim, one_line, plural, short_id
from mimikit.clock import SystemClock
from mimikit.language import phrases
from mimikit.protocol.models import CommandResult, Question
from mimikit.protocol.runtime import BudgetStatus
from mimikit.state import State
from mimikit.tasks.usage import day_of
from mimikit.triggers.explain import Explanation
from mimikit.views import life, memory
from mimikit.views.backlog import BacklogView
from mimikit.views.chains import TaskDetail
from mimikit.views.diffs import DiffView
from mimikit.views.job_views import JobPage
from mimikit.views.status import Consumer, StateOverview
from mimikit.views.triggers import TriggerList, TriggerView
from mimikit.views.usage import TokenCounts, UsageReport, UsageTodayView


def show(view: BaseModel, state: State | None, *, as_json: bool, **context: Any) -> None:
    """Print a view as the JSON of the HTTP API, or as text.

    state: None for a view without times. context: fields of the RenderContext.
    """
    if as_json:
        terminal.print_json(view.model_dump(mode="json", by_alias=True))
        return
    default = RenderContext(SystemClock().now(), ZoneInfo("UTC"))
    for line in render(view, RenderContext.of(state, **context) if state else default):
        terminal.out(line)


@singledispatch
def render(view: BaseModel, context: RenderContext) -> Iterable[str]:
    raise TypeError(f"expected a view that has lines, got {type(view).__name__} at {context.now}")


render.register(JobPage, task_lines.job_list)
render.register(TaskDetail, task_lines.task)
render.register(DiffView, task_lines.diff)
render.register(TriggerList, task_lines.trigger_list)
render.register(TriggerView, task_lines.trigger)
render.register(Explanation, task_lines.explanation)


@render.register
def _(view: CommandResult, _context: RenderContext) -> Iterable[str]:
    return [terminal.sentence(view.message)]


# ---- self-awake and notifications


@render.register
def _(view: life.SelfAwakeView, context: RenderContext) -> Iterable[str]:
    yield f"Self-awake is {'on' if view.enabled else 'off'}."
    if view.enabled and view.why:
        yield f"Nothing begins now: {view.why['en']}."
    if view.enabled and view.next:
        yield f"Next: {view.next}{f', {context.moment(view.next_at)}' if view.next_at else ''}"
    for run in reversed(view.runs):
        what = one_line(run.reason or run.branch or "")
        yield f"{context.moment(run.started_at)}  {run.item}: {run.end or 'in progress'}  {what}"
    yield from (f"not merged: {branch}" for branch in view.branches)


@render.register
def _(view: life.NotifyView, context: RenderContext) -> Iterable[str]:
    if not view.channels:
        yield "No channel is set up; `mimikit notify add phone ntfy://TOPIC` adds one."
    for channel in view.channels:
        about = f"{channel.address}  {channel.waiting} waiting  {channel.error}".rstrip()
        yield f"{terminal.heading(channel.name)} {about}"
    for sent in view.sent[:10]:
        again = "  may have arrived twice" if sent.again else ""
        what = f"{one_line(sent.title)}  {sent.outcome}{again}  {sent.error}"
        yield f"{context.moment(sent.at)}  {sent.channel}  {what}".rstrip()


# ---- memory and backlog

_KINDS = {
    "longTerm": ("file of long-term notes", "files of long-term notes"),
    "raw": ("file of a day", "files of days"),
    "day": ("daily summary", "daily summaries"),
    "month": ("monthly summary", "monthly summaries"),
    "docs": ("document of the workspace", "documents of the workspace"),
}
_KB = 1024


def size_words(size: int) -> str:
    if size < _KB:
        return f"{size} bytes"
    return f"{size / _KB:,.0f} KB" if size < _KB * _KB else f"{size / _KB / _KB:,.1f} MB"


def _index_size(index: memory.IndexReport) -> str:
    files = plural(index.files, "file")
    return f"{files}, {plural(index.passages, 'passage')}, {size_words(index.bytes)}"


@render.register
def _(view: memory.MemoryReport, context: RenderContext) -> Iterable[str]:
    if view.took_ms is None:
        return [f"{terminal.heading(head)}{text}" for head, text in _memory_facts(view, context)]
    if why := view.index.fallback:
        return [f"No index: {why}. Searches scan the files."]
    return [f"Indexed {_index_size(view.index)}, in {terminal.span(view.took_ms / 1000)}."]


def _memory_facts(view: memory.MemoryReport, context: RenderContext) -> Iterator[tuple[str, str]]:
    index = view.index
    age = f"{plural(index.stale_files, 'newer file')} not indexed yet; the next search indexes them"
    if index.fresh:
        age = terminal.coloured("up to date", "ok")
    yield "index", f"{age}; {_index_size(index)}"
    if index.fallback:
        yield "", terminal.coloured(f"not used: {index.fallback}", "warning")
    if index.refreshed_at:
        yield "refreshed", context.ago(index.refreshed_at)
    yield "tokens", f"counted, by {view.tokens}" if view.tokens else "estimated"
    kinds = [(count, _KINDS[kind]) for kind, count in view.files.items() if count]
    for number, (count, (one, many)) in enumerate(kinds):
        yield "" if number else "files", f"{count} {one if count == 1 else many}"
    if not kinds:
        yield "files", "none yet; `mimikit memory add TEXT` makes one"


@render.register
def _(view: memory.MemoryFiles, context: RenderContext) -> Iterable[str]:
    rows = [
        (
            one_line(file.path),
            _KINDS[file.kind][0] + (" (hidden)" if file.hidden else ""),
            size_words(file.size),
            context.ago(file.modified_at),
        )
        for file in view.files
    ]
    empty = "Nothing is remembered yet. `mimikit memory add TEXT` adds a note."
    return terminal.table(("PATH", "KIND", "SIZE", "CHANGED"), rows, empty, flexible=0)


@render.register
def _(view: memory.MemoryText, _context: RenderContext) -> Iterable[str]:
    lines = map(memory.unmarked, view.text.split("\n"))
    return [terminal.block("\n".join(line for line, begins, _ in lines if line or not begins))]


@render.register
def _(view: memory.NoteReport, _context: RenderContext) -> Iterable[str]:
    return [f"Remembered in {view.path}."]


@render.register
def _(view: memory.SearchReport, context: RenderContext) -> Iterable[str]:
    if not view.hits:
        yield context.empty
    for number, hit in enumerate(view.hits):
        if number:
            yield ""
        place = f"{hit.source}:{hit.line}" if hit.line else hit.source
        origin = [hit.day.isoformat() if hit.day else None, hit.role, hit.task_id]
        known = [fact for fact in origin if fact and fact not in hit.source]
        yield bold(one_line(place)) + ("  " + dim(one_line(", ".join(known))) if known else "")
        yield f"  {_marked(hit.snippet, hit.marks)}"


def _marked(snippet: str, marks: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    last = 0
    for start, end in marks:
        parts += [_flat(snippet[last:start])]
        parts += [terminal.coloured(_flat(snippet[start:end]), "running")]
        last = end
    return "".join([*parts, _flat(snippet[last:])]).strip()


def _flat(text: str) -> str:
    return terminal.safe(text).replace("\n", " ").replace("\t", " ")


@render.register
def _(view: BacklogView, context: RenderContext) -> Iterable[str]:
    rows = [
        (str(item.number), terminal.state("done" if item.done else "open"), one_line(item.text))
        for item in view.items
    ]
    return terminal.table(("NO.", "STATE", "WHAT"), rows, context.empty)


# ---- usage


def usage_words(counts: UsageTodayView) -> str:
    tokens = counts.input_tokens + counts.output_tokens
    cap = counts.budget.daily_tokens
    of = f" of {cap:,}" if cap is not None else ""
    cost = f", {_cost(counts)}" if counts.cost else ""
    return f"{tokens:,}{of} tokens today in {plural(counts.runs, 'run')}{cost}"


def budget_wait_words(budget: BudgetStatus, zone: ZoneInfo) -> str | None:
    what = terminal.waiting_words(budget.messages, budget.tasks)
    if budget.until is None or not what:
        return None
    until = f"{phrases.local_time(budget.until, zone):%Y-%m-%d %H:%M}"
    return f"the tokens are used up; {what} until {until}; `mimikit usage --set-daily N`"


@render.register
def _(view: UsageReport, context: RenderContext) -> Iterable[str]:
    yield usage_words(UsageTodayView.of(view.today, budget=view.budget))
    if wait := budget_wait_words(view.budget, context.zone):
        yield wait
    caps = {"a task": view.budget.per_task_tokens}
    caps["a trigger's day"] = view.budget.per_trigger_daily_tokens
    if limits := [f"{what} {cap:,}" for what, cap in caps.items() if cap is not None]:
        yield f"At most: {', '.join(limits)}."
    yield ""
    rows = [
        [_usage_key(phrases.role(row.key), row.title, view, context), *_numbers(row)]
        for row in view.rows
        if row.runs
    ]
    if rows:
        rows.append(["in all", *_numbers(view.total)])
    heads = (view.by, "runs", "input", "cached", "output", "cost")
    yield from terminal.table(heads, rows, "Nothing was used.", flexible=0)
    if view.total.estimated:
        yield dim(
            f"~ {plural(view.total.estimated, 'run')} estimated: the engine did not report all"
        )


def _usage_key(key: str, title: str, view: UsageReport, context: RenderContext) -> str:
    if view.by == "day":
        return "today" if date.fromisoformat(key) == day_of(context.now, context.zone) else key
    if not key:
        return {"trigger": "no trigger", "model": "the engine's own"}.get(view.by, "–")
    return one_line(title or key)


def _numbers(counts: TokenCounts) -> list[str]:
    mark = "~" if counts.estimated else ""
    tokens = (counts.input_tokens, counts.cached_input_tokens, counts.output_tokens)
    return [f"{counts.runs:,}", *(f"{mark}{number:,}" for number in tokens), _cost(counts)]


def _cost(counts: TokenCounts) -> str:
    amounts = (
        f"{'<0.01' if 0 < amount < 0.01 else f'{amount:,.2f}'} {currency}"
        for currency, amount in counts.cost.items()
    )
    return ", ".join(amounts) or "–"


# ---- status

_WRAPPED = ("mimikit", "models", "usage", "question")


@render.register
def _(view: StateOverview, context: RenderContext) -> Iterable[str]:
    yield f"{bold('mimikit ' + __version__)}  {view.workspace}"
    for head, text in _status_facts(view, context):
        lead = f"  {terminal.heading(head)}"
        if head not in _WRAPPED:
            yield terminal.clipped(lead, text)
            continue
        for number, part in enumerate(text.split("\n")):
            yield from terminal.hanging(f"  {terminal.heading('')}" if number else lead, part)


def _status_facts(overview: StateOverview, context: RenderContext) -> Iterator[tuple[str, str]]:
    """Headings and texts; an empty heading continues the previous fact."""
    current = overview.consumer.current
    yield "mimikit", _consumer_words(overview.consumer, context.now)
    paused = f"  {terminal.state('paused')}: `mimikit resume` lets them go on"
    totals = task_lines.totals_words(overview.jobs)
    yield "jobs", totals + (paused if overview.paused else "")
    for run in overview.consumer.live.values():
        name = _RUN_NAMES.get(run.role) or short_id(run.id)
        spent = terminal.short_span((context.now - run.started_at).total_seconds())
        what = one_line(": ".join(part for part in (run.title, run.headline) if part))
        yield "", f"{name}  {spent}  {what}"
    if overview.unanswered:
        yield "inbox", f"{plural(overview.unanswered, 'message')} not answered yet"
    if overview.orders_waiting:
        yield "commands", f"{plural(overview.orders_waiting, 'command')} not carried out yet"
    yield "triggers", _trigger_words(overview.listed, context.now)
    if current is not None:
        yield "models", "\n".join(map(one_line, terminal.engine_lines(current.engines)))
        for text in terminal.waiting_lines(current.by_engine, context.now, context.zone):
            yield terminal.state("waiting"), text
    yield "usage", usage_words(overview.usage)
    if wait := budget_wait_words(overview.usage.budget, context.zone):
        yield terminal.state("waiting"), wait
    if question := overview.question:
        yield "question", one_line(question.question)
        options = enumerate(map(one_line, question.options), 1)
        if question.options:
            yield "", "  ".join(f"[{number}] {text}" for number, text in options)
        yield "", dim(f"`mimikit chat` answers it; {without_answer(question, context.now)}")
    if overview.quarantined:
        number = plural(overview.quarantined, "file")
        yield terminal.state("corrupt"), f"{number} quarantined as unreadable: see `mimikit doctor`"
    for number, task in enumerate(overview.failed):
        when = terminal.ago(task.completed_at, context.now) if task.completed_at else ""
        error = one_line(task.error or task.failure_reason or "")
        text = f"{short_id(task.id)}  {when}  {one_line(task.title)}: {error}"
        yield "" if number else "failed", text
    for number, line in enumerate(overview.errors):
        when = terminal.ago(datetime.fromisoformat(str(line["timestamp"])), context.now)
        details = {k: v for k, v in line.items() if k not in ("timestamp", "type", "event")}
        what = one_line(" ".join(map(str, details.values())))
        yield "" if number else "errors", f"{when}  {line.get('event')}  {what}"


def _consumer_words(consumer: Consumer, now: datetime) -> str:
    word, health = terminal.state(consumer.state), consumer.health
    if consumer.state == "down":
        return f"{word}: `mimikit up` starts it"
    text = f"{word}, process {health.pid if health else consumer.pid or 0}"
    if health is None or consumer.state == "starting":
        return text
    if consumer.state == "stuck":
        return f"{text}: last heartbeat {terminal.ago(health.beat_at, now)}; restart it"
    text += f", for {terminal.span((now - health.started_at).total_seconds())}"
    return text + (f"; trouble: {one_line(health.degraded)}" if health.degraded else "")


_RUN_NAMES = {"teller": "replies", "planner": "plans"}


def _trigger_words(triggers: list[TriggerView], now: datetime) -> str:
    if not triggers:
        return "none"
    active = [trigger for trigger in triggers if trigger.enabled and not trigger.broken]
    text = f"{len(active)} active"
    broken = sum(bool(trigger.broken) for trigger in triggers)
    for word, number in (("paused", len(triggers) - len(active) - broken), ("broken", broken)):
        if number:
            text += f", {number} {terminal.state(word)}"
    coming = [(trigger.next_run_at, trigger.title) for trigger in active if trigger.next_run_at]
    if coming:
        when, title = min(coming)
        text += f"; next {terminal.ago(when, now)}: {one_line(title)}"
    return text


def without_answer(question: Question, now: datetime) -> str:
    """What happens without an answer: `in 59 minutes "red" is taken`."""
    default = question.default
    what = f'"{one_line(default)}" is taken' if default else "it lapses"
    return f"{terminal.ago(question.expires_at, now)} {what}"
