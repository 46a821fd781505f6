"""The real product as two processes over a state folder, and what a test lays into it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from mimikit.clock import SystemClock
from mimikit.conversation.history import HistoryStore
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Message
from mimikit.web import tokens

REPO = Path(__file__).parents[2]
TOKEN = "a-token-for-the-browser-tests-only"
START_S = 30


@dataclass
class Product:
    """A consumer and a web server over one state folder."""

    workspace: Path
    port: int
    script: Path | None = None
    """What the consumer's engine `scripted` plays."""
    processes: dict[str, subprocess.Popen[bytes]] = field(
        default_factory=dict[str, "subprocess.Popen[bytes]"]
    )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def state(self) -> Path:
        return self.workspace / ".mimikit"

    @property
    def token(self) -> str:
        return TOKEN

    @property
    def files(self) -> Files:
        return Files(RealDisk(self.state), durable=False)

    def link(self) -> str:
        """A fresh one-time login link."""
        code = tokens.new_login_code(self.files, SystemClock().now())
        return tokens.login_link("127.0.0.1", self.port, code)

    def start(self, *names: str) -> None:
        """Start `web`, `consumer` or both, and wait until they answer."""
        places = ["--workspace", self.workspace, "--state", self.state]
        web = ["mimikit", *places, "web", "--port", str(self.port)]
        consumer = ["mimikit", *places, "consumer"]
        if self.script is not None:
            consumer = ["tests.support.scripted_consumer", self.script, self.workspace]
        commands = {"consumer": consumer, "web": web}
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("MIMIKIT_", "PORT"))}
        for name in names or ("consumer", "web"):
            with (self.workspace / f"{name}.log").open("ab") as log:
                self.processes[name] = subprocess.Popen(
                    [sys.executable, "-m", *commands[name]],
                    env=clean | {"MIMIKIT_TOKEN": TOKEN, "PYTHONPATH": str(REPO)},
                    stdout=log,
                    stderr=log,
                )
        if "web" in self.processes:
            self.wait_until(self.health_is("ok" if "consumer" in self.processes else None))

    def stop(self, *names: str) -> None:
        """End them as a person would."""
        for name in names or tuple(self.processes):
            process = self.processes.pop(name)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)

    def health_is(self, consumer: str | None) -> Callable[[], bool]:
        """Whether the web server answers, and says this of the consumer."""

        def look() -> bool:
            try:
                with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as answer:  # noqa: S310
                    said = json.load(answer)
            except urllib.error.HTTPError as error:
                said = json.load(error)
            except OSError:
                return False
            return consumer is None or said["consumer"] == consumer

        return look

    def wait_until(self, true: Callable[[], bool]) -> None:
        """Wait for something that no event tells of."""
        pause = threading.Event()
        for _ in range(START_S * 20):
            if true():
                return
            pause.wait(0.05)
        logs = [path.read_text()[-2000:] for path in self.workspace.glob("*.log")]
        raise AssertionError(f"not within {START_S} s; logs: {logs}")

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Ask the server as a script does, beside the page."""
        request = urllib.request.Request(  # noqa: S310 - ours, on loopback
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=15) as answer:  # noqa: S310
            return json.load(answer)

    def say(self, text: str, id_: str) -> None:
        """A message of the user's, sent from elsewhere."""
        self.call("POST", "/api/input", {"id": id_, "text": text})


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def make_product(workspace: Path, settings: str = "") -> Product:
    product = Product(workspace, free_port())
    product.state.mkdir(mode=0o700, parents=True)
    (product.state / "config.toml").write_text(
        f'durability = "fast"\n{settings}\n[codex]\npath = "/nowhere/codex"\n'
        "[web]\ninputs_per_minute = 1000\nfailed_logins_per_minute = 100\n"
        "[limits]\nshutdown_timeout_s = 1\n"
    )
    product.files.make_folders()
    return product


@contextmanager
def running(
    workspace: Path, settings: str = "", lay: Callable[[Product], object] = lambda _: None
) -> Generator[Product]:
    """A product with what `lay` puts into it before its start."""
    product = make_product(workspace, settings)
    lay(product)
    try:
        product.start()
        yield product
    finally:
        product.stop()


def lay_history(product: Product, count: int) -> None:
    """Messages of the last days, before the product starts."""
    began = SystemClock().now() - timedelta(minutes=10 * count)
    roles = ("user", "agent")
    HistoryStore(product.files).add(
        Message(
            id=f"msg-old-{number:04d}",
            role=roles[number % 2],
            text=f"Old message {number}.\n\n" + "It goes on for a while. " * (number % 7),
            created_at=began + timedelta(minutes=10 * number),
        )
        for number in range(count)
    )
