"""The Planner's tools: plan tasks and triggers, search history and memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Any, TypeVar

from mimikit import permission
from mimikit.config import ProfilesSettings
from mimikit.errors import BadInput, Refused
from mimikit.language.plain_text import first_line
from mimikit.protocol.models import Notify, Task, to_utc
from mimikit.protocol.notify import default_notify, notify_words, with_default_notify
from mimikit.protocol.triggers import (
    AndCondition,
    Condition,
    NotCondition,
    OrCondition,
    PlannedCommand,
    Schedule,
    TaskDone,
    TaskFailed,
    TaskParameters,
    Trigger,
)
from mimikit.tools import arguments, reader, requests
from mimikit.tools.session import ToolSession
from mimikit.triggers import conditions, explain, registry
from mimikit.triggers.schedule import anchored, check_coming, check_cron

Planned = TypeVar("Planned", Task, Trigger)


class PlannerSession(ToolSession):
    role = "planner"

    @property
    def is_over(self) -> bool:
        """False while no other step waits for a labelled step."""
        return super().is_over and self._labels.keys() <= self._referenced

    def _delegate(self, args: arguments.DelegateArguments) -> str:
        if (args.type == "conditional") != (args.condition is not None):
            raise BadInput("expected type conditional together with a condition", field="condition")
        condition = self._condition(args.condition) if args.condition is not None else None
        if args.after:
            if condition is not None:
                raise BadInput("expected after or a condition, got both", field="after")
            before = [self._resolve(id_) for id_ in args.after]
            done = [TaskDone(params=TaskParameters(taskId=id_)) for id_ in before]
            condition = conditions.all_of(done)
            self._notify_on_failure_only(before)
        if condition is not None:
            once = args.once or args.type == "oneshot"
            return self._add_trigger(
                args, None, condition=condition, max_attempts=args.max_attempts, once=once
            )
        self._check_profile(args.profile)
        task = self._task(args.prompt, args.title, args.priority).but(
            profile=args.profile,
            timeout=args.timeout,
            max_attempts=args.max_attempts,
            notify=args.notify
            or self._parent_notify()
            or default_notify(args.profile, self._origin),
            notify_given=args.notify is not None,
        )
        self._check_plan_size()
        self.effects.tasks.append(task)
        if args.label is not None:
            self._labels[args.label] = task.id
        return f"planned as {task.id}"

    def _notify_on_failure_only(self, ids: Collection[str]) -> None:
        effects = self.effects
        effects.tasks[:] = [_quiet(step) if step.id in ids else step for step in effects.tasks]
        effects.triggers[:] = [
            _quiet(step) if step.id in ids else step for step in effects.triggers
        ]

    def _condition(self, fields: dict[str, Any]) -> Condition:
        """Checks it, and replaces labels by ids."""
        condition = conditions.read(fields)
        conditions.check(condition)
        folders = [pattern.base for pattern in conditions.watched(condition)]
        permission.check_watched(folders, by_user=self._caller.by_user)
        return _with_ids(condition, self._resolve)

    def _resolve(self, label: str) -> str:
        if label in self._labels:
            self._referenced.add(label)
            return self._labels[label]
        if not self._reader.exists(label):
            known = ", ".join(self._labels) or "none yet"
            raise BadInput(
                f"expected the id of a task or trigger, or an earlier label of this plan "
                f"({known}); got {label!r}",
                field="after",
            )
        return label

    def _schedule(self, args: arguments.ScheduleArguments) -> str:
        clock = [args.interval, args.cron, args.run_at]
        conditional = args.type == "conditional"
        if conditional != (args.condition is not None) or (conditional and any(clock)):
            raise BadInput(
                "expected a condition for type conditional, and a time for the others",
                field="condition",
            )
        if args.condition is not None:
            condition = self._condition(args.condition)
            return self._add_trigger(args, None, condition=condition, once=args.once)
        has_moment = not args.interval or args.starting or args.until
        if args.cron is not None:
            check_cron(args.cron)
        schedule = Schedule(
            interval=args.interval,
            cron=args.cron,
            timezone=args.timezone or (self._caller.timezone if has_moment else None),
            run_at=_instant(args.run_at, "runAt") if args.run_at else None,
            starting=_instant(args.starting, "starting") if args.starting else None,
            until=_instant(args.until, "until") if args.until else None,
            **args.model_dump(include={"times", "lateness", "every_days", "every_weeks"}),
        )
        zone = self._settings.zone
        return self._add_trigger(args, anchored(schedule, self._caller.now, zone))

    def _add_trigger(
        self,
        args: arguments.DelegateArguments | arguments.ScheduleArguments,
        schedule: Schedule | None,
        **more: object,
    ) -> str:
        permission.check_trigger_action("create", may_trigger=self._caller.may_trigger)
        self._check_profile(args.profile, requests.TRIGGER_PROFILES)
        self._check_plan_size()
        parent = self._caller.parent
        trigger = Trigger(
            id=self._derived_id("trig", len(self.effects.triggers)),
            type=registry.type_of(schedule),
            title=args.title or first_line(args.prompt, 60),
            prompt=args.prompt,
            profile=args.profile,
            priority=args.priority,
            timeout=args.timeout,
            created_at=self._caller.now,
            origin=self._origin,
            remote=self._caller.remote,
            timezone=self._caller.timezone,
            locale=self._caller.locale,
            files=list(self._caller.files),
            trace_id=self._caller.trace_id,
            parent_task_id=parent.id if parent else None,
            cooldown=args.cooldown,
            notify=args.notify or self._parent_notify(),
            schedule=schedule,
        ).but(**more)
        trigger = with_default_notify(trigger)
        registry.check(trigger)
        if schedule is not None:
            check_coming(schedule, self._caller.now, self._settings.zone)
        if trigger.type != args.type and args.type != "oneshot":
            raise BadInput(
                f"type: expected {trigger.type!r} for these arguments, got {args.type!r}",
                field="type",
            )
        self.effects.triggers.append(trigger)
        if args.label is not None:
            self._labels[args.label] = trigger.id
        every_s = self._settings.triggers.llm_eval_interval_s
        notes = [notify_words(trigger), *explain.notes(trigger, asked_every_s=every_s)]
        reply = f"scheduled as {trigger.id}: {explain.trigger_words(trigger)['en']}"
        return " ".join([f"{reply}.", *(note["en"] for note in notes)])

    def _change_trigger(self, args: arguments.ChangeTriggerArguments) -> str:
        trigger = self._reader.trigger(args.id)
        if trigger is None:
            raise BadInput(f"expected the id of a trigger, got {args.id!r}", field="id")
        permission.check_trigger_action(args.action, may_trigger=self._caller.may_trigger)
        self._check_plan_size()
        changes: dict[str, Any] = {}
        if args.action == "edit":
            changes = dict(args.changes)
            permission.check_trigger_fields(changes)
            if changes.get("condition") is not None:
                changes["condition"] = self._condition(changes["condition"]).to_dict()
            registry.edited(trigger, changes)
        if trigger.profile == "command":
            if permission.has_command_run(args.action, changes):
                self._check_profile("command")
            permission.check_command_edit("command", changes, remote=self._caller.remote)
        command = PlannedCommand.model_validate(
            {"action": f"trigger_{args.action}", "target": trigger.id, "args": changes}
        )
        self.effects.commands.append(command)
        return f"{args.action}: will be applied to {trigger.id}"

    def _get_recent_history(self, args: arguments.RecentHistoryArguments) -> str:
        messages = self._reader.history(args.count, args.offset)
        return reader.recent_text(messages, args.count, args.offset)

    def _get_history_by_time(self, args: arguments.HistoryByTimeArguments) -> str:
        before = _until(args.after, args.before)
        after = _instant(args.after, "after")
        return reader.between_text(self._reader.history_between(after, before))

    def _search_memory(self, args: arguments.SearchMemoryArguments) -> str:
        after = _instant(args.after, "after") if args.after else None
        before = _until(args.after, args.before)
        return reader.hits_text(self._reader.search(args.query, args.limit, after, before))

    def _parent_notify(self) -> Notify | None:
        """Inherited from the Planner's task; None: the Teller."""
        notify = self._caller.parent.notify if self._caller.parent else "teller"
        return notify if notify != "teller" else None

    def _check_profile(
        self, profile: str, known: Iterable[str] = ProfilesSettings.model_fields
    ) -> None:
        permission.check_profile(profile, known)
        permission.check_planned_profile(
            profile,
            by_user=self._caller.by_user,
            allow_llm_commands=self._settings.allow_llm_commands,
        )

    def _check_plan_size(self) -> None:
        effects, most = self.effects, self._limits.tasks_per_plan
        planned = len(effects.tasks) + len(effects.triggers) + len(effects.commands)
        if planned >= most:
            raise Refused(f"expected at most {most} tasks and triggers a plan")
        self._check_trace(planned)


def _quiet(step: Planned) -> Planned:
    if step.notify_given or step.notify == "none":
        return step
    return step.but(notify="failure")


def _with_ids(condition: Condition, resolve: Callable[[str], str]) -> Condition:
    match condition:
        case TaskDone() | TaskFailed():
            return condition.but(params={"taskId": resolve(condition.params.task_id)})
        case AndCondition() | OrCondition():
            inner = [_with_ids(child, resolve) for child in condition.params.conditions]
            return condition.but(params={"conditions": inner})
        case NotCondition():
            return condition.but(
                params={"condition": _with_ids(condition.params.condition, resolve)}
            )
        case _:
            return condition


def _until(after: str | None, before: str | None) -> datetime | None:
    end = _instant(before, "before") if before else None
    if end is not None and after is not None and end <= _instant(after, "after"):
        raise BadInput(f"before: expected a time later than after, got {before!r}", field="before")
    return end


def _instant(text: str, field_: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(
            f"{field_}: expected a time such as 2026-01-28T09:30:00Z, got {text[:40]!r}",
            field=field_,
        ) from None
    if parsed.tzinfo is None:
        raise BadInput(f"{field_}: expected a time with its zone, got {text!r}", field=field_)
    try:
        return to_utc(parsed)
    except ValueError as error:
        raise BadInput(f"{field_}: {error}, got {text!r}", field=field_) from None
