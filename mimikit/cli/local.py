"""`mimikit local`: a small model on this machine, for the basic mode without any account."""

from __future__ import annotations

import sys
from importlib import util

import click

from mimikit import config
from mimikit.cli import terminal
from mimikit.cli.frame import CliContext, PlainGroup, pass_cli, pass_cli_and_json
from mimikit.engines.local import engine, model_server, weights
from mimikit.engines.local.engine import LocalEngine
from mimikit.engines.local.weights import ModelWeights

_SIZES = {one.size: one for one in weights.KNOWN}


@click.group(cls=PlainGroup)
def local() -> None:
    """A small model on this machine: talk and single commands, without an account or a key."""


@local.command()
@click.option(
    "--size",
    type=click.Choice(sorted(_SIZES)),
    default=weights.SMALL.size,
    show_default=True,
    help="The larger one is better, and takes three times the memory.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def setup(cli: CliContext, size: str, yes: bool) -> None:
    """Download the weights of a small model, once for all state folders of this user.

    An interrupted download resumes. They are verified by their SHA-256 before they are used.
    """
    wanted, folder = _SIZES[size], weights.folder_of_user()
    if weights.is_whole(wanted, folder):
        terminal.out(f"{wanted.title} is there: {folder / wanted.file}")
    else:
        weights.check_room(wanted, folder)
        terminal.out(
            f"{wanted.title}: {_megabytes(weights.needed_bytes(wanted, folder))} from {wanted.url} "
            f"into {folder}."
        )
        if not yes and sys.stdin.isatty():
            click.confirm("Download it?", default=True, abort=True)
        _fetch(wanted)
    if util.find_spec(model_server.PACKAGE) is None:
        terminal.note(engine.MISSING)
    terminal.out("It is used, in basic mode, where no other engine is set up.")


def _fetch(wanted: ModelWeights) -> None:
    with click.progressbar(
        length=wanted.bytes // 2**20, label="Downloading", file=sys.stderr
    ) as bar:

        def show_progress(done: int, _total: int) -> None:
            bar.update(done // 2**20 - bar.pos)

        path = weights.set_up(wanted, weights.folder_of_user(), weights.download, show_progress)
    terminal.out(f"Downloaded and verified: {path}")


@local.command()
@pass_cli_and_json
def status(cli: CliContext, as_json: bool) -> None:
    """Show which weights are there, and whether the small model can be used."""
    place, _ = cli.folders()
    folder, local_engine = weights.folder_of_user(), LocalEngine(config.load(place))
    reason = local_engine.unavailable()
    present = [one for one in weights.KNOWN if weights.is_whole(one, folder)]
    title = None if reason else local_engine.title()
    if as_json:
        facts = {"serves": title, "reason": reason, "folder": str(folder)}
        terminal.print_json(facts | {"weights": [one.size for one in present]})
        return
    for one in present:
        path, size = folder / one.file, _megabytes(one.bytes)
        terminal.out(f"{terminal.heading(one.size)} {one.title}, {size}  {terminal.dim(str(path))}")
    terminal.out(f"{title} can be used, in basic mode." if title else f"Not usable: {reason}.")


@local.command()
@click.option("--size", type=click.Choice(sorted(_SIZES)), help="This one; without it, each.")
@pass_cli
def remove(cli: CliContext, size: str | None) -> None:
    """Remove the weights, and partial downloads."""
    folder = weights.folder_of_user()
    wanted = [_SIZES[size]] if size else list(weights.KNOWN)
    removed = [one.title for one in wanted if weights.remove(one, folder)]
    terminal.out(
        f"Removed: {', '.join(removed)}." if removed else f"There was nothing in {folder}."
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
