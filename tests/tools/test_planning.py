"""What a Planner may plan: tasks, chains by label, schedules, conditions; and what it may not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mimikit.config import LimitSettings, Settings
from mimikit.engines.base import TaskLine
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Hit, Task
from mimikit.protocol.triggers import Schedule, TaskParameters, Trigger
from mimikit.tools.planning import PlannerSession
from mimikit.tools.reader import RoleReader
from mimikit.tools.session import TellerSession, ToolCaller, ToolSession
from mimikit.triggers import conditions
from tests.support.memory_disk import MemoryDisk
from tests.support.reading import cond
from tests.support.searching import plain_search

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


class Known(RoleReader):
    """A reader that knows the ids it is given."""

    def __init__(self, *ids: str) -> None:
        self._ids = ids

    def exists(self, id_: str) -> bool:
        return id_ in self._ids

    def trigger(self, trigger_id: str) -> Trigger | None:
        profile = {"trig-1": "standard", "trig-cmd": "command"}.get(trigger_id)
        if profile is None:
            return None
        return Trigger(
            id=trigger_id, type="recurring", prompt="p", created_at=NOW, trace_id="t",
            profile=profile, origin="cli", schedule=Schedule(interval=60),
        )  # fmt: skip

    def trace_size(self, trace_id: str) -> int:
        return 0

    def tasks(self, scope: str) -> list[TaskLine]:
        return [TaskLine("task-plan", "its own", "running"), TaskLine("t-1", "other", "running")]

    def search(
        self, query: str, limit: int, after: datetime | None = None, before: datetime | None = None
    ) -> list[Hit]:
        return []


def desk(
    *ids: str,
    by_user: bool = False,
    may_trigger: bool = True,
    plan: int = 20,
    llm_commands: bool = False,
) -> PlannerSession:
    parent = Task(
        id="task-plan", role="planner", prompt="p", created_at=NOW, trace_id="trace-1",
        notify="teller", origin="teller",
    )  # fmt: skip
    caller = ToolCaller(
        "task-plan", "trace-1", NOW, by_user=by_user, parent=parent,
        may_trigger=may_trigger, timezone="Asia/Shanghai",
    )  # fmt: skip
    limits = LimitSettings(tasks_per_plan=plan)
    settings = Settings(limits=limits, allow_llm_commands=llm_commands)
    return PlannerSession(caller, Known(*ids), settings)


def done(task_id: str) -> dict[str, Any]:
    return cond("task_done", taskId=task_id)


def test_steps_named_by_labels_become_a_chain_whose_last_result_is_told() -> None:
    here = desk()
    assert here.call("delegate", {"prompt": "build", "label": "b"}).ok
    assert here.call("delegate", {"prompt": "test", "label": "t", "after": ["b"]}).ok
    assert here.call("delegate", {"prompt": "publish", "after": ["t", "b"]}).ok
    effects = here.close()
    (build,), (test, publish) = effects.tasks, effects.triggers
    assert test.condition is not None
    assert publish.condition is not None
    assert (test.type, test.once, test.notify) == ("conditional", True, "failure")
    assert (build.notify, publish.notify) == ("failure", "teller")
    assert test.condition.to_dict() == done(build.id)
    assert publish.condition.to_dict() == cond("and", conditions=[done(test.id), done(build.id)])
    assert {test.trace_id, publish.trace_id, build.trace_id} == {"trace-1"}


def test_labels_work_inside_conditions_and_ids_of_before_do_too() -> None:
    here = desk("task-old")
    here.call("delegate", {"prompt": "a", "label": "a"})
    condition = cond("or", conditions=[cond("task_failed", taskId="a"), done("task-old")])
    assert here.call(
        "delegate", {"prompt": "x", "type": "conditional", "condition": condition, "cooldown": 5}
    ).ok
    effects = here.close()
    (trigger,) = effects.triggers
    assert trigger.condition is not None
    named = [leaf.params for _, leaf in conditions.walk(trigger.condition)][1:]
    assert named == [TaskParameters(taskId=effects.tasks[0].id), TaskParameters(taskId="task-old")]
    assert (trigger.once, trigger.cooldown) == (False, 5)


@pytest.mark.parametrize(("arguments", "kind", "words"), [
    ({"interval": 600}, "recurring", "every 10 minutes"),
    ({"cron": "0 9 * * 1-5"}, "recurring", "every weekday at 09:00 (Asia/Shanghai)"),
    ({"cron": "0 9 * * *", "everyDays": 3, "times": 2}, "recurring", "every 3 days at 09:00 (Asia"),
    ({"type": "scheduled", "runAt": "2026-12-02T09:00:00+08:00"}, "scheduled",
     "once on Wednesday, 2026-12-02 at 09:00 (Asia/Shanghai)"),
    ({"type": "conditional", "condition": {"type": "file_changed", "params": {"path": "a*"}}},
     "conditional", "a* changes"),
])  # fmt: skip
def test_what_is_scheduled_is_said_back_in_words(
    arguments: dict[str, Any], kind: str, words: str
) -> None:
    here = desk()
    reply = here.call("schedule", {"prompt": "x", **arguments})
    assert reply.ok, reply.text
    assert words in reply.text
    assert here.close().triggers[0].type == kind


def test_asking_a_model_says_what_it_costs() -> None:
    condition = {"type": "llm_eval", "params": {"prompt": "the garden is dry"}}
    reply = desk().call("schedule", {"prompt": "x", "type": "conditional", "condition": condition})
    assert "288 times a day" in reply.text


@pytest.mark.parametrize(("tool", "arguments", "said"), [
    ("delegate", {"after": ["nobody"]}, "an earlier label"),
    ("delegate", {"condition": {"type": "file_exists", "params": {"path": "a"}}}, "conditional"),
    ("schedule", {}, "one of interval"),
    ("schedule", {"cron": "0 9 * * *", "until": "2020-01-01T00:00:00Z"}, "until: expected a time"),
    ("schedule", {"cron": "0 9 * * *", "timezone": "Moon"}, "IANA"),
    ("schedule", {"type": "scheduled", "runAt": "2026-12-02T09:00:00"}, "zone"),
    ("schedule", {"type": "conditional", "condition": {"type": "moon", "params": {}}}, "moon"),
    ("schedule", {"type": "conditional", "condition":
        {"type": "file_changed", "params": {"path": "../a"}}}, ".."),
    ("schedule", {"type": "conditional", "condition":
        {"type": "file_exists", "params": {"path": "/etc/passwd"}}}, "below the workspace"),
    ("schedule", {"type": "conditional", "condition":
        {"type": "task_done", "params": {"taskId": "nobody"}}}, "nobody"),
    ("schedule", {"interval": 60, "profile": "command"}, "owner"),
])  # fmt: skip
def test_what_cannot_be_is_refused_with_a_reason_and_plans_nothing(
    tool: str, arguments: dict[str, Any], said: str
) -> None:
    here = desk()
    reply = here.call(tool, {"prompt": "x", **arguments})
    assert not reply.ok
    assert said in reply.text
    effects = here.close()
    assert effects.tasks == []
    assert effects.triggers == []


def test_a_run_of_a_trigger_makes_no_triggers_unless_allowed() -> None:
    assert not desk(may_trigger=False).call("schedule", {"prompt": "x", "interval": 60}).ok
    assert not desk("t", may_trigger=False).call("delegate", {"prompt": "x", "after": ["t"]}).ok


def test_triggers_count_toward_the_size_of_a_plan() -> None:
    here = desk(plan=2)
    assert here.call("delegate", {"prompt": "x"}).ok
    assert here.call("schedule", {"prompt": "x", "interval": 60}).ok
    assert not here.call("schedule", {"prompt": "x", "interval": 60}).ok


def test_the_owners_own_sentence_may_name_any_path_and_command() -> None:
    here = desk(by_user=True)
    condition = {"type": "file_changed", "params": {"path": "/var/log/*.log"}}
    assert here.call(
        "schedule",
        {"prompt": "x", "type": "conditional", "condition": condition, "profile": "command"},
    ).ok


A, B = {"prompt": "a", "label": "a"}, {"prompt": "b", "after": ["a"]}
ONE, MORE = ("delegate", {"prompt": "c"}), ("delegate", {"prompt": "d", "more": True})


@pytest.mark.parametrize(
    ("calls", "finals"),
    [
        pytest.param([ONE], [True], id="one task"),
        pytest.param([("schedule", {"prompt": "a", "interval": 60})], [True], id="one trigger"),
        pytest.param([("delegate", A), ("delegate", B)], [False, True], id="a chain"),
        pytest.param([("delegate", A)], [False], id="a step that others are to name"),
        pytest.param([MORE], [False], id="more is to come"),
        pytest.param([MORE, ONE], [False, True], id="more has come"),
        pytest.param([("list_tasks", {}), ONE], [False, True], id="looks"),
        pytest.param([ONE, ("delegate", {})], [True, False], id="one is refused"),
    ],
)
def test_a_plan_is_whole_with_the_call_that_leaves_nothing_to_add_or_to_read(
    calls: list[tuple[str, dict[str, Any]]], finals: list[bool]
) -> None:
    here = desk()
    assert [here.call(name, given).final for name, given in calls] == finals


def test_a_delegation_with_the_words_for_the_user_is_the_last_word_of_its_turn() -> None:
    caller = ToolCaller("turn-1", "trace-1", NOW)
    here = TellerSession(caller, Known(), Settings())
    assert not here.call("delegate", {"prompt": "a"}).final
    assert here.call("delegate", {"prompt": "b", "reply": "On it."}).final
    assert here.call("delegate", {"prompt": "c", "reply": "On it."}).final
    assert here.call("remember", {"content": "tea"}).final, "nothing of it is to be read"
    assert not here.call("delegate", {"prompt": "d", "reply": "Too many."}).ok
    assert not here.is_over, "it is told what was refused, and says so"
    assert not here.call("list_tasks", {}).final
    effects = here.close()
    assert [task.prompt for task in effects.tasks] == ["a", "b", "c"]
    assert effects.replies == ["On it."], "the same words are said once"


def test_triggers_that_exist_are_changed_by_orders_of_the_plan() -> None:
    here = desk()
    assert here.call("change_trigger", {"id": "trig-1", "action": "pause"}).ok
    edit = {"schedule": {"cron": "0 9 * * *"}, "title": "Daily"}
    assert here.call("change_trigger", {"id": "trig-1", "action": "edit", "changes": edit}).ok
    orders = here.close().commands
    assert [(o.action, o.target) for o in orders] == [
        ("trigger_pause", "trig-1"), ("trigger_edit", "trig-1"),
    ]  # fmt: skip
    assert orders[1].args == edit


SOON = {"schedule": {"interval": 1}}


@pytest.mark.parametrize("session", [PlannerSession, TellerSession])
@pytest.mark.parametrize("which", ["trig-cmd", "trig-broken", "task-runs", "task-waits"])
def test_a_model_neither_cancels_nor_removes_the_owners_command(
    which: str, session: type[ToolSession]
) -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    facts: dict[str, Any] = {"created_at": NOW, "trace_id": "t", "origin": "cli", "prompt": "p"}
    for id_, profile in (("trig-cmd", "command"), ("trig-own", "standard")):
        trigger = Trigger(
            id=id_, type="recurring", profile=profile, schedule=Schedule(interval=60), **facts
        )
        files.save(paths.trigger(id_), trigger)
    files.write(paths.trigger("trig-broken"), b"{")
    for id_, path in (("task-runs", paths.running), ("task-waits", paths.queued)):
        files.save(path("worker", id_), Task(id=id_, profile="command", **facts))
    files.save(paths.queued("worker", "task-own"), Task(id="task-own", **facts))

    def canceled(target: str, *, by_user: bool = False, allowed: bool = False) -> bool:
        caller = ToolCaller("run-1", "trace-1", NOW, by_user=by_user)
        reader = RoleReader(files, plain_search(files))
        here = session(caller, reader, Settings(allow_llm_commands=allowed))
        reply = here.call("cancel_task", {"id": target})
        assert reply.ok or "only the owner may cancel" in reply.text
        assert here.close().cancels == [target] * reply.ok
        return reply.ok

    assert not canceled(which)
    assert canceled(which, by_user=True)
    assert canceled(which, allowed=True)
    assert canceled("trig-own")
    assert canceled("task-own")


@pytest.mark.parametrize(
    ("action", "changes", "may"),
    [
        ("pause", {}, True),
        ("edit", {"title": "another"}, True),
        ("run", {}, False),
        ("edit", SOON, False),
        ("edit", {"once": True}, False),
        ("edit", {"prompt": "rm -rf ."}, False),
    ],
)
def test_a_model_stops_the_owners_command_and_never_has_it_run(
    action: str, changes: dict[str, Any], may: bool
) -> None:
    arguments = {"id": "trig-cmd", "action": action, **({"changes": changes} if changes else {})}
    here = desk()
    reply = here.call("change_trigger", arguments)
    assert reply.ok == may
    assert may or "only the owner may use the profile" in reply.text
    assert len(here.close().commands) == may
    allowed = desk(llm_commands=True)
    assert allowed.call("change_trigger", arguments).ok
    own = desk(by_user=True)
    assert own.call("change_trigger", arguments).ok


@pytest.mark.parametrize(("arguments", "said"), [
    ({"id": "nobody", "action": "run"}, "nobody"),
    ({"id": "trig-1", "action": "remove"}, "action"),
    ({"id": "trig-1", "action": "edit", "changes": {"profile": "command"}}, "profile"),
    ({"id": "trig-1", "action": "edit", "changes": {"schedule": {"cron": "x"}}}, "cron"),
    ({"id": "trig-cmd", "action": "edit", "changes": {"prompt": "rm -rf ."}}, "owner"),
    ({"id": "trig-1", "action": "edit", "changes": {"condition":
        {"type": "file_exists", "params": {"path": "/etc"}}}}, "below the workspace"),
])  # fmt: skip
def test_changes_that_cannot_be_are_refused(arguments: dict[str, Any], said: str) -> None:
    here = desk()
    reply = here.call("change_trigger", arguments)
    assert not reply.ok
    assert said in reply.text
    assert here.close().commands == []


def test_a_reminder_is_scheduled_with_its_words_and_always_told() -> None:
    here = desk()
    asked = {"prompt": "call  mum", "profile": "reminder", "notify": "none"}
    reply = here.call("schedule", {**asked, "type": "scheduled", "runAt": "2026-12-02T09:00+08:00"})
    assert reply.ok, reply.text
    assert here.call("delegate", {"prompt": "build", "label": "b"}).ok
    assert here.call("delegate", {"prompt": "it is built", "profile": "reminder", "after": ["b"]})
    once, built = here.close().triggers
    assert (once.profile, once.prompt, once.notify) == ("reminder", "call  mum", "message")
    assert once.schedule is not None
    assert once.schedule.timezone == "Asia/Shanghai"
    assert (built.profile, built.notify) == ("reminder", "message")


def test_a_reminder_without_a_time_is_no_task() -> None:
    reply = desk().call("delegate", {"prompt": "call mum", "profile": "reminder"})
    assert not reply.ok
    assert "a reminder needs a time" in reply.text
