"""Applies commands: cancel, retry, pause, triggers, settings.

A command stays in `commands/` until its effect is on disk, so that a crash loses none: that of a
canceled run until the result says `canceled`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from mimikit import permission
from mimikit.conversation import inbox, turns
from mimikit.engines.registry import EngineRegistry
from mimikit.errors import BadInput, ErrorCode, NotFound, Refused, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id, is_id
from mimikit.protocol.models import Command, CommandResult, Task
from mimikit.protocol.triggers import Trigger
from mimikit.supervisor import settings_writer
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.self_awake import ImprovementScheduler
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.tasks.retry import TaskEnd, result_of
from mimikit.triggers import registry
from mimikit.triggers.decide import make_run

_WITHOUT_ID = frozenset(
    {"pause", "resume", "engine_try", "self_awake_run", *settings_writer.ACTIONS}
)


class _Outcome(NamedTuple):
    message: str
    ok: bool = True
    result_id: str | None = None
    code: ErrorCode | None = None
    params: dict[str, str | int | float] | None = None


class CommandApplier:
    def __init__(
        self,
        store: Store,
        applier: CommitApplier,
        engines: EngineRegistry,
        self_awake: ImprovementScheduler,
        *,
        pause_changed: Callable[[], None],
    ) -> None:
        self._store, self._files = store, store.files
        self._feed, self._ledger = store.feed, store.ledger
        self._applier, self._pause_changed = applier, pause_changed
        self._engines = engines
        self._actions: dict[str, Callable[[Command, datetime], _Outcome | None]] = {
            "cancel": self._cancel,
            "retry": self._retry,
            "pause": self._pause,
            "resume": self._pause,
            "trigger_pause": self._trigger_enable,
            "trigger_resume": self._trigger_enable,
            "trigger_remove": self._trigger_remove,
            "trigger_run": self._trigger_run,
            "trigger_edit": self._trigger_edit,
            "engine_try": self._engine_try,
            "self_awake_run": lambda it, now: _Outcome(self_awake.begin(it.target, it.id, now)),
            **dict.fromkeys(settings_writer.ACTIONS, self._change_settings),
        }
        """Each gives its outcome, or raises the reason of a refusal; None: not done yet."""

    def step(self, now: datetime) -> bool:
        """Apply waiting commands; returns whether any was done."""
        settled = False
        for command in queue.waiting_commands(self._files):
            if queue.command_result(self._files, command.id) is not None:
                self._files.remove(paths.command(command.id))
                continue
            target = command.target
            outcome: _Outcome | None
            if command.action not in _WITHOUT_ID and not is_id(target):
                expected = "expected the id of a task or trigger"
                outcome = _Outcome(f"{expected}, got {target[:60]!r}", ok=False, code="bad_id")
            else:
                try:
                    outcome = self._actions[command.action](command, now)
                except (BadInput, Refused, UnsafeFile) as error:  # holds up no others
                    outcome = _Outcome(str(error), False, None, error.code, dict(error.params))
                except ValueError as error:
                    outcome = _Outcome(str(error), ok=False, code="bad_input")
            if outcome is not None:
                result = CommandResult(command=command, applied_at=now, **outcome._asdict())
                queue.settle_command(self._files, result)
                facts = {"action": command.action, "target": target, "ok": outcome.ok}
                self._store.log.write("audit", "order", **facts)
                settled = True
        return settled

    def _cancel(self, command: Command, now: datetime) -> _Outcome | None:
        """Cancel a task or turn, or remove a trigger. None: until its run ends."""
        target = command.target
        if target in self._store.canceling:
            return self._finish_cancel(target, now)
        if (end := self._ledger.end_of(target)) is not None:
            ended, ok = f"task {target} ended as {end.status}", end.status == "canceled"
            return _Outcome(ended, ok, code=None if ok else "has_ended")
        if turns.is_committed(self._files, target):
            return _Outcome("the turn is over")
        if self._store.live.cancel(target):
            return None
        if any(turn.id == target for turn in turns.open_turns(self._files)):
            self._store.live.cancel(target, early=True)  # its next attempt begins stopped
            return None
        found = queue.find(self._files, target)
        if found is None:
            if not registry.exists(self._files, target):
                raise NotFound(f"no task or trigger {target}")
            return self._trigger_remove(command, now)
        if found.where == "queued":
            canceled = self._applier.cancel_queued(found.task, now)
            return _Outcome(f"canceled {target}") if canceled else None
        if found.where == "running":
            # Starting or ending: a starting run will see this.
            self._store.live.cancel(target, early=True)
            return None
        return self._cancel_asking(found.task, now)

    def _finish_cancel(self, target: str, now: datetime) -> _Outcome:
        """Repeat a cancel that a storage error interrupted. Idempotent."""
        found = queue.find(self._files, target)
        if found is not None and found.where == "ended":
            self._cancel_asking(found.task, now)
        elif found is not None:
            self._applier.finish_canceled(found.task, now)
        self._store.canceling.discard(target)
        return _Outcome(f"canceled {target}")

    def _cancel_asking(self, task: Task, now: datetime) -> _Outcome:
        path = paths.result("planner", task.id)
        if task.role != "planner" or not self._files.exists(path):
            return _Outcome(f"task {task.id} has ended", ok=False, code="has_ended")
        # The question first: once the plan has ended, this command counts as done.
        question = inbox.pending_question(self._files)
        if question is not None and question.planner_task_id == task.id:
            inbox.close_question(self._files, question.question_id)
            self._feed.publish("question")
        self._store.canceling.add(task.id)
        end = TaskEnd("canceled", "canceled", task.attempts)
        self._files.save(path, result_of(task, end, now, now))
        self._applier.finish_canceled(task, now)
        return _Outcome(f"canceled {task.id}")

    def _retry(self, command: Command, now: datetime) -> _Outcome:
        target = command.target
        found = queue.find(self._files, target)
        if found is None or found.where != "ended":
            message = f"expected the id of a task that has ended, got {target[:60]!r}"
            raise BadInput(message, code="not_ended" if found else "not_found")
        view = queue.show(self._files, target)
        has_failed = view is not None and view.state == "failed" and view.outcome is not None
        task = found.task.but(
            id=derived_id("task", command.id),
            created_at=now,
            attempts=0,
            interruptions=0,
            not_before=None,
            released=False,
            retry_of=target,
            engine_session=found.task.engine_session if has_failed else None,
        )
        self._applier.submit(task)
        return _Outcome(f"queued again as {task.id}", result_id=task.id)

    def _pause(self, command: Command, now: datetime) -> _Outcome:
        paused = command.action == "pause"
        self._store.save_runtime(paused=paused)
        self._pause_changed()
        self._feed.publish("status")
        return _Outcome("the queues are paused" if paused else "the queues go on")

    def _change_settings(self, command: Command, now: datetime) -> _Outcome:
        change = settings_writer.apply(self._files, command)
        tables = ("self_awake", "notify", "retention")
        own = {table: getattr(change.settings, table) for table in tables}
        self._store.settings = self._store.settings.model_copy(update=own)
        self._engines.reload(change.settings)
        self._engines.try_now()
        queue.end_waits(self._files, self._store.unreleased)
        self._feed.publish("status")
        return _Outcome(change.message)

    def _engine_try(self, command: Command, now: datetime) -> _Outcome:
        """End the back-off of an engine, or of all. Crash: saved before the command is done."""
        tried = self._engines.try_now(command.target or None)
        known = self._store.runtime.engines
        woken = {name: known[name].but(until=None) for name in tried if name in known}
        self._store.save_runtime(engines=known | woken)
        self._feed.publish("status")
        who = ", ".join(tried) or command.target or "every engine"
        return _Outcome(f"trying {who} now" if tried else f"rechecked {who}")

    def _trigger_enable(self, command: Command, now: datetime) -> _Outcome:
        enabled = command.action == "trigger_resume"
        trigger = self._valid_trigger(command.target)
        self._save_trigger(trigger.but(enabled=enabled))
        return _Outcome(f"{'resumed' if enabled else 'paused'} “{trigger.title or trigger.id}”")

    def _trigger_remove(self, command: Command, now: datetime) -> _Outcome:
        trigger_id = command.target
        if not registry.exists(self._files, trigger_id):
            raise NotFound(f"no trigger {trigger_id}")
        self._ledger.write("trigger_removed", trigger_id, now)  # may be repeated
        registry.remove(self._files, trigger_id)
        self._store.trigger_changed(trigger_id)
        return _Outcome(f"removed {trigger_id}")

    def _trigger_run(self, command: Command, now: datetime) -> _Outcome:
        trigger, broken = registry.active(self._files, command.target)
        if trigger is None:
            code = "trigger_broken" if broken else "not_found"
            raise BadInput(broken or f"no trigger {command.target}", code=code)
        task = make_run(trigger, f"order {command.id}", now)
        self._store.submit(task)
        if self._ledger.newest_order(trigger.id) != task.id:
            title = trigger.title or None
            self._ledger.write("ordered", trigger.id, now, taskId=task.id, title=title)
        state = registry.state(self._files, trigger.id)
        if state.last_task_id != task.id:  # a crash may have it applied again
            count = state.request_count + 1
            state = state.but(last_task_id=task.id, request_count=count)
            registry.save_state(self._files, trigger.id, state)
        return _Outcome(f"started as {task.id}", result_id=task.id)

    def _trigger_edit(self, command: Command, now: datetime) -> _Outcome:
        trigger = self._valid_trigger(command.target)
        new = registry.edited(trigger, command.args)
        permission.check_command_edit(new.profile, command.args, remote=command.remote)
        refusal = permission.profile_change_refusal(trigger.origin, trigger.profile, new.profile)
        if refusal:
            raise BadInput(refusal)
        registry.check_new(self._files, new)
        origin = permission.edited_origin(trigger.origin, command.origin, command.args)
        self._save_trigger(new.but(origin=origin))
        return _Outcome(f"changed {trigger.id}")

    def _valid_trigger(self, trigger_id: str) -> Trigger:
        """A definition that can be edited, as its file is valid."""
        trigger, broken = registry.active(self._files, trigger_id)
        if broken:
            message = f"its file is broken, fix it or remove the trigger: {broken}"
            raise BadInput(message, code="trigger_broken")
        if trigger is None:
            raise NotFound(f"no trigger {trigger_id}")
        return trigger

    def _save_trigger(self, trigger: Trigger) -> None:
        self._files.save(paths.trigger(trigger.id), trigger)
        self._store.trigger_changed(trigger.id)
