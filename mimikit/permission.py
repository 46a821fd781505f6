"""Who may do what, decided by `origin` (whose words) and `by_user` (no model in between). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

from mimikit.errors import BadInput, Refused

USER_ORIGINS = frozenset({"cli", "http", "file", "builtin"})
"""The user's own words."""
MODEL_ORIGINS = frozenset({"teller", "planner", "self_awake"})
AT_THE_MACHINE = frozenset({"cli", "file"})
_WORDS = frozenset({"prompt", "profile"})
YES = frozenset({"yes", "y", "ok", "okay", "好", "好的", "可以", "是", "是的", "行"})
NO = frozenset({"no", "n", "不", "不用", "不用了", "不要", "算了"})
"""Answers that decline a proposal, in lower case."""
Who = TypeVar("Who", bound=str)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

TOOLS: dict[str, tuple[str, ...]] = {
    "teller": (
        *("reply", "delegate", "remember", "ask_user", "answer_question", "update_backlog"),
        *("list_tasks", "cancel_task"),
    ),
    "planner": (
        *("delegate", "schedule", "change_trigger", "needs_input", "list_tasks", "cancel_task"),
        *("get_recent_history", "get_history_by_time", "search_memory"),
    ),
    "worker": (),
}
EDITABLE = frozenset(
    {"title", "prompt", "priority", "schedule", "condition", "cooldown", "once", "notify"}
)
"""Fields of an existing trigger that a plan may change."""


def check_tool(role: str, name: str) -> None:
    if name not in TOOLS[role]:
        allowed = ", ".join(TOOLS[role]) or "none"
        raise Refused(f"the {role} has no tool {name!r}; its tools: {allowed}")


def is_by_user(engine: str, origin: str | None = None) -> bool:
    """Whether a run passes on the user's words; with `origin` a model's Teller came before."""
    return engine == "builtin" and (origin is None or origin in USER_ORIGINS)


def origin_of(role: str, *, by_user: bool) -> Literal["builtin", "teller", "planner"]:
    """The origin of what a run creates."""
    if by_user:
        return "builtin"
    return "teller" if role == "teller" else "planner"


# ---- profiles and shell commands


def is_confirmed(engine: str, options: Sequence[str], answer: str, *, by_user: bool) -> bool:
    """Whether an answer makes a small model's proposal, its first option, the user's own words.

    engine: the Planner's that asked. The option is what it proposes, whole, as code reads it; the
    user has seen it and said yes, and no model passed that on.
    """
    says_yes = answer.strip() in options[:1] or answer.strip().casefold() in YES
    return by_user and engine == "local" and bool(options) and says_yes


def check_profile(profile: str, known: Iterable[str]) -> None:
    if profile not in (names := list(known)):
        more = ": a reminder needs a time, make a trigger of it" * (profile == "reminder")
        raise BadInput(
            f"profile: expected one of {', '.join(names)}; got {profile!r}{more}", field="profile"
        )


def command_refusal(
    origin: str | None,
    trigger_origin: str | None,
    *,
    is_local: bool,
    allow_commands: bool,
    allow_llm_commands: bool,
) -> str | None:
    """Why a shell command may not run; None when it may. Decided when it is about to run.

    trigger_origin: where the trigger of a run with the origin `trigger` comes from.
    is_local: only this machine reaches the page, and did when it was asked for.
    """
    if origin == "trigger":
        origin = trigger_origin
    if not is_local and not allow_commands and origin not in AT_THE_MACHINE:
        return (
            "commands from chat and HTTP are off while the page is served beyond this machine, "
            "and stay off for what was asked meanwhile; web.allow_commands = true would change that"
        )
    if origin not in USER_ORIGINS and not allow_llm_commands:
        return (
            f"a command from {origin or 'nobody'} is not run: commands come from their owner; "
            "allow_llm_commands = true would change that"
        )
    return None


def check_http_profile(profile: str, *, is_local: bool, allow_commands: bool) -> None:
    """Refuse a command over HTTP that would be refused when it runs."""
    if profile == "command" and not is_local and not allow_commands:
        raise Refused(
            "commands are not taken from other machines; set web.allow_commands to allow them"
        )


def variable_refusal(*, remote: bool) -> str | None:
    """Why no environment variable may be named as a key: its endpoint gets its value."""
    return "from afar the key itself, no variable, can be given" if remote else None


def check_command_edit(profile: str, changed: Iterable[str], *, remote: bool) -> None:
    """An owner's trigger would run the words of another machine as its own.

    profile: the one it has afterwards. When it runs, and what it is called, may be changed.
    """
    if remote and profile == "command" and not _WORDS.isdisjoint(changed):
        raise Refused("commands are not changed from other machines")


def edited_origin(origin: Who, by: Who, changed: Iterable[str]) -> Who:
    """The origin of a trigger after a change: what the page wrote has the page's rights."""
    is_pages = by == "http" and not _WORDS.isdisjoint(changed)
    return by if is_pages and origin in AT_THE_MACHINE else origin


def check_planned_profile(profile: str, *, by_user: bool, allow_llm_commands: bool) -> None:
    if profile == "command" and not by_user and not allow_llm_commands:
        raise Refused(
            "the profile `command` is its owner's, and so is when a command's trigger runs; "
            "use `standard`, or the owner sets allow_llm_commands"
        )


def check_cancel(*, is_command: bool, by_user: bool, allow_llm_commands: bool) -> None:
    if is_command and not by_user and not allow_llm_commands:
        raise Refused(
            "a command is its owner's to cancel, and so is its trigger to remove: pause the "
            "trigger, or ask the user to cancel it; allow_llm_commands = true would change that"
        )


def has_command_run(action: str, changed: Iterable[str]) -> bool:
    """Whether a change of a command's trigger runs it or sets when."""
    return action in ("run", "resume") or not {"title", "priority", "notify"}.issuperset(changed)


def profile_change_refusal(origin: str, old: str, new: str) -> str | None:
    """Why a trigger may not take a profile: it would run its maker's words as a command."""
    if new == "command" and old != "command" and origin in MODEL_ORIGINS:
        return "a model made this trigger: for a command make one of your own"
    return None


# ---- triggers


def may_make_triggers(source_trigger_id: str | None, *, allow_triggers: bool) -> bool:
    """A plan that a trigger started may only if that trigger allows it."""
    return source_trigger_id is None or allow_triggers


def check_new_trigger(*, may_trigger: bool) -> None:
    if not may_trigger:
        raise Refused("a run that was started by a trigger may not create triggers")


def check_trigger_change(action: str, *, may_trigger: bool) -> None:
    if not may_trigger and action != "pause":
        raise Refused("a run that was started by a trigger may only pause triggers")


def check_trigger_fields(changes: Iterable[str]) -> None:
    given = list(changes)
    odd = [name for name in given if name not in EDITABLE]
    if odd or not given:
        raise BadInput(
            f"changes: expected some of {', '.join(sorted(EDITABLE))}; "
            f"got {', '.join(odd) or 'none'}",
            field="changes",
        )


def check_watched(folders: Iterable[str], *, by_user: bool) -> None:
    """A model's condition may name paths below the workspace only."""
    outside = [folder for folder in folders if folder.startswith("/")]
    if outside and not by_user:
        raise Refused(f"expected a path below the workspace, got {outside[0]!r}")


def is_confined(origin: str) -> bool:
    """Whether a trigger's condition sees nothing outside the workspace, also through links."""
    return origin in MODEL_ORIGINS
