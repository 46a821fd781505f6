"""P4 and P7: the web process under 32 clients; its start and its memory; the page's weight.

Peer in the same run: a bare Flask app that writes each request's body to a new file and flushes it,
under the same gunicorn settings. Clients are other processes on keep-alive connections.
Run: python -m benchmarks.web [--requests N]
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CLIENTS = 32
PROCESSES = 4
TEXT = "What did the tests say about the parser yesterday evening? " * 3

PEER = """
    import os, sys, uuid
    from flask import Flask, request
    from gunicorn.app.base import BaseApplication

    app = Flask("peer")

    @app.post("/echo")
    def echo():
        body = request.get_data()
        with open(uuid.uuid4().hex, "xb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        return body, 202

    @app.get("/status")
    def status():
        return {"ok": True}

    class Server(BaseApplication):
        def load_config(self):
            settings = dict(bind="127.0.0.1:0", workers=1, worker_class="gthread", threads=32,
                keepalive=20, control_socket_disable=True, loglevel="error", when_ready=ready)
            for name, value in settings.items():
                self.cfg.set(name, value)
        def load(self):
            return app

    def ready(server):
        print("http://127.0.0.1:%d" % server.LISTENERS[0].getsockname()[1], flush=True)

    Server().run()
"""


@dataclass
class Served:
    """A running web process."""

    process: subprocess.Popen[str]
    port: int
    start_s: float
    token: str = ""

    def rss_mb(self) -> list[float]:
        """Resident memory of master and worker."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        found: list[float] = []
        for pid in [str(self.process.pid), *children.split()]:
            status = Path(f"/proc/{pid}/status").read_text()
            found.append(int(status.partition("VmRSS:")[2].split()[0]) / 1024)
        return found


@contextmanager
def served(argv: list[str], folder: Path, state: Path | None = None) -> Iterator[Served]:
    """A web process from its start to its end; started is when the first answer came."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    env |= {"MIMIKIT_WEB__INPUTS_PER_MINUTE": "1000000000"}
    began = time.perf_counter()
    process = subprocess.Popen(argv, cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        port = int(line.strip().rstrip("/").rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/healthz" if state else "/status")
        connection.getresponse().read()
        connection.close()
        token = (state / "secrets" / "token").read_text().strip() if state else ""
        yield Served(process, port, time.perf_counter() - began, token)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def client(port: int, token: str, method: str, path: str, count: int, delays: list[float]) -> None:
    """One client: `count` requests, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    for _ in range(count):
        body = json.dumps({"id": f"msg-{uuid.uuid4().hex}", "text": TEXT})
        began = time.perf_counter()
        connection.request(method, path, body if method == "POST" else None, headers)
        response = connection.getresponse()
        response.read()
        delays.append((time.perf_counter() - began) * 1000)
        if response.status not in (200, 202):
            raise RuntimeError(f"{method} {path}: {response.status}")
    connection.close()


def clients(
    args: tuple[int, str, str, str, int], begin: Callable[[], object], out: multiprocessing.Queue
) -> None:
    """The clients of one process."""
    delays: list[float] = []
    threads = [
        threading.Thread(target=client, args=(*args, delays)) for _ in range(CLIENTS // PROCESSES)
    ]
    begin()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.put(delays)


def load(server: Served, method: str, path: str, requests: int) -> dict[str, float]:
    """Requests a second and the delays, in milliseconds, of all clients together."""
    each = requests // CLIENTS
    out: multiprocessing.Queue = multiprocessing.Queue()
    barrier = multiprocessing.Barrier(PROCESSES + 1)
    args = (server.port, server.token, method, path, each)
    workers = [
        multiprocessing.Process(target=clients, args=(args, barrier.wait, out))
        for _ in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    barrier.wait()
    began = time.perf_counter()
    delays = sorted(delay for _ in workers for delay in out.get())
    took = time.perf_counter() - began
    for worker in workers:
        worker.join()
    return {
        "per_s": len(delays) / took,
        "p50_ms": statistics.median(delays),
        "p99_ms": delays[int(len(delays) * 0.99)],
    }


def page_weight(port: int, takes: str) -> tuple[int, int]:
    """Requests and bytes of a cold page: the index, all that it names, its words and its icons."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    index = _body(connection, "/", {})
    base = re.search(r"assets/[0-9a-f]+", index.decode())
    named = set(re.findall(r'(?:src|href)="([^"]+)"', index.decode()))
    if base is not None:
        named |= {f"{base[0]}/i18n/en.json", f"{base[0]}/icons.svg"}
    sizes = [
        len(_body(connection, f"/{address.removeprefix('/')}", {"Accept-Encoding": takes}))
        for address in ("", *named)
    ]
    connection.close()
    return len(sizes), sum(sizes)


def _body(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> bytes:
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    data = response.read()
    if response.status != 200:
        raise RuntimeError(f"GET {path}: {response.status}")
    return data


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=6400)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rows: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "peer.py").write_text(textwrap.dedent(PEER))
        state = folder / ".mimikit"
        state.mkdir()
        ours = [
            sys.executable,
            "-m",
            "tests.support.serve_page",
            str(state),
            name,
            "127.0.0.1",
            "0",
        ]
        with (
            served(ours, folder, state) as mimikit,
            served([sys.executable, "peer.py"], folder) as peer,
        ):
            print(f"start to first answer: {mimikit.start_s:.2f} s, peer {peer.start_s:.2f} s")
            for takes in ("identity", "gzip"):
                count, size = page_weight(mimikit.port, takes)
                print(f"page, cold, {takes}: {size / 1000:.0f} KB in {count} requests")
            for _ in range(args.rounds):  # by turns: the machine's moods meet both
                for label, server, method, path in (
                    ("POST /api/input", mimikit, "POST", "/api/input"),
                    ("bare Flask, write and fsync", peer, "POST", "/echo"),
                    ("GET /api/status", mimikit, "GET", "/api/status"),
                    ("bare Flask, a small answer", peer, "GET", "/status"),
                ):
                    rows.setdefault(label, []).append(load(server, method, path, args.requests))
            memory = " + ".join(f"{part:.1f}" for part in mimikit.rss_mb())
            print(f"memory, master + worker: {memory} MB\n")
    print(
        f"{f'{CLIENTS} clients, median of {args.rounds}':32}"
        + "".join(f"{column:>10}" for column in ("per_s", "p50_ms", "p99_ms"))
    )
    for label, found in rows.items():
        medians = [
            statistics.median(row[c] for row in found) for c in ("per_s", "p50_ms", "p99_ms")
        ]
        print(f"{label:32}" + "".join(f"{value:10.1f}" for value in medians))


if __name__ == "__main__":
    main()
