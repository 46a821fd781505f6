"""`mimikit notify`: the channels by which the user is reached outside of the page."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import click

from mimikit import config_file
from mimikit.cli import client, terminal
from mimikit.cli.checks import Finding, broken, note, ok, warning
from mimikit.cli.client import RequestFailed
from mimikit.cli.frame import CliContext, PlainGroup, pass_frame, pass_state_and_json
from mimikit.errors import BadInput
from mimikit.extras import install_line
from mimikit.language import phrases
from mimikit.notifications import secrecy
from mimikit.notifications.courier import sent_now
from mimikit.notifications.send import missing
from mimikit.notify_settings import EVENT_KINDS
from mimikit.protocol import paths
from mimikit.state import ReadOnlyState, State
from mimikit.views import notifications
from mimikit.views.notifications import ChannelView

_NO_ADDRESS = "expected the channel's address from --url-stdin or when asked, got none"


@click.group(cls=PlainGroup)
def notify() -> None:
    """Where you are reached outside of the page: phone, mail, desktop."""


@notify.command()
@click.argument("name")
@click.option("--url-stdin", is_flag=True, help="Read the address from standard input.")
@click.option(
    "--event",
    "events",
    multiple=True,
    type=click.Choice(EVENT_KINDS),
    help="What it is for; may be given again. Without it: all.",
)
@click.option("--no-test", is_flag=True, help="Do not look whether the address can be used.")
@pass_frame
def add(
    frame: CliContext, name: str, url_stdin: bool, events: Sequence[str], no_test: bool
) -> None:
    """Set up the channel NAME, or change it.

    Its address is asked for, hidden, and kept in secrets/: ntfy://TOPIC, tgram://…, mailto://…,
    feishu://…, dingtalk://…, wecombot://…, whatever Apprise knows; desktop:// is this machine's.
    """
    state = frame.open_as_keeper(create=True)
    known = state.settings.notify.channels.get(config_file.checked_name(name))
    url = _given_url(url_stdin, is_known=known is not None)
    if url is None and known is None:
        raise BadInput(_NO_ADDRESS, field="url")
    file = secrecy.url_file(name) if url is not None or known is None else known.url_file

    def changed(text: str) -> str:
        return config_file.with_channel(text, name, file, events or None)

    changed(config_file.text_of(state.files))  # or a reason why it can not be
    if url is not None:
        if not no_test and (error := sent_now(url, "", "", check=True)):
            raise BadInput(f"{error}; --no-test keeps it all the same", field="url")
        state.files.write(f"{paths.SECRETS}/{file}", f"{url}\n".encode())
    config_file.rewrite(state.files, changed)
    terminal.out(f"Set up {name}. `mimikit notify test {name}` sends a test.")
    client.settings_changed(state, "notify_set")


@notify.command(name="list")
@pass_state_and_json
def list_(state: ReadOnlyState, as_json: bool) -> None:
    """List the channels, what each is for, and whether it works. No address is shown."""
    now = state.clock.now()
    found = notifications.channel_list(state.files, state.settings.notify, now)
    if as_json:
        terminal.print_json(found.to_dict())
        return
    if not found.channels:
        terminal.out("No channel is set up; `mimikit notify add NAME` sets one up.")
    for channel in found.channels:
        about = ", ".join(channel.events) if len(channel.events) < len(EVENT_KINDS) else "all"
        lead = f"{terminal.heading(channel.name)} {channel.service or '?'}  for {about}"
        terminal.out(f"{lead}  {terminal.dim(state_words(channel))}")
    if found.quiet:
        terminal.out(f"quiet hours {found.quiet}, except for {', '.join(found.quiet_events)}")


def state_words(channel: ChannelView) -> str:
    """How a channel is, in a line."""
    waits = f", {channel.waiting} waiting" if channel.waiting else ""
    if channel.failing and channel.failed_at:
        return f"fails since {channel.failed_at:%Y-%m-%d %H:%M} UTC: {channel.error}{waits}"
    if channel.sent_at:
        return f"last sent {channel.sent_at:%Y-%m-%d %H:%M} UTC{waits}"
    return f"nothing was sent yet{waits}"


@notify.command()
@click.argument("name")
@pass_frame
def test(frame: CliContext, name: str) -> None:
    """Send a test by the channel NAME, now, and say what came of it."""
    state = frame.open_as_keeper()
    channel = client.set_up(state.settings.notify.channels, "a channel", name)
    if not (url := config_file.secret_of(state.files, channel.url_file)):
        raise BadInput(
            f"{paths.SECRETS}/{channel.url_file}: expected an address, got none; "
            f"`mimikit notify add {name}` sets it anew"
        )
    if error := sent_now(url, "mimikit", phrases.say("note_test", "en")):
        raise RequestFailed(f"{name}: {error}")
    terminal.out(f"Sent by {name}.")


@notify.command()
@click.argument("name")
@pass_frame
def remove(frame: CliContext, name: str) -> None:
    """Forget the channel NAME and its address; what waits for it is not sent."""
    state = frame.open_as_keeper()
    client.set_up(state.settings.notify.channels, "a channel", name)
    table = (*config_file.CHANNELS, name)
    config_file.rewrite(state.files, lambda text: config_file.without_table(text, table))
    config_file.forget_secret(state.files, secrecy.url_file(name))
    terminal.out(f"Removed {name}.")
    client.settings_changed(state, "notify_set")


def findings(state: State) -> Iterator[Finding]:
    """The package that knows the services, and how each channel is; nothing where none is set."""
    found = notifications.channel_list(state.files, state.settings.notify, state.clock.now())
    if not found.channels:
        package = "installed" if found.installed else f"not installed: {install_line('notify')}"
        yield note("notify", f"no channel; Apprise is {package}", "`mimikit notify add NAME`")
    for channel in found.channels:
        said, again = state_words(channel), f"`mimikit notify add {channel.name}` sets it anew"
        if not channel.service:
            yield broken("notify", f"{channel.name}: its address can not be read", again)
        elif notifications.lacks_package(channel, installed=found.installed):
            yield broken("notify", f"{channel.name} ({channel.service}): {missing()}")
        elif channel.failing:
            mend = f"`mimikit notify test {channel.name}` tries it now"
            yield warning("notify", f"{channel.name} ({channel.service}): {said}", mend)
        else:
            yield ok("notify", f"{channel.name} ({channel.service}): {said}")


def _given_url(from_stdin: bool, *, is_known: bool) -> str | None:
    """The address to be kept; None: it stays as it is.

    Raises:
        BadInput: it is none.
    """
    if from_stdin:
        return secrecy.checked_url(sys.stdin.read(secrecy.MOST_URL + 100))
    if not sys.stdin.isatty():
        return None
    label = "Address (empty: as it is)" if is_known else "Address"
    given = str(click.prompt(label, default="", hide_input=True, show_default=False)).strip()
    return secrecy.checked_url(given) if given else None
