"""Access rules by `origin` (whose words) and `by_user` (the user's own, not a model's). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

from mimikit.errors import BadInput, Refused

USER_ORIGINS = frozenset({"cli", "http", "file", "builtin"})
MODEL_ORIGINS = frozenset({"teller", "planner", "self_awake"})
AT_THE_MACHINE = frozenset({"cli", "file"})
_CONTENT_FIELDS = frozenset({"prompt", "profile"})
YES = frozenset({"yes", "y", "ok", "okay", "好", "好的", "可以", "是", "是的", "行"})
NO = frozenset({"no", "n", "不", "不用", "不用了", "不要", "算了"})
OriginT = TypeVar("OriginT", bound=str)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

TOOLS: dict[str, tuple[str, ...]] = {
    "teller": (
        "reply", "delegate", "remember", "forget", "ask_user", "answer_question", "update_backlog",
        "list_tasks", "cancel_task",
    ),
    "planner": (
        "delegate", "schedule", "change_trigger", "needs_input", "list_tasks", "cancel_task",
        "get_recent_history", "get_history_by_time", "search_memory",
    ),
    "worker": (),
}  # fmt: skip
EDITABLE = frozenset(
    {"title", "prompt", "priority", "schedule", "condition", "cooldown", "once", "notify"}
)
"""Fields of an existing trigger that a plan may change."""


def check_tool(role: str, name: str) -> None:
    if name not in TOOLS[role]:
        allowed = ", ".join(TOOLS[role]) or "none"
        raise Refused(f"the {role} has no tool {name!r}; its tools: {allowed}")


def is_by_user(engine: str, origin: str | None = None) -> bool:
    """Whether a run acts on the user's own words; `origin`: that of its task."""
    return engine == "builtin" and (origin is None or origin in USER_ORIGINS)


def origin_of(role: str, *, by_user: bool) -> Literal["builtin", "teller", "planner"]:
    if by_user:
        return "builtin"
    return "teller" if role == "teller" else "planner"


# ---- profiles and shell commands


def is_confirmed(engine: str, options: Sequence[str], answer: str, *, by_user: bool) -> bool:
    """Whether the user has confirmed the small model's proposal, so that it counts as theirs.

    The first option is the complete proposal, which the user has seen. `engine`: of the Planner
    that asked.
    """
    is_yes = answer.strip() in options[:1] or answer.strip().casefold() in YES
    return by_user and engine == "local" and bool(options) and is_yes


def check_profile(profile: str, known: Iterable[str]) -> None:
    if profile not in (names := list(known)):
        more = ": a reminder needs a time, make a trigger of it" * (profile == "reminder")
        allowed = ", ".join(names)
        message = f"profile: expected one of {allowed}; got {profile!r}{more}"
        raise BadInput(message, field="profile", code="not_one_of", params={"allowed": allowed})


def command_refusal(
    origin: str | None,
    trigger_origin: str | None,
    *,
    is_local: bool,
    allow_commands: bool,
    allow_llm_commands: bool,
) -> str | None:
    """Why a shell command may not run now; None if it may.

    trigger_origin: the origin of its trigger, if `origin` is `trigger`.
    is_local: only this machine can reach the page, now and when the task was created.
    """
    if origin == "trigger":
        origin = trigger_origin
    if not is_local and not allow_commands and origin not in AT_THE_MACHINE:
        return (
            "commands from chat and HTTP are off while other machines can reach the page, also "
            "later for tasks created meanwhile; web.allow_commands = true would change that"
        )
    if origin not in USER_ORIGINS and not allow_llm_commands:
        return (
            f"a command from {origin or 'an unknown origin'} is refused: only the owner may run "
            "commands; allow_llm_commands = true would change that"
        )
    return None


def check_http_profile(profile: str, *, is_local: bool, allow_commands: bool) -> None:
    if profile == "command" and not is_local and not allow_commands:
        raise Refused(
            "commands are not taken from other machines; set web.allow_commands to allow them",
            code="no_remote_commands",
        )


def variable_refusal(*, remote: bool) -> str | None:
    """Why an API key may not be named by its variable: the endpoint would get any variable."""
    message = "from another machine give the key itself, not the name of a variable"
    return message if remote else None


def check_command_edit(profile: str, changed: Iterable[str], *, remote: bool) -> None:
    """Another machine may change a command's schedule and title, but not the command itself.

    profile: the one after the change.
    """
    if remote and profile == "command" and not _CONTENT_FIELDS.isdisjoint(changed):
        message = "commands cannot be changed from other machines"
        raise Refused(message, code="no_remote_commands")


def edited_origin(origin: OriginT, by: OriginT, changed: Iterable[str]) -> OriginT:
    """The origin of a trigger after a change: content from the page has the page's rights."""
    is_from_page = by == "http" and not _CONTENT_FIELDS.isdisjoint(changed)
    return by if is_from_page and origin in AT_THE_MACHINE else origin


def check_planned_profile(profile: str, *, by_user: bool, allow_llm_commands: bool) -> None:
    if profile == "command" and not by_user and not allow_llm_commands:
        raise Refused(
            "only the owner may use the profile `command`, or change when a command's trigger "
            "runs; use `standard`, or the owner sets allow_llm_commands"
        )


def check_cancel(*, is_command: bool, by_user: bool, allow_llm_commands: bool) -> None:
    if is_command and not by_user and not allow_llm_commands:
        raise Refused(
            "only the owner may cancel a command or remove its trigger: pause the trigger, or ask "
            "the user to cancel it; allow_llm_commands = true would change that"
        )


def has_command_run(action: str, changed: Iterable[str]) -> bool:
    """Whether a change of a command's trigger affects its runs."""
    return action in ("run", "resume") or not {"title", "priority", "notify"}.issuperset(changed)


def profile_change_refusal(origin: str, old: str, new: str) -> str | None:
    """Why a trigger may not get a profile: its model-written prompt would run as a command."""
    if new == "command" and old != "command" and origin in MODEL_ORIGINS:
        return "a model created this trigger: for a command create your own"
    return None


# ---- triggers


def may_make_triggers(source_trigger_id: str | None, *, allow_triggers: bool) -> bool:
    """A plan started by a trigger may only if that trigger allows it."""
    return source_trigger_id is None or allow_triggers


def check_trigger_action(action: str, *, may_trigger: bool) -> None:
    if not may_trigger and action != "pause":
        raise Refused("a run that was started by a trigger may only pause triggers")


def check_trigger_fields(changes: Iterable[str]) -> None:
    names = list(changes)
    unknown = [name for name in names if name not in EDITABLE]
    if unknown or not names:
        raise BadInput(
            f"changes: expected some of {', '.join(sorted(EDITABLE))}; "
            f"got {', '.join(unknown) or 'none'}",
            field="changes",
        )


def check_watched(folders: Iterable[str], *, by_user: bool) -> None:
    """A model's condition may only watch paths in the workspace."""
    outside = [folder for folder in folders if folder.startswith("/")]
    if outside and not by_user:
        raise Refused(f"expected a path below the workspace, got {outside[0]!r}")


def is_confined(origin: str) -> bool:
    """Whether a trigger may not watch outside the workspace, also not through links."""
    return origin in MODEL_ORIGINS
