"""`mimikit memory` and `mimikit backlog`."""

from __future__ import annotations

import contextlib
import difflib
import sys
from datetime import datetime

import click

from mimikit.cli import client, render, terminal
from mimikit.cli.frame import CliContext, PlainGroup, pass_cli_and_json, pass_state_and_json
from mimikit.cli.options import NumberRange, check_length, errors_for, parse_past
from mimikit.errors import BadInput, NotFound
from mimikit.memory import notes
from mimikit.memory.notes import Action
from mimikit.memory.workspace_docs import Documents
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import MAX_TEXT, RememberedNote
from mimikit.state import ReadOnlyState
from mimikit.tools.reader import backlog_item, places_of
from mimikit.views import memory as views
from mimikit.views.backlog import backlog_view

_MAX_QUERY = 1000


@click.group(cls=PlainGroup)
def memory() -> None:
    """Notes, daily files and summaries, and the search in them."""


@memory.command()
@pass_state_and_json
def status(state: ReadOnlyState, as_json: bool) -> None:
    """Show what is remembered, and the state of the search index."""
    report = views.memory_report(state.search.status(), _library(state).listed())
    render.show(report, state, as_json=as_json)


@memory.command()
@click.option("--rebuild", is_flag=True, help="Rebuild it from nothing.")
@pass_state_and_json
def index(state: ReadOnlyState, rebuild: bool, as_json: bool) -> None:
    """Bring the search index up to date.

    Searches do so by themselves, too.
    """
    if not as_json:
        terminal.note("Reading all searchable files…")
    began = state.clock.monotonic()
    after = state.search.refresh(rebuild=rebuild)
    took_s = state.clock.monotonic() - began
    report = views.memory_report(after, _library(state).listed(), round(took_s * 1000))
    render.show(report, state, as_json=as_json)


@memory.command()
@click.argument("query", metavar="QUERY...", nargs=-1, required=True)
@click.option("-n", "--limit", type=NumberRange(1, 100), default=10, help="How many at most.")
@click.option("--after", metavar="TIME", help="Not older: 2026-01-28, yesterday, 7d.")
@click.option("--before", metavar="TIME", help="Older than that.")
@click.option("--memory-only", is_flag=True, help="Leave past messages and task results out.")
@pass_cli_and_json
def search(
    cli: CliContext,
    query: tuple[str, ...],
    limit: int,
    after: str | None,
    before: str | None,
    memory_only: bool,
    as_json: bool,
) -> None:
    """Search notes, summaries, the workspace's docs, past messages and task results; best first."""
    text = " ".join(query).strip()
    check_length(text, _MAX_QUERY, f"1 to {_MAX_QUERY} characters to look for")
    state = cli.open()
    since, until = _time(state, "--after", after), _time(state, "--before", before)
    if since and until and until <= since:
        raise click.UsageError(f"expected --before later than --after, got {before!r}")
    with contextlib.closing(state.search) as engine:
        found = engine.find(
            text, limit=limit, after=since, before=until, everywhere=not memory_only
        )
        fallback = engine.fallback
    hits = [views.HitReport(**dict(views.hit_view(hit, text)), text=hit.text) for hit in found]
    if fallback and not as_json:
        terminal.note(f"Searched without the index: {fallback}")
    undated = " of that time; memory.md and documents have none" if since or until else ""
    empty = f"Nothing found on {terminal.one_line(text)!r}{undated}."
    report = views.SearchReport(query=text, hits=hits, fallback=fallback)
    render.show(report, state, as_json=as_json, empty=empty)


@memory.command()
@click.argument("path", required=False)
@pass_state_and_json
def show(state: ReadOnlyState, path: str | None, as_json: bool) -> None:
    """Show a file; without PATH, list them all."""
    library = _library(state)
    listed = library.listed()
    if path is None:
        render.show(views.MemoryFiles(files=listed), state, as_json=as_json)
        return
    file = _find_file(path, listed)
    known = views.parse_path(file.path)
    note = library.read(known) if known else None
    if note is None:
        raise client.was_removed("memory file", file.path)
    whole = views.MemoryText(**dict(file), text=note.text, hash=note.hash)
    render.show(whole, state, as_json=as_json)
    if note.cut:
        terminal.note(f"It goes on: this is the beginning, of {render.size_words(note.size)}.")


@memory.command()
@click.argument("text")
@click.option("--long-term", is_flag=True, help="Into memory.md, for what stays true.")
@pass_cli_and_json
def add(cli: CliContext, text: str, long_term: bool, as_json: bool) -> None:
    """Remember a note; `-` reads it from the input."""
    content = (sys.stdin.read() if text == "-" else text).strip()
    check_length(content, MAX_TEXT, f"a note of 1 to {MAX_TEXT} characters")
    state = cli.open()
    now = state.clock.now()
    note = RememberedNote(id=new_id("mem", now), content=content, long_term=long_term)
    local = now.astimezone(state.settings.zone)
    path = notes.remember(state.files, note, local)
    report = views.NoteReport(id=note.id, path=path, text=content)
    render.show(report, state, as_json=as_json)


@memory.command()
@click.argument("what", metavar="WHAT...", nargs=-1, required=True)
@click.option("--all", "everything", is_flag=True, help="All notes that match, not just one.")
@pass_cli_and_json
def forget(cli: CliContext, what: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Remove a note, by its words or id, and say where else it stands."""
    state, text = cli.open(), " ".join(what)
    found = notes.find_notes(state.files, text)
    if not found:
        raise NotFound(f"expected a note, got {text!r}, which matches none")
    if len({note.content for note in found}) > 1 and not everything:
        listed = "".join(f"\n  {note.note_id or note.path}  {note.content}" for note in found)
        raise BadInput(f"{len(found)} notes match; name one by its id, or use --all:{listed}")
    for note in found:
        notes.forget(state.files, note)
    with contextlib.closing(state.search) as engine:
        places = places_of(engine, text, [note.content for note in found])
    if as_json:
        terminal.print_json({"forgotten": [note.to_dict() for note in found], "stillIn": places})
        return
    for note in found:
        terminal.out(f"Forgotten: {terminal.one_line(note.content)}  ({note.path})")
    if places:
        terminal.note(f"It still stands in {', '.join(places)}; an editor removes it there.")


def _library(state: ReadOnlyState) -> views.MemoryReader:
    return views.MemoryReader(state.files, Documents(state.workspace, str(state.path)), str)


def _time(state: ReadOnlyState, option: str, given: str | None) -> datetime | None:
    with errors_for(option):
        now, zone = state.clock.now(), state.settings.zone
        return None if given is None else parse_past(given, now, zone)


def _find_file(given: str, listed: list[views.MemoryFile]) -> views.MemoryFile:
    """Find a file by its path or unique name; NotFound, or BadInput when several match."""
    by_path = {file.path: file for file in listed}
    wanted = given.removeprefix("./").removeprefix(".mimikit/")
    if wanted in by_path:
        return by_path[wanted]
    name = wanted if wanted.endswith(".md") else f"{wanted}.md"
    matches = [path for path in by_path if path == name or path.endswith(f"/{name}")]
    if len(matches) == 1:
        return by_path[matches[0]]
    if matches:
        raise BadInput(f"expected one file, got {given!r}, which fits {', '.join(matches)}")
    near = difflib.get_close_matches(wanted, by_path, 1)
    hint = f"did you mean {near[0]}?" if near else "`mimikit memory show` lists them"
    raise NotFound(f"expected a memory file, got {given!r}; {hint}")


# ---- the backlog


@click.group(cls=PlainGroup)
def backlog() -> None:
    """The list of things to do."""


@backlog.command("list")
@click.option("--open", "only_open", is_flag=True, help="Only what is not done.")
@pass_state_and_json
def list_backlog(state: ReadOnlyState, only_open: bool, as_json: bool) -> None:
    """List every item with its number."""
    found = notes.load_backlog(state.files)
    empty = "Nothing on the backlog. `mimikit backlog add TEXT` puts something on it."
    empty = "All done." if found.items else empty
    render.show(backlog_view(found, only_open=only_open), state, as_json=as_json, empty=empty)


@backlog.command("add")
@click.argument("text", metavar="TEXT...", nargs=-1, required=True)
@pass_cli_and_json
def add_item(cli: CliContext, text: tuple[str, ...], as_json: bool) -> None:
    """Put an item on the list; one that is ticked is open again."""
    " ".join(text).encode()  # UnicodeError: refused in one line
    item = notes.plain_item(" ".join(text))
    check_length(item, notes.MAX_ITEM, f"an item of 1 to {notes.MAX_ITEM} characters")
    _change(cli.open(), "add", item, "On the backlog", as_json=as_json)


def _changing(name: Action, text: str, result_words: str) -> None:
    @backlog.command(name, help=f"{text} ITEM is its number, its text, or a part only it has.")
    @click.argument("item", metavar="ITEM...", nargs=-1, required=True)
    @pass_state_and_json
    def command(state: ReadOnlyState, item: tuple[str, ...], as_json: bool) -> None:
        given = " ".join(item)
        found = notes.load_backlog(state.files).items
        texts = [known.text for known in found]
        number = int(given) if given.isascii() and given.isdigit() and len(given) < 6 else 0
        if given not in texts and 1 <= number <= len(texts):
            meant = texts[number - 1]
        elif found:
            meant = backlog_item(found, given, name)
        else:
            raise NotFound("expected an item of the backlog, which is empty")
        _change(state, name, meant, result_words, as_json=as_json)


_changing("done", "Tick an item.", "Done")
_changing("undone", "Open a ticked item again.", "Open again")
_changing("remove", "Take an item off the list.", "Off the backlog")


def _change(
    state: ReadOnlyState, action: Action, item: str, result_words: str, *, as_json: bool
) -> None:
    changed = notes.change_backlog(state.files, action, item)
    if as_json:
        terminal.print_json(backlog_view(changed).to_dict())
    else:
        terminal.out(f"{result_words}: {terminal.one_line(item)}")
