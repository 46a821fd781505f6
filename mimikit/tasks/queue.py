"""Tasks on their way: submit, look up, finish, release, show; what a task's file means; commands.

Claiming is the storage's (a rename); everything here is a single step that may be replayed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import ValidationError

from mimikit.errors import BadInput, BadRecord, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import check_id, derived_id
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.models import FIRST_TIME, Command, QueueName, Task, time_text
from mimikit.protocol.records import bad_record, most_bytes, written_at
from mimikit.protocol.results import CommandResult, TaskResult
from mimikit.protocol.triggers import PlanResult
from mimikit.tasks import ledger

Where = Literal["queued", "running", "ended"]
TaskState = Literal["queued", "running", "asking", "done", "failed", "canceled"]
"""Asking: a plan whose question waits for its answer."""
Upcoming: TypeAlias = Callable[[QueueName, int], list[str]]
"""(seat, most) → the names of the files that are next in its queue, at most so many."""
SUFFIX = ".json"
_FILLED = ("id", "createdAt", "traceId", "origin", "notify")
COMMAND_WAIT_S = 2.0
"""How long the outcome of a command is waited for."""
_TIME_LENGTH = len("2026-01-28T09:30:00.000Z")


def submit(files: Files, task: Task) -> bool:
    """Put a task into its queue; False when its id was used before (a replay, or a claim since).

    Crash: in the queue whole, or not at all.
    """
    was_here = where(files, task.role, task.id) is not None
    return not was_here and files.save_new(paths.queued(task.role, task.id), task)


def _places(seat: QueueName, task_id: str) -> tuple[tuple[Where, str], ...]:
    """Where a task may be, in the order tasks move, so that one moving meanwhile is not missed."""
    queued = paths.queued(seat, task_id)
    return (
        ("queued", queued),
        ("running", paths.running(seat, task_id)),
        ("ended", paths.ended(seat, task_id)),
        ("queued", queued),  # released meanwhile, from running back to the queue?
    )


def where(files: Files, seat: QueueName, task_id: str) -> Where | None:
    """Which part of its way a task is on; None when this seat never had it."""
    for place, path in _places(seat, task_id):
        if place == "ended" and files.exists(paths.result(seat, task_id)):
            return place
        if files.exists(path):
            return place
    return None


class TaskLocation(NamedTuple):
    """A task with the part of its way it is on."""

    task: Task
    where: Where


def find(
    files: Files, task_id: str, *, seats: tuple[QueueName, ...] = paths.QUEUES
) -> TaskLocation | None:
    """A task by its id, in any seat and on any part of its way."""
    for seat in seats:
        for place, path in _places(seat, task_id):
            if task := read(files, seat, path):
                return TaskLocation(task, place)
    return None


def read(files: Files, seat: QueueName, path: str) -> Task | None:
    """The task a file of this seat holds, hand-made ones filled in; None when it holds none.

    A claim may die before what was missing is written down, so every folder is read like this.
    """
    try:
        stat, data = files.stat(path), files.read(path, most=most_bytes(Task))
        if stat is None or data is None:
            return None
        return parse_task(path.rpartition("/")[2], data, seat, written_at(stat))[0]
    except (BadRecord, UnsafeFile):
        return None


def finish(files: Files, result: TaskResult | PlanResult) -> bool:
    """Write how a run ended; False when that is written already, which then counts."""
    path = paths.result("worker" if isinstance(result, TaskResult) else "planner", result.id)
    if files.save_new(path, result):
        return True
    # What stands there and is no result was put there by somebody: it is set aside.
    return files.load(path, type(result)) is None and files.save_new(path, result)


def release(files: Files, task: Task) -> None:
    """Bring a running task back to its queue for a next attempt; `task.released` is set.

    Crash: between the two steps it stands in running/ marked released, and recovery repeats the
    second step without counting an attempt.
    """
    if files.exists(paths.running(task.role, task.id)):  # or it is back already: a repetition
        files.save(paths.running(task.role, task.id), task)
        finish_release(files, task)


def finish_release(files: Files, task: Task) -> None:
    """The second step of a release: the rename back."""
    files.move(paths.running(task.role, task.id), paths.queued(task.role, task.id))


def shorten_waits(files: Files, by: timedelta, held: dict[str, Task]) -> None:
    """The clock went back: attempts that wait for their time go on as soon as they would have.

    A time that a person gave stays as it is.
    """

    def shorter(task: Task) -> Task | None:
        if not task.released or task.not_before is None:
            return None
        return task.but(not_before=max(task.not_before - by, FIRST_TIME))

    _wait_anew(files, shorter, held)


def end_waits(
    files: Files, held: dict[str, Task], tasks: Iterable[tuple[QueueName, str]] | None = None
) -> None:
    """What waits for an engine is tried at once: these tasks, or all."""

    def ended(task: Task) -> Task | None:
        is_over = task.not_before is None or not (task.released and task.waits_for)
        return None if is_over else task.but(not_before=None)

    _wait_anew(files, ended, held, tasks)


def _wait_anew(
    files: Files,
    change: Callable[[Task], Task | None],
    held: dict[str, Task],
    tasks: Iterable[tuple[QueueName, str]] | None = None,
) -> None:
    """Change how long tasks wait: each is claimed and released again, as a pool may want it.

    `held`: what was claimed and not released, as the disk refused; it comes first when this is
    repeated.
    """
    for task in list(held.values()):
        release(files, task)
        del held[task.id]
    for seat, task_id in tasks if tasks is not None else _queued(files):
        task = read(files, seat, queued := paths.queued(seat, task_id))
        if task is None or (new := change(task)) is None:
            continue
        if files.move(queued, paths.running(seat, task.id)):
            with files.carried_out(paths.running(seat, task.id)):
                held[task.id] = new
                release(files, new)
            held.pop(task.id, None)


def _queued(files: Files) -> Iterator[tuple[QueueName, str]]:
    for seat in paths.QUEUES:
        for name in files.names(f"{seat}/queue"):
            yield seat, name.removesuffix(SUFFIX)


def leave_running(files: Files, seat: QueueName, task_id: str) -> None:
    """Put the definition of a finished task aside: the last step of its end."""
    files.move(paths.running(seat, task_id), paths.ended(seat, task_id))


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    task: Task
    seat: QueueName
    state: TaskState
    outcome: TaskResult | PlanResult | None = None
    """How it ended, or what it has planned; None while it has not."""

    @property
    def completed_at(self) -> datetime | None:
        return self.outcome.completed_at if self.outcome else None

    @property
    def error(self) -> str | None:
        return self.outcome.error if self.outcome else None


def show(files: Files, task_id: str) -> TaskSnapshot | None:
    """One task; None when no folder has it."""
    found = find(files, task_id)
    if found is None:
        return None
    task, seat = found.task, found.task.role
    if found.where != "ended":
        return TaskSnapshot(task, seat, found.where)
    if seat == "worker":
        result = files.peek(paths.result("worker", task_id), TaskResult)
        return TaskSnapshot(task, seat, result.status if result else "failed", result)
    settled = files.peek(paths.plan_done(task_id), PlanResult)
    plan = settled or files.peek(paths.result("planner", task_id), PlanResult)
    state: TaskState = "running"
    if plan is not None:
        state = "asking" if plan.status == "needs_input" else plan.status
    if settled is not None and state == "asking":  # its question was answered
        state = "done"
    return TaskSnapshot(task, seat, state, plan)


def live(files: Files, upcoming: Upcoming, most: int) -> list[TaskSnapshot]:
    """Running tasks and those that are next, of each seat `most`, in the order they are taken."""
    names: dict[tuple[QueueName, TaskState, str], list[str]] = {}
    for seat in paths.QUEUES:
        names[seat, "queued", "queue"] = upcoming(seat, most)
        # After the others: one that is claimed meanwhile is in both.
        names[seat, "running", "running"] = files.names(f"{seat}/running")[:most]
    found = {
        task.id: TaskSnapshot(task, seat, state)
        for (seat, state, folder), there in names.items()
        for name in there
        # What can not be read is the storage's to judge, not a reader's.
        if (task := read(files, seat, f"{seat}/{folder}/{name}"))
    }
    return sorted(found.values(), key=lambda v: (v.state != "running", *order_of(v.task)))


def recent(
    files: Files, limit: int = 50, states: Iterable[str] = ledger.ENDED
) -> list[TaskSnapshot]:
    """The tasks that ended last (in one of these states), newest first."""
    return [view for id_ in ledger.ended_ids(files, limit, states) if (view := show(files, id_))]


# ---- what a file in a queue folder means as a task, whether a program or a person wrote it; pure.
# A hand-made `{"prompt": "date"}` is a whole task: what it leaves out is filled from the file's
# name, its folder and the time it was seen.


def parse_task(name: str, data: bytes, seat: QueueName, seen_at: datetime) -> tuple[Task, bool]:
    """The task that the file `name` holds; and whether it was whole, or had to be filled in.

    The file's stem is the id, the folder decides the role; `seen_at` stands for a missing time of
    creation, and the trace follows from the id, so that reading it again gives the same task.

    Raises:
        BadRecord: it is none; the text says what was expected and what was got.
    """
    if len(data) > most_bytes(Task):
        raise BadRecord(f"expected at most {most_bytes(Task):,} bytes, got more")
    if not name.endswith(SUFFIX):
        raise BadRecord(f"expected a name that ends in {SUFFIX}, got {name!r}")
    try:
        task_id = check_id(name.removesuffix(SUFFIX))
    except BadInput as error:
        raise BadRecord(str(error), field="id") from None
    given = parse_object(data)
    if given.get("id") not in (None, task_id):
        raise BadRecord(
            f"id: expected {task_id!r}, the name of the file, got {given['id']!r}; "
            "name both alike, or leave the id out",
            field="id",
        )
    is_whole = given.get("role") == seat and None not in map(given.get, _FILLED)
    text = data.removeprefix(b"\xef\xbb\xbf")
    if not is_whole:
        known: dict[str, Json] = {
            "id": task_id,
            "createdAt": time_text(seen_at),
            "traceId": derived_id("trace", task_id),
            "origin": "file",
            "notify": "message",
        }
        missing = {key: known[key] for key in _FILLED if given.get(key) is None}
        text = json.dumps(given | missing | {"role": seat}).encode()
    try:
        return Task.model_validate_json(text), is_whole
    except ValidationError as error:
        raise bad_record(error) from None


def order_of(task: Task) -> tuple[int, bool, str, str]:
    """The place of a task in its queue, smaller first.

    Order: priority falling, internal runs first, older first, then by id.
    """
    return (-task.priority, not task.internal, time_text(task.created_at), task.id)


def job_of(task: Task, stays: Callable[[str], bool]) -> str:
    """The job of a task: its trace, or the trigger whose firing it is; `stays` tells of one."""
    trigger_id = task.source_trigger_id
    if trigger_id is None or task.firing is False:
        return task.trace_id
    return trigger_id if task.firing or stays(trigger_id) else task.trace_id


def ready_at(task: Task) -> float | None:
    """When it may be claimed, in seconds since 1970; None means at once."""
    return task.not_before.timestamp() if task.not_before else None


def glance(name: str, data: bytes) -> tuple[tuple[int, bool, str, str], float | None] | None:
    """`order_of` and `ready_at` of a file as our own programs write it, three times faster.

    It validates nothing but what it reads: good for putting 100,000 files in order, not for running
    one. None means: read it properly.
    """
    try:
        given: dict[str, Any] = json.loads(data.decode())
        created, priority = given["createdAt"], given.get("priority", 5)
        internal, not_before = given.get("internal", False), given.get("notBefore")
        if given["id"] + SUFFIX != name or len(created) != _TIME_LENGTH or created[-1] != "Z":
            return None
        if type(priority) is not int or type(internal) is not bool:
            return None
        due = None if not_before is None else datetime.fromisoformat(not_before)
        if due is not None and due.tzinfo is None:
            return None
        order = (-priority, not internal, created, name.removesuffix(SUFFIX))
        return order, due.timestamp() if due else None
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
        return None


# ---- commands from outside (cancel, retry, pause …): a file each, applied once by the supervisor,
# kept with its outcome.


def dismissal_id(task_id: str) -> str:
    """The command by which a failure counts as looked at."""
    return derived_id("dismiss", task_id)


def give_command(files: Files, command: Command) -> bool:
    """Hand a command to the supervisor; False when this id was given before."""
    is_done = files.exists(paths.command_done(command.id))
    return not is_done and files.save_new(paths.command(command.id), command)


def give_and_wait(
    files: Files,
    command: Command,
    *,
    is_served: bool,
    pause: Callable[[float], object] = lambda most_s: time.sleep(min(most_s, 0.02)),
) -> CommandResult | None:
    """Give a command and wait a moment for what comes of it.

    None: nothing did in time; the command is kept. Where nobody is there to apply it (`is_served`)
    nothing is waited for. `pause` may return as soon as something has changed.
    """
    give_command(files, command)
    deadline = time.monotonic() + (COMMAND_WAIT_S if is_served else 0)
    while (found := command_result(files, command.id)) is None:
        if (left_s := deadline - time.monotonic()) <= 0:
            return None
        pause(left_s)
    return found


def waiting_commands(files: Files, names: Iterable[str] | None = None) -> list[Command]:
    """Commands not applied yet, oldest first: all, or those in these files."""
    found = files.load_all(paths.COMMANDS, Command, names)
    return sorted(found, key=lambda o: (o.created_at, o.id))


def command_result(files: Files, command_id: str) -> CommandResult | None:
    """What came of a command; None while it waits."""
    return files.load(paths.command_done(command_id), CommandResult)


def settle_command(files: Files, result: CommandResult) -> None:
    """Record the outcome, then drop the command.

    Crash: a command with an outcome is dropped at the next look, not applied again.
    """
    files.save_new(paths.command_done(result.command.id), result)
    files.remove(paths.command(result.command.id))
