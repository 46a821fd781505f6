"""The process of the local model, which runs `model_server` with its own API key."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from mimikit.engines import process
from mimikit.engines.base import CancelToken
from mimikit.engines.kept_server import KeptProcess
from mimikit.engines.local import model_server
from mimikit.engines.process import Program, ProgramFeed, Stream
from mimikit.errors import BadRecord, EngineError
from mimikit.protocol.json import parse_object

PROGRAM = Path(model_server.__file__)
_LOAD_S = 300.0
"""Timeout of its start: the disk may be slow."""
_END_S = 2.0


class ModelProcess(KeptProcess):
    """Sends the options and reads the port, each as a line of JSON."""

    def __init__(
        self, options: Mapping[str, object], *, idle_s: float, program: Path = PROGRAM
    ) -> None:
        """`options`: see `model_server`; `program`: the script to start."""
        self.key, self.url = secrets.token_urlsafe(24), ""
        self._options, self._line, self._error = options, b"", ""
        self._feed = ProgramFeed()
        started = Program(
            argv=[sys.executable, "-P", str(program)],
            cwd=Path("/"),
            env=process.environment(),
            timeout_s=0,
            feed=self._feed,
        )
        super().__init__(
            "the local model", started, ready_s=_LOAD_S, idle_s=idle_s, kill_after_s=_END_S
        )

    def start(self) -> None:
        super().start()
        self._feed.write(json.dumps({**self._options, "key": self.key}).encode() + b"\n")

    def wait_ready(self, cancel: CancelToken) -> None:
        try:
            super().wait_ready(cancel)
        except EngineError:
            if not self._error:
                raise
        if self._error:
            self.stop()
            raise EngineError(f"{self._options['modelPath']} cannot be served: {self._error}")

    def take(self, stream: Stream, data: bytes) -> None:
        if stream == "stderr" or self.is_ready.is_set():
            return
        self._line += data
        if not self._line.endswith(b"\n"):
            return
        try:
            answer = parse_object(self._line)
        except BadRecord as error:
            answer = {"error": str(error)}
        if isinstance(port := answer.get("port"), int):
            self.url = f"http://127.0.0.1:{port}/v1"
        else:
            self._error = str(answer.get("error") or "it reported no port")
        self.is_ready.set()
