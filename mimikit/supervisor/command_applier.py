"""Applies the commands that came from outside: cancel, retry, pause, triggers.

A command stays in `commands/` until what it asks for is true on disk, so that a crash forgets none:
a canceled run, say, keeps its command until the result says `canceled`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, cast, get_args

from mimikit import config, config_file, permission
from mimikit.config import Settings
from mimikit.conversation import inbox, turns
from mimikit.engines import setup
from mimikit.engines.registry import EngineRegistry
from mimikit.errors import (
    BadInput,
    BadSettings,
    ErrorParameter,
    MimikitError,
    NotFound,
    Refused,
    UnsafeFile,
)
from mimikit.notifications.secrecy import url_file
from mimikit.permission import variable_refusal
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id, is_id
from mimikit.protocol.models import Command, Task
from mimikit.protocol.results import CommandResult
from mimikit.protocol.triggers import Trigger
from mimikit.self_awake_settings import ImprovementKind
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.job_canceler import JobCanceler
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.tasks.retry import TaskEnd, result_of
from mimikit.triggers import registry
from mimikit.triggers.decide import make_run

_WITHOUT_ID = frozenset(
    {"pause", "resume", "engine_use", "engine_try", "engine_set", "engine_remove"}
    | {"self_awake_on", "self_awake_off", "self_awake_run"}
    | {"notify_set", "notify_remove"}
)
MOST_AT_ONCE = 50
"""So many commands are looked at in one go, however many there are."""


class _Outcome(NamedTuple):
    message: str
    ok: bool = True
    code: str = ""
    """Of what was in the way."""
    params: dict[str, ErrorParameter] = {}  # noqa: RUF012 - of a tuple, and never changed
    result_id: str | None = None
    """What the command made."""


class CommandApplier:
    """Applies commands; the supervisor's thread alone."""

    def __init__(
        self,
        store: Store,
        applier: CommitApplier,
        engines: EngineRegistry,
        pause_changed: Callable[[], None],
        improve: Callable[[ImprovementKind | None, str, datetime], ImprovementKind],
    ) -> None:
        """`pause_changed` is told when the queues are paused or go on.

        `improve` begins an improvement of that kind, or of any, and gives which; of the command
        with that id it begins one.
        """
        self._store, self._files = store, store.files
        self._feed, self._ledger = store.feed, store.ledger
        self._applier, self._pause_changed = applier, pause_changed
        self._improve = improve
        self._engines = engines
        self._jobs = JobCanceler(store, self._is_canceled)
        self._held: dict[str, Task] = {}
        """What was taken out of its queue to wait no longer, and could not be brought back yet."""
        self._upto = ""
        """Of very many commands: the name of the last file that was looked at."""
        self._actions: dict[str, Callable[[Command, datetime], _Outcome | None]] = {
            "cancel": self._cancel,
            "cancel_job": self._cancel_job,
            "retry": self._retry,
            "dismiss": self._dismiss,
            "pause": self._pause,
            "resume": self._pause,
            "trigger_pause": self._trigger_enable,
            "trigger_resume": self._trigger_enable,
            "trigger_remove": self._trigger_remove,
            "trigger_run": self._trigger_run,
            "trigger_edit": self._trigger_edit,
            "engine_use": self._engine_use,
            "engine_try": self._engine_try,
            "engine_set": self._engine_set,
            "engine_remove": self._engine_remove,
            "self_awake_on": self._self_awake_switch,
            "self_awake_off": self._self_awake_switch,
            "self_awake_run": self._self_awake_run,
            "notify_set": self._notify_set,
            "notify_remove": self._notify_remove,
        }
        """Each says what came of it, or raises why it can not be done; None: not yet."""

    def step(self, now: datetime) -> bool:
        """Apply waiting commands; gives whether any was settled, or more are to be looked at."""
        names = [name for name in self._files.names(paths.COMMANDS) if name > self._upto]
        has_more = len(names) > MOST_AT_ONCE
        self._upto = names[MOST_AT_ONCE - 1] if has_more else ""
        settled = has_more
        for command in queue.waiting_commands(self._files, names[:MOST_AT_ONCE]):
            if queue.command_result(self._files, command.id) is not None:
                self._files.remove(paths.command(command.id))
                continue
            target = command.target
            outcome: _Outcome | None
            if command.action not in _WITHOUT_ID and not is_id(target):
                expected = "expected the id of a task or trigger"
                outcome = _Outcome(f"{expected}, got {target[:60]!r}", ok=False, code="no_work")
            else:
                try:
                    outcome = self._actions[command.action](command, now)
                except (BadInput, Refused, UnsafeFile, ValueError) as error:  # holds up no others
                    outcome = _Outcome(str(error), ok=False, code="bad_value")
                    if isinstance(error, MimikitError):
                        outcome = outcome._replace(code=error.code, params={**error.params})
            if outcome is not None:
                result = CommandResult(command=command, applied_at=now, **outcome._asdict())
                queue.settle_command(self._files, result)
                facts = {"action": command.action, "target": target, "ok": outcome.ok}
                self._store.log.write("audit", "order", **facts)
                settled = True
        return settled

    def _cancel(self, command: Command, now: datetime) -> _Outcome | None:
        """Cancel a task, a turn in progress, or remove a trigger. None: wait for the run to end."""
        target = command.target
        if target in self._store.canceling:
            return self._cancel_again(target, now)
        if (end := self._ledger.end_of(target)) is not None:
            is_canceled = end.status == "canceled"
            said = f"task {target} ended as {end.status}"
            return _Outcome(said, ok=is_canceled, code="" if is_canceled else "has_ended")
        if turns.is_committed(self._files, target):
            return _Outcome("the turn is over")
        if self._store.live.cancel(target):
            return None
        if any(turn.id == target for turn in turns.open_turns(self._files)):
            # Cut short, or between two attempts: the next look finds its end.
            self._store.stopping_turns.add(target)
            return None
        found = queue.find(self._files, target)
        if found is None:
            if not registry.exists(self._files, target):
                raise NotFound(f"no task or trigger {target}", code="no_work")
            return self._trigger_remove(command, now)
        if found.where == "queued":
            canceled = self._applier.cancel_queued(found.task, now)
            return _Outcome(f"canceled {target}") if canceled else None
        if found.where == "running":
            # Claimed, not entered yet, or ending: it will see this as it enters; look again then.
            self._store.live.cancel(target, early=True)
            return None
        return self._cancel_asking(found.task, now)

    def _cancel_job(self, command: Command, now: datetime) -> _Outcome | None:
        """Cancel all that waits or runs of a job; of a trigger its firings, and it stays."""
        number = self._jobs.cancel(command.target, now)
        if number is None:
            return None
        return _Outcome(f"canceled {command.target}" if number else "nothing of it waits or runs")

    def _is_canceled(self, task_id: str, now: datetime) -> bool:
        """Cancel a task of a job; False: not yet. What is gone meanwhile is over."""
        order = Command(id=task_id, action="cancel", target=task_id, created_at=now)
        try:
            return self._cancel(order, now) is not None
        except NotFound:
            return True

    def _cancel_again(self, target: str, now: datetime) -> _Outcome:
        """Take up a cancel that the disk cut short: every step of it may be repeated."""
        found = queue.find(self._files, target)
        if found is not None and found.where == "ended":
            self._cancel_asking(found.task, now)
        elif found is not None:
            self._applier.finish_canceled(found.task, now)
        self._store.canceling.discard(target)
        return _Outcome(f"canceled {target}")

    def _cancel_asking(self, task: Task, now: datetime) -> _Outcome:
        """Cancel a plan that waits for an answer: put it aside and close its question."""
        path = paths.result("planner", task.id)
        if task.role != "planner" or not self._files.exists(path):
            return _Outcome(f"task {task.id} has ended", ok=False, code="has_ended")
        # The question goes first: once the plan has ended, this command is not looked into again.
        question = inbox.pending_question(self._files)
        if question is not None and question.planner_task_id == task.id:
            inbox.close_question(self._files, question.question_id)
            self._feed.tell("question")
        self._store.canceling.add(task.id)
        end = TaskEnd("canceled", "canceled", task.attempts)
        self._files.save(path, result_of(task, end, now, now))
        self._applier.finish_canceled(task, now)
        return _Outcome(f"canceled {task.id}")

    def _dismiss(self, command: Command, _now: datetime) -> _Outcome:
        """A failure was looked at: that this command is kept is all that comes of it."""
        return _Outcome(f"{command.target} was looked at")

    def _retry(self, command: Command, now: datetime) -> _Outcome:
        target = command.target
        found = queue.find(self._files, target)
        if found is None or found.where != "ended":
            said = f"expected the id of a task that has ended, got {target[:60]!r}"
            raise BadInput(said, code="not_ended")
        view = queue.show(self._files, target)
        has_failed = (
            view is not None and view.outcome is not None and view.outcome.status == "failed"
        )
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
        self._feed.tell("status")
        return _Outcome("the queues are paused" if paused else "the queues go on")

    def _engine_use(self, command: Command, now: datetime) -> _Outcome:
        """Have engines serve whatever names none, or a role or profile, now and after each start.

        Without names the settings are only read anew.
        """
        names, seat = command.target.split(), command.args.get("seat")
        setup.check_seat(seat)
        given = os.environ.get("MIMIKIT_ENGINE")
        if names and seat is None and given is not None:
            raise BadInput(f"expected no MIMIKIT_ENGINE, got {given!r}; change that instead")
        settings = self._change_settings(
            lambda text: setup.with_order(text, names, seat) if names else text
        )
        if seat is not None:
            return _Outcome(f"{seat}: {', then '.join(names)} from now on")
        own = [f"{seat} ({engine})" for seat, engine in self._engines.named().items()]
        others = f"; the settings give others to {', '.join(own)}" if own else ""
        first, *then = settings.engine_order
        order = ", then ".join([f"from now on {first} serves", *then])
        return _Outcome(f"{order}{others}")

    def _engine_set(self, command: Command, now: datetime) -> _Outcome:
        """Set up an endpoint, or change it; its key lies in `secrets/` already."""
        name, facts = setup.checked_name(command.target), command.args
        if "api_key_env" in facts and (refusal := variable_refusal(remote=command.remote)):
            raise Refused(refusal)
        self._change_settings(lambda text: setup.with_endpoint(text, name, facts))
        setup.forget(self._files, name)
        return _Outcome(f"set up {name}")

    def _engine_remove(self, command: Command, now: datetime) -> _Outcome:
        """Forget an endpoint. Crash: done again it finds none, and what is left of it goes."""
        name = setup.checked_name(command.target)
        self._change_settings(lambda text: setup.without_endpoint(text, name))
        setup.forget(self._files, name)
        return _Outcome(f"removed {name}")

    def _notify_set(self, command: Command, now: datetime) -> _Outcome:
        """Set up a channel, or change it; its address lies in `secrets/` already.

        Without a name the settings are only read anew.
        """
        name, events = command.target, command.args.get("events")
        if name:
            config_file.checked_name(name)
        self._write_settings(
            lambda text: (
                config_file.with_channel(text, name, url_file(name), events) if name else text
            )
        )
        return _Outcome(f"set up {name}" if name else "looked at the channels anew")

    def _notify_remove(self, command: Command, now: datetime) -> _Outcome:
        """Forget a channel and its address. Crash: done again it finds none, and the rest goes."""
        name = config_file.checked_name(command.target)
        table = (*config_file.CHANNELS, name)
        self._write_settings(lambda text: config_file.without_table(text, table))
        config_file.forget_secret(self._files, url_file(name))
        return _Outcome(f"removed {name}")

    def _change_settings(self, change: Callable[[str], str]) -> Settings:
        """Write the settings as `change` makes them, and have engines serve by them from now on."""
        settings = self._write_settings(change)
        self._engines.renew(settings)
        self._engines.try_now()
        queue.end_waits(self._files, self._held)
        self._feed.tell("status")
        return settings

    def _write_settings(self, change: Callable[[str], str]) -> Settings:
        """Write the settings as `change` makes them, and notify by them from now on.

        Crash: they are written first; done again, it is the same.
        """
        settings = self._store.settings

        def checked(text: str) -> str:
            nonlocal settings
            changed = change(text)
            settings = config.parsed(changed, Path(paths.CONFIG))
            return changed

        try:
            config_file.rewrite(self._files, checked)
        except BadSettings as error:
            raise BadInput(str(error)) from None
        self._store.notifications.settings = settings.notify
        self._feed.tell("status")
        return settings

    def _engine_try(self, command: Command, now: datetime) -> _Outcome:
        """Have an engine, or each, tried by what waits for it, however long it was to rest.

        Crash: that it need not rest is kept before the command is settled; a start tries it then.
        """
        tried = self._engines.try_now(command.target or None)
        known = self._store.runtime.engines
        woken = {name: known[name].but(until=None) for name in tried if name in known}
        self._store.save_runtime(engines=known | woken)
        self._feed.tell("status")
        who = ", ".join(tried) or command.target or "every engine"
        return _Outcome(f"trying {who} now" if tried else f"looked at {who} anew")

    def _self_awake_switch(self, command: Command, now: datetime) -> _Outcome:
        """Written into the settings, which self-awake reads anew."""
        enabled = command.action == "self_awake_on"
        given = os.environ.get("MIMIKIT_SELF_AWAKE__ENABLED")
        if given is not None:
            said = f"expected no MIMIKIT_SELF_AWAKE__ENABLED, got {given!r}; change that instead"
            raise BadInput(said)
        self._change_settings(
            lambda text: config_file.with_table(text, ("self_awake",), {"enabled": enabled})
        )
        return _Outcome(f"self-awake is {'on' if enabled else 'off'} from now on")

    def _self_awake_run(self, command: Command, now: datetime) -> _Outcome:
        """Crash: done again it finds the improvement that it began."""
        wanted = command.target or None
        kinds = get_args(ImprovementKind)
        if wanted is not None and wanted not in kinds:
            raise BadInput(f"expected one of {', '.join(kinds)}; got {wanted[:40]!r}")
        kind = self._improve(cast("ImprovementKind | None", wanted), command.id, now)
        return _Outcome(f"began an improvement: {kind}")

    def _trigger_enable(self, command: Command, now: datetime) -> _Outcome:
        enabled = command.action == "trigger_resume"
        trigger = self._sound_trigger(command.target)
        self._save_trigger(trigger.but(enabled=enabled))
        return _Outcome(f"{'resumed' if enabled else 'paused'} “{trigger.title or trigger.id}”")

    def _trigger_remove(self, command: Command, now: datetime) -> _Outcome:
        trigger_id = command.target
        if not registry.exists(self._files, trigger_id):
            raise NotFound(f"no trigger {trigger_id}", code="no_trigger")
        self._ledger.write("trigger_removed", trigger_id, now)  # a line too many harms nobody
        registry.remove(self._files, trigger_id)
        self._store.trigger_changed(trigger_id)
        return _Outcome(f"removed {trigger_id}")

    def _trigger_run(self, command: Command, now: datetime) -> _Outcome:
        trigger, broken = registry.active(self._files, command.target)
        if trigger is None:
            raise BadInput(
                broken or f"no trigger {command.target}",
                code="trigger_broken" if broken else "no_trigger",
            )
        task = make_run(trigger, f"order {command.id}", now)
        self._store.submit(task)
        if self._ledger.newest_order(trigger.id) != task.id:
            title = trigger.title or None
            self._ledger.write("ordered", trigger.id, now, taskId=task.id, title=title)
        state = registry.state(self._files, trigger.id)
        registry.save_state(self._files, trigger.id, state.but(last_task_id=task.id))
        return _Outcome(f"started as {task.id}", result_id=task.id)

    def _trigger_edit(self, command: Command, now: datetime) -> _Outcome:
        trigger = self._sound_trigger(command.target)
        new = registry.edited(trigger, command.args)
        permission.check_command_edit(new.profile, command.args, remote=command.remote)
        refusal = permission.profile_change_refusal(trigger.origin, trigger.profile, new.profile)
        if refusal:
            raise BadInput(refusal)
        registry.check_new(self._files, new)
        origin = permission.edited_origin(trigger.origin, command.origin, command.args)
        self._save_trigger(new.but(origin=origin))
        return _Outcome(f"changed {trigger.id}")

    def _sound_trigger(self, trigger_id: str) -> Trigger:
        """The definition as its file has it: what is broken can not be changed in part."""
        trigger, broken = registry.active(self._files, trigger_id)
        if broken:
            said = f"its file is broken, mend it or remove the trigger: {broken}"
            raise BadInput(said, code="trigger_broken")
        if trigger is None:
            raise NotFound(f"no trigger {trigger_id}", code="no_trigger")
        return trigger

    def _save_trigger(self, trigger: Trigger) -> None:
        registry.save(self._files, trigger)
        self._store.trigger_changed(trigger.id)
