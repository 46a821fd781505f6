"""Memory in a terminal: how its index is, its files, hits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mimikit.cli import durations, terminal
from mimikit.memory import daybook, tokens
from mimikit.protocol.models import time_text

if TYPE_CHECKING:
    from mimikit.memory.search import Found, Status

_KINDS = {
    "longTerm": ("file of long-term notes", "files of long-term notes"),
    "raw": ("file of a day", "files of days"),
    "day": ("daily summary", "daily summaries"),
    "month": ("monthly summary", "monthly summaries"),
    "docs": ("document of the workspace", "documents of the workspace"),
}
_HEAD = 11
_KB = 1024


def whole_status(status: Status, files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How the index is and what there is, for programs."""
    counts = dict.fromkeys(_KINDS, 0)
    for entry in files:
        counts[entry["kind"]] += 1
    return {
        "index": {
            "files": status.files,
            "passages": status.passages,
            "bytes": status.bytes,
            "fresh": status.fresh,
            "staleFiles": status.stale_files,
            "refreshedAt": time_text(status.refreshed_at) if status.refreshed_at else None,
            "words": status.words,
            "fallback": status.fallback,
        },
        "files": counts,
        "tokens": _counted_by(),
    }


def _counted_by() -> str | None:
    """Where the ranks come from by which tokens are counted; None: they are estimated."""
    try:
        return tokens.find_ranks().origin
    except tokens.NoRanks:
        return None


def status_lines(whole: dict[str, Any], now: datetime) -> Iterator[str]:
    """The same for a person."""
    index = whole["index"]
    yield _fact("index", _index_words(index))
    if index["fallback"]:
        yield _fact("", terminal.coloured(f"not used: {index['fallback']}", "warning"))
    if index["refreshedAt"]:
        at = datetime.fromisoformat(index["refreshedAt"])
        yield _fact("refreshed", durations.ago(at, now))
    origin = whole["tokens"]
    yield _fact("tokens", f"counted, by {origin}" if origin else "estimated")
    shown = [(count, _KINDS[kind]) for kind, count in whole["files"].items() if count]
    for number, (count, (one, many)) in enumerate(shown):
        yield _fact("" if number else "files", f"{count} {one if count == 1 else many}")
    if not shown:
        yield _fact("files", "none yet; `mimikit memory add TEXT` makes one")


def _index_words(index: dict[str, Any]) -> str:
    if index["fresh"]:
        state = terminal.coloured("up to date", "ok")
    else:
        stale = index["staleFiles"]
        count = f"{stale} newer file{'' if stale == 1 else 's'}"
        state = f"{count} not in it yet, taken in by the next search"
    return f"{state}; {_size(index)}"


def _size(index: dict[str, Any]) -> str:
    files, passages = index["files"], index["passages"]
    return (
        f"{files:,} file{'' if files == 1 else 's'}, "
        f"{passages:,} passage{'' if passages == 1 else 's'}, {_bytes(index['bytes'])}"
    )


def _bytes(size: int) -> str:
    if size < _KB:
        return f"{size} bytes"
    return f"{size / _KB:,.0f} KB" if size < _KB * _KB else f"{size / _KB / _KB:,.1f} MB"


def _fact(head: str, text: str) -> str:
    return f"{terminal.dim(head.ljust(_HEAD))}{text}"


def indexed(index: dict[str, Any], took_s: float) -> str:
    """What came of bringing the index up to date."""
    if index["fallback"]:
        return f"No index: {index['fallback']}. Searches look through the files one by one."
    return f"Indexed {_size(index)}, in {durations.words(took_s)}."


# ---- files


def print_files(files: Sequence[dict[str, Any]], now: datetime) -> None:
    """A table of all files, the long-term notes first."""
    if not files:
        terminal.out("Nothing is remembered yet. `mimikit memory add TEXT` adds a note.")
        return
    rows = [
        (
            terminal.one_line(entry["path"]),
            _KINDS[entry["kind"]][0] + (" (hidden)" if entry["hidden"] else ""),
            _bytes(entry["size"]),
            _changed(entry["modifiedAt"], now),
        )
        for entry in files
    ]
    terminal.table(("PATH", "KIND", "SIZE", "CHANGED"), rows, flexible=0)


def _changed(at: str | None, now: datetime) -> str:
    return durations.ago(datetime.fromisoformat(at), now) if at else "-"


def without_marks(text: str) -> str:
    """A file as it is read: the ids of messages, notes and parts left out."""
    return "\n".join(_unmarked(text))


def _unmarked(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        if head := daybook.HEAD.fullmatch(line):
            yield f"## {head['hour']}:{head['minute']} {head['role']}"
        elif daybook.PART.fullmatch(line):
            continue
        elif not line.startswith("\\") and (mark := daybook.NOTE_MARK.search(line)):
            yield line[: mark.start()].rstrip()
        else:
            yield daybook.unescape(line)


# ---- hits


def hit_lines(found: Sequence[tuple[Found, list[list[int]]]]) -> Iterator[str]:
    """Hits with their sources, what was asked for standing out."""
    for number, (hit, marks) in enumerate(found):
        if number:
            yield ""
        place = f"{hit.source}:{hit.line}" if hit.line else hit.source
        facts = [hit.day.isoformat() if hit.day else None, hit.role, hit.task_id]
        known = [fact for fact in facts if fact and fact not in hit.source]
        more = "  " + terminal.dim(terminal.one_line(", ".join(known))) if known else ""
        yield terminal.bold(terminal.one_line(place)) + more
        yield f"  {_marked(hit.snippet, marks)}"


def _marked(snippet: str, marks: list[list[int]]) -> str:
    """A snippet on one line, with its marks in colour."""
    parts: list[str] = []
    last = 0
    for start, end in marks:
        parts.append(_flat(snippet[last:start]))
        parts.append(terminal.coloured(_flat(snippet[start:end]), "running"))
        last = end
    return "".join([*parts, _flat(snippet[last:])]).strip()


def _flat(text: str) -> str:
    return terminal.safe(text).replace("\n", " ").replace("\t", " ")
