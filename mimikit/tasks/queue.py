"""The task queue as files: submit, find, finish, release, show; parsing a task file; commands.

Tasks are claimed by the storage (a rename). Every function here is idempotent.
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
from mimikit.protocol.models import FIRST_TIME, Command, CommandResult, QueueName, Task, time_text
from mimikit.protocol.records import bad_record, check_stem, max_record_bytes, written_at
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult
from mimikit.tasks import ledger

Where = Literal["queued", "running", "ended"]
TaskState = Literal["queued", "running", "asking", "done", "failed", "canceled"]
Upcoming: TypeAlias = Callable[[QueueName, int], list[str]]
SUFFIX = ".json"
_FILLED = ("id", "createdAt", "traceId", "origin", "notify")
COMMAND_WAIT_S = 2.0
_TIME_LENGTH = len("2026-01-28T09:30:00.000Z")


def submit(files: Files, task: Task) -> bool:
    """Put a task into its queue; False when its id was used before.

    Crash: in the queue whole, or not at all.
    """
    was_here = where(files, task.role, task.id) is not None
    return not was_here and files.save_new(paths.queued(task.role, task.id), task)


def _places(seat: QueueName, task_id: str) -> tuple[tuple[Where, str], ...]:
    """Where a task may be, in the order tasks move, so that none is missed while it moves."""
    queued = paths.queued(seat, task_id)
    return (
        ("queued", queued),
        ("running", paths.running(seat, task_id)),
        ("ended", paths.ended(seat, task_id)),
        ("queued", queued),  # released meanwhile, from running back to the queue?
    )


def where(files: Files, seat: QueueName, task_id: str) -> Where | None:
    for place, path in _places(seat, task_id):
        if place == "ended" and files.exists(paths.result(seat, task_id)):
            return place
        if files.exists(path):
            return place
    return None


class TaskLocation(NamedTuple):
    task: Task
    where: Where


def find(
    files: Files, task_id: str, *, seats: tuple[QueueName, ...] = paths.QUEUES
) -> TaskLocation | None:
    for seat in seats:
        for place, path in _places(seat, task_id):
            if task := read(files, seat, path):
                return TaskLocation(task, place)
    return None


def read(files: Files, seat: QueueName, path: str) -> Task | None:
    """The task in a file, with defaults for what a hand-made one leaves out; None: not a task."""
    try:
        stat, data = files.stat(path), files.read(path, max_bytes=max_record_bytes(Task))
        if stat is None or data is None:
            return None
        return parse_task(path.rpartition("/")[2], data, seat, written_at(stat))[0]
    except (BadRecord, UnsafeFile):
        return None


def finish(files: Files, result: TaskResult | PlanResult) -> bool:
    """Write the result of a run, unless there is one already."""
    path = paths.result("worker" if isinstance(result, TaskResult) else "planner", result.id)
    if files.save_new(path, result):
        return True
    # A file there that is no result is quarantined by `load`.
    return files.load(path, type(result)) is None and files.save_new(path, result)


def release(files: Files, task: Task) -> None:
    """Move a running task back to its queue for the next attempt; `task.released` is set.

    Crash: between the two steps it is in running/ marked released; recovery does the second step
    without counting an attempt.
    """
    if files.exists(paths.running(task.role, task.id)):  # else it is back already
        files.save(paths.running(task.role, task.id), task)
        finish_release(files, task)


def finish_release(files: Files, task: Task) -> None:
    files.move(paths.running(task.role, task.id), paths.queued(task.role, task.id))


def shorten_waits(files: Files, by: timedelta, unreleased: dict[str, Task]) -> None:
    """After the clock was set back: shorten the waits of retries; times that a user set stay."""

    def shorter(task: Task) -> Task | None:
        if not task.released or task.not_before is None:
            return None
        return task.but(not_before=max(task.not_before - by, FIRST_TIME))

    _change_waits(files, shorter, unreleased)


def end_waits(
    files: Files, unreleased: dict[str, Task], tasks: Iterable[tuple[QueueName, str]] | None = None
) -> None:
    """End the waits of tasks for an engine or for tokens: of these, or of all."""

    def ended(task: Task) -> Task | None:
        is_over = task.not_before is None or not (task.released and task.waits_for)
        return None if is_over else task.but(not_before=None)

    _change_waits(files, ended, unreleased, tasks)


def _change_waits(
    files: Files,
    change: Callable[[Task], Task | None],
    unreleased: dict[str, Task],
    tasks: Iterable[tuple[QueueName, str]] | None = None,
) -> None:
    """Change how long tasks wait. Each is claimed first, so that no pool runs it meanwhile.

    unreleased: tasks claimed before and not released, because of a storage error; released first.
    """
    for task in list(unreleased.values()):
        release(files, task)
        del unreleased[task.id]
    for seat, task_id in tasks if tasks is not None else _queued(files):
        task = read(files, seat, queued := paths.queued(seat, task_id))
        if task is None or (new := change(task)) is None:
            continue
        if files.move(queued, paths.running(seat, task.id)):
            with files.quarantine_if_refused(paths.running(seat, task.id)):
                unreleased[task.id] = new
                release(files, new)
            unreleased.pop(task.id, None)


def _queued(files: Files) -> Iterator[tuple[QueueName, str]]:
    for seat in paths.QUEUES:
        for name in files.names(f"{seat}/queue"):
            yield seat, name.removesuffix(SUFFIX)


def leave_running(files: Files, seat: QueueName, task_id: str) -> None:
    files.move(paths.running(seat, task_id), paths.ended(seat, task_id))


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    task: Task
    seat: QueueName
    state: TaskState
    outcome: TaskResult | PlanResult | None = None

    @property
    def completed_at(self) -> datetime | None:
        return self.outcome.completed_at if self.outcome else None

    @property
    def error(self) -> str | None:
        return self.outcome.error if self.outcome else None


def show(files: Files, task_id: str) -> TaskSnapshot | None:
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
    """Running tasks, then the next in order; at most `most` of each queue and state."""
    names: dict[tuple[QueueName, TaskState, str], list[str]] = {}
    for seat in paths.QUEUES:
        names[seat, "queued", "queue"] = upcoming(seat, most)
        # Listed last: one that is claimed meanwhile is in both.
        names[seat, "running", "running"] = files.names(f"{seat}/running")[:most]
    found = {
        task.id: TaskSnapshot(task, seat, state)
        for (seat, state, folder), there in names.items()
        for name in there
        # A file that cannot be read is the storage's to quarantine.
        if (task := read(files, seat, f"{seat}/{folder}/{name}"))
    }
    return sorted(found.values(), key=lambda v: (v.state != "running", *order_of(v.task)))


def recent(
    files: Files, limit: int = 50, states: Iterable[str] = ledger.ENDED
) -> list[TaskSnapshot]:
    return [view for id_ in ledger.ended_ids(files, limit, states) if (view := show(files, id_))]


# ---- reminders: the supervisor ends them, no pool runs them

LATE = timedelta(minutes=1)
"""A reminder later than this also reports its planned time."""


def end_reminder(files: Files, task: Task, planned_at: datetime | None, missed: int = 0) -> bool:
    """End a reminder: its result is its text. False: it has ended before.

    planned_at: its due time. missed: how many later due times have passed since.

    Crash: the result is written first, then the task into running/; recovery finds it there.
    """
    if files.exists(paths.ended("worker", task.id)):
        return False
    now = task.created_at
    result = TaskResult.of(task, "done", attempts=1, started_at=now, completed_at=now)
    data = {"text": task.prompt, **lateness(planned_at, now, missed)}
    finish(files, result.but(result=data))
    files.save(paths.running("worker", task.id), task)
    return True


def lateness(planned_at: datetime | None, now: datetime, missed: int = 0) -> dict[str, Json]:
    """The facts of a late reminder for its result; none when it is on time."""
    if planned_at is None or now - planned_at < LATE:
        return {}
    return {"plannedAt": time_text(planned_at), "missed": missed}


# ---- parsing a task file; pure. A hand-made `{"prompt": "date"}` is a whole task: what it leaves
# out is filled from the file's name, its folder and the time it was seen.


def parse_task(name: str, data: bytes, seat: QueueName, seen_at: datetime) -> tuple[Task, bool]:
    """The task in the file `name`, and whether the file was complete. Deterministic.

    The file's stem is the id, the folder decides the role, `seen_at` is the default of `createdAt`.

    Raises:
        BadRecord: not a task.
    """
    if len(data) > max_record_bytes(Task):
        raise BadRecord(f"expected at most {max_record_bytes(Task):,} bytes, got more")
    if not name.endswith(SUFFIX):
        raise BadRecord(f"expected a name that ends in {SUFFIX}, got {name!r}")
    try:
        task_id = check_id(name.removesuffix(SUFFIX))
    except BadInput as error:
        raise BadRecord(str(error), field="id") from None
    given = parse_object(data)
    check_stem(given.get("id"), task_id)
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
    """Sort key: by priority, internal runs first, oldest first, then by id."""
    return (-task.priority, not task.internal, time_text(task.created_at), task.id)


def ready_at(task: Task) -> float | None:
    """When it may be claimed, in seconds since 1970; None: now."""
    return task.not_before.timestamp() if task.not_before else None


def glance(name: str, data: bytes) -> tuple[tuple[int, bool, str, str], float | None] | None:
    """`order_of` and `ready_at` without full validation, three times faster: for 100,000 files.

    None: not a file as our programs write it; use `parse_task`.
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


# ---- commands (cancel, retry, pause …): a file each, applied once by the supervisor


def submit_command(files: Files, command: Command) -> bool:
    is_done = files.exists(paths.command_done(command.id))
    return not is_done and files.save_new(paths.command(command.id), command)


def submit_cancel(files: Files, id_: str, target: str, now: datetime) -> None:
    command = Command(id=id_, action="cancel", target=target, created_at=now, origin="supervisor")
    submit_command(files, command)


def submit_and_wait(files: Files, command: Command, *, is_served: bool) -> CommandResult | None:
    """Submit a command and wait up to COMMAND_WAIT_S for its outcome; None: timeout.

    is_served: whether a consumer is running; else it does not wait.
    """
    submit_command(files, command)
    deadline = time.monotonic() + (COMMAND_WAIT_S if is_served else 0)
    while (found := command_result(files, command.id)) is None:
        if (left_s := deadline - time.monotonic()) <= 0:
            return None
        time.sleep(min(left_s, 0.02))
    return found


def waiting_commands(files: Files) -> list[Command]:
    """Commands not applied yet, oldest first."""
    return sorted(files.load_all(paths.COMMANDS, Command), key=lambda it: (it.created_at, it.id))


def command_result(files: Files, command_id: str) -> CommandResult | None:
    return files.load(paths.command_done(command_id), CommandResult)


def settle_command(files: Files, result: CommandResult) -> None:
    """Write the outcome, then remove the command.

    Crash: a command with an outcome is removed by the next pass, not applied again.
    """
    files.save_new(paths.command_done(result.command.id), result)
    files.remove(paths.command(result.command.id))
