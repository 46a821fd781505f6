"""`mimikit skills`: folders with a `SKILL.md` that tell models how a kind of work is done here."""

from __future__ import annotations

from pathlib import Path

import click

from mimikit.cli import terminal
from mimikit.cli.frame import CliContext, PlainGroup, pass_frame, pass_state_and_json
from mimikit.language.plain_text import first_line
from mimikit.protocol import paths
from mimikit.state import ReadOnlyState
from mimikit.tools import skills as store

_SHOWN = 100


@click.group(cls=PlainGroup)
def skills() -> None:
    """What models are told of how a kind of work is done here; they read it when it is needed."""


@skills.command(name="list")
@pass_state_and_json
def list_(state: ReadOnlyState, as_json: bool) -> None:
    """List the skills, and what in their place is none."""
    found, faults = store.look(state.files)
    if as_json:
        terminal.print_json({
            "skills": [{"name": one.name, "description": one.description} for one in found],
            "broken": [{"name": one.name, "reason": one.reason} for one in faults],
        })  # fmt: skip
        return
    for one in found:
        said = terminal.one_line(first_line(one.description, _SHOWN))
        terminal.out(f"{terminal.heading(one.name)} {said}")
    for fault in faults:
        terminal.out(f"{terminal.heading(fault.name)} broken: {terminal.one_line(fault.reason)}")
    if not found and not faults:
        terminal.out("No skills yet; `mimikit skills add FOLDER` adds one.")


@skills.command()
@click.argument("name")
@pass_state_and_json
def show(state: ReadOnlyState, name: str, as_json: bool) -> None:
    """Show the text of the skill NAME, and which files belong to it."""
    skill, files = store.load(state.files, name), store.entries(state.files, name)
    if as_json:
        facts = {"name": skill.name, "description": skill.description, "text": skill.text}
        terminal.print_json({**facts, "files": files})
        return
    terminal.out(skill.text.rstrip("\n"))
    if more := [file for file in files if file != store.SKILL_FILE]:
        terminal.out(f"\n{terminal.dim('files')} {terminal.one_line(', '.join(more))}")


@skills.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@pass_frame
def add(frame: CliContext, folder: Path) -> None:
    """Copy FOLDER, which holds a SKILL.md, among the skills: the next run is told of it."""
    state = frame.open_as_keeper(create=True)
    skill = store.add(state.files, folder)
    files = store.entries(state.files, skill.name)
    terminal.out(f"Added {skill.name}: {terminal.plural(len(files), 'file')}.")


@skills.command()
@click.argument("name")
@pass_frame
def remove(frame: CliContext, name: str) -> None:
    """Remove the skill NAME, or what is none in its place."""
    state = frame.open_as_keeper()
    store.remove(state.files, name)
    terminal.out(f"Removed {name} from {paths.SKILLS}/.")
