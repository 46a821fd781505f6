"""`mimikit memory`: status, index, search, show, add."""

from __future__ import annotations

import difflib
import sys
from datetime import datetime
from typing import Any

import click

from mimikit.cli import memory_text, past, terminal
from mimikit.cli.frame import Frame, PlainGroup, json_option, pass_frame
from mimikit.cli.guest import GuestState
from mimikit.cli.values import Whole
from mimikit.errors import BadInput, NotFound
from mimikit.memory import notes, shared
from mimikit.protocol import paths
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import MAX_TEXT, Remembered
from mimikit.web.documents import Documents
from mimikit.web.markdown import Markdown
from mimikit.web.shown import hits
from mimikit.web.shown.memory import MAX_SHOWN_BYTES, Library, named

_LONGEST_QUERY = 1000
_ALIKE = 0.6


@click.group(cls=PlainGroup)
def memory() -> None:
    """What is remembered: notes, days, summaries; and the search in it."""


@memory.command()
@json_option
@pass_frame
def status(frame: Frame, as_json: bool) -> None:
    """Show what there is, and how its search index is."""
    state = frame.open()
    files = _library(state).listed()
    whole = memory_text.whole_status(state.search.status(), files)
    if as_json:
        terminal.print_json(whole)
        return
    for line in memory_text.status_lines(whole, state.clock.now()):
        terminal.out(line)


@memory.command()
@click.option("--rebuild", is_flag=True, help="Make it anew, from nothing.")
@json_option
@pass_frame
def index(frame: Frame, rebuild: bool, as_json: bool) -> None:
    """Bring the search index up to date.

    Searches do so by themselves, too.
    """
    state = frame.open()
    if not as_json:
        terminal.note("Reading all that is to be searched…")
    began = state.clock.monotonic()
    after = state.search.refresh(rebuild=rebuild)
    took_s = state.clock.monotonic() - began
    whole = memory_text.whole_status(after, _library(state).listed())
    if as_json:
        terminal.print_json(whole | {"tookMs": round(took_s * 1000)})
    else:
        terminal.out(memory_text.indexed(whole["index"], took_s))


@memory.command()
@click.argument("query", metavar="QUERY...", nargs=-1, required=True)
@click.option("-n", "--limit", type=Whole(1, 100), default=10, help="How many at most.")
@click.option("--after", metavar="TIME", help="Not older: 2026-01-28, yesterday, 7d.")
@click.option("--before", metavar="TIME", help="Older than that.")
@click.option("--memory-only", is_flag=True, help="Not in past messages and task results.")
@json_option
@pass_frame
def search(
    frame: Frame,
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
    if not text or len(text) > _LONGEST_QUERY:
        got = f"{len(text)} characters" if text else "only blanks"
        raise click.UsageError(f"expected 1 to {_LONGEST_QUERY} characters to look for, got {got}")
    state = frame.open()
    since, until = _time(state, "--after", after), _time(state, "--before", before)
    if since and until and until <= since:
        raise click.UsageError(f"expected --before later than --after, got {before!r}")
    found = state.search.find(
        text, limit=limit, after=since, before=until, everywhere=not memory_only
    )
    fallback = state.search.fallback
    if as_json:
        shown = [hits.found(hit, text) | {"text": hit.text} for hit in found]
        terminal.print_json({"query": text, "hits": shown, "fallback": fallback})
        return
    if fallback:
        terminal.note(f"Looked through the files one by one: {fallback}")
    if not found:
        undated = " of that time; memory.md and documents have none" if since or until else ""
        terminal.out(f"Nothing found on {terminal.one_line(text)!r}{undated}.")
    for line in memory_text.hit_lines([(hit, hits.marks(text, hit.snippet)) for hit in found]):
        terminal.out(line)


@memory.command()
@click.argument("path", required=False)
@json_option
@pass_frame
def show(frame: Frame, path: str | None, as_json: bool) -> None:
    """Show a file; without PATH, list them all."""
    state = frame.open()
    listed = _library(state).listed()
    if path is None:
        if as_json:
            terminal.print_json({"files": listed})
        else:
            memory_text.print_files(listed, state.clock.now())
        return
    entry = _meant(path, listed)
    text = _text(state, entry["path"])
    if as_json:
        terminal.print_json(entry | {"text": text, "hash": shared.content_hash(text)})
    else:
        terminal.out(terminal.block(memory_text.without_marks(text)))


@memory.command()
@click.argument("text")
@click.option("--long-term", is_flag=True, help="Into memory.md, for what stays true.")
@json_option
@pass_frame
def add(frame: Frame, text: str, long_term: bool, as_json: bool) -> None:
    """Remember a note; `-` reads it from the input."""
    content = " ".join((sys.stdin.read() if text == "-" else text).split())
    if not content or len(content) > MAX_TEXT:
        got = f"{len(content)} characters" if content else "only blanks"
        raise click.UsageError(f"expected a note of 1 to {MAX_TEXT} characters, got {got}")
    state = frame.open()
    now = state.clock.now()
    note = Remembered(id=new_id("mem", now), content=content, long_term=long_term)
    local = now.astimezone(state.settings.zone)
    notes.remember(state.files, note, local)
    path = paths.MEMORY if long_term else paths.memory_file(f"{local:%Y-%m-%d}.md")
    if as_json:
        terminal.print_json({"id": note.id, "path": path, "text": content})
    else:
        terminal.out(f"Remembered in {path}.")


# ---- parts


def _library(state: GuestState) -> Library:
    return Library(state.files, Documents(state.workspace, str(state.path)), Markdown())


def _time(state: GuestState, option: str, given: str | None) -> datetime | None:
    if given is None:
        return None
    try:
        return past.parse_time(given, state.clock.now(), state.settings.zone)
    except BadInput as error:
        raise BadInput(f"{option}: {error}") from None


def _meant(given: str, listed: list[dict[str, Any]]) -> dict[str, Any]:
    """The file that is meant: by its path, or by its name where only one has it.

    Raises:
        NotFound: there is none.
        BadInput: several have that name.
    """
    by_path = {entry["path"]: entry for entry in listed}
    wanted = given.removeprefix("./").removeprefix(".mimikit/")
    if wanted in by_path:
        return by_path[wanted]
    name = wanted if wanted.endswith(".md") else f"{wanted}.md"
    found = [path for path in by_path if path == name or path.endswith(f"/{name}")]
    if len(found) == 1:
        return by_path[found[0]]
    if found:
        raise BadInput(f"expected one file, got {given!r}, which fits {', '.join(found)}")
    near = difflib.get_close_matches(wanted, by_path, 1, _ALIKE)
    hint = f"did you mean {near[0]}?" if near else "`mimikit memory show` lists them"
    raise NotFound(f"expected a memory file, got {given!r}; {hint}")


def _text(state: GuestState, path: str) -> str:
    known = named(path)
    if known is not None and known.kind == "docs":
        found = Documents(state.workspace, str(state.path)).read(path, MAX_SHOWN_BYTES)
        data = found[0] if found else None
    else:
        data = state.files.read(path)
    if data is None:
        raise NotFound(f"expected a memory file, got {path!r}, which is gone meanwhile")
    return data.decode("utf-8", "replace").removeprefix("\ufeff")
