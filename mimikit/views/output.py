"""What a run wrote, page by page from either end, and whole as one text; what is missing marked.

Where the run's own record has gaps, or is gone, and a command's result has it all, the result is
shown instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from mimikit.language.plain_text import plain, size_words
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.json import Json
from mimikit.protocol.records import whole_lines
from mimikit.protocol.results import TaskResult
from mimikit.tasks.queue import TaskSnapshot
from mimikit.views.base import View

_PART = 2**18
_LONGEST_LINE = 2**24
_HIDDEN = frozenset({"process", "usage"})


class OutputEvent(View):
    """What a run did at a time; `gap`: here so many `bytes` (in its data) are not kept."""

    at: str
    type: str
    text: str
    stream: str | None
    data: dict[str, Any]


class OutputView(View):
    """A page of a run's events. Offsets are of its record; `size` is how far that reaches now."""

    events: list[OutputEvent]
    start: str
    offset: str
    """Where to go on."""
    size: int
    ended: bool
    """Whether nothing more will come after `offset`."""


def forward(
    files: ReadOnlyFiles, run_id: str, offset: int, before: int | None = None
) -> tuple[list[OutputEvent], int, bool]:
    """A run's events from an offset on, where to go on, and whether the file's end is reached."""
    path = paths.run_output(run_id)
    limit = _PART
    while True:
        data = files.part(path, offset, limit)
        if b"\n" in data or len(data) < limit or limit >= _LONGEST_LINE:
            break
        limit *= 4
    at_end = len(data) < limit
    if before is not None:
        data = data[: max(0, before - offset)]
    end = data.rfind(b"\n") + 1
    events = _events(data[:end])
    if end == 0 and limit >= _LONGEST_LINE:  # one endless line: nobody reads it, go past it
        end = len(data)
        events = [_gap(end)]
    return events, offset + end, at_end


def backward(
    files: ReadOnlyFiles, run_id: str, before: int | None
) -> tuple[list[OutputEvent], int, int]:
    """The events before an offset, or the file's last; where they begin, and where they end."""
    path = paths.run_output(run_id)
    if before is None:
        before = _size(files, run_id)
    limit = _PART
    while True:
        start = max(0, before - limit)
        data = files.part(path, start, before - start)
        end = data.rfind(b"\n") + 1
        begin = data.find(b"\n") + 1 if start else 0
        if begin < end or not start or limit >= _LONGEST_LINE:
            break
        limit *= 4
    return _events(data[begin:end]), start + begin, start + end


def page(
    files: ReadOnlyFiles,
    run_id: str,
    known: TaskSnapshot | None,
    *,
    is_over: bool,
    offset: int | None,
    before: int | None,
) -> OutputView:
    """A page of a task's output or a turn's: from an offset on, or what stands before one.

    is_over: asked before this: what a run wrote before it ended is then surely read.
    """
    if (events := _from_result(files, known)) is not None:
        size = sum(len(event.text.encode(errors="replace")) for event in events)
        shown = [] if (offset or 0) >= size > 0 else events
        return OutputView(events=shown, start="0", offset=str(size), size=size, ended=True)
    if offset is None:
        events, start, end = backward(files, run_id, before)
        at_end = True
    else:
        start = offset
        events, end, at_end = forward(files, run_id, offset, before)
    size = max(end, _size(files, run_id))
    at_end = at_end and end >= size
    return OutputView(
        events=events, start=str(start), offset=str(end), size=size, ended=is_over and at_end
    )


def text(files: ReadOnlyFiles, run_id: str, known: TaskSnapshot | None) -> Iterator[str]:
    """All a run wrote and did, as a text file holds it."""
    events = _from_result(files, known)
    shown = _every(files, run_id) if events is None else iter(events)
    streamed, at_margin, begun = "", True, set[str]()
    gaps = OutputGaps()
    for event in chain(gaps.take(shown), gaps.rest()):
        if event.type == "delta":
            streamed += event.text
        said = _as_text(event, streamed, begun)
        if event.type != "delta":
            streamed = ""
        flows = event.type in ("output", "delta")
        if not at_margin and (event.type == "message" or (said and not flows)):
            said = f"\n{said}"
        if said:
            yield said
            at_margin = said.endswith("\n")


def _as_text(event: OutputEvent, streamed: str, begun: set[str]) -> str:
    """An event as the file has it; `begun` are commands whose line stands there already."""
    match event.type:
        case "output" | "delta":
            return event.text
        case "message":
            return "" if event.text.strip() == streamed.strip() else f"{event.text}\n"
        case "command":
            id_, printed = str(event.data.get("id", "")), event.data.get("output")
            line = "" if id_ and id_ in begun else f"$ {event.text}\n"
            begun.add(id_)
            cut = event.data.get("cutBytes")
            mark = f"{gap_words(cut)}\n" if cut and isinstance(cut, int) else ""
            after = f"{printed}\n" if printed and isinstance(printed, str) else ""
            return line + mark + after
        case "gap":
            return f"{gap_words(event.data.get('bytes'))}\n"
        case "started" if event.data.get("attempt", 1) != 1:
            return f"— attempt {event.data['attempt']} —\n"
        case "tool" | "file" | "note" | "error":
            return f"· {event.text}\n" if event.text else ""
        case _:
            return ""


class OutputGaps:
    """Shows each gap once: as its end tells of it, and not at all where nothing lacks."""

    def __init__(self) -> None:
        self._open: OutputEvent | None = None

    def take(self, events: Iterable[OutputEvent]) -> Iterator[OutputEvent]:
        """Those to show of the next ones; a gap that was begun waits for its end."""
        for event in events:
            if event.type != "gap":
                yield from self.rest()
                yield event
            elif event.data.get("open"):
                self._open = event
            else:
                self._open = None
                if event.data.get("bytes") != 0:
                    yield event

    def rest(self) -> Iterator[OutputEvent]:
        """The gap that nobody has told the end of: its run was killed, or goes on."""
        if self._open is not None:
            yield self._open.model_copy(update={"data": {}})
            self._open = None


def gap_words(size: object) -> str:
    """What stands where something is not kept."""
    return f"[… {size_words(size) if isinstance(size, int) else 'something'} not kept …]"


def _every(files: ReadOnlyFiles, run_id: str) -> Iterator[OutputEvent]:
    offset, at_end = 0, False
    while not at_end:
        events, offset, at_end = forward(files, run_id, offset)
        yield from events


def _from_result(files: ReadOnlyFiles, known: TaskSnapshot | None) -> list[OutputEvent] | None:
    """A command's output as its result has it, where that has more of it than the run's record."""
    result = known.outcome if known else None
    if known is None or not isinstance(result, TaskResult) or known.task.profile != "command":
        return None
    has_record = files.exists(paths.run_output(known.task.id))
    cut = result.result.get("cutCharacters")
    is_whole = not cut and not result.result.get("truncated")
    has_gaps = bool(result.result.get("unkeptBytes"))
    printed = result.result.get("text")
    if not isinstance(printed, str) or (has_record and not (has_gaps and is_whole)):
        return None
    at = result.completed_at.isoformat()
    head = [_gap(cut, at)] if cut and isinstance(cut, int) else []
    if head:  # the result's own words of what it lacks
        printed = printed.partition("\n")[2]
    said = OutputEvent(at=at, type="output", text=plain(printed), stream=None, data={})
    return [*head, said] if printed else head


def _events(data: bytes) -> list[OutputEvent]:
    found = (_event(line) for _, line in whole_lines(data))
    return [event for event in found if event.type not in _HIDDEN]


def _event(line: dict[str, Json]) -> OutputEvent:
    more = line.get("data")
    more = more if isinstance(more, dict) else {}
    stream = line.get("stream") or more.get("stream")
    return OutputEvent(
        at=str(line.get("at") or ""),
        type=str(line.get("type") or "note"),
        text=plain(str(line.get("text") or "")),
        stream=str(stream) if stream else None,
        data=more,
    )


def _gap(size: int, at: str = "") -> OutputEvent:
    return OutputEvent(at=at, type="gap", text="", stream=None, data={"bytes": size})


def _size(files: ReadOnlyFiles, run_id: str) -> int:
    stat = files.stat(paths.run_output(run_id))
    return stat.size if stat is not None and stat.kind == "file" else 0
