"""The one `opencode serve` of a consumer: started when a run needs it, ended when it rests.

It lives on a thread of its own, in a process namespace in which the state folder is empty: with
that thread, or the consumer, it ends. It has no tools of its own; what its models call comes back
to us.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import math
import queue
import re
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Generator
from http import HTTPStatus
from pathlib import Path
from typing import cast

from mimikit.config import LimitSettings
from mimikit.engine_settings import OpencodeSettings
from mimikit.engines import process, process_marks
from mimikit.engines.base import CancelToken
from mimikit.engines.openai.dialogue import Body, table_of
from mimikit.engines.opencode import cli
from mimikit.engines.opencode.cli import OpencodeLocation
from mimikit.engines.program import Program, Stream
from mimikit.errors import EngineError, ProgramLost
from mimikit.language.plain_text import PlainStream, TextTail
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.watch import BoundedThread
from mimikit.sandbox import worker as sandbox

LEAST_VERSION = (1, 18)
START_S = 120.0
REST_S = 600.0
"""A server that nobody asks for so long is ended: it holds several hundred megabytes."""
_ASK_S, _MOST_LATE = 60.0, 2
"""How long an answer may take, and how many in a row may take longer, on a busy machine."""
_LOOK_S = 0.05
_TRIES = 5
_ADDRESS = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
_MOST_BYTES = 64 * 2**20


class ServerGone(EngineError):
    """The server does not answer any more; another may be started in its place."""


class OpencodeServer:
    """Starts the server, and again when it has ended. Safe between threads."""

    def __init__(self, settings: OpencodeSettings, limits: LimitSettings, state: Path) -> None:
        self._settings, self._limits, self._state = settings, limits, state
        self._lock = threading.Lock()
        self._serving: OpencodeProcess | None = None

    @contextlib.contextmanager
    def used(self, place: OpencodeLocation, cancel: CancelToken) -> Generator[OpencodeProcess]:
        """A server that listens, for one run.

        Raises:
            EngineError: it does not come to listen, or the run was told to stop before it did.
        """
        with self._lock:
            serving = self._serving
            if serving is None or not serving.enter():
                serving = OpencodeProcess(self._settings, self._limits, place, self._state)
                serving.enter()
                self._serving = serving
        try:
            serving.wait(cancel)
            yield serving
        finally:
            serving.leave()

    def close(self) -> None:
        """End it; a run that comes later starts it anew."""
        with self._lock:
            serving, self._serving = self._serving, None
        if serving is not None:
            serving.end()


class OpencodeProcess:
    """One running server: its process, and how it is asked."""

    def __init__(
        self,
        settings: OpencodeSettings,
        limits: LimitSettings,
        place: OpencodeLocation,
        state: Path,
    ) -> None:
        """Start it.

        Raises:
            EngineError: it can not be started.
        """
        self._password = secrets.token_urlsafe(24)
        self._stop, self._lock = CancelToken(), threading.Lock()
        self._is_ready, self._is_over = threading.Event(), threading.Event()
        self._users, self._rests_since = 0, time.monotonic()
        self._said, self._text = TextTail(4000), PlainStream()
        self._port: int | None = None
        self._is_known = False
        self._late = 0
        self._fault: str | None = None
        self._free: dict[str, list[Path]] = {}
        self._count = 0
        env = cli.environment(settings, place, state, self._password)
        with contextlib.closing(RealDisk(state)) as disk:
            Files(disk, durable=False).make_folders([paths.CACHE, cli.HOME])
        self._root = Path(tempfile.mkdtemp(prefix=process_marks.scratch_prefix(state)))
        argv = cli.serve_argv(place)
        boxed = sandbox.namespaced(argv, hidden=[state], writable=[state / cli.HOME])
        self._program = Program(
            argv=boxed or argv,
            cwd=self._root,
            env={**env, "PWD": str(self._root), "TMPDIR": str(self._root)},
            mark=process_marks.mark(state, "opencode"),
            timeout_s=math.inf,
            kill_after_s=limits.kill_after_s,
            output_bytes=_MOST_BYTES,
            boxed=boxed is not None,
        )
        self._thread = BoundedThread(self._live, "opencode")
        self._thread.start()

    # ---- its life

    def _live(self) -> None:
        try:
            process.run(self._program, self._take, self._stop, tick=self._tick)
        except (EngineError, ProgramLost) as error:
            self._fault = str(error)
        finally:
            self._is_over.set()
            self._is_ready.set()
            shutil.rmtree(self._root, ignore_errors=True)

    def _take(self, _stream: Stream, data: bytes) -> None:
        self._said.add(self._text.feed(data))
        if self._port is None and (found := _ADDRESS.search(self._said.text())):
            self._port = int(found[1])
            self._is_ready.set()

    def _tick(self) -> float:
        """End it once it has rested for long. Gives when to look again, in seconds."""
        with self._lock:
            left_s = self._rests_since + REST_S - time.monotonic()
            if self._users or left_s > 0:
                return math.inf if self._users else left_s
        self.give_up()
        return math.inf

    def enter(self) -> bool:
        """Count one more run; False when it ends, or has."""
        with self._lock:
            if self._is_over.is_set() or self._stop.reason is not None:
                return False
            self._users += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            self._rests_since = time.monotonic()

    def wait(self, cancel: CancelToken) -> None:
        """Return once it listens.

        Raises:
            EngineError: it ended instead, is too old, or the run was told to stop meanwhile.
        """
        until = time.monotonic() + START_S
        while not self._is_ready.wait(_LOOK_S):
            if cancel.reason is not None:
                raise EngineError("the run was stopped before opencode was ready")
            if time.monotonic() >= until:
                self.give_up()
                raise EngineError(f"opencode did not come to listen within {START_S:g} s")
        if self._is_over.is_set():
            said = self._fault or "\n".join(self._said.text().strip().splitlines()[-5:])
            raise EngineError(f"opencode ended before it was of use: {said or 'without a word'}")
        if not self._is_known:
            self._look()
            self._is_known = True

    def _look(self) -> None:
        """Make sure that it is one we know, and that it has taken our rules.

        Raises:
            EngineError: it is not, or has not.
        """
        version = str(table_of(self.ask("GET", "/global/health")).get("version", ""))
        parts = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
        if parts < LEAST_VERSION:
            least = ".".join(map(str, LEAST_VERSION))
            raise EngineError(f"expected opencode {least} or newer, got {version}; update it")
        agents = cast("list[object]", self.ask("GET", "/agent", folder=self._root) or [])
        named = [table_of(one) for one in agents]
        # An agent that it does not know is one with all tools to it.
        if all(one.get("name") != cli.AGENT for one in named):
            raise EngineError(f"opencode has no agent {cli.AGENT}, as its settings demand")

    def give_up(self) -> None:
        """Have it ended; no run enters it any more."""
        self._stop.cancel("killed")

    def end(self) -> None:
        """End it with all it has started, and wait for that."""
        self.give_up()
        self._thread.join(START_S)

    # ---- asking it

    def ask(
        self, method: str, path: str, body: Body | None = None, *, folder: Path | None = None
    ) -> object:
        """What it answers; `folder` is the one it is asked about.

        Raises:
            ServerGone: it is not there any more.
            EngineError: it answers with an error, or too late.
        """
        link = self._link(_ASK_S)
        try:
            data = None if body is None else json.dumps(body)
            link.request(method, path, data, self._headers(folder))
            answer = link.getresponse()
            text = answer.read(_MOST_BYTES).decode(errors="replace")
            found: object = json.loads(text) if text.strip() else None
        except TimeoutError:
            self._late += 1
            if self._late >= _MOST_LATE:  # it hangs: others may be at work in it
                self.give_up()
            raise EngineError(f"opencode did not answer within {_ASK_S:g} s") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.give_up()
            raise ServerGone(f"opencode did not answer: {error or type(error).__name__}") from None
        finally:
            link.close()
        self._late = 0
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
        """A folder of one run's own; those of a role are used again, while they are clean.

        They are empty: what a model is told of where it is stays the same from turn to turn.
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
            else:  # whatever of the run is still at it finds nothing there
                with contextlib.suppress(EngineError):
                    self.ask("POST", "/instance/dispose", folder=folder)

    @contextlib.contextmanager
    def events(self, folder: Path) -> Generator[queue.SimpleQueue[Body | None]]:
        """What happens in a folder, from now on, as it comes; None says that no more does.

        Raises:
            EngineError: it does not tell.
        """
        found = queue.SimpleQueue[Body | None]()
        link = self._link(None)
        try:
            link.connect()
            handle = link.sock
            handle.settimeout(_ASK_S)
            link.request("GET", "/event", None, self._headers(folder))
            answer = link.getresponse()
            if answer.status != HTTPStatus.OK:
                raise EngineError(f"opencode does not tell of its events: {answer.status}")
            handle.settimeout(None)
            follower = BoundedThread(lambda: _follow(answer, found), "opencode-events")
            follower.start()
            try:
                yield found
            finally:
                with contextlib.suppress(OSError):
                    handle.shutdown(socket.SHUT_RDWR)
                follower.join(_ASK_S)
                answer.close()
        except (OSError, http.client.HTTPException) as error:
            raise EngineError(f"opencode does not tell of its events: {error}") from None
        finally:
            link.close()


class RunPlace:
    """The folder of one run in the server."""

    def __init__(self, serving: OpencodeProcess, folder: Path) -> None:
        self.serving, self.folder = serving, folder
        self.is_clean = False
        """Whether the run came to its end there: nothing is under way any more."""

    def ask(self, method: str, path: str, body: Body | None = None) -> object:
        return self.serving.ask(method, path, body, folder=self.folder)

    def connect(self, url: str, token: str, timeout_s: float) -> None:
        """Have it offer the tools that are served at `url`, and no others.

        Raises:
            EngineError: it does not come to know them.
        """
        facts: Body = {
            "type": "remote",
            "url": url,
            "headers": {"Authorization": f"Bearer {token}"},
            "oauth": False,
            "timeout": max(1000, int(1000 * min(timeout_s, 86400))),
        }
        said: object = None
        for _ in range(_TRIES):
            found = self.ask("POST", "/mcp", {"name": cli.AGENT, "config": facts})
            status = table_of(table_of(found).get(cli.AGENT))
            if status.get("status") == "connected":
                return
            said = status.get("error")
        raise EngineError(f"opencode could not be given its tools: {said}")


def _follow(answer: http.client.HTTPResponse, found: queue.SimpleQueue[Body | None]) -> None:
    with contextlib.suppress(OSError, ValueError, http.client.HTTPException, AttributeError):
        while line := answer.readline(_MOST_BYTES):
            if line.startswith(b"data:"):
                found.put(table_of(json.loads(line[5:])))
    found.put(None)
