"""Self-awake, the notification channels, and the settings that the page may change.

A channel's URL is only written to `secrets/`: no answer, command or log contains it.
"""

from __future__ import annotations

from typing import Annotated, Literal, cast, get_args

from pydantic import StringConstraints

from mimikit import notifications
from mimikit.language import phrases
from mimikit.protocol.models import Action
from mimikit.views import life
from mimikit.views.base import View
from mimikit.views.diffs import DiffView
from mimikit.views.life import NotifyView, SelfAwakeView
from mimikit.web.api.routing import (
    Answer,
    ClientId,
    EndpointRegistry,
    Input,
    current_settings,
    current_site,
)
from mimikit.web.api.tasks import COMMAND_ANSWERS, CommandOutcome, submit_command

area = EndpointRegistry("life")

Name = Annotated[str, StringConstraints(max_length=200)]
SettingKey = Literal[
    "budget.daily_tokens", "budget.per_task_tokens", "budget.per_trigger_daily_tokens",
    "retention.days", "notify.quiet",
]  # fmt: skip


class SelfAwakeInput(Input):
    """`run`: begin one now, of an item or any. `discard`: delete a branch of its own."""

    action: Literal["on", "off", "run", "discard"]
    target: Name = ""
    """The item, or the branch."""
    id: ClientId | None = None


class BranchQuery(Input):
    branch: Name


class NotifyInput(Input):
    """`add`: a channel, or give it another URL. `test`: send a message to it."""

    action: Literal["add", "test", "remove"]
    name: Name
    url: str = ""


class SettingInput(Input):
    key: SettingKey
    value: int | Name | None
    """Null: the default."""
    id: ClientId | None = None


class SettingsView(View):
    """The settings that can be changed here, by `SettingInput.key`."""

    values: dict[str, int | str | None]


@area.route("GET", "/api/self-awake", SelfAwakeView, query=Input)
def self_awake(_: Input) -> SelfAwakeView:
    """Whether it is on, why nothing begins now, what comes next, and what it did."""
    site = current_site()
    branches = site.worktrees.branches(site.workspace)
    health, now = site.state.consumer().current, site.clock.now()
    return life.self_awake(site.files, current_settings(site), branches, health, now)


@area.route("POST", "/api/self-awake", COMMAND_ANSWERS, body=SelfAwakeInput)
def change_self_awake(body: SelfAwakeInput) -> Answer:
    """Turn it on or off, begin an improvement, or delete a branch that it made.

    Merging is left to the owner's git.
    """
    site = current_site()
    if body.action == "discard":
        message = site.worktrees.discard(site.workspace, body.target)
        site.log.write("audit", "self_awake_discard", branch=body.target)
        return CommandOutcome(ok=True, message=message)
    if body.action == "run":
        return submit_command(site, "self_awake_run", body.target, command_id=body.id)
    args = {"enabled": body.action == "on"}
    return submit_command(site, "self_awake_set", "", command_id=body.id, args=args)


@area.route("GET", "/api/self-awake/diff", DiffView, query=BranchQuery)
def diff(query: BranchQuery) -> DiffView:
    """What merging a branch of self-awake would change."""
    site = current_site()
    return life.branch_diff(site.worktrees, site.workspace, query.branch)


@area.route("GET", "/api/notify", NotifyView, query=Input)
def notify(_: Input) -> NotifyView:
    """The channels without what is secret, quiet hours, and what was sent lately."""
    site = current_site()
    return life.notify(site.files, current_settings(site))


@area.route("POST", "/api/notify", CommandOutcome, body=NotifyInput)
def change_notify(body: NotifyInput) -> CommandOutcome:
    """Add, test or remove a channel. The consumer takes it up at once."""
    site = current_site()
    name, error = body.name, ""
    if body.action == "add":
        notifications.add(site.files, name, body.url)
    elif body.action == "remove":
        notifications.remove(site.files, name)
    else:
        notifications.url_of(site.files, name)  # NotFound
        text = "\n".join(phrases.say_both("notice_test").values())
        error = notifications.send(site.files, name, "mimikit", text).error
    site.log.write("audit", f"notify_{body.action}", channel=name, error=error)
    return CommandOutcome(ok=not error, message=error or name)


@area.route("GET", "/api/settings", SettingsView, query=Input)
def settings(_: Input) -> SettingsView:
    """The budget, how long ended tasks are kept, and quiet hours."""
    tables = current_settings(current_site()).model_dump()
    keys = [key.split(".") for key in get_args(SettingKey)]
    return SettingsView(values={f"{table}.{name}": tables[table][name] for table, name in keys})


@area.route("POST", "/api/settings", COMMAND_ANSWERS, body=SettingInput)
def change_settings(body: SettingInput) -> Answer:
    """Change one setting in config.toml, whose comments are kept."""
    table, name = body.key.split(".")
    action, args = cast("Action", f"{table}_set"), {name: body.value}
    return submit_command(current_site(), action, "", command_id=body.id, args=args)
