"""Applies the orders that came from outside: cancel, retry, pause, triggers.

An order stays in `commands/` until what it asks for is true on disk, so that a crash forgets none:
a canceled run, say, keeps its order until the result says `canceled`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from mimikit import permission
from mimikit.conversation import questions, turns
from mimikit.errors import BadInput, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id, is_id
from mimikit.protocol.models import Order, OrderOutcome, Task
from mimikit.supervisor import applying
from mimikit.supervisor.books import Books
from mimikit.tasks import commands, queue
from mimikit.tasks.after_run import Finish, result_of
from mimikit.triggers import registry
from mimikit.triggers.decide import make_run

Said = tuple[bool, str, str | None]
"""Whether it could be done, in words, and the id of what it made."""


def apply_orders(books: Books, now: datetime) -> bool:
    """Apply every waiting order; gives whether any was settled."""
    settled = False
    for order in commands.waiting(books.files):
        if commands.outcome(books.files, order.id) is not None:
            books.files.remove(paths.command(order.id))
            continue
        said = _apply(books, order, now)
        if said is not None:
            _settle(books, order, said, now)
            settled = True
    return settled


def _apply(books: Books, order: Order, now: datetime) -> Said | None:
    """What came of it; an order that can not be applied, ever, must not hold up the others."""
    if order.action not in ("pause", "resume") and not is_id(order.target):
        return False, f"expected the id of a task or trigger, got {order.target[:60]!r}", None
    try:
        return _ACTIONS[order.action](books, order, now)
    except (BadInput, UnsafeFile, ValueError) as error:
        return False, str(error), None


def _settle(books: Books, order: Order, said: Said, now: datetime) -> None:
    ok, message, result_id = said
    commands.settle(
        books.files,
        OrderOutcome(order=order, ok=ok, message=message, result_id=result_id, applied_at=now),
    )
    books.log.write("audit", "order", action=order.action, target=order.target, ok=ok)


def _cancel(books: Books, order: Order, now: datetime) -> Said | None:
    """Cancel a task, a turn in progress, or remove a trigger. None: wait for the run to end."""
    target = order.target
    if target in books.canceling:
        return _cancel_again(books, target, now)
    if (end := books.ledger.end_of(target)) is not None:
        done = end.status == "canceled"
        return done, f"{target} ended as {end.status}", None
    if turns.is_committed(books.files, target):
        return True, "the turn is over", None
    if books.live.cancel(target):
        return None
    found = queue.find(books.files, target)
    if found is None:
        return _cancel_trigger(books, order, now)
    if found.where == "queued":
        if applying.cancel_queued(books, found.task, now):
            return True, f"canceled {target}", None
        return None
    if found.where == "running":
        # Claimed, not entered yet, or ending: it will see this as it enters; look again then.
        books.live.expect(target)
        return None
    return _cancel_asking(books, found.task, now)


def _cancel_again(books: Books, target: str, now: datetime) -> Said:
    """Take up a cancel that the disk cut short: every step of it may be repeated."""
    found = queue.find(books.files, target)
    if found is not None and found.where == "ended":
        _cancel_asking(books, found.task, now)
    elif found is not None:
        applying.finish_canceled(books, found.task, now)
    books.canceling.discard(target)
    return True, f"canceled {target}", None


def _cancel_trigger(books: Books, order: Order, now: datetime) -> Said:
    if registry.exists(books.files, order.target):
        return _trigger_remove(books, order, now)
    return False, f"no task or trigger {order.target}", None


def _cancel_asking(books: Books, task: Task, now: datetime) -> Said:
    """Cancel a plan that waits for an answer: put it aside and close its question."""
    path = paths.result("planner", task.id)
    if task.role != "planner" or not books.files.exists(path):
        return False, f"{task.id} has ended", None
    # The question goes first: once the plan has ended, this order is not looked into again.
    question = questions.pending(books.files)
    if question is not None and question.planner_task_id == task.id:
        questions.close(books.files, question.question_id)
        books.feed.tell("question")
    books.canceling.add(task.id)
    end = Finish("canceled", "canceled", task.attempts)
    books.files.save(path, result_of(task, end, now, now))
    applying.finish_canceled(books, task, now)
    return True, f"canceled {task.id}", None


def _retry(books: Books, order: Order, now: datetime) -> Said:
    found = queue.find(books.files, order.target)
    if found is None or found.where != "ended":
        return False, f"expected the id of a task that has ended, got {order.target[:60]!r}", None
    task = found.task.but(
        id=derived_id("task", order.id),
        created_at=now,
        attempts=0,
        interruptions=0,
        not_before=None,
        released=False,
        retry_of=found.task.id,
    )
    if queue.submit(books.files, task):
        books.ledger.write(
            "queued", task.id, now, seat=task.role, traceId=task.trace_id, retryOf=task.retry_of
        )
    books.feed.tell("task", id=task.id, seat=task.role)
    return True, f"queued again as {task.id}", task.id


def _pause(books: Books, order: Order, now: datetime) -> Said:
    books.save_runtime(paused=order.action == "pause")
    books.wake_queues()
    books.feed.tell("status")
    return True, "the queues are paused" if books.runtime.paused else "the queues go on", None


def _trigger_enable(books: Books, order: Order, now: datetime) -> Said:
    enabled = order.action == "trigger_resume"
    trigger, broken = registry.active(books.files, order.target)
    if trigger is None or broken:
        return False, _broken(broken) or f"no trigger {order.target}", None
    registry.save(books.files, trigger.but(enabled=enabled))
    _changed(books, order.target)
    return True, f"{trigger.title}: {'resumed' if enabled else 'paused'}", None


def _trigger_remove(books: Books, order: Order, now: datetime) -> Said:
    if not registry.exists(books.files, order.target):
        return False, f"no trigger {order.target}", None
    books.ledger.write("trigger_removed", order.target, now)  # a line too many harms nobody
    registry.remove(books.files, order.target)
    _changed(books, order.target)
    return True, f"removed {order.target}", None


def _trigger_run(books: Books, order: Order, now: datetime) -> Said:
    trigger, broken = registry.active(books.files, order.target)
    if trigger is None:
        return False, broken or f"no trigger {order.target}", None
    task = make_run(trigger, f"order {order.id}", now)
    queue.submit(books.files, task)
    if books.ledger.newest_order(trigger.id) != task.id:
        title = trigger.title or None
        books.ledger.write("ordered", trigger.id, now, taskId=task.id, title=title)
    state = registry.state(books.files, trigger.id)
    registry.save_state(books.files, trigger.id, state.but(last_task_id=task.id))
    books.feed.tell("task", id=task.id, seat=task.role)
    return True, f"started as {task.id}", task.id


def _trigger_edit(books: Books, order: Order, now: datetime) -> Said:
    trigger, broken = registry.active(books.files, order.target)
    if trigger is None or broken:
        return False, _broken(broken) or f"no trigger {order.target}", None
    new = registry.edited(trigger, order.args)
    refusal = permission.profile_change_refusal(trigger.origin, trigger.profile, new.profile)
    if refusal:
        return False, refusal, None
    registry.check_new(books.files, new)
    registry.save(books.files, new)
    _changed(books, order.target)
    return True, f"changed {order.target}", None


def _broken(reason: str | None) -> str | None:
    """Why a definition can not be changed by an order."""
    return f"its file is broken, mend it or remove the trigger: {reason}" if reason else None


def _changed(books: Books, trigger_id: str) -> None:
    books.triggers_changed(trigger_id)
    books.feed.tell("trigger", id=trigger_id)


_ACTIONS: dict[str, Callable[[Books, Order, datetime], Said | None]] = {
    "cancel": _cancel,
    "retry": _retry,
    "pause": _pause,
    "resume": _pause,
    "trigger_pause": _trigger_enable,
    "trigger_resume": _trigger_enable,
    "trigger_remove": _trigger_remove,
    "trigger_run": _trigger_run,
    "trigger_edit": _trigger_edit,
}
