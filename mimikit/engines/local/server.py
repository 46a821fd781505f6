"""The process of the model: begun when it is first needed, ended when it is not for a while.

It is a child that holds on to nothing: its input is closed when this process ends, however that
ends, and then it does too. Nobody else on this machine can ask it: it has a key of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from pydantic.alias_generators import to_camel

from mimikit.engines import process, process_marks
from mimikit.engines.base import CancelToken
from mimikit.engines.local import model_server
from mimikit.errors import EngineError
from mimikit.protocol.watch import BoundedThread

PROGRAM = Path(model_server.__file__)
_LOAD_S = 300.0
"""It may have to be read from a slow disk, beside much else."""
_LOOK_S = 0.1
_END_S = 2.0
_LINE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class ServedModel:
    """What is to be served, and how."""

    model_path: str
    threads: int
    context_tokens: int


class ModelServer:
    """At most one process, for whoever asks. Safe between threads."""

    def __init__(self, state: Path, *, idle_s: float, program: Path = PROGRAM) -> None:
        """`program`: what is started with this Python; a test may give one without a model."""
        self._state, self._idle_s, self._program = state, idle_s, program
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._served: ServedModel | None = None
        self._url, self._key = "", ""
        self._users = 0
        self._used = threading.Event()

    @property
    def pid(self) -> int | None:
        """Of the process, if one runs."""
        child = self._child
        return child.pid if child is not None and child.poll() is None else None

    @contextlib.contextmanager
    def serving(self, model: ServedModel, cancel: CancelToken) -> Generator[tuple[str, str]]:
        """The address and key of a server of this model, which stays while this is open.

        Raises:
            EngineError: it can not be started, or not load the model; or it was canceled.
        """
        with self._lock:
            if self.pid is None or (model != self._served and not self._users):
                self._end()
                self._start(model, cancel)
            self._users += 1
            found = self._url, self._key
        try:
            yield found
        finally:
            with self._lock:
                self._users -= 1
            self._used.set()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _start(self, model: ServedModel, cancel: CancelToken) -> None:
        key = secrets.token_urlsafe(24)
        child = process.start(
            [sys.executable, "-P", str(self._program)],
            cwd=Path("/"),
            env=process.environment(),
            mark=process_marks.mark(self._state, "local-model"),
            stdin=True,
        )
        self._child, self._served, self._key = child, model, key
        order = {to_camel(name): value for name, value in asdict(model).items()} | {"key": key}
        try:
            said = self._exchange(child, json.dumps(order).encode() + b"\n", cancel)
        except (OSError, ValueError, EngineError) as error:
            self._end()
            if isinstance(error, EngineError):
                raise
            raise EngineError(f"the model's process said nothing of use: {error!r}") from error
        if not isinstance(port := said.get("port"), int):
            self._end()
            why = said.get("error") or f"its process ended ({child.returncode})"
            raise EngineError(f"{model.model_path} can not be served: {why}")
        self._url = f"http://127.0.0.1:{port}/v1"
        with contextlib.suppress(RuntimeError, MemoryError):  # without it the model stays loaded
            BoundedThread(lambda: self._watch(child), "local model").start()

    def _exchange(
        self, child: subprocess.Popen[bytes], order: bytes, cancel: CancelToken
    ) -> dict[str, object]:
        """What it says to its order, once the model is loaded."""
        if child.stdin is None or child.stdout is None:
            raise EngineError("the model's process has no pipes")
        until, line = time.monotonic() + _LOAD_S, b""
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(order)
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n") and len(line) < _LINE_BYTES:
                if cancel.reason:
                    raise EngineError("told to stop while the model was loaded")
                if time.monotonic() > until:
                    raise EngineError(f"the model was not loaded within {_LOAD_S:g} s")
                if selector.select(_LOOK_S):
                    data = os.read(child.stdout.fileno(), _LINE_BYTES)
                    if not data:
                        return {}
                    line += data
        said = json.loads(line)
        return cast("dict[str, object]", said) if isinstance(said, dict) else {}

    def _watch(self, child: subprocess.Popen[bytes]) -> None:
        """End it once nobody has used it for a while; on a thread of its own."""
        while child.poll() is None:
            if self._used.wait(self._idle_s):
                self._used.clear()
                continue
            with self._lock:
                if self._child is child and not self._users:
                    self._end()

    def _end(self) -> None:
        child, self._child, self._served = self._child, None, None
        if child is None:
            return
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_END_S)
        if child.returncode is None:
            child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_END_S)
