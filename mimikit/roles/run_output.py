"""Where a run's events go while it runs: its file, its headline, a Teller's words to the page.

Nothing is left out of the file without a mark of its own, a `gap` with its size: of more than the
settings keep (`limits.output_bytes`) the middle, of what the disk did not take all.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import Field

from mimikit.clock import Clock
from mimikit.conversation.drafts import DraftCursor
from mimikit.engines.base import EventKind, OnEvent
from mimikit.errors import StorageError
from mimikit.language.plain_text import plain
from mimikit.log import ChangeFeed
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Instant, Record

MAX_EVENT_CHARACTERS = 20_000
_LINE_BYTES = 200
"""What an event costs beside its text."""
_END_PART = 10
"""One part in so many of what is kept is a long output's end."""
_FLOWING = frozenset({"output", "delta"})
"""Texts that go on where the one before them stopped."""
_BOOKKEEPING = frozenset({"started", "process", "usage", "ended"})
"""Kept in any case: the usage and who follows read them."""
_DOINGS = frozenset({"command", "tool", "note", "file"})
_LINE_CHARACTERS = 400


class RunEvent(Record):
    """One line of `runs/{id}.jsonl`: what a run did, as it did it."""

    at: Instant
    type: Literal[
        "started", "output", "delta", "message", "tool", "command", "file", "note", "error",
        "ended", "process", "usage", "gap",
    ]  # fmt: skip
    """`gap`: here `bytes` (in its data) are not kept; with `open` they are not counted yet."""
    text: str = ""
    stream: Literal["stdout", "stderr"] | None = None
    data: dict[str, Any] = Field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.text.encode(errors="replace"))


class RunOutput:
    """Writes a run's events down as they come, within bounds. Thread-safe.

    Output is for following, not for keeping: a disk that refuses a line never ends the run.
    Crash: what came after the bounds were reached is lost but for the mark that they were.
    """

    def __init__(
        self,
        run_id: str,
        files: Files,
        feed: ChangeFeed,
        clock: Clock,
        *,
        limit: int,
        headline: Callable[[str, str], None],
        draft: DraftCursor | None = None,
        watch: OnEvent | None = None,
    ) -> None:
        """At most `limit` bytes are kept.

        headline: told of what this run does now.
        draft: of a turn, whose words are streamed.
        watch: told of each event.
        """
        self._run_id, self._files, self._feed, self._clock = run_id, files, feed, clock
        self._headline, self._watch = headline, watch
        self._draft = draft
        self._lock = threading.Lock()
        self._line = ""
        self._end_bytes = limit // _END_PART
        self._room = limit - self._end_bytes
        self._end: deque[RunEvent] = deque()
        self._held = 0
        self._is_full = False
        self._gap = 0
        self._unkept = 0

    def event(self, kind: EventKind, text: str, data: Mapping[str, object]) -> None:
        if self._watch is not None:
            self._watch(kind, text, dict(data))
        if kind == "delta" and self._draft is not None:
            self._stream(self._draft, text)
            return
        if kind != "usage" and self._draft is not None:
            self._draft.end_part()
        if said := self._sign_of_life(kind, text):
            self._headline(self._run_id, said)
        self.write(kind, text, data)

    def _stream(self, draft: DraftCursor, text: str) -> None:
        """A piece of a reply: into the file first, which has all that the page was told of."""
        for piece in draft.pieces(text):
            place: dict[str, Any] = {"part": piece.part, "at": piece.at}
            now = self._clock.now()
            with self._lock:
                is_there = self._take(RunEvent(at=now, type="delta", text=piece.text, data=place))
            if is_there:
                self._feed.tell("delta", turnId=self._run_id, text=piece.text, **place)

    def _sign_of_life(self, kind: EventKind, text: str) -> str:
        """What the run does now, in one line: what it set about, or the last line it wrote."""
        if kind in _DOINGS:
            return plain(text)
        if kind not in ("output", "delta", "message"):
            return ""
        before = self._line if kind in _FLOWING else ""
        *lines, self._line = (before + plain(text)).split("\n")
        self._line = self._line[-_LINE_CHARACTERS:]
        written = (line.strip() for line in (self._line, *reversed(lines)))
        return next(filter(None, written), "")

    def write(self, kind: str, text: str, data: Mapping[str, object]) -> None:
        """Write an event down; a long text that flows as several, of another its beginning."""
        facts, shown = dict(data), plain(text)
        head = RunEvent.model_validate(
            {
                "at": self._clock.now(),
                "type": kind,
                "stream": facts.pop("stream", None),
                "data": facts,
            }
        )
        with self._lock:
            for start in range(0, max(len(shown), 1), MAX_EVENT_CHARACTERS):
                piece = head.but(text=shown[start : start + MAX_EVENT_CHARACTERS])
                if start and kind not in _FLOWING:
                    self._left_out(piece)
                else:
                    self._take(piece)

    def end(self, error: str, status: str) -> int:
        """Write the end of what was too much, and how the run ended; gives the bytes not kept."""
        with self._lock:
            was_full, self._is_full = self._is_full, False
            if was_full and not self._gap:  # all of it was kept in the end
                self._append(self._gap_event())
            for event in self._end:
                self._append(event)
            self._end.clear()
        self.write("ended", error, {"status": status})
        return self._unkept

    def _take(self, event: RunEvent) -> bool:
        """Keep an event; gives whether it is written down by now."""
        cost = event.size + _LINE_BYTES
        if event.type in _BOOKKEEPING or (not self._is_full and cost <= self._room):
            self._room -= cost
            return self._append(event)
        if not self._is_full:
            self._append(self._gap_event(open=True))
            self._is_full = True
        self._end.append(event)
        self._held += cost
        while self._held > self._end_bytes:
            oldest = self._end.popleft()
            self._held -= oldest.size + _LINE_BYTES
            self._left_out(oldest)
        return False

    def _append(self, event: RunEvent) -> bool:
        """Write one line; before it, what is missing there. Gives whether it is there."""
        try:
            if self._gap and not self._is_full:
                self._put(self._gap_event(self._gap))
                self._gap = 0
            self._put(event)
        except StorageError:
            self._left_out(event)
            return False
        return True

    def _put(self, event: RunEvent) -> None:
        path = paths.run_output(self._run_id)
        self._files.append(path, event.to_dict(), sync=False)

    def _left_out(self, event: RunEvent) -> None:
        self._gap += event.size
        self._unkept += event.size

    def _gap_event(self, size: int = 0, *, open: bool = False) -> RunEvent:  # noqa: A002 - on disk
        facts = {"bytes": size, "open": True} if open else {"bytes": size}
        return RunEvent(at=self._clock.now(), type="gap", data=facts)
