"""The reply that is being written, as it lies in `runs/{turnId}.jsonl`: in pieces with their place.

By its place a piece that is heard twice is known, and one that is missing is missed: whoever comes
in the middle, or again, puts the text together without a guess. A *part* is one text that the
engine writes; with the next, or another attempt, a new one begins. Places are counted in UTF-16
units, as browsers count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mimikit.language.plain_text import plain
from mimikit.protocol import paths
from mimikit.protocol.files import Files

MOST_CHARACTERS = 20_000
"""Of one piece."""
_PARTS = 10_000
"""So many may one attempt have: a part's number tells its attempt as well."""


class DraftPiece(NamedTuple):
    part: int
    """Greater than that of every part before it."""
    at: int
    """Units of its part that come before it."""
    text: str

    @property
    def end(self) -> int:
        return self.at + units(self.text)


class StreamedReply(NamedTuple):
    """What had been said of a reply that is not to be whole."""

    text: str = ""
    engine: str = ""


def units(text: str) -> int:
    """The length of a text in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


class DraftCursor:
    """Gives each piece of an attempt's reply its place."""

    def __init__(self, attempt: int) -> None:
        self._part, self._at = attempt * _PARTS, 0

    def pieces(self, text: str) -> Iterator[DraftPiece]:
        """The text as it is kept, in its place; nothing of what begins a part with blanks."""
        text = plain(text)
        text = text if self._at else text.lstrip()
        for begin in range(0, len(text), MOST_CHARACTERS):
            piece = DraftPiece(self._part, self._at, text[begin : begin + MOST_CHARACTERS])
            self._at = piece.end
            yield piece

    def end_part(self) -> None:
        """What comes now is another text."""
        if self._at:
            self._part, self._at = self._part + 1, 0


def pieces_of(files: Files, turn_id: str, offset: int = 0) -> Iterator[tuple[int, DraftPiece]]:
    """The pieces after an offset of a turn's output, each with the offset to go on from."""
    for end, line in files.lines(paths.run_output(turn_id), offset=offset):
        data, text = line.get("data"), line.get("text")
        if line.get("type") != "delta" or not isinstance(data, dict) or not isinstance(text, str):
            continue
        part, at = data.get("part"), data.get("at")
        if isinstance(part, int) and isinstance(at, int):
            yield end, DraftPiece(part, at, text)


def streamed(files: Files, turn_id: str) -> StreamedReply:
    """What a turn had said last, as far as it was written down, and by which engine."""
    found: list[DraftPiece] = []
    for _, piece in pieces_of(files, turn_id):
        if found and found[-1].part != piece.part:
            found.clear()
        if piece.at == (found[-1].end if found else 0):
            found.append(piece)
    started = (line for _, line in files.lines(paths.run_output(turn_id)) if found)
    engines = (str(line.get("text")) for line in started if line.get("type") == "started")
    return StreamedReply("".join(piece.text for piece in found).strip(), next(engines, ""))
