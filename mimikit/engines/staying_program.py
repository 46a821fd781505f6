"""Programs that stay: each is followed by a thread of its own, some are spoken with by lines."""

from __future__ import annotations

import itertools
import math
import queue
import sys
import threading
import time
from dataclasses import replace
from typing import TypeAlias, get_args

from mimikit.engines import process
from mimikit.engines.base import CancelToken
from mimikit.engines.program import Program, ProgramFeed, Stream
from mimikit.engines.resources import Excess
from mimikit.errors import BadRecord, EngineError, ProgramLost
from mimikit.language.plain_text import LineReader, PlainStream, TextTail
from mimikit.protocol.json import Json, dump_line, parse_object
from mimikit.protocol.watch import BoundedThread

Message: TypeAlias = dict[str, Json]
_SAID_CHARACTERS, _QUOTED = 4000, 400


class ProgramTrouble(EngineError):
    """A program that stays ended, could not be started, or does not speak as it should."""


class NoAnswer(ProgramTrouble):
    """A program did not answer in time, and lives."""


class StayingProgram:
    """One process, from its start to its end with all it started. Safe between threads."""

    def __init__(self, program: Program, name: str, *, rest_s: float = math.inf) -> None:
        """Nothing is started yet. `rest_s`: it is ended once nobody has used it for so long."""
        self._program, self._rest_s = program, rest_s
        self._stop, self._lock = CancelToken(), threading.Lock()
        self._users, self._rests_since = 0, time.monotonic()
        self._said, self._text = TextTail(_SAID_CHARACTERS), PlainStream()
        self._thread = BoundedThread(self._live, name)
        self.ended = ""
        """How, in words; empty while it lives."""

    @property
    def serves(self) -> bool:
        """Whether it may be used: it has not ended, and is not about to."""
        return not self.ended and self._stop.reason is None

    def start(self) -> None:
        """Raises ProgramTrouble: nothing can follow it."""
        try:
            self._thread.start()
        except (RuntimeError, MemoryError) as error:
            raise ProgramTrouble(f"it can not be followed: {error}") from error

    def enter(self) -> bool:
        """Count one more user; False when it does not serve."""
        with self._lock:
            serves = self.serves
            self._users += serves
            return serves

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            self._rests_since = time.monotonic()

    def end(self) -> None:
        """Have it ended, whatever it does; `wait` waits for that."""
        self._stop.cancel("killed")

    def wait(self, timeout_s: float) -> None:
        """Wait until it has ended, with all it had started."""
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    # ---- in the thread that follows it

    def _live(self) -> None:
        said = "it was ended"
        try:
            ended = process.run(self._program, self._take, self._stop, tick=self._tick)
            stopped = process.stopped_outcome(ended, self._program)
            if ended.stopped in get_args(Excess) and stopped is not None:
                said = stopped.error or said
            elif stopped is None:
                code = ended.exit_code or 0
                how = f"by {process.signal_name(code)}" if code < 0 else f"with exit code {code}"
                told = self._said.text().strip()[-_QUOTED:]
                said = f"it ended {how}{': ' if told else ''}{told}"
        except (EngineError, ProgramLost, OSError, MemoryError, RuntimeError) as error:
            said = str(error) or repr(error)
        finally:
            self.ended = said
            self._over()

    def _take(self, stream: Stream, data: bytes) -> None:
        """Take what it prints."""
        del stream
        self._said.add(self._text.feed(data))

    def _over(self) -> None:
        """Tell whoever waits for it that it has ended."""

    def _tick(self) -> float:
        """End it once it has rested for long. Gives when to look again, in seconds."""
        with self._lock:
            left_s = self._rests_since + self._rest_s - time.monotonic()
            if self._users or left_s > 0:
                return math.inf if self._users else left_s
            self.end()
        return math.inf


class LineProgram(StayingProgram):
    """One that is spoken with by JSON objects, one a line.

    A request has a `method` and an `id`, its answer that `id` alone.
    """

    def __init__(
        self, program: Program, name: str, *, line_bytes: int, rest_s: float = math.inf
    ) -> None:
        """Nothing is started yet; its limits of time and output are none. A longer line is lost."""
        self._feed = ProgramFeed()
        stays = replace(program, timeout_s=math.inf, output_bytes=sys.maxsize, feed=self._feed)
        super().__init__(stays, name, rest_s=rest_s)
        self._lines, self._ids = LineReader(line_bytes), itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[Message | None]] = {}
        self.has_spoken = False
        """Until then it starts, which takes long on a busy machine."""

    def send(self, message: Message) -> None:
        """Say something; one that has ended hears nothing."""
        self._feed.write(dump_line(message))

    def ask(
        self,
        request: Message,
        timeout_s: float,
        *,
        cancel: CancelToken | None = None,
        taken_back: Message | None = None,
    ) -> Message:
        """Send a request under an id of its own, and wait for the answer.

        `taken_back` is sent with that id once nobody waits any more.

        Raises:
            ProgramTrouble: it has ended; NoAnswer: no answer came.
            EngineError: `cancel` says to stop.
        """
        answer = queue.SimpleQueue[Message | None]()
        number = next(self._ids)
        with self._lock:
            self._answers[number] = answer
        found = why = None
        try:
            if self.ended:  # nobody would tell
                answer.put(None)
            self.send({**request, "id": number})
            if cancel is not None:
                cancel.on_cancel(lambda _reason: answer.put(None))
            found = answer.get(timeout=timeout_s)
        except queue.Empty:
            why = f"expected an answer to {request['method']}, got none for {timeout_s:g} s"
        finally:
            with self._lock:
                del self._answers[number]
        if found is None:
            if taken_back is not None:
                self.send({**taken_back, "id": number})
            if self.ended:
                raise ProgramTrouble(self.ended)
            if why:
                raise NoAnswer(why)
            raise EngineError("the run was told to stop meanwhile")
        return found

    # ---- in the thread that follows it

    def _take(self, stream: Stream, data: bytes) -> None:
        if stream == "stderr":
            super()._take(stream, data)
            return
        for line in self._lines.feed(data):
            try:
                message = parse_object(line)
            except BadRecord:
                continue
            self.has_spoken = True
            if "method" in message:
                self._hear(message)
                continue
            number = message.get("id")
            with self._lock:
                answer = self._answers.get(number) if isinstance(number, int) else None
            if answer is not None:
                answer.put(message)

    def _hear(self, message: Message) -> None:
        """Take what it says unasked."""

    def _over(self) -> None:
        with self._lock:
            waiting = [*self._answers.values()]
        for one in waiting:
            one.put(None)
