"""Notifications: the channels by which the user is reached, set up, tried and removed.

An address goes one way: into `secrets/`, or to the process that sends. No answer, command or log
holds one.
"""

from __future__ import annotations

import threading
from typing import Annotated

from pydantic import Field, StringConstraints

from mimikit import config_file
from mimikit.errors import BadInput, Conflict, NotFound
from mimikit.language import phrases
from mimikit.notifications import secrecy
from mimikit.notify_settings import EventKind
from mimikit.protocol import paths
from mimikit.views import notifications
from mimikit.views.base import View
from mimikit.views.notifications import ChannelList
from mimikit.web.api.routing import (
    Answer,
    ClientId,
    EndpointRegistry,
    Input,
    bad_value,
    settings_now,
    settings_text,
    site,
)
from mimikit.web.api.tasks import COMMAND_ANSWERS, CommandInput, give_command

area = EndpointRegistry("notify")
_one = threading.Lock()


class ChannelInput(Input):
    """A channel. Of one that is known the address stays unless another one is given."""

    url: Annotated[str, StringConstraints(max_length=secrecy.MOST_URL)] = ""
    events: Annotated[list[EventKind], Field(min_length=1)] | None = None
    """What it is for; all where nothing was said yet."""
    id: ClientId | None = None


class ChannelTestInput(Input):
    """In which language the test is."""

    may_be_empty = True
    locale: Annotated[str, StringConstraints(max_length=40)] = "en"


class ChannelTestView(View):
    """What came of a test; `message` says why it did not arrive."""

    ok: bool
    message: str


@area.route("GET", "/api/notify", ChannelList, query=Input)
def listed(_: Input) -> ChannelList:
    """Each channel that is set up, and how it is; its address is not told."""
    here = site()
    return notifications.channel_list(here.files, settings_now().notify, here.clock.now())


@area.route("PUT", "/api/notify/<name>", COMMAND_ANSWERS, body=ChannelInput)
def keep(asked: ChannelInput, name: str) -> Answer:
    """Set up a channel, or change it. Its address is written first, for its owner alone.

    Crash: an address may be kept for a channel that is not; the next time it is replaced.
    """
    here, url = site(), None
    known = settings_now().notify.channels.get(config_file.checked_name(name))
    if asked.url:
        url = secrecy.checked_url(asked.url)
    elif known is None or known.url_file != secrecy.url_file(name):
        raise BadInput("expected the channel's address, got none", field="url", code="missing")
    with bad_value():
        config_file.with_channel(settings_text(), name, secrecy.url_file(name), asked.events)
    if url is not None:
        path = f"{paths.SECRETS}/{secrecy.url_file(name)}"
        here.files.write(path, f"{url}\n".encode())
    args = {"events": list(asked.events)} if asked.events else None
    return give_command(here, "notify_set", name, command_id=asked.id, args=args)


@area.route("POST", "/api/notify/<name>/test", ChannelTestView, body=ChannelTestInput)
def test(asked: ChannelTestInput, name: str) -> ChannelTestView:
    """Send a test by a channel, now, and wait for what comes of it."""
    here, channel = site(), settings_now().notify.channels.get(name)
    if channel is None:
        raise _unknown(name)
    url = config_file.secret_of(here.files, channel.url_file)
    if not url:
        return ChannelTestView(ok=False, message="its address can not be read; set it anew")
    if not _one.acquire(blocking=False):
        raise Conflict("another channel is being tried; wait for it")
    try:
        text = phrases.say("note_test", phrases.language("", asked.locale))
        error = here.try_channel(url, "mimikit", text)
    finally:
        _one.release()
    return ChannelTestView(ok=not error, message=error)


@area.route("DELETE", "/api/notify/<name>", COMMAND_ANSWERS, body=CommandInput)
def remove(asked: CommandInput, name: str) -> Answer:
    """Forget a channel and its address; what waits for it is not sent."""
    if name not in settings_now().notify.channels:
        raise _unknown(name)
    with bad_value("name"):
        config_file.without_table(settings_text(), (*config_file.CHANNELS, name))
    return give_command(site(), "notify_remove", name, command_id=asked.id)


def _unknown(name: str) -> NotFound:
    return NotFound(
        f"there is no channel {name}", field="name", code="no_channel", params={"name": name}
    )
