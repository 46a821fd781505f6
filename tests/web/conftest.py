"""A web app over an in-memory disk with a fixed clock, and a real web process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder, run_wsgi_app
from werkzeug.wrappers import Response

from mimikit.config import Settings
from mimikit.log import ChangeFeed, EventLog
from mimikit.memory.search import MemorySearch
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.models import LiveRun
from mimikit.protocol.runtime import Health
from mimikit.state import State
from mimikit.web.api.routing import EXTENSION, Site
from mimikit.web.app import build_web
from mimikit.web.assets import Assets
from mimikit.web.guard import KEY_HEADER
from tests.support.memory_disk import MemoryDisk
from tests.support.twins import FakeClock

REPO = Path(__file__).parents[2]
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TOKEN = "a-token-long-enough-for-an-operator"
HOST = "127.0.0.1:8787"
ORIGIN = f"http://{HOST}"
HARMLESS = (paths.LOG,)
SECRET = "the secret of this test"


@dataclass(repr=False)
class Web:
    disk: MemoryDisk
    files: Files
    clock: FakeClock
    settings: Settings
    app: Flask
    feed: ChangeFeed
    workspace: Path
    requests: int = field(default=0)

    @property
    def site(self) -> Site:
        return self.app.extensions[EXTENSION]

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: dict[str, str] | None = None,
        host: str | None = HOST,
        data: bytes | None = None,
        login: bool = True,
        query: dict[str, str] | None = None,
        type_: str | None = "application/json",
        address: str = "127.0.0.1",
    ) -> Response:
        """One request, by default as the page makes it."""
        self.requests += 1
        sent = dict(headers or {})
        if login and "Authorization" not in sent and KEY_HEADER not in sent:
            sent["Authorization"] = f"Bearer {TOKEN}"
        if body is not None:
            data = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        builder = EnvironBuilder(
            path=path,
            method=method,
            headers=Headers(sent),
            data=data,
            query_string=None if "?" in path else query,
        )
        if method not in ("GET", "HEAD") and type_ is not None:
            builder.headers["Content-Type"] = type_
        environ = builder.get_environ()
        environ["REMOTE_ADDR"] = address
        environ.pop("HTTP_HOST", None)
        if host is not None:
            environ["HTTP_HOST"] = host
        return Response(*run_wsgi_app(self.app, environ, buffered=True))

    def get(self, path: str, **query: str) -> Any:
        response = self.ask("GET", path, query=query)
        assert response.status_code == 200, response.get_data(as_text=True)
        return response.get_json()

    def log_in(self) -> dict[str, str]:
        response = self.ask("POST", "/api/login", {"token": TOKEN}, login=False)
        assert response.status_code == 200
        return {KEY_HEADER: response.get_json()["key"]}

    def contents(self) -> dict[str, bytes]:
        return {p: data for p, data in self.disk.contents().items() if p not in HARMLESS}

    def log_lines(self) -> list[dict[str, Any]]:
        return [line for _, line in self.files.lines(paths.LOG)]

    def beat(self, **facts: Any) -> None:
        now = self.clock.now()
        health = Health(pid=1, version="0", started_at=now, beat_at=now, worker_seats=3)
        self.files.save(paths.HEALTH, health.but(**facts))


def error_of(response: Response) -> dict[str, Any]:
    """The error object of a response; asserts its shape."""
    told = response.get_json()["error"]
    assert set(told) == {"code", "field", "params", "message"}
    assert told["message"]
    return told


MakeWeb = Callable[..., Web]


@pytest.fixture
def make_web(tmp_path: Path) -> MakeWeb:
    """Creates apps; keyword arguments are settings, or parts such as `disk` and `clock`."""
    page = tmp_path / "page"
    (page / "dist").mkdir(parents=True)
    (page / "index.html").write_text('<script src="{{assets}}/dist/main.js"></script>')
    (page / "dist" / "main.js").write_text("1;\n")

    def make(
        *,
        disk: MemoryDisk | None = None,
        clock: FakeClock | None = None,
        is_local: bool = True,
        token: str = TOKEN,
        search: Callable[[], MemorySearch] | None = None,
        **settings: Any,
    ) -> Web:
        disk = disk or MemoryDisk()
        files = Files(disk)
        files.make_folders()
        clock = clock or FakeClock(START)
        chosen = Settings(**settings)

        def plain_search() -> MemorySearch:
            return MemorySearch(
                files, workspace=tmp_path, index=None, zone=chosen.zone, clock=clock
            )

        app = build_web(
            State(tmp_path, tmp_path, files, chosen, clock, EventLog(ReadOnlyFiles(files), clock)),
            token=token,
            bound=("127.0.0.1", 8787),
            search=search or plain_search,
            is_local=is_local,
            assets=Assets(page),
        )
        return Web(disk, files, clock, chosen, app, ChangeFeed(files, clock), tmp_path)

    return make


@pytest.fixture
def web(make_web: MakeWeb) -> Iterator[Web]:
    """An app; fails at the end if a request caused a server error."""
    made = make_web()
    yield made
    assert [line for line in made.log_lines() if line["event"] == "web_failed"] == []


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "guide" / "deep").mkdir(parents=True)
    (folder / "start.md").write_text("# Start\n\nHello.\n")
    (folder / "guide" / "deep" / "部署.md").write_text("Cloudflare")
    return folder


@pytest.fixture
def on_disk(make_web: MakeWeb, tmp_path: Path) -> Web:
    """An app over a real state folder, with secrets around it."""
    state = tmp_path / ".mimikit"
    state.mkdir()
    disk: Any = RealDisk(state)
    web = make_web(disk=disk)
    for path in (
        *("secrets/token", "config.toml", "history.json", "backlog.md"),
        *("cache/x.md", "prompts/teller.md", "turns/done/x.md", "side/x.txt", "memory/x.txt"),
        *("memory/.hidden.md", "memory/summary/.hidden.md"),
    ):
        web.files.write(path, SECRET.encode())
    for path in ("memory.md", "memory/2026-01-28-tea.md", "memory/summary/2026-01-20.md"):
        web.files.write(path, b"long")
    (tmp_path / "README.md").write_text(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text(SECRET)
    return web


def live_run(run_id: str, role: Any, **facts: Any) -> LiveRun:
    return LiveRun(id=run_id, role=role, started_at=START, **facts)


@dataclass
class Server:
    process: subprocess.Popen[str]
    base: str
    state: Path

    @property
    def port(self) -> int:
        return int(self.base.rpartition(":")[2])

    @property
    def token(self) -> str:
        return (self.state / paths.TOKEN).read_text().strip()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts web processes on free loopback ports and ends them afterwards."""
    with servers(tmp_path) as start:
        yield start


@contextmanager
def servers(tmp_path: Path) -> Generator[Callable[..., Server]]:
    started: list[subprocess.Popen[str]] = []

    def start(
        *,
        state: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        env: dict[str, str] | None = None,
    ) -> Server:
        state = state or tmp_path / ".mimikit"
        state.mkdir(exist_ok=True)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("MIMIKIT_")}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.serve_page", state, tmp_path, host, str(port)],
            env=clean | {"PYTHONPATH": str(REPO)} | (env or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if not line and process.stderr is not None:
            pytest.fail(f"no web process: {process.stderr.read()}")
        return Server(process, line, state)

    yield start
    for process in started:
        # Its worker, too, which would live on for a moment as our child that nobody waits for.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
