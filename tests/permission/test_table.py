"""Who may do what, case by case."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from mimikit import permission
from mimikit.errors import BadInput, Refused
from mimikit.tools.planning import PlannerSession
from mimikit.tools.session import TellerSession

USERS = ("cli", "http", "file", "builtin")
MODELS = ("teller", "planner", "self_awake")


@pytest.mark.parametrize(
    ("engine", "origin", "by_user"),
    [
        ("builtin", None, True),
        ("codex", None, False),
        ("scripted", None, False),
        *(("builtin", origin, True) for origin in USERS),
        *(("builtin", origin, False) for origin in (*MODELS, "trigger", "supervisor")),
        *(("codex", origin, False) for origin in USERS),
    ],
)
def test_words_are_the_users_when_no_model_had_a_part(
    engine: str, origin: str | None, by_user: bool
) -> None:
    assert permission.is_by_user(engine, origin) is by_user


@pytest.mark.parametrize(
    ("role", "by_user", "origin"),
    [
        ("teller", False, "teller"),
        ("planner", False, "planner"),
        ("teller", True, "builtin"),
        ("planner", True, "builtin"),
    ],
)
def test_what_a_run_makes_tells_whose_words_it_carries(
    role: str, by_user: bool, origin: str
) -> None:
    assert permission.origin_of(role, by_user=by_user) == origin


@pytest.mark.parametrize("origin", [*USERS, *MODELS, "trigger", "supervisor"])
def test_only_a_models_trigger_is_confined_and_never_becomes_a_command(origin: str) -> None:
    is_models = origin in MODELS
    assert permission.is_confined(origin) is is_models
    assert bool(permission.profile_change_refusal(origin, "standard", "command")) is is_models
    assert permission.profile_change_refusal(origin, "command", "command") is None
    assert permission.profile_change_refusal(origin, "command", "standard") is None


@pytest.mark.parametrize(
    ("source_trigger_id", "allow_triggers", "may"),
    [(None, False, True), (None, True, True), ("trig-1", False, False), ("trig-1", True, True)],
)
def test_a_plan_that_a_trigger_started_makes_triggers_only_when_allowed(
    source_trigger_id: str | None, allow_triggers: bool, may: bool
) -> None:
    assert permission.may_make_triggers(source_trigger_id, allow_triggers=allow_triggers) is may


@pytest.mark.parametrize("changed", [["prompt"], ["profile", "title"], ["title", "schedule"]])
@pytest.mark.parametrize("by", ["cli", "http", "planner", "supervisor"])
@pytest.mark.parametrize(
    "origin", ["cli", "file", "http", "builtin", "teller", "planner", "self_awake"]
)
def test_only_what_the_page_writes_anew_takes_rights_of_the_machine_away(
    origin: str, by: str, changed: list[str]
) -> None:
    is_pages = by == "http" and "title" not in changed[:1] and origin in ("cli", "file")
    assert permission.edited_origin(origin, by, changed) == ("http" if is_pages else origin)


http = permission.check_http_profile
edit = permission.check_command_edit
planned = permission.check_planned_profile
change = permission.check_trigger_action


@pytest.mark.parametrize(
    "check",
    [
        partial(http, "standard", is_local=False, allow_commands=False),
        partial(http, "command", is_local=True, allow_commands=False),
        partial(http, "command", is_local=False, allow_commands=True),
        partial(planned, "standard", by_user=False, allow_llm_commands=False),
        partial(planned, "command", by_user=True, allow_llm_commands=False),
        partial(planned, "command", by_user=False, allow_llm_commands=True),
        partial(change, "create", may_trigger=True),
        partial(change, "pause", may_trigger=False),
        partial(edit, "command", ["schedule", "title"], remote=True),
        partial(edit, "standard", ["prompt"], remote=True),
        partial(edit, "command", ["prompt", "profile"], remote=False),
        partial(permission.check_watched, ["src", "."], by_user=False),
        partial(permission.check_watched, ["/etc"], by_user=True),
        partial(permission.check_trigger_fields, ["title", "condition"]),
        partial(permission.check_profile, "standard", ["standard"]),
        partial(permission.check_tool, "teller", "reply"),
        partial(permission.check_tool, "planner", "schedule"),
    ],
)
def test_may(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize(
    ("check", "error", "said"),
    [
        (
            partial(http, "command", is_local=False, allow_commands=False),
            Refused, "other machines",
        ),
        (
            partial(planned, "command", by_user=False, allow_llm_commands=False),
            Refused, "only the owner",
        ),
        (partial(edit, "command", ["prompt"], remote=True), Refused, "from other machines"),
        (partial(edit, "command", ["profile"], remote=True), Refused, "from other machines"),
        *(
            (partial(change, name, may_trigger=False), Refused, "only pause")
            for name in ("create", "edit", "run")
        ),
        (partial(permission.check_watched, ["a", "/etc"], by_user=False), Refused, "'/etc'"),
        (partial(permission.check_trigger_fields, ["title", "profile"]), BadInput, "got profile"),
        (partial(permission.check_trigger_fields, []), BadInput, "got none"),
        (partial(permission.check_profile, "x", ["a", "b"]), BadInput, "one of a, b; got 'x'"),
        (partial(permission.check_tool, "teller", "schedule"), Refused, "its tools: reply, "),
        (partial(permission.check_tool, "planner", "reply"), Refused, "has no tool 'reply'"),
        (partial(permission.check_tool, "worker", "reply"), Refused, "its tools: none"),
    ],
)  # fmt: skip
def test_may_not(check: Callable[[], None], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        check()


def test_every_tool_a_role_has_is_offered_to_it_with_its_arguments() -> None:
    for session in (TellerSession, PlannerSession):
        assert [spec.name for spec in session.specs()] == list(permission.TOOLS[session.role])
        assert all(spec.description and spec.schema for spec in session.specs())
    assert permission.TOOLS["worker"] == ()
