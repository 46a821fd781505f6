"""What a search finds and what a turn was given, as the page shows them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mimikit.errors import BadRecord, StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.ids import is_id
from mimikit.protocol.json import Json, parse_object

if TYPE_CHECKING:
    from mimikit.memory.search import Search
    from mimikit.protocol.models import Hit

_MOST_COUNTS = 4_000
_HIT = ("text", "line", "day", "kind")


def index_of(search: Search) -> dict[str, Any]:
    """How the search index is; the files can be shown whatever is wrong with it."""
    try:
        status = search.status()
    except Exception as error:  # noqa: BLE001 - an index at fault hides no file
        told = {"files": 0, "passages": 0, "fresh": False, "words": "not loaded"}
        return told | {"fallback": str(error)}
    return {
        "files": status.files,
        "passages": status.passages,
        "fresh": status.fresh,
        "words": status.words,
        "fallback": status.fallback,
    }


def found(hit: Hit, query: str) -> dict[str, Any]:
    """One hit of a search, with the places in its snippet that were asked for."""
    return {
        "source": hit.source,
        "kind": hit.kind,
        "snippet": hit.snippet,
        "marks": marks(query, hit.snippet),
        "score": hit.score,
        "day": hit.day.isoformat() if hit.day else None,
        "line": hit.line,
        "messageId": hit.message_id,
        "role": hit.role,
        "taskId": hit.task_id,
    }


def marks(query: str, snippet: str) -> list[list[int]]:
    """Where a snippet has the words of a query. Units: characters; in order, none overlap.

    Single Chinese characters are marked only where nothing longer is: they stand everywhere.
    """
    from mimikit.memory import terms

    places = terms.occurrences(snippet, set(terms.terms(query)))
    long = [term for term in places if len(term.text) > 1 or not terms.has_wide(term.text)]
    return _joined(sorted((term.start, term.end) for term in long or places))


def _joined(spans: list[tuple[int, int]]) -> list[list[int]]:
    joined: list[list[int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    return joined


# ---- turns


def of_turn(files: ReadOnlyFiles, turn_id: str) -> list[dict[str, Any]] | None:
    """What a turn was given of memory; None when nothing is known of that turn.

    An earlier format kept the sources alone.
    """
    injected = _injected(files, turn_id)
    return None if injected is None else list(_hits(injected))


def _injected(files: ReadOnlyFiles, turn_id: str) -> list[Json] | None:
    # As JSON, not as a record: its messages and tasks need not be read for this.
    for path in (paths.turn_done(turn_id), paths.turn_new(turn_id), paths.turn_done(turn_id)):
        try:
            data = files.read(path)
            record = parse_object(data) if data is not None else None
        except (BadRecord, StorageError):
            return None
        if record is not None:
            injected = record.get("injected")
            return injected if isinstance(injected, list) else []
    return None


def _hits(injected: list[Json]) -> Iterator[dict[str, Any]]:
    for hit in injected:
        if isinstance(hit, str):
            yield {"source": hit, **dict.fromkeys(_HIT)}
        elif isinstance(hit, dict) and isinstance(hit.get("source"), str):
            yield {"source": hit["source"], **{name: hit.get(name) for name in _HIT}}


class Counts:
    """How many memory hits turns were given; a record is read once, as it never changes."""

    def __init__(self, files: ReadOnlyFiles) -> None:
        """Nothing is read yet."""
        self._files = files
        self._lock = threading.Lock()
        self._known: dict[str, int] = {}

    def of(self, turn_id: str | None) -> int:
        """The number of hits of a turn; 0 when it is not known."""
        if turn_id is None or not is_id(turn_id):
            return 0
        with self._lock:
            if turn_id in self._known:
                return self._known[turn_id]
        hits = of_turn(self._files, turn_id)
        if hits is None:
            return 0
        with self._lock:
            if len(self._known) >= _MOST_COUNTS:
                del self._known[next(iter(self._known))]
            self._known[turn_id] = len(hits)
        return len(hits)
