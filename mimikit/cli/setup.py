"""`mimikit init` and `mimikit token`."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import click

from mimikit.cli import terminal
from mimikit.cli.frame import CliContext, LeafCommand, json_option, pass_frame
from mimikit.cli.options import PORT
from mimikit.config import Settings, known_keys
from mimikit.errors import BadInput


@click.command(cls=LeafCommand)
@pass_frame
def init(frame: CliContext) -> None:
    """Make a state folder here; one that exists is left as it is."""
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
    frame: CliContext, link: bool, renew: bool, host: str | None, port: int | None, as_json: bool
) -> None:
    """Print the token, and in a terminal a fresh login link for the page.

    Scripts send the token as `Authorization: Bearer TOKEN`. Who holds it drives the agent: keep it
    to yourself.
    """
    from mimikit import app

    state = frame.open_as_keeper()
    found: dict[str, str] = {}
    if renew or not link:
        try:
            secret = app.page_token(state, renew=renew)
        except BadInput as error:
            raise click.UsageError(f"--renew: {error}") from None
        found = {} if link else {"token": secret}
    if link or (sys.stdout.isatty() and not as_json):
        web = state.settings.web
        at_port = web.port if port is None else port
        found["link"] = app.login_link(state, host or web.host, at_port)
    if as_json:
        terminal.print_json(found)
    elif len(found) == 1:
        terminal.out(*found.values())
    else:
        terminal.out(f"Token    {found['token']}")
        terminal.out(f"Log in   {found['link']}")
        terminal.out(terminal.dim("         the link works once, within the hour"))


_HEAD = """\
# Settings of mimikit. Each line shows a default: to change one, take the # away from it and from
# the [table] above it.
# `mimikit doctor` prints every value in force and where it came from.
# The environment goes before this file: MIMIKIT_WEB__PORT=9000 is web.port.
"""


def config_template() -> str:
    """A config.toml that changes nothing and shows everything."""
    tables: dict[str, list[str]] = {}
    defaults = Settings.model_construct()
    for key in known_keys():
        table, _, name = key.rpartition(".")
        value = attrgetter(key)(defaults)
        # A table stands here as empty: what may be in it is the user's.
        shown = json.dumps({} if isinstance(value, dict) else value, ensure_ascii=False)
        shown = "…" if value is None else shown
        tables.setdefault(table, []).append(f"# {name} = {shown}")
    parts = [_HEAD]
    for table, lines in tables.items():
        head = f"# [{table}]\n" if table else ""
        parts.append(head + "\n".join(lines) + "\n")
    return "\n".join(parts)


def settings_in_force(settings: Settings, folder: Path) -> Iterator[tuple[str, Any, str]]:
    """Each key with its value and its origin: `default`, `config.toml` or the variable's name."""
    try:
        file = tomllib.loads((folder / "config.toml").read_text())
    except (OSError, ValueError):
        file = {}
    for key in known_keys():
        yield key, attrgetter(key)(settings), _origin(key, file)


def _origin(key: str, file: dict[str, Any]) -> str:
    own = "MIMIKIT_" + key.upper().replace(".", "__")
    section = "MIMIKIT_" + key.upper().partition(".")[0]
    for name in (own, section):
        if name in os.environ:
            return name
    *tables, name = key.split(".")
    for table in tables:
        inner = file.get(table)
        file = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    return "config.toml" if name in file else "default"
