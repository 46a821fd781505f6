"""`mimikit backlog`: list, add, done, undone, remove."""

from __future__ import annotations

from collections.abc import Callable

import click

from mimikit.cli import terminal
from mimikit.cli.frame import Frame, PlainGroup, json_option, pass_frame
from mimikit.errors import NotFound
from mimikit.memory import notes
from mimikit.memory.notes import Action
from mimikit.tools.reader import backlog_item
from mimikit.views.memory import backlog_view

_SAID = {
    "add": "On the backlog: {item}",
    "done": "Done: {item}",
    "undone": "Open again: {item}",
    "remove": "Off the backlog: {item}",
}


@click.group(cls=PlainGroup)
def backlog() -> None:
    """The list of things to do."""


@backlog.command("list")
@click.option("--open", "only_open", is_flag=True, help="Only what is not done.")
@json_option
@pass_frame
def list_(frame: Frame, only_open: bool, as_json: bool) -> None:
    """List every item with its number."""
    found = notes.load_backlog(frame.open().files)
    if as_json:
        terminal.print_json(backlog_view(found, only_open=only_open).to_dict())
        return
    rows = [
        (str(number), "done" if item.done else "open", terminal.one_line(item.text))
        for number, item in enumerate(found.items, 1)
        if not (only_open and item.done)
    ]
    if rows:
        shown = [(number, terminal.coloured(state, state), text) for number, state, text in rows]
        terminal.table(("NO.", "STATE", "WHAT"), shown)
    elif found.items:
        terminal.out("All done.")
    else:
        terminal.out("Nothing on the backlog. `mimikit backlog add TEXT` puts something on it.")


@backlog.command()
@click.argument("text", metavar="TEXT...", nargs=-1, required=True)
@json_option
@pass_frame
def add(frame: Frame, text: tuple[str, ...], as_json: bool) -> None:
    """Put an item on the list; one that is ticked is open again."""
    item = notes.plain_item(" ".join(text))
    if not item or len(item) > notes.MAX_ITEM:
        got = f"{len(item)} characters" if item else "only blanks"
        raise click.UsageError(f"expected an item of 1 to {notes.MAX_ITEM} characters, got {got}")
    _change(frame, "add", item, as_json=as_json)


def _changing(name: Action, text: str) -> Callable[..., None]:
    @backlog.command(name, help=f"{text} ITEM is its number, its text, or a part only it has.")
    @click.argument("item", metavar="ITEM...", nargs=-1, required=True)
    @json_option
    @pass_frame
    def command(frame: Frame, item: tuple[str, ...], as_json: bool) -> None:
        given = " ".join(item)
        found = notes.load_backlog(frame.open().files).items
        texts = [known.text for known in found]
        number = int(given) if given.isascii() and given.isdigit() and len(given) < 6 else 0
        if given not in texts and 1 <= number <= len(texts):
            _change(frame, name, texts[number - 1], as_json=as_json)
            return
        if not found:
            raise NotFound("expected an item of the backlog, which is empty")
        _change(frame, name, backlog_item(found, given, name), as_json=as_json)

    return command


done = _changing("done", "Tick an item.")
undone = _changing("undone", "Open a ticked item again.")
remove = _changing("remove", "Take an item off the list.")


def _change(frame: Frame, action: Action, item: str, *, as_json: bool) -> None:
    found = notes.change_backlog(frame.open().files, action, item)
    if as_json:
        terminal.print_json(backlog_view(found).to_dict())
    else:
        terminal.out(_SAID[action].format(item=terminal.one_line(item)))
