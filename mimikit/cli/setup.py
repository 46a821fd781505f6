"""`mimikit init` and `mimikit token`."""

from __future__ import annotations

import sys

import click

from mimikit.cli import terminal
from mimikit.cli.frame import Frame, LeafCommand, json_option, pass_frame
from mimikit.cli.values import PORT


@click.command(cls=LeafCommand)
@pass_frame
def init(frame: Frame) -> None:
    """Make a state folder here; one that exists is left as it is."""
    from mimikit.cli.settings_text import config_template
    from mimikit.protocol import paths

    folder, workspace = frame.places()
    is_new = not folder.exists()
    state = frame.open_as_keeper(create=True)
    if is_new:
        state.files.create(paths.CONFIG, config_template().encode())
    terminal.out(f"{'Made' if is_new else 'Already there:'} {folder}")
    if is_new:
        terminal.out(f"  workspace  {workspace}")
        terminal.out(f"  settings   {folder / paths.CONFIG} (all at their defaults)")
        terminal.out("`mimikit up` starts the page and the consumer.")


@click.command(cls=LeafCommand)
@click.option("--link", is_flag=True, help="Print only a link that logs a browser in once.")
@click.option("--renew", is_flag=True, help="Make a new token; whoever used the old one is out.")
@click.option("--host", help="Of the link (default: web.host of the settings).")
@click.option("--port", type=PORT, help="Of the link (default: web.port of the settings).")
@json_option
@pass_frame
def token(
    frame: Frame, link: bool, renew: bool, host: str | None, port: int | None, as_json: bool
) -> None:
    """Print the token, and in a terminal a fresh login link for the page.

    Scripts send the token as `Authorization: Bearer TOKEN`. Who holds it drives the agent: keep it
    to yourself.
    """
    from mimikit.web import tokens

    state = frame.open_as_keeper()
    if renew:
        if tokens.operator_token() is not None:
            raise click.UsageError(
                f"--renew: expected no {tokens.TOKEN_VARIABLE}, got one; change that instead"
            )
        tokens.renew_token(state.files)
    found: dict[str, str] = {}
    if not link:
        found["token"] = tokens.load_token(state.files)
    if link or (sys.stdout.isatty() and not as_json):
        web = state.settings.web
        code = tokens.new_login_code(state.files, state.clock.now())
        at = (host or web.host, web.port if port is None else port)
        found["link"] = tokens.login_link(*at, code)
    if as_json:
        terminal.print_json(found)
    elif len(found) == 1:
        terminal.out(*found.values())
    else:
        terminal.out(f"Token    {found['token']}")
        terminal.out(f"Log in   {found['link']}")
        terminal.out(terminal.dim("         the link works once, within the hour"))
