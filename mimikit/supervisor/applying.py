"""The only place where a commit record becomes true: turns, plans, and the end of a run.

Every step may be replayed: it finds by an id what it did before. The last step of each takes the
record out of sight, so that only what is not yet applied is ever applied again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from mimikit.conversation import inbox, questions, turns
from mimikit.errors import UnsafeFile
from mimikit.memory import notes
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import (
    InboxItem,
    Order,
    PlanResult,
    Question,
    Task,
    TaskResult,
    TurnRecord,
)
from mimikit.supervisor import telling
from mimikit.supervisor.books import Books
from mimikit.tasks import commands, queue
from mimikit.tasks.after_run import Finish, result_of
from mimikit.triggers import registry


def apply_turn(books: Books, record: TurnRecord) -> None:
    """Make a committed turn true.

    Crash: the record stays in turns/new until the last step; a replay repeats what is missing.
    """
    for message in books.conversation.add(record.messages):
        books.feed.tell("message", id=message.id)
    _submit_all(books, record.tasks)
    _order_cancels(books, record.id, record.cancels, record.completed_at)
    _keep(books, record)
    _apply_questions(books, record)
    for item_id in record.consumed:
        inbox.take_out(books.files, item_id)
        books.feed.tell("inbox", id=item_id, gone=True)
    turns.mark_applied(books.files, record.id)
    books.log.write("task", "turn_applied", turnId=record.id, author=record.author)


def apply_plan(books: Books, plan: PlanResult) -> None:
    """Publish a finished plan whole, tell what it found or why it failed, put it aside.

    A plan that needs input only frees its seat; it stays until its question is answered.
    Crash: the record stays in planner/results until the last step.
    """
    task = _task_of(books, plan)
    if plan.status != "needs_input":
        _submit_all(books, plan.tasks)
        for trigger in plan.triggers:
            registry.create(books.files, trigger)
            books.triggers_changed(trigger.id)
            books.feed.tell("trigger", id=trigger.id)
        _order_cancels(books, plan.id, plan.cancels, plan.completed_at)
        _order_changes(books, plan)
        _end_in_ledger(books, plan, "planner", task)
        if task is not None and _plan_is_told(plan):
            _put_result(books, task, "teller", plan.completed_at)
    queue.leave_running(books.files, "planner", plan.id)
    if plan.status != "needs_input":
        books.files.move(paths.result("planner", plan.id), paths.plan_done(plan.id))
    books.feed.tell("task", id=plan.id, seat="planner")


def end_worker(books: Books, result: TaskResult) -> None:
    """Bring a Worker's finished run to its end: ledger, telling, running file aside.

    Crash: the running file is moved last; recovery finds it with its result and comes here again.
    """
    task = queue.read(books.files, "worker", paths.running("worker", result.id))
    known = books.ledger.end_of(result.id) is not None
    told = None
    if task is not None:
        before = None
        if task.source_trigger_id:
            before = registry.state(books.files, task.source_trigger_id)
        told = telling.telling(task, result, before)
    _end_in_ledger(books, result, "worker", task)
    if task is not None and told is not None:
        _put_result(books, task, told, result.completed_at)
    if task is not None and task.source_trigger_id and not known:
        _remember_outcome(books, task.source_trigger_id, result)
    if task is not None and task.source_trigger_ids:
        books.answers_came(task, result)
    if task is not None and task.covers is not None:
        books.summary_came(task, result)
    queue.leave_running(books.files, "worker", result.id)
    books.feed.tell("task", id=result.id, seat="worker")


def cancel_queued(books: Books, task: Task, now: datetime) -> bool:
    """Cancel a waiting task by claiming it; False when a pool was faster.

    Crash: after the claim it stands in running/ and the order for it is still there: recovery puts
    it back or ends it, and the order is applied again.
    """
    seat = task.role
    if not books.files.move(paths.queued(seat, task.id), paths.running(seat, task.id)):
        return False
    books.canceling.add(task.id)
    finish_canceled(books, task, now)
    return True


def finish_canceled(books: Books, task: Task, now: datetime) -> None:
    """Write `canceled` as the outcome of a task that no engine runs, and bring it to its end."""
    end_without_engine(books, task, Finish("canceled", "canceled", task.attempts), now)
    books.canceling.discard(task.id)


def end_without_engine(
    books: Books, task: Task, end: Finish, now: datetime, *, error: str | None = None
) -> None:
    """Write how a task ended, unless that is written already, and bring it to its end."""
    queue.finish(books.files, result_of(task, end, now, now, error=error))
    if task.role == "worker":
        if result := books.files.load(paths.result("worker", task.id), TaskResult):
            end_worker(books, result)
    elif plan := books.files.load(paths.result("planner", task.id), PlanResult):
        apply_plan(books, plan)


def question_of(plan: PlanResult, now: datetime) -> Question:
    """The question a plan waits with, opened now."""
    return Question(
        question_id=derived_id("q", plan.id),
        question=plan.question or "",
        options=plan.options or [],
        default=plan.default,
        timeout=plan.question_timeout,
        created_at=now,
        expires_at=now + timedelta(seconds=plan.question_timeout),
        planner_task_id=plan.id,
        trace_id=plan.trace_id,
    )


def answered_task(question: Question, answer: str, asker: Task, now: datetime) -> Task:
    """The new Planner task that goes on with request, question and answer."""
    return Task(
        id=derived_id("task", question.question_id),
        role="planner",
        prompt=f"{asker.prompt}\n\nYou asked: {question.question}\nThe user answered: {answer}",
        title=asker.title,
        priority=asker.priority,
        created_at=now,
        trace_id=asker.trace_id,
        parent_task_id=asker.id,
        notify=asker.notify,
        origin=asker.origin,
        max_attempts=2,
    )


def _submit_all(books: Books, tasks: list[Task]) -> None:
    for task in tasks:
        if queue.submit(books.files, task):
            books.ledger.write(
                "queued", task.id, task.created_at, seat=task.role, traceId=task.trace_id
            )
        books.feed.tell("task", id=task.id, seat=task.role)


def _order_cancels(books: Books, by: str, targets: list[str], now: datetime) -> None:
    for number, target in enumerate(targets):
        order = Order(
            id=derived_id("cmd", by, "cancel", str(number)),
            action="cancel",
            target=target,
            created_at=now,
            origin="supervisor",
        )
        commands.give(books.files, order)


def _order_changes(books: Books, plan: PlanResult) -> None:
    """Hand on what a plan wants of triggers that exist."""
    for number, planned in enumerate(plan.orders):
        order = Order(
            id=derived_id("cmd", plan.id, "change", str(number)),
            action=planned.action,
            target=planned.target,
            args=planned.args,
            created_at=plan.completed_at,
            origin="planner",
        )
        commands.give(books.files, order)


def _keep(books: Books, record: TurnRecord) -> None:
    """Write what is to be remembered; a link in the way of one thing is in no other's."""
    said_at = record.completed_at.astimezone(books.settings.zone)
    for note in record.remembered:
        # Rather in the file of the day than nowhere: the user was told that it is remembered.
        for place in (note, note.but(long_term=False)) if note.long_term else (note,):
            if _is_kept(books, record, partial(notes.remember, books.files, place, said_at)):
                break
    for change in record.backlog:
        _is_kept(books, record, partial(notes.change_backlog, books.files, change))


def _is_kept(books: Books, record: TurnRecord, write: Callable[[], None]) -> bool:
    try:
        write()
    except UnsafeFile as error:
        books.log.write("error", "not_remembered", turnId=record.id, error=str(error))
        return False
    return True


def _apply_questions(books: Books, record: TurnRecord) -> None:
    """Open the turn's question, close and pass on what it answers."""
    if record.closes_question is not None:
        questions.close(books.files, record.closes_question)
        books.feed.tell("question")
    for answer in record.answers:
        _pass_on(books, record, answer.question_id, answer.text)
    if record.question is not None:  # after the old one is closed: only one is open
        questions.ask(books.files, record.question)
        books.feed.tell("question")
    if record.settles_plan is not None:
        _settle_plan(books, record.settles_plan)


def _pass_on(books: Books, record: TurnRecord, question_id: str, text: str) -> None:
    """Route an answer the Teller passed on: to the asking plan, or just close the question."""
    question = questions.pending(books.files)
    if question is None or question.question_id != question_id:
        return
    if question.planner_task_id is not None:
        found = queue.find(books.files, question.planner_task_id, seats=("planner",))
        if found is not None:
            _submit_all(books, [answered_task(question, text, found.task, record.completed_at)])
        _settle_plan(books, question.planner_task_id)
    questions.close(books.files, question_id)
    books.feed.tell("question")


def _settle_plan(books: Books, plan_id: str) -> None:
    """Put a plan aside whose question was answered."""
    if books.files.move(paths.result("planner", plan_id), paths.plan_done(plan_id)):
        books.feed.tell("task", id=plan_id, seat="planner")


def _task_of(books: Books, plan: PlanResult) -> Task | None:
    found = queue.find(books.files, plan.id, seats=("planner",))
    return found.task if found else None


def _plan_is_told(plan: PlanResult) -> bool:
    """A plan that only starts work speaks through its results; findings and failures are told."""
    if plan.status == "done":
        return not (plan.tasks or plan.triggers or plan.cancels or plan.orders)
    return plan.status == "failed"


def _end_in_ledger(
    books: Books, outcome: TaskResult | PlanResult, seat: str, task: Task | None
) -> None:
    told = task is None or not task.internal
    if books.ledger.end_of(outcome.id) is not None:
        if told:
            books.task_ended(outcome.id)  # the line may be all that came of it before
        return
    facts: dict[str, object] = {
        "seat": seat,
        "status": outcome.status,
        "attempts": outcome.attempts,
        "failureReason": outcome.failure_reason,
        "traceId": outcome.trace_id,
        "parentTaskId": task.parent_task_id if task else None,
        "sourceTriggerId": task.source_trigger_id if task else None,
        "retryOf": task.retry_of if task else None,
        "title": task.title if task else None,
    }
    books.ledger.write("ended", outcome.id, outcome.completed_at, **facts)
    books.log.write("task", "ended", taskId=outcome.id, error=outcome.error, **facts)
    if told:
        books.task_ended(outcome.id)


def _put_result(books: Books, task: Task, told: telling.Told, now: datetime) -> None:
    """Enter a result to be told; the entry is there until a committed turn told it."""
    inbox.put(
        books.files,
        InboxItem(
            id=paths.result_inbox_id(task.id),
            kind="task_result",
            created_at=now,
            task_id=task.id,
            seat=task.role,
            notify=told,
            trace_id=task.trace_id,
        ),
    )


def _remember_outcome(books: Books, trigger_id: str, result: TaskResult) -> None:
    if not books.files.exists(paths.trigger(trigger_id)):
        return
    state = registry.state(books.files, trigger_id)
    registry.save_state(
        books.files,
        trigger_id,
        state.but(
            last_outcome=telling.outcome_hash(result),
            failure_streak=state.failure_streak + 1 if result.status == "failed" else 0,
        ),
    )
    books.feed.tell("trigger", id=trigger_id)
