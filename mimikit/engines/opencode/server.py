"""The shared `opencode serve` process, and its HTTP API.

It runs in a process namespace that hides the state folder. It has no tools of its own: its models
call ours.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import queue
import re
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Generator
from http import HTTPStatus
from pathlib import Path
from typing import cast

from mimikit.config import LimitSettings
from mimikit.engine_settings import OpencodeSettings
from mimikit.engines import process_marks
from mimikit.engines.base import CancelToken
from mimikit.engines.kept_server import KeptProcess
from mimikit.engines.openai.answer import Body
from mimikit.engines.opencode import cli
from mimikit.engines.opencode.cli import OpencodeLocation
from mimikit.engines.process import Program, Stream
from mimikit.errors import EngineError
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.json import table_of
from mimikit.sandbox import worker as sandbox

MIN_VERSION = (1, 18)
START_S = 120.0
IDLE_S = 600.0
"""An idle server is stopped: it uses several hundred megabytes."""
_ASK_S, _MAX_TIMEOUTS = 60.0, 2
"""Timeout of an answer; after so many timeouts in a row the server is stopped."""
_ATTEMPTS = 5
_ADDRESS = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
_MAX_BYTES = 64 * 2**20


class ServerGone(EngineError):
    """The server does not answer; it can be restarted."""


class OpencodeProcess(KeptProcess):
    """One `opencode serve`, and requests to it."""

    def __init__(
        self,
        settings: OpencodeSettings,
        limits: LimitSettings,
        place: OpencodeLocation,
        state: Path,
    ) -> None:
        """Raises EngineError when the user's settings cannot be read."""
        self._password = secrets.token_urlsafe(24)
        self._port: int | None = None
        self._is_checked = False
        self._timeouts = 0
        self._free: dict[str, list[Path]] = {}
        self._count = 0
        env = cli.environment(settings, place, state, self._password)
        with contextlib.closing(RealDisk(state)) as disk:
            Files(disk, durable=False).make_folders([paths.CACHE, cli.HOME])
        self._root = Path(tempfile.mkdtemp(prefix=process_marks.scratch_prefix(state)))
        argv = cli.serve_argv(place)
        boxed = sandbox.namespaced(argv, hidden=[state], writable=[state / cli.HOME])
        program = Program(
            argv=boxed or argv,
            cwd=self._root,
            env={**env, "PWD": str(self._root), "TMPDIR": str(self._root)},
            timeout_s=0,
            boxed=boxed is not None,
        )
        super().__init__(
            "opencode", program, ready_s=START_S, idle_s=IDLE_S, kill_after_s=limits.kill_after_s
        )

    def take(self, stream: Stream, data: bytes) -> None:
        super().take(stream, data)
        if self._port is None and (found := _ADDRESS.search(self._log.text())):
            self._port = int(found[1])
            self.is_ready.set()

    def on_end(self) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    def wait_ready(self, cancel: CancelToken) -> None:
        super().wait_ready(cancel)
        if not self._is_checked:
            self._check()
            self._is_checked = True

    def _check(self) -> None:
        """Check its version, and that it has our agent: an unknown agent would have all tools.

        Raises:
            EngineError: one of them is wrong.
        """
        version = str(table_of(self.ask("GET", "/global/health")).get("version", ""))
        parts = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
        if parts < MIN_VERSION:
            least = ".".join(map(str, MIN_VERSION))
            raise EngineError(f"expected opencode {least} or newer, got {version}; update it")
        agents = cast("list[object]", self.ask("GET", "/agent", folder=self._root) or [])
        if all(table_of(one).get("name") != cli.AGENT for one in agents):
            raise EngineError(f"opencode has no agent {cli.AGENT}, as configured")

    # ---- asking it

    def ask(
        self, method: str, path: str, body: Body | None = None, *, folder: Path | None = None
    ) -> object:
        """Send a request and parse the JSON answer; `folder`: its project directory.

        Raises:
            ServerGone: there was no answer.
            EngineError: it was an error, or too late.
        """
        link = self._link(_ASK_S)
        try:
            data = None if body is None else json.dumps(body)
            link.request(method, path, data, self._headers(folder))
            answer = link.getresponse()
            text = answer.read(_MAX_BYTES).decode(errors="replace")
            found: object = json.loads(text) if text.strip() else None
        except TimeoutError:
            self._timeouts += 1
            if self._timeouts >= _MAX_TIMEOUTS:  # it hangs
                self.stop()
            raise EngineError(f"opencode did not answer within {_ASK_S:g} s") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.stop()
            raise ServerGone(f"opencode did not answer: {error or type(error).__name__}") from None
        finally:
            link.close()
        self._timeouts = 0
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise EngineError(f"opencode answered {answer.status}: {text[:500]}")
        return found

    def _link(self, timeout_s: float | None) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=timeout_s)

    def _headers(self, folder: Path | None) -> dict[str, str]:
        login = base64.b64encode(f"opencode:{self._password}".encode()).decode()
        headers = {"authorization": f"Basic {login}", "content-type": "application/json"}
        return headers | ({"x-opencode-directory": str(folder)} if folder else {})

    @contextlib.contextmanager
    def place_for(self, role: str) -> Generator[RunPlace]:
        """An empty project folder for one run; clean ones are reused for the same role.

        So the folder named in the prompt stays the same, and the prompt can be cached.
        """
        with self._lock:
            free = self._free.setdefault(role, [])
            self._count += not free
            folder = free.pop() if free else self._root / f"{role}-{self._count}"
        folder.mkdir(exist_ok=True)
        place = RunPlace(self, folder)
        try:
            yield place
        finally:
            if place.is_clean:
                with self._lock:
                    free.append(folder)
            else:  # parts of the run may still be active there
                with contextlib.suppress(EngineError):
                    self.ask("POST", "/instance/dispose", folder=folder)

    @contextlib.contextmanager
    def events(self, folder: Path) -> Generator[queue.SimpleQueue[Body | None]]:
        """The events of a folder from now on; None after the last. Raises EngineError."""
        found = queue.SimpleQueue[Body | None]()
        link = self._link(None)
        try:
            try:
                link.connect()
                handle = link.sock
                handle.settimeout(_ASK_S)
                link.request("GET", "/event", None, self._headers(folder))
                answer = link.getresponse()
                handle.settimeout(None)
            except (OSError, http.client.HTTPException) as error:
                self.stop()
                raise ServerGone(f"opencode sends no events: {error}") from None
            if answer.status != HTTPStatus.OK:
                raise EngineError(f"opencode sends no events: {answer.status}")
            follower = threading.Thread(target=_follow, args=(answer, found), daemon=True)
            follower.start()
            try:
                yield found
            finally:
                with contextlib.suppress(OSError):
                    handle.shutdown(socket.SHUT_RDWR)
                follower.join(_ASK_S)
                answer.close()
        finally:
            link.close()


class RunPlace:
    """The project folder of one run."""

    def __init__(self, server: OpencodeProcess, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.is_clean = False
        """Whether the run has ended: nothing is active in the folder."""

    def ask(self, method: str, path: str, body: Body | None = None) -> object:
        return self.server.ask(method, path, body, folder=self.folder)

    def connect(self, url: str, token: str, timeout_s: float) -> None:
        """Connect opencode to the tools served at `url`; EngineError when that fails."""
        facts: Body = {
            "type": "remote",
            "url": url,
            "headers": {"Authorization": f"Bearer {token}"},
            "oauth": False,
            "timeout": max(1000, int(1000 * min(timeout_s, 86400))),
        }
        reason: object = None
        for _ in range(_ATTEMPTS):
            found = self.ask("POST", "/mcp", {"name": cli.AGENT, "config": facts})
            status = table_of(table_of(found).get(cli.AGENT))
            if status.get("status") == "connected":
                return
            reason = status.get("error")
        raise EngineError(f"opencode could not connect to its tools: {reason}")


def _follow(answer: http.client.HTTPResponse, found: queue.SimpleQueue[Body | None]) -> None:
    with contextlib.suppress(OSError, ValueError, http.client.HTTPException, AttributeError):
        while line := answer.readline(_MAX_BYTES):
            if line.startswith(b"data:"):
                found.put(table_of(json.loads(line[5:])))
    found.put(None)
