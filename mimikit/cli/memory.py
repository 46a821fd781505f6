"""`mimikit memory` and `mimikit backlog`: what is known, and what is to be done."""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from mimikit.cli import client, terminal
from mimikit.cli.frame import CliContext, PlainGroup, pass_frame_and_json, pass_state_and_json
from mimikit.cli.options import NumberRange, blame, check_length, parse_past
from mimikit.errors import BadInput, NotFound
from mimikit.language.plain_text import size_words
from mimikit.memory import notes
from mimikit.memory.due import with_due
from mimikit.memory.notes import Action
from mimikit.memory.passages import EVERYWHERE, NEAR
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import MAX_TEXT, RememberedNote
from mimikit.state import ReadOnlyState
from mimikit.tools.reader import backlog_item
from mimikit.tools.requests import due_of
from mimikit.views import memory as shown
from mimikit.views.backlog import backlog_view
from mimikit.views.documents import Documents
from mimikit.views.search import HitReport, HitView, SearchReport, hit_view

_LONGEST_QUERY = 1000


@click.group(cls=PlainGroup)
def memory() -> None:
    """What is remembered: notes, days, summaries; and the search in it."""


@memory.command()
@pass_state_and_json
def status(state: ReadOnlyState, as_json: bool) -> None:
    """Show what there is, and how its search index is."""
    report = shown.memory_report(state.search.status(), _library(state).listed())
    facts = _status_facts(report, state.clock.now())
    lines = (f"{terminal.heading(head)}{text}" for head, text in facts)
    terminal.show(report, lines, as_json=as_json)


@memory.command()
@click.option("--rebuild", is_flag=True, help="Make it anew, from nothing.")
@pass_state_and_json
def index(state: ReadOnlyState, rebuild: bool, as_json: bool) -> None:
    """Bring the search index up to date.

    Searches do so by themselves, too.
    """
    if not as_json:
        terminal.note("Reading all that is to be searched…")
    began = state.clock.monotonic()
    after = state.search.refresh(rebuild=rebuild)
    took_s = state.clock.monotonic() - began
    report = shown.memory_report(after, _library(state).listed(), round(took_s * 1000))
    said = f"Indexed {_size(report.index)}, in {terminal.span(took_s)}."
    if report.index.fallback:
        why = report.index.fallback
        said = f"No index: {why}. Searches look through the files one by one."
    terminal.show(report, [said], as_json=as_json)


@memory.command()
@click.argument("query", metavar="QUERY...", nargs=-1, required=True)
@click.option("-n", "--limit", type=NumberRange(1, 100), default=10, help="How many at most.")
@click.option("--after", metavar="TIME", help="Not older: 2026-01-28, yesterday, 7d.")
@click.option("--before", metavar="TIME", help="Older than that.")
@click.option("--memory-only", is_flag=True, help="Not in past messages and task results.")
@pass_frame_and_json
def search(
    frame: CliContext,
    query: tuple[str, ...],
    limit: int,
    after: str | None,
    before: str | None,
    memory_only: bool,
    as_json: bool,
) -> None:
    """Search all that is known and was said, best first.

    That is: notes, summaries, the workspace's docs, past messages, results of tasks.
    """
    text = " ".join(query).strip()
    check_length(text, _LONGEST_QUERY, f"1 to {_LONGEST_QUERY} characters to look for")
    state = frame.open()
    since, until = _time(state, "--after", after), _time(state, "--before", before)
    if since and until and until <= since:
        raise click.UsageError(f"expected --before later than --after, got {before!r}")
    with contextlib.closing(state.search) as engine:
        scopes = NEAR if memory_only else EVERYWHERE
        found = engine.find(text, limit=limit, after=since, before=until, scopes=scopes)
        fallback = engine.fallback
    hits = [HitReport(**dict(hit_view(hit, text)), text=hit.text) for hit in found]
    if fallback and not as_json:
        terminal.note(f"Looked through the files one by one: {fallback}")
    undated = " of that time; memory.md and documents have none" if since or until else ""
    lines = hit_lines(hits) if hits else [f"Nothing found on {terminal.one_line(text)!r}{undated}."]
    report = SearchReport(query=text, hits=hits, fallback=fallback)
    terminal.show(report, lines, as_json=as_json)


@memory.command()
@click.argument("path", required=False)
@pass_state_and_json
def show(state: ReadOnlyState, path: str | None, as_json: bool) -> None:
    """Show a file; without PATH, list them all."""
    library = _library(state)
    listed = library.listed()
    if path is not None:
        file = _meant(path, listed)
        known = shown.named(file.path)
        note = library.shown(known) if known else None
        if note is None:
            raise client.gone("memory file", file.path)
        whole = shown.MemoryText(**dict(file), text=note.text, hash=note.hash)
        # As it is read: the ids of messages, notes and parts left out.
        lines = map(shown.unmarked, note.text.split("\n"))
        text = "\n".join(line for line, begins, _ in lines if line or not begins)
        terminal.show(whole, [terminal.block(text)], as_json=as_json)
        if note.cut:
            terminal.note(f"It goes on: this is the beginning, of {size_words(note.size)}.")
    elif as_json:
        terminal.print_json({"files": [file.to_dict() for file in listed]})
    else:
        rows = [
            (
                terminal.one_line(file.path),
                _KINDS[file.kind][0] + (" (hidden)" if file.hidden else ""),
                size_words(file.size),
                terminal.ago(file.modified_at, state.clock.now()) if file.modified_at else "-",
            )
            for file in listed
        ]
        empty = "Nothing is remembered yet. `mimikit memory add TEXT` adds a note."
        for line in terminal.table(("PATH", "KIND", "SIZE", "CHANGED"), rows, empty, flexible=0):
            terminal.out(line)


@memory.command()
@click.argument("text")
@click.option("--long-term", is_flag=True, help="Into memory.md, for what stays true.")
@pass_frame_and_json
def add(frame: CliContext, text: str, long_term: bool, as_json: bool) -> None:
    """Remember a note; `-` reads it from the input."""
    content = (sys.stdin.read() if text == "-" else text).strip()
    check_length(content, MAX_TEXT, f"a note of 1 to {MAX_TEXT} characters")
    state = frame.open()
    now = state.clock.now()
    note = RememberedNote(id=new_id("mem", now), content=content, long_term=long_term)
    local = now.astimezone(state.settings.zone)
    path = notes.remember(state.files, note, local)
    report = shown.NoteReport(id=note.id, path=path, text=content)
    terminal.show(report, [f"Remembered in {path}."], as_json=as_json)


# ---- parts


def _library(state: ReadOnlyState) -> shown.MemoryReader:
    return shown.MemoryReader(state.files, Documents(state.workspace, str(state.path)), str)


def _time(state: ReadOnlyState, option: str, given: str | None) -> datetime | None:
    with blame(option):
        now, zone = state.clock.now(), state.settings.zone
        return None if given is None else parse_past(given, now, zone)


def _meant(given: str, listed: list[shown.MemoryFile]) -> shown.MemoryFile:
    """The file that is meant: by its path, or by its name where only one has it.

    Raises:
        NotFound: there is none.
        BadInput: several have that name.
    """
    by_path = {file.path: file for file in listed}
    wanted = given.removeprefix("./").removeprefix(".mimikit/")
    if wanted in by_path:
        return by_path[wanted]
    name = wanted if wanted.endswith(".md") else f"{wanted}.md"
    found = [path for path in by_path if path == name or path.endswith(f"/{name}")]
    if len(found) == 1:
        return by_path[found[0]]
    if found:
        raise BadInput(f"expected one file, got {given!r}, which fits {', '.join(found)}")
    near = difflib.get_close_matches(wanted, by_path, 1)
    hint = f"did you mean {near[0]}?" if near else "`mimikit memory show` lists them"
    raise NotFound(f"expected a memory file, got {given!r}; {hint}")


_KINDS = {
    "longTerm": ("file of long-term notes", "files of long-term notes"),
    "raw": ("file of a day", "files of days"),
    "day": ("daily summary", "daily summaries"),
    "month": ("monthly summary", "monthly summaries"),
    "docs": ("document of the workspace", "documents of the workspace"),
}


def _status_facts(report: shown.MemoryReport, now: datetime) -> Iterator[tuple[str, str]]:
    index = report.index
    stale = terminal.plural(index.stale_files, "newer file")
    age = f"{stale} not in it yet, taken in by the next search"
    if index.fresh:
        age = terminal.coloured("up to date", "ok")
    yield "index", f"{age}; {_size(index)}"
    if index.fallback:
        yield "", terminal.coloured(f"not used: {index.fallback}", "warning")
    if index.refreshed_at:
        yield "refreshed", terminal.ago(index.refreshed_at, now)
    yield "tokens", f"counted, by {report.tokens}" if report.tokens else "estimated"
    kinds = [(count, _KINDS[kind]) for kind, count in report.files.items() if count]
    for number, (count, (one, many)) in enumerate(kinds):
        yield "" if number else "files", f"{count} {one if count == 1 else many}"
    if not kinds:
        yield "files", "none yet; `mimikit memory add TEXT` makes one"


def _size(index: shown.IndexReport) -> str:
    files = terminal.plural(index.files, "file")
    return f"{files}, {terminal.plural(index.passages, 'passage')}, {size_words(index.bytes)}"


def hit_lines(hits: Sequence[HitView]) -> Iterator[str]:
    for number, hit in enumerate(hits):
        if number:
            yield ""
        place = f"{hit.source}:{hit.line}" if hit.line else hit.source
        facts = [hit.day.isoformat() if hit.day else None, hit.role, hit.task_id]
        known = [fact for fact in facts if fact and fact not in hit.source]
        more = "  " + terminal.dim(terminal.one_line(", ".join(known))) if known else ""
        yield terminal.bold(terminal.one_line(place)) + more
        yield f"  {_marked(hit.snippet, hit.marks)}"


def _marked(snippet: str, marks: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    last = 0
    for start, end in marks:
        parts.append(_flat(snippet[last:start]))
        parts.append(terminal.coloured(_flat(snippet[start:end]), "running"))
        last = end
    return "".join([*parts, _flat(snippet[last:])]).strip()


def _flat(text: str) -> str:
    return terminal.safe(text).replace("\n", " ").replace("\t", " ")


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
    rows = [
        (
            str(number),
            terminal.state("done" if item.done else "open"),
            terminal.one_line(item.due or ""),
            terminal.one_line(item.text),
        )
        for number, item in enumerate(found.items, 1)
        if not (only_open and item.done)
    ]
    empty = "Nothing on the backlog. `mimikit backlog add TEXT` puts something on it."
    empty = "All done." if found.items else empty
    lines = terminal.table(("NO.", "STATE", "DUE", "WHAT"), rows, empty)
    terminal.show(backlog_view(found, only_open=only_open), lines, as_json=as_json)


_DUE_HELP = 'When it is due, and you are told: 10m, "tomorrow 9:00", 2026-12-01T09:00.'


@backlog.command("add")
@click.argument("text", metavar="TEXT...", nargs=-1, required=True)
@click.option("--due", metavar="TIME", help=_DUE_HELP)
@pass_frame_and_json
def add_item(frame: CliContext, text: tuple[str, ...], due: str | None, as_json: bool) -> None:
    """Put an item on the list; one that is ticked is open again."""
    item = notes.plain_item(" ".join(text))
    check_length(item, notes.MAX_ITEM, f"an item of 1 to {notes.MAX_ITEM} characters")
    state = frame.open()
    item = _dated(state, item, due) if due is not None else item
    _change(state, "add", item, "On the backlog", as_json=as_json)


@backlog.command("due")
@click.argument("item", metavar="ITEM...", nargs=-1, required=True)
@click.option("--at", "due", metavar="TIME", help=_DUE_HELP)
@click.option("--never", is_flag=True, help="It is due at no time any more.")
@pass_state_and_json
def due_item(
    state: ReadOnlyState, item: tuple[str, ...], due: str | None, never: bool, as_json: bool
) -> None:
    """Say when an item is due. ITEM is its number, its text, or a part only it has."""
    if (due is None) != never:
        raise click.UsageError("expected --at TIME or --never")
    meant = _item_meant(state, " ".join(item), "due")
    if due is not None:
        _change(state, "due", _dated(state, meant, due), "Due", as_json=as_json)
    else:
        _change(state, "due", meant, "Due at no time", as_json=as_json)


def _dated(state: ReadOnlyState, item: str, due: str) -> str:
    with blame("--due"):
        zone = state.settings.zone
        return with_due(item, due_of(due, now=state.clock.now(), zone=zone, home=zone))


def _changing(name: Action, text: str, said: str) -> None:
    @backlog.command(name, help=f"{text} ITEM is its number, its text, or a part only it has.")
    @click.argument("item", metavar="ITEM...", nargs=-1, required=True)
    @pass_state_and_json
    def command(state: ReadOnlyState, item: tuple[str, ...], as_json: bool) -> None:
        meant = _item_meant(state, " ".join(item), name)
        _change(state, name, meant, said, as_json=as_json)


def _item_meant(state: ReadOnlyState, given: str, name: Action) -> str:
    """The item that is named."""
    found = notes.load_backlog(state.files).items
    texts = [known.text for known in found]
    number = int(given) if given.isascii() and given.isdigit() and len(given) < 6 else 0
    if given not in texts and 1 <= number <= len(texts):
        return texts[number - 1]
    if not found:
        raise NotFound("expected an item of the backlog, which is empty")
    return backlog_item(found, given, name)


_changing("done", "Tick an item.", "Done")
_changing("undone", "Open a ticked item again.", "Open again")
_changing("remove", "Take an item off the list.", "Off the backlog")


def _change(state: ReadOnlyState, action: Action, item: str, said: str, *, as_json: bool) -> None:
    found = notes.change_backlog(state.files, action, item)
    lines = [f"{said}: {terminal.one_line(item)}"]
    terminal.show(backlog_view(found), lines, as_json=as_json)
