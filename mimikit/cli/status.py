"""`mimikit status`: one screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import click

from mimikit import __version__
from mimikit.cli import client, terminal
from mimikit.cli.client import Consumer, look_at_consumer
from mimikit.cli.conversation import without_answer
from mimikit.cli.frame import Frame, LeafCommand, json_option, pass_frame
from mimikit.cli.triggers import situation
from mimikit.conversation import questions
from mimikit.protocol import paths
from mimikit.protocol.models import LiveRun, Question, RuntimeState, time_text
from mimikit.state import ReadOnlyState
from mimikit.tasks import commands, ledger
from mimikit.views import triggers as shown_triggers
from mimikit.views.tasks import find

_HEAD = 11
_WRAPPED = ("consumer", "engines", "question")
_LOG_TAIL_BYTES = 2**18
_ERRORS_SHOWN = 3
_RECENT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Picture:
    now: datetime
    workspace: str
    consumer: Consumer
    queued: dict[str, int]
    paused: bool
    unanswered: int
    orders: int
    triggers: list[dict[str, Any]]
    question: Question | None
    quarantined: int
    errors: list[dict[str, Any]]
    failed: list[dict[str, Any]]

    def runs(self, role: str) -> list[LiveRun]:
        if self.consumer.health is None or not self.consumer.is_there:
            return []
        return [run for run in self.consumer.health.live if run.role == role]


@click.command(cls=LeafCommand)
@json_option
@pass_frame
def status(frame: Frame, as_json: bool) -> None:
    """Show how it goes: consumer, seats, queues, engines, question, errors."""
    picture = take_picture(frame.open())
    if as_json:
        terminal.print_json(as_data(picture))
        return
    terminal.out(f"{terminal.bold('mimikit ' + __version__)}  {picture.workspace}")
    for head, text in lines(picture):
        if head in _WRAPPED:
            for number, part in enumerate(text.split("\n")):
                lead = f"  {terminal.dim(('' if number else head).ljust(_HEAD))}"
                terminal.out("\n".join(terminal.hanging(lead, part)))
        else:
            room = (terminal.room() or 10_000) - _HEAD - 2
            terminal.out(f"  {terminal.dim(head.ljust(_HEAD))}{terminal.clip(text, room)}".rstrip())


def take_picture(state: ReadOnlyState) -> Picture:
    files, now = state.files, state.clock.now()
    consumer = look_at_consumer(state)
    health = consumer.health if consumer.is_there else None
    runtime = files.peek(paths.RUNTIME, RuntimeState)
    names = files.names(paths.INBOX)
    return Picture(
        now=now,
        workspace=str(state.workspace),
        consumer=consumer,
        queued=health.queued
        if health
        else {seat: len(files.names(f"{seat}/queue")) for seat in paths.QUEUES},
        paused=health.paused if health else bool(runtime and runtime.paused),
        unanswered=sum(not name.startswith(paths.result_inbox_id("")) for name in names),
        orders=len(commands.waiting(files)),
        triggers=[view.to_dict() for view in shown_triggers.listed(files, situation(state))],
        question=questions.pending(files),
        quarantined=len(files.names(paths.CORRUPT, suffix=".reason.txt")),
        errors=_last_errors(state, now),
        failed=_last_failed(state, now),
    )


def _last_errors(state: ReadOnlyState, now: datetime) -> list[dict[str, Any]]:
    since = time_text(now - _RECENT)
    found = [
        line
        for line in state.files.tail(paths.LOG, _LOG_TAIL_BYTES)
        if line.get("type") == "error" and str(line.get("timestamp", "")) >= since
    ]
    return list(found[-_ERRORS_SHOWN:])


def _last_failed(state: ReadOnlyState, now: datetime) -> list[dict[str, Any]]:
    since = time_text(now - _RECENT)
    tasks = (find(state.files, id_, {}) for id_ in ledger.ended_ids(state.files, 3, ["failed"]))
    found = [task.to_dict() for task in tasks if task]
    return [task for task in found if str(task["completedAt"] or "") >= since]


def as_data(picture: Picture) -> dict[str, Any]:
    health = picture.consumer.health
    return {
        "version": __version__,
        "workspace": picture.workspace,
        "consumer": {
            "state": picture.consumer.state,
            "pid": picture.consumer.holder.pid if picture.consumer.holder else None,
            "beatAgeS": picture.consumer.beat_age_s,
            "health": health.to_dict() if health else None,
        },
        "queues": picture.queued,
        "paused": picture.paused,
        "unanswered": picture.unanswered,
        "ordersWaiting": picture.orders,
        "triggers": {
            "total": len(picture.triggers),
            "active": sum(bool(trigger["enabled"]) for trigger in picture.triggers),
            "broken": sum(bool(trigger["broken"]) for trigger in picture.triggers),
        },
        "question": picture.question.to_dict() if picture.question else None,
        "quarantined": picture.quarantined,
        "errors": picture.errors,
        "failed": picture.failed,
    }


def lines(picture: Picture) -> Iterator[tuple[str, str]]:
    yield "consumer", _consumer_words(picture.consumer, picture.now)
    yield from _seats(picture)
    yield "queues", _queue_words(picture)
    yield from _inbox(picture)
    yield "triggers", _trigger_words(picture.triggers, picture.now)
    if picture.consumer.health is not None and picture.consumer.is_there:
        shown = terminal.engine_lines(picture.consumer.health.engines)
        yield "engines", "\n".join(terminal.one_line(line.text) for line in shown)
    if picture.question is not None:
        yield from _question(picture.question, picture.now)
    if picture.quarantined:
        number = "1 file" if picture.quarantined == 1 else f"{picture.quarantined} files"
        text = f"{number} that could not be read; `mimikit doctor` says why"
        yield terminal.state("corrupt"), text
    yield from _troubles(picture)


def _consumer_words(consumer: Consumer, now: datetime) -> str:
    word = terminal.state(consumer.state)
    if not consumer.is_there:
        return f"{word}: `mimikit up` starts it with the page, `mimikit consumer` alone"
    pid = consumer.health.pid if consumer.health else consumer.holder.pid if consumer.holder else 0
    text = f"{word}, process {pid}"
    if consumer.health is None or consumer.state == "starting":
        return text
    if consumer.state == "stuck":
        return f"{text}: last heard of {terminal.ago(consumer.health.beat_at, now)}; restart it"
    up_s = (now - consumer.health.started_at).total_seconds()
    text += f", for {terminal.span(up_s)}"
    if consumer.health.degraded:
        text += f"; trouble: {terminal.one_line(consumer.health.degraded)}"
    return text


def _seats(picture: Picture) -> Iterator[tuple[str, str]]:
    if not picture.consumer.is_there:
        return
    for role, idle in (("teller", "idle"), ("planner", "idle")):
        runs = picture.runs(role)
        yield role, _run_words(runs[0], picture.now) if runs else idle
    workers = picture.runs("worker")
    seats = picture.consumer.health.worker_seats if picture.consumer.health else 0
    yield "workers", f"{len(workers)} of {seats} busy"
    for run in workers:
        yield "", f"{client.short_id(run.id)}  {_run_words(run, picture.now)}"


def _run_words(run: LiveRun, now: datetime) -> str:
    what = terminal.one_line(": ".join(part for part in (run.title, run.headline) if part))
    return f"{terminal.short_span((now - run.started_at).total_seconds())}  {what}"


def _queue_words(picture: Picture) -> str:
    counts = [f"{seat} {picture.queued.get(seat, 0)}" for seat in paths.QUEUES]
    paused = f"  {terminal.state('paused')}: `mimikit resume` lets them go on"
    return ", ".join(counts) + (paused if picture.paused else "")


def _inbox(picture: Picture) -> Iterator[tuple[str, str]]:
    if picture.unanswered:
        number = "1 message" if picture.unanswered == 1 else f"{picture.unanswered} messages"
        yield "inbox", f"{number} not answered yet"
    if picture.orders:
        number = "1 order" if picture.orders == 1 else f"{picture.orders} orders"
        yield "orders", f"{number} not carried out yet"


def _trigger_words(triggers: list[dict[str, Any]], now: datetime) -> str:
    if not triggers:
        return "none"
    active = [trigger for trigger in triggers if trigger["enabled"] and not trigger["broken"]]
    text = f"{len(active)} active"
    for word, number in (
        ("paused", sum(not t["enabled"] and not t["broken"] for t in triggers)),
        ("broken", sum(bool(t["broken"]) for t in triggers)),
    ):
        if number:
            text += f", {number} {terminal.state(word)}"
    coming = [trigger for trigger in active if trigger["nextRunAt"]]
    if coming:
        first = min(coming, key=lambda trigger: trigger["nextRunAt"])
        when = terminal.ago(datetime.fromisoformat(first["nextRunAt"]), now)
        text += f"; next {when}: {terminal.one_line(first['title'])}"
    return text


def _question(question: Question, now: datetime) -> Iterator[tuple[str, str]]:
    yield "question", terminal.one_line(question.question)
    if question.options:
        options = enumerate(question.options, 1)
        yield "", "  ".join(f"[{number}] {terminal.one_line(text)}" for number, text in options)
    yield "", terminal.dim(f"`mimikit chat` answers it; {without_answer(question, now)}")


def _troubles(picture: Picture) -> Iterator[tuple[str, str]]:
    head = "failed"
    for task in picture.failed:
        when = terminal.ago(datetime.fromisoformat(task["completedAt"]), picture.now)
        title = terminal.one_line(task["title"])
        error = terminal.one_line(task["error"] or task["failureReason"] or "")
        yield head, f"{client.short_id(task['id'])}  {when}  {title}: {error}"
        head = ""
    head = "errors"
    for line in picture.errors:
        when = terminal.ago(datetime.fromisoformat(str(line["timestamp"])), picture.now)
        facts = {k: v for k, v in line.items() if k not in ("timestamp", "type", "event")}
        what = terminal.one_line(" ".join(map(str, facts.values())))
        yield head, f"{when}  {line.get('event')}  {what}"
        head = ""
