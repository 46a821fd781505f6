"""Applies commit records: turns, plans, and results of Workers.

Every step is idempotent, as ids are derived from the record; the last one moves the record away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from mimikit import permission
from mimikit.conversation import inbox, turns
from mimikit.errors import StorageError, UnsafeFile
from mimikit.language.plain_text import first_line
from mimikit.memory import notes
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import (
    MAX_TEXT,
    Command,
    InboxItem,
    QueueName,
    RoutedAnswer,
    Task,
    TurnRecord,
)
from mimikit.protocol.records import encode
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import EndIntent, PlanResult
from mimikit.supervisor.archiver import Archiver
from mimikit.supervisor.llm_eval import LlmEvalBatch
from mimikit.supervisor.run_end import (
    BREAKS_AT,
    break_circuit,
    notice_kind,
    plan_end,
    settled_end,
)
from mimikit.supervisor.store import SLICE_S, Store
from mimikit.supervisor.trigger_scheduler import TriggerScheduler
from mimikit.tasks import queue
from mimikit.tasks.retry import TaskEnd, result_of
from mimikit.triggers import registry

_MOST_STEPS = 20


class CommitApplier:
    def __init__(
        self, store: Store, triggers: TriggerScheduler, llm_eval: LlmEvalBatch, archiver: Archiver
    ) -> None:
        self._store, self._files = store, store.files
        self._feed, self._ledger = store.feed, store.ledger
        self._triggers, self._llm_eval, self._archiver = triggers, llm_eval, archiver
        self._to_end: dict[tuple[QueueName, str], None] = {}
        """Runs that have finished, oldest first."""

    def apply(self, record: TurnRecord | PlanResult | TaskResult) -> bool:
        """Apply a committed record; False: it is invalid, and was quarantined.

        Crash: the record stays in its place until the last step; a replay does what is missing.
        """
        match record:
            case TurnRecord():
                with self._files.quarantine_if_refused(paths.turn_new(record.id)):
                    self._apply_turn(record)
                    return True
                return False
            case PlanResult():
                return self._apply_plan(record)
            case TaskResult():
                self._apply_result(record)
                return True

    def _apply_plan(self, plan: PlanResult) -> bool:
        """Apply a plan; one with a question stays until it is answered."""
        found = queue.find(self._files, plan.id, seats=("planner",))
        task = found.task if found else None
        with self._files.quarantine_if_refused(paths.result("planner", plan.id)):
            if plan.status != "needs_input":
                self._publish_plan(plan, remote=bool(task and task.remote))
                self._end_of_run(plan, task, plan_end(self._store, task, plan))
            queue.leave_running(self._files, "planner", plan.id)
            if plan.status != "needs_input":
                self._files.move(paths.result("planner", plan.id), paths.plan_done(plan.id))
            self._feed.publish("task", id=plan.id, seat="planner")
            return True
        if found and found.where == "running":  # its failure is reported
            end = TaskEnd("failed", "error", plan.attempts)
            error = f"its plan cannot be carried out, and is kept in {paths.CORRUPT}/"
            self.end_without_engine(found.task, end, plan.completed_at, error=error)
        return False

    def _apply_result(self, result: TaskResult) -> None:
        task = queue.read(self._files, "worker", paths.running("worker", result.id))
        end, steps = EndIntent(), list[str]()
        if task is not None:
            steps = self._triggers.steps_after(task) if not task.internal else []
            end = settled_end(self._store, task, result, is_inner_step=bool(steps))
        self._end_of_run(result, task, end, steps if result.status != "done" else ())
        if task is not None and task.source_trigger_ids:
            self._llm_eval.apply_answers(task, result)
        if task is not None and task.covers is not None:
            self._archiver.apply_summary(task, result)
        queue.leave_running(self._files, "worker", result.id)
        self._feed.publish("task", id=result.id, seat="worker")

    def end_runs(self, now: datetime) -> bool:
        """Apply the ends of finished runs, for at most SLICE_S; returns whether there are more."""
        self._to_end |= dict.fromkeys(self._store.events.ended_runs.take())
        failed: Exception | None = None
        until = self._store.clock.monotonic() + SLICE_S
        for seat, task_id in list(self._to_end):
            del self._to_end[(seat, task_id)]
            try:
                self.end_run(seat, task_id)
                self._feed.publish("task", id=task_id, seat=seat)
            except Exception as error:  # noqa: BLE001 - raised again below
                self._to_end[(seat, task_id)] = None  # retried after the others
                failed = error
            if self._store.clock.monotonic() > until:
                break
        if failed is not None:
            raise failed
        return bool(self._to_end)

    def apply_turns(self) -> bool:
        """Apply all unapplied turns; returns whether there were any."""
        unapplied = turns.unapplied(self._files)
        failed: StorageError | None = None
        for record in unapplied:
            try:
                self.apply(record)
            except StorageError as error:
                failed = error
        if failed is not None:
            raise failed
        return bool(unapplied)

    # ---- a turn

    def _apply_turn(self, record: TurnRecord) -> None:
        for part in (*record.tasks, *filter(None, [record.question])):
            encode(part)  # all of it can be written, or none of it is
        for message in self._store.conversation.add(record.messages):
            self._feed.publish("message", id=message.id)
        asked = next((message.id for message in record.messages if message.role == "user"), None)
        for task in record.tasks:
            self._publish(task, record.completed_at, asked)
        self._give_cancels(record.id, record.cancels, record.completed_at)
        self._remember(record)
        if record.closes_question is not None:
            inbox.close_question(self._files, record.closes_question)
            self._feed.publish("question")
        for answer in record.answers:
            self._route_answer(answer, record.completed_at)
        if record.question is not None:  # after the old one is closed: only one is open
            inbox.ask(self._files, record.question)
            self._feed.publish("question")
        if record.settles_plan is not None:
            self._settle_plan(record.settles_plan)
        for item_id in record.consumed:
            inbox.remove(self._files, item_id)
            self._feed.publish("inbox", id=item_id, gone=True)
        turns.mark_applied(self._files, record.id)
        self._store.log.write("task", "turn_applied", turnId=record.id, author=record.author)

    def _remember(self, record: TurnRecord) -> None:
        """Write notes and backlog; an unsafe file stops only what goes into it."""
        for gone in record.forgotten:
            self._try_write(record, partial(notes.forget, self._files, gone))
        said_at = record.completed_at.astimezone(self._store.settings.zone)
        for note in record.remembered:
            # The fallback is the day's file, as the user was promised that it is remembered.
            for place in (note, note.but(long_term=False)) if note.long_term else (note,):
                if self._try_write(record, partial(notes.remember, self._files, place, said_at)):
                    break
        for change in record.backlog:
            self._try_write(record, partial(notes.apply_backlog, self._files, change))

    def _try_write(self, record: TurnRecord, write: Callable[[], object]) -> bool:
        try:
            write()
        except UnsafeFile as error:
            self._store.log.write("error", "not_remembered", turnId=record.id, error=str(error))
            return False
        return True

    # ---- the end of a run

    def _publish_plan(self, plan: PlanResult, *, remote: bool) -> None:
        commands = [
            Command(
                # All have the same time: their names give the order.
                id=f"{derived_id('cmd', plan.id, 'change')}-{number:04}",
                action=planned.action,
                target=planned.target,
                args=planned.args,
                created_at=plan.completed_at,
                origin="planner",
                remote=remote,
            )
            for number, planned in enumerate(plan.commands)
        ]
        for part in (*plan.tasks, *plan.triggers, *commands):
            encode(part)  # all of it can be written, or none of it is
        for planned in plan.tasks:
            self._publish(planned, plan.completed_at)
        for trigger in plan.triggers:
            registry.create(self._files, trigger)
            self._store.trigger_changed(trigger.id)
        self._give_cancels(plan.id, plan.cancels, plan.completed_at)
        for command in commands:
            queue.submit_command(self._files, command)

    def _end_of_run(
        self,
        outcome: PlanResult | TaskResult,
        task: Task | None,
        end: EndIntent,
        lost_steps: Sequence[str] = (),
    ) -> None:
        """Write the end to the ledger, pause a trigger that always fails, and report.

        task: None if its file is gone. lost_steps: titles of steps that will not run.
        """
        if self._ledger.end_of(outcome.id) is None:
            facts: dict[str, object] = {
                "seat": "planner" if isinstance(outcome, PlanResult) else "worker",
                "status": outcome.status,
                "attempts": outcome.attempts,
                "failureReason": outcome.failure_reason,
                "traceId": outcome.trace_id,
                "parentTaskId": task.parent_task_id if task else None,
                "sourceTriggerId": task.source_trigger_id if task else None,
                "retryOf": task.retry_of if task else None,
                "title": task.title or first_line(task.prompt) if task else None,
                "notice": notice_kind(task, outcome, end) if task else None,
            }
            self._ledger.write("ended", outcome.id, outcome.completed_at, **facts)
            self._store.log.write("task", "ended", taskId=outcome.id, error=outcome.error, **facts)
        if task is None or not task.internal:
            self._triggers.task_ended(outcome.id)  # also on a replay, which may need only this
        if task is not None and end.trips:
            break_circuit(self._store, task)
        if task is None or end.told is None:
            return
        item = InboxItem(
            id=paths.result_inbox_id(task.id),
            kind="task_result",
            created_at=outcome.completed_at,
            task_id=task.id,
            seat=task.role,
            notify=end.told,
            trace_id=task.trace_id,
            trigger_id=task.source_trigger_id if task.role == "worker" else None,
            not_before=end.not_before,
            tripped=BREAKS_AT if end.trips else 0,
            steps=list(lost_steps)[:_MOST_STEPS],
            remote=task.remote,
            timezone=task.timezone,
            locale=task.locale,
        )
        inbox.put(self._files, item)

    # ---- tasks

    def cancel_queued(self, task: Task, now: datetime) -> bool:
        """Cancel a waiting task by claiming it; False: a pool has claimed it.

        Crash: after the claim it is in running/, and its command is still there for recovery.
        """
        seat = task.role
        if not self._files.move(paths.queued(seat, task.id), paths.running(seat, task.id)):
            return False
        self._store.canceling.add(task.id)
        self.finish_canceled(task, now)
        return True

    def finish_canceled(self, task: Task, now: datetime) -> None:
        """End a task that no engine runs as `canceled`."""
        self.end_without_engine(task, TaskEnd("canceled", "canceled", task.attempts), now)
        self._store.canceling.discard(task.id)

    def end_without_engine(
        self, task: Task, end: TaskEnd, now: datetime, *, error: str | None = None
    ) -> None:
        """Write the result of a task, unless there is one, and apply its end."""
        queue.finish(self._files, result_of(task, end, now, now, error=error))
        self.end_run(task.role, task.id)

    def end_run(self, seat: QueueName, task_id: str) -> None:
        model = TaskResult if seat == "worker" else PlanResult
        record = self._files.load(paths.result(seat, task_id), model)
        if record is not None:
            self.apply(record)

    def submit(self, task: Task, message_id: str | None = None) -> None:
        """Queue a task, once, and write it to the ledger, with the message that asked for it."""
        if self._store.submit(task) or not self._ledger.is_known(task.id):
            facts = {
                "seat": task.role,
                "traceId": task.trace_id,
                "retryOf": task.retry_of,
                "sourceTriggerId": task.source_trigger_id,
                "messageId": message_id,
            }
            self._ledger.write("queued", task.id, task.created_at, **facts)

    def _publish(self, task: Task, now: datetime, message_id: str | None = None) -> None:
        """Queue a task of a turn or plan; beyond `tasks_per_trace` it ends as refused.

        Crash: the result of a refused task is written first; a replay ends it again.
        """
        files, most = self._files, self._store.settings.limits.tasks_per_trace
        is_new = queue.where(files, task.role, task.id) is None
        if is_new and self._ledger.trace_size(task.trace_id) >= most:
            error = f"expected at most {most} tasks that follow from one request"
            end = TaskEnd("failed", "refused", task.attempts)
            queue.finish(files, result_of(task, end, now, now, error=error))
        if not files.exists(paths.result(task.role, task.id)):
            self.submit(task, message_id)
        elif self._ledger.end_of(task.id) is None:
            files.save(paths.running(task.role, task.id), task)
            self.end_run(task.role, task.id)
        elif task.role == "planner" or files.exists(paths.running(task.role, task.id)):
            self.end_run(task.role, task.id)  # a storage error interrupted its end

    def _give_cancels(self, by: str, targets: list[str], now: datetime) -> None:
        for number, target in enumerate(targets):
            id_ = derived_id("cmd", by, "cancel", str(number))
            queue.submit_cancel(self._files, id_, target, now)

    def _route_answer(self, answer: RoutedAnswer, now: datetime) -> None:
        """Queue a Planner task with the answer to a plan's question; close the question.

        A command that the local model proposed and the user confirmed counts as the user's.
        """
        question = inbox.pending_question(self._files)
        if question is None or question.question_id != answer.question_id:
            return
        if question.planner_task_id is not None:
            found = queue.show(self._files, question.planner_task_id)
            if found is not None:
                asker, id_ = found.task, derived_id("task", question.question_id)
                engine = found.outcome.engine if found.outcome else ""
                is_own = permission.is_confirmed(
                    engine, question.options, answer.text, by_user=answer.by_user
                )
                addition = f"\n\nYou asked: {question.question}\nThe user answered: {answer.text}"
                task = Task(
                    id=id_,
                    role="planner",
                    prompt=question.options[0]
                    if is_own
                    else self._prompt_with(id_, asker.prompt, addition),
                    title=asker.title,
                    priority=asker.priority,
                    created_at=now,
                    trace_id=asker.trace_id,
                    parent_task_id=None if is_own else asker.id,
                    notify=asker.notify,
                    origin="builtin" if is_own else asker.origin,
                    remote=asker.remote or answer.remote,
                    timezone=asker.timezone,
                    locale=asker.locale,
                    files=asker.files,
                    max_attempts=2,
                )
                self.submit(task)
            self._settle_plan(question.planner_task_id)
        inbox.close_question(self._files, question.question_id)
        self._feed.publish("question")

    def _prompt_with(self, task_id: str, prompt: str, more: str) -> str:
        """The prompt and more text, shortened to MAX_TEXT; then the full text is in `side/`."""
        if len(prompt) + len(more) <= MAX_TEXT:
            return prompt + more
        whole = prompt + more
        self._files.write(paths.side(task_id), whole.encode(errors="replace"))
        note, last = f"\n… (all of it: {paths.side(task_id)})", more[-MAX_TEXT // 2 :]
        return whole[: MAX_TEXT - len(note) - len(last)] + note + last

    def _settle_plan(self, plan_id: str) -> None:
        if self._files.move(paths.result("planner", plan_id), paths.plan_done(plan_id)):
            self._feed.publish("task", id=plan_id, seat="planner")
