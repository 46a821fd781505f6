"""The real product as two processes over a state folder, and what a test lays into it."""

from __future__ import annotations

import signal
import subprocess
import sys
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
from tests.process.world import TOKEN, World, until

REPO = Path(__file__).parents[2]
START_S = 30


@dataclass
class Product(World):
    """A consumer and a web server over one state folder, with the engines of its config.toml."""

    script: Path | None = None
    """What the consumer's engine `scripted` plays."""
    processes: dict[str, subprocess.Popen[bytes]] = field(
        default_factory=dict[str, "subprocess.Popen[bytes]"]
    )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return TOKEN

    @property
    def files(self) -> Files:
        return Files(RealDisk(self.state), durable=False)

    @property
    def variables(self) -> dict[str, object]:
        return {"TOKEN": TOKEN}

    def environment(self) -> dict[str, str]:
        return super().environment() | {"PYTHONPATH": str(REPO)}

    def command(self, *arguments: str) -> list[str]:
        if self.script is not None and arguments == ("consumer",):
            module = "tests.support.scripted_consumer"
            return [sys.executable, "-m", module, str(self.script), str(self.workspace)]
        return super().command(*arguments)

    def link(self) -> str:
        """A fresh one-time login link."""
        code = tokens.new_login_code(self.files, SystemClock().now())
        return tokens.login_link("127.0.0.1", self.port, code)

    def start(self, *names: str) -> None:
        """Start `web`, `consumer` or both, and wait until they answer."""
        for name in names or ("consumer", "web"):
            port = ("--port", str(self.port)) if name == "web" else ()
            self.processes[name] = self.spawn(name, *port)
        if "web" in self.processes:
            self.wait_until(self.is_serving)
        if len(self.processes) == 2:
            self.wait_until(lambda: self.ask("GET", "/healthz").body["consumer"] == "ok")

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

    def wait_until(self, true: Callable[[], bool]) -> None:
        """Wait for something that no event tells of."""
        until(true, "what the test waits for", timeout_s=START_S, facts=self._logs)

    def _logs(self) -> str:
        return f"{self.output('consumer')[-2000:]}\n{self.output('web')[-2000:]}"

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Ask the server as a script does, beside the page."""
        answer = self.ask(method, path, body)
        assert answer.status < 400, answer
        return answer.body

    def say(self, text: str, id_: str) -> None:
        """A message of the user's, sent from elsewhere."""
        self.call("POST", "/api/input", {"id": id_, "text": text})


def make_product(root: Path, settings: str = "") -> Product:
    product = Product(root)
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
    root: Path, settings: str = "", lay: Callable[[Product], object] = lambda _: None
) -> Generator[Product]:
    """A product with what `lay` puts into it before its start."""
    product = make_product(root, settings)
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
