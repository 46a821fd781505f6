"""Has a page read by a program of its own, which may come to harm by it and do none."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

from pydantic import Field

from mimikit.engines import process, process_tree, sandbox
from mimikit.engines.program import Program, Stream
from mimikit.errors import BadRecord, EngineError, ProgramLost
from mimikit.internet.connection import CallLimits, WebError
from mimikit.internet.page_reader import MOST_CPU_S
from mimikit.internet.pages import RawPage
from mimikit.protocol.models import Record
from mimikit.protocol.records import decode

UNPACKED = 4
"""Times what may come over the network a page may be once unpacked."""
_AT_ONCE = 2
_MOST_OUTPUT = 12 * 2**20
_REMEMBER_S = 120.0


class ReadPage(Record):
    """What stands in a page. Nothing of it is ours: who shows it fences it."""

    title: str = Field(default="", max_length=4000)
    date: str = Field(default="", max_length=100)
    text: str = ""
    links: list[list[str]] = Field(default_factory=list[list[str]], max_length=1000)
    """Text and address of each."""
    kind: str = Field(default="", max_length=20)
    error: str | None = Field(default=None, max_length=2000)


class PageReader:
    """Reads pages for all runs, two at once. Safe between threads."""

    def __init__(self, state: Path, *, most_bytes: int) -> None:
        """`state`: its folder, closed to the program; `most_bytes`: of a page once unpacked."""
        self._state, self._most_bytes = state, most_bytes
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._has_sandbox, self._look_again_s = False, 0.0

    def read(self, page: RawPage, limits: CallLimits, run_id: str) -> ReadPage:
        """Raises WebError: it can not be read, or not in time."""
        head = {
            "url": page.url,
            "mediaType": page.media_type,
            "charset": page.charset,
            "encoding": page.encoding,
            "mostBytes": self._most_bytes,
            "links": True,
        }
        while not self._room.acquire(timeout=min(0.5, limits.left_s())):
            pass
        try:
            data = self._run(json.dumps(head).encode() + b"\n" + page.body, limits, run_id)
        finally:
            self._room.release()
        try:
            read = decode(data, ReadPage)
        except BadRecord:
            raise WebError(
                "it could not be read: there is too much in it, or it is broken"
            ) from None
        if read.error:
            raise WebError(read.error)
        return read

    def _run(self, stdin: bytes, limits: CallLimits, run_id: str) -> bytes:
        argv = [sys.executable, "-I", "-m", "mimikit.internet.page_reader"]
        if self._boxed():
            hidden = [*sandbox.secrets_of_home(), *sandbox.doors()]
            argv = sandbox.masked(argv, self._state, hidden=hidden, confined=True, network=False)
        out: list[bytes] = []

        def take(stream: Stream, data: bytes) -> None:
            if stream == "stdout":
                out.append(data)

        program = Program(
            argv=argv,
            cwd=Path("/"),
            env=process.environment(more={"OMP_NUM_THREADS": "1"}),
            mark=process_tree.mark(self._state, run_id),
            timeout_s=min(MOST_CPU_S * 2, limits.left_s()),
            kill_after_s=1,
            output_bytes=_MOST_OUTPUT,
            stdin=stdin,
        )
        try:
            ended = process.run(program, take, limits.cancel)
        except (EngineError, ProgramLost) as error:
            raise WebError(f"what came could not be read: {error}") from error
        if ended.stopped == "timeout":
            raise WebError("what came could not be read in time")
        return b"".join(out)

    def _boxed(self) -> bool:
        with self._lock:
            if time.monotonic() >= self._look_again_s:
                self._has_sandbox = sandbox.ask().can == "works"
                self._look_again_s = time.monotonic() + _REMEMBER_S
            return self._has_sandbox
