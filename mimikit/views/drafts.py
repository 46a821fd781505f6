"""The reply that is being written, as the page shows it: whole blocks rendered, the rest plain.

A page begins with what has come (`DraftView`) and goes on with pieces (`DeltaChange`). Both say
where in the reply they stand, so that nothing is shown twice or left out. A block is rendered once,
when it is whole: a long reply costs no more for each of its words than a short one.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeAlias

from mimikit.conversation import drafts, turns
from mimikit.conversation.drafts import DraftPiece
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import Instant
from mimikit.views.base import Render, View

_KEPT = 4


class WholeBlock(NamedTuple):
    """A stretch of markdown to which nothing that follows adds anything."""

    text: str
    known: str
    """What had come after it when that was known."""


class BlockSplitter(Protocol):
    """Finds the blocks of a text that grows; the same ones however it comes."""

    rest: str
    """What follows the last of them."""

    def feed(self, text: str) -> Iterator[WholeBlock]: ...


Splitters: TypeAlias = Callable[[], BlockSplitter]


class DraftBlock(View):
    """A part of the reply that is whole. Units: UTF-16."""

    start: int
    end: int
    html: str


class DraftView(View):
    """What has come of the reply that is being written."""

    turn_id: str
    since: Instant
    inputs: list[str]
    """Ids of the messages it answers."""
    part: int
    """Which text of the turn this is; a later one takes its place."""
    at: int
    """Where `text` begins: after the blocks."""
    text: str
    blocks: list[DraftBlock]


class _Draft:
    """One turn's reply, read on as its file grows."""

    def __init__(self, files: ReadOnlyFiles, turn_id: str, splitters: Splitters) -> None:
        self._files, self._turn_id, self._splitters = files, turn_id, splitters
        self._offset = 0
        self.part, self.end = 0, 0
        self._begin(0)

    def _begin(self, part: int) -> None:
        self.part, self.end = part, 0
        self._splitter = self._splitters()
        self.blocks: list[tuple[int, int, int, str]] = []
        """Of each the place up to which the text had to come for it to be whole, its start, end,
        and text; in order."""
        self.at = 0

    def read_on(self) -> None:
        for offset, piece in drafts.pieces_of(self._files, self._turn_id, self._offset):
            self._offset = offset
            if piece.part > self.part:
                self._begin(piece.part)
            if piece.at == self.end:
                self._take(piece)

    def _take(self, piece: DraftPiece) -> None:
        self.end = piece.end
        for block in self._splitter.feed(piece.text):
            start, self.at = self.at, self.at + drafts.units(block.text)
            known = self.at + drafts.units(block.known)
            self.blocks.append((known, start, self.at, block.text))

    @property
    def rest(self) -> str:
        return self._splitter.rest


class DraftReader:
    """What the pages of one process are told of replies that are being written. Thread-safe."""

    def __init__(self, files: ReadOnlyFiles, render: Render, splitters: Splitters) -> None:
        self._files, self._render, self._splitters = files, render, splitters
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Draft] = OrderedDict()

    def under_way(self) -> DraftView | None:
        """Of the turn that has begun and is not over; also where its process has died."""
        mark = turns.under_way(self._files)
        if mark is None:
            return None
        with self._lock:
            draft = self._read(mark.turn_id)
            found = list(draft.blocks)
            at, text, part = draft.at, draft.rest, draft.part
        return DraftView(
            turn_id=mark.turn_id,
            since=mark.started_at,
            inputs=mark.inputs,
            part=part,
            at=at,
            text=text,
            blocks=self._rendered(found),
        )

    def blocks(self, turn_id: str, piece: DraftPiece) -> list[DraftBlock]:
        """Those that become whole with a piece."""
        with self._lock:
            draft = self._read(turn_id)
            own = draft.blocks if draft.part == piece.part else []
            first = bisect_right(own, piece.at, key=lambda block: block[0])
            found = own[first : bisect_right(own, piece.end, key=lambda block: block[0])]
        return self._rendered(found)

    def _read(self, turn_id: str) -> _Draft:
        draft = self._known.pop(turn_id, None) or _Draft(self._files, turn_id, self._splitters)
        self._known[turn_id] = draft
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        draft.read_on()
        return draft

    def _rendered(self, found: list[tuple[int, int, int, str]]) -> list[DraftBlock]:
        return [
            DraftBlock(start=start, end=end, html=self._render(text))
            for _, start, end, text in found
        ]
