"""`mimikit export` and `mimikit import`: a state folder as one zip with checksums, and back."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from mimikit import __version__
from mimikit.cli import terminal
from mimikit.cli.frame import CliContext, LeafCommand, pass_frame_and_json
from mimikit.clock import SystemClock
from mimikit.errors import BadInput

_MOST_TOLD = 10


@click.command(cls=LeafCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--with-secrets", is_flag=True, help="Put the token and keys of engines in, too.")
@pass_frame_and_json
def export(frame: CliContext, file: Path, with_secrets: bool, as_json: bool) -> None:
    """Write everything this state folder knows into FILE, a zip with checksums.

    mimikit may run meanwhile. Conversations, tasks, triggers, memory, files, settings and logs are
    in it; what can be made anew (`cache/`) is not, nor are secrets. A file that is there is
    replaced once the new one is whole.
    """
    from mimikit.protocol.disk import RealDisk
    from mimikit.protocol.state_export import export_state

    folder, _ = frame.places()
    if folder.is_symlink() or not folder.is_dir():
        raise BadInput(f"no state folder at {folder}; `mimikit init` makes one")
    with contextlib.closing(RealDisk(folder, is_state=True)) as disk:
        made = export_state(
            disk, file, SystemClock().now(), version=__version__, with_secrets=with_secrets
        )
    size, count = sum(one.size for one in made.files), len(made.files)
    if as_json:
        facts = {"file": str(file), "files": count, "bytes": size, "withSecrets": with_secrets}
        terminal.print_json(facts | {"leftOut": made.left_out})
        return
    terminal.out(f"Exported {terminal.plural(count, 'file')}, {size / 1e6:,.1f} MB, to {file}")
    if with_secrets:
        terminal.out("The token and the keys of engines are in it: whoever has it has those.")
    else:
        terminal.note("Without secrets: where it is imported the page gets a new token.")
    for path, reason in list(made.left_out.items())[:_MOST_TOLD]:
        terminal.note(f"Left out: {terminal.one_line(path)} ({reason})")
    if len(made.left_out) > _MOST_TOLD:
        terminal.note(f"… and {len(made.left_out) - _MOST_TOLD} more")


@click.command("import", cls=LeafCommand)
@click.argument("file", type=click.Path(path_type=Path))
@pass_frame_and_json
def import_(frame: CliContext, file: Path, as_json: bool) -> None:
    """Make a state folder here out of FILE, which `mimikit export` wrote.

    Only where none is, or an empty one. Every file is proved by its SHA-256 before anything is
    placed. Import what you exported yourself: its triggers and settings are carried out here.
    """
    from mimikit.protocol.state_import import import_state

    folder, _ = frame.places()
    made = import_state(file, folder)
    if as_json:
        facts = {"state": str(folder), "files": len(made.files), "withSecrets": made.with_secrets}
        terminal.print_json(facts | {"mimikitVersion": made.mimikit_version})
        return
    size = sum(one.size for one in made.files)
    count = terminal.plural(len(made.files), "file")
    terminal.out(f"Imported {count}, {size / 1e6:,.1f} MB, to {folder}")
    terminal.out(f"  exported   {made.created_at:%Y-%m-%d %H:%M} UTC by {made.mimikit_version}")
    terminal.out("`mimikit up` starts it: what waits there is done, here as well as where it was.")
