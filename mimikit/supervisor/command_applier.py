"""Applies the commands that came from outside: cancel, retry, pause, triggers.

A command stays in `commands/` until what it asks for is true on disk, so that a crash forgets none:
a canceled run, say, keeps its command until the result says `canceled`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from mimikit import permission
from mimikit.conversation import inbox, turns
from mimikit.errors import BadInput, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id, is_id
from mimikit.protocol.models import Command, CommandResult, Task
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.store import Store
from mimikit.tasks import commands, queue
from mimikit.tasks.after_run import TaskEnd, result_of
from mimikit.triggers import registry
from mimikit.triggers.decide import make_run

Said = tuple[bool, str, str | None]
"""Whether it could be done, in words, and the id of what it made."""


class CommandApplier:
    """Applies commands; the supervisor's thread alone."""

    def __init__(
        self, store: Store, applier: CommitApplier, *, pause_changed: Callable[[], None]
    ) -> None:
        """`pause_changed` is told when the queues are paused or go on."""
        self._store, self._files = store, store.files
        self._feed, self._ledger = store.feed, store.ledger
        self._applier, self._pause_changed = applier, pause_changed
        self._actions: dict[str, Callable[[Command, datetime], Said | None]] = {
            "cancel": self._cancel,
            "retry": self._retry,
            "pause": self._pause,
            "resume": self._pause,
            "trigger_pause": self._trigger_enable,
            "trigger_resume": self._trigger_enable,
            "trigger_remove": self._trigger_remove,
            "trigger_run": self._trigger_run,
            "trigger_edit": self._trigger_edit,
        }

    def step(self, now: datetime) -> bool:
        """Apply every waiting command; gives whether any was settled."""
        settled = False
        for command in commands.waiting(self._files):
            if commands.outcome(self._files, command.id) is not None:
                self._files.remove(paths.command(command.id))
                continue
            said = self._apply(command, now)
            if said is not None:
                self._settle(command, said, now)
                settled = True
        return settled

    def _apply(self, command: Command, now: datetime) -> Said | None:
        """What came of it; one that can not be applied, ever, must not hold up the others."""
        if command.action not in ("pause", "resume") and not is_id(command.target):
            return False, f"expected the id of a task or trigger, got {command.target[:60]!r}", None
        try:
            return self._actions[command.action](command, now)
        except (BadInput, UnsafeFile, ValueError) as error:
            return False, str(error), None

    def _settle(self, command: Command, said: Said, now: datetime) -> None:
        ok, message, result_id = said
        commands.settle(
            self._files,
            CommandResult(
                command=command, ok=ok, message=message, result_id=result_id, applied_at=now
            ),
        )
        self._store.log.write("audit", "order", action=command.action, target=command.target, ok=ok)

    def _cancel(self, command: Command, now: datetime) -> Said | None:
        """Cancel a task, a turn in progress, or remove a trigger. None: wait for the run to end."""
        target = command.target
        if target in self._store.canceling:
            return self._cancel_again(target, now)
        if (end := self._ledger.end_of(target)) is not None:
            done = end.status == "canceled"
            return done, f"{target} ended as {end.status}", None
        if turns.is_committed(self._files, target):
            return True, "the turn is over", None
        if self._store.live.cancel(target):
            return None
        found = queue.find(self._files, target)
        if found is None:
            return self._cancel_trigger(command, now)
        if found.where == "queued":
            if self._applier.cancel_queued(found.task, now):
                return True, f"canceled {target}", None
            return None
        if found.where == "running":
            # Claimed, not entered yet, or ending: it will see this as it enters; look again then.
            self._store.live.expect(target)
            return None
        return self._cancel_asking(found.task, now)

    def _cancel_again(self, target: str, now: datetime) -> Said:
        """Take up a cancel that the disk cut short: every step of it may be repeated."""
        found = queue.find(self._files, target)
        if found is not None and found.where == "ended":
            self._cancel_asking(found.task, now)
        elif found is not None:
            self._applier.finish_canceled(found.task, now)
        self._store.canceling.discard(target)
        return True, f"canceled {target}", None

    def _cancel_trigger(self, command: Command, now: datetime) -> Said:
        if registry.exists(self._files, command.target):
            return self._trigger_remove(command, now)
        return False, f"no task or trigger {command.target}", None

    def _cancel_asking(self, task: Task, now: datetime) -> Said:
        """Cancel a plan that waits for an answer: put it aside and close its question."""
        path = paths.result("planner", task.id)
        if task.role != "planner" or not self._files.exists(path):
            return False, f"{task.id} has ended", None
        # The question goes first: once the plan has ended, this command is not looked into again.
        question = inbox.pending_question(self._files)
        if question is not None and question.planner_task_id == task.id:
            inbox.close_question(self._files, question.question_id)
            self._feed.tell("question")
        self._store.canceling.add(task.id)
        end = TaskEnd("canceled", "canceled", task.attempts)
        self._files.save(path, result_of(task, end, now, now))
        self._applier.finish_canceled(task, now)
        return True, f"canceled {task.id}", None

    def _retry(self, command: Command, now: datetime) -> Said:
        found = queue.find(self._files, command.target)
        if found is None or found.where != "ended":
            return (
                False,
                f"expected the id of a task that has ended, got {command.target[:60]!r}",
                None,
            )
        task = found.task.but(
            id=derived_id("task", command.id),
            created_at=now,
            attempts=0,
            interruptions=0,
            not_before=None,
            released=False,
            retry_of=found.task.id,
        )
        if queue.submit(self._files, task):
            self._ledger.write(
                "queued", task.id, now, seat=task.role, traceId=task.trace_id, retryOf=task.retry_of
            )
        self._feed.tell("task", id=task.id, seat=task.role)
        return True, f"queued again as {task.id}", task.id

    def _pause(self, command: Command, now: datetime) -> Said:
        self._store.save_runtime(paused=command.action == "pause")
        self._pause_changed()
        self._feed.tell("status")
        return (
            True,
            "the queues are paused" if self._store.runtime.paused else "the queues go on",
            None,
        )

    def _trigger_enable(self, command: Command, now: datetime) -> Said:
        enabled = command.action == "trigger_resume"
        trigger, broken = registry.active(self._files, command.target)
        if trigger is None or broken:
            return False, _broken(broken) or f"no trigger {command.target}", None
        registry.save(self._files, trigger.but(enabled=enabled))
        self._changed(command.target)
        return True, f"{trigger.title}: {'resumed' if enabled else 'paused'}", None

    def _trigger_remove(self, command: Command, now: datetime) -> Said:
        if not registry.exists(self._files, command.target):
            return False, f"no trigger {command.target}", None
        self._ledger.write("trigger_removed", command.target, now)  # a line too many harms nobody
        registry.remove(self._files, command.target)
        self._changed(command.target)
        return True, f"removed {command.target}", None

    def _trigger_run(self, command: Command, now: datetime) -> Said:
        trigger, broken = registry.active(self._files, command.target)
        if trigger is None:
            return False, broken or f"no trigger {command.target}", None
        task = make_run(trigger, f"order {command.id}", now)
        queue.submit(self._files, task)
        if self._ledger.newest_order(trigger.id) != task.id:
            title = trigger.title or None
            self._ledger.write("ordered", trigger.id, now, taskId=task.id, title=title)
        state = registry.state(self._files, trigger.id)
        registry.save_state(self._files, trigger.id, state.but(last_task_id=task.id))
        self._feed.tell("task", id=task.id, seat=task.role)
        return True, f"started as {task.id}", task.id

    def _trigger_edit(self, command: Command, now: datetime) -> Said:
        trigger, broken = registry.active(self._files, command.target)
        if trigger is None or broken:
            return False, _broken(broken) or f"no trigger {command.target}", None
        new = registry.edited(trigger, command.args)
        refusal = permission.profile_change_refusal(trigger.origin, trigger.profile, new.profile)
        if refusal:
            return False, refusal, None
        registry.check_new(self._files, new)
        registry.save(self._files, new)
        self._changed(command.target)
        return True, f"changed {command.target}", None

    def _changed(self, trigger_id: str) -> None:
        self._store.events.trigger_changed(trigger_id)
        self._feed.tell("trigger", id=trigger_id)


def _broken(reason: str | None) -> str | None:
    return f"its file is broken, mend it or remove the trigger: {reason}" if reason else None
