"""The one process that speaks with servers of tools: started when needed, ended when it rests.

It is not this process that imports what they are spoken with by, or reads what they send: whatever
one does, at worst that process ends, and is started anew for the next call.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from mimikit.config import LimitSettings
from mimikit.engines import process, process_tree
from mimikit.engines.base import CancelToken
from mimikit.engines.process_table import MARK
from mimikit.engines.program import Program
from mimikit.engines.staying_program import LineProgram, Message, NoAnswer, ProgramTrouble
from mimikit.errors import EngineError
from mimikit.tools import mcp_host

REST_S = 600.0
"""Nobody has used any of them for so long: they are ended, and take no memory."""
_LATE_S = 60.0
"""How much later than it has to an answer may come, on a busy machine: its start takes seconds."""
MOST_BYTES = 512 * 2**20
"""Of memory; the SDK alone takes a tenth of it."""
_LINE_BYTES = 16 * 2**20
_VARIABLES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""How the owner's programs reach the network; a server that is started sees none of them."""


class McpProcess:
    """At most one, for whoever asks. Safe between threads."""

    def __init__(
        self,
        state: Path,
        limits: LimitSettings,
        *,
        rest_s: float = REST_S,
        most_bytes: int = MOST_BYTES,
        host: Path | None = None,
    ) -> None:
        """Nothing is started yet. `host`: what is, with this Python."""
        self._limits, self._rest_s = limits, rest_s
        self._argv = [sys.executable, "-P", str(host or mcp_host.__file__), str(most_bytes)]
        self._mark = process_tree.mark(state, "tool-servers")
        self._lock = threading.Lock()
        self._program: LineProgram | None = None

    @property
    def is_alive(self) -> bool:
        program = self._program
        return program is not None and program.serves

    def ask(
        self, order: Message, server: Message, timeout_s: float, cancel: CancelToken
    ) -> Message:
        """Give an order that is about a server, and wait for what comes of it.

        Raises:
            EngineError: nothing came of it, and why; or the run was told to stop.
        """
        # What is started there is known as ours by its mark, wherever it goes.
        if isinstance(env := server.get("env"), Mapping):
            server = {**server, "env": {**env, MARK: self._mark}}
        with self._lock:
            if self._program is None or not self._program.enter():
                self._program = self._start()
                self._program.enter()
            program = self._program
        try:
            found = program.ask(
                {**order, "server": server},
                timeout_s + _LATE_S,
                cancel=cancel,
                taken_back={"method": "cancel"},
            )
        except ProgramTrouble as trouble:
            if isinstance(trouble, NoAnswer) and program.has_spoken:
                program.end()  # it answers in its own time: something holds all of it up
            raise EngineError(f"the process that speaks with servers of tools: {trouble}") from None
        finally:
            program.leave()
        if (error := found.get("error")) is not None:
            raise EngineError(str(error))
        return found

    def close(self) -> None:
        """End it with all it has started, and wait for that; an order that comes starts another."""
        with self._lock:
            program, self._program = self._program, None
        if program is not None:
            program.end()
            program.wait(self._limits.kill_after_s + 2)

    def _start(self) -> LineProgram:
        program = Program(
            argv=self._argv,
            cwd=Path("/"),
            env=process.environment(names=_VARIABLES),
            mark=self._mark,
            timeout_s=0,
            kill_after_s=self._limits.kill_after_s,
            kept=True,
        )
        started = LineProgram(program, "tool-servers", line_bytes=_LINE_BYTES, rest_s=self._rest_s)
        started.start()
        return started
