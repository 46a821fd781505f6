"""P1 and P1f: messages through Huey's own worker loop, from a full queue to an empty one.

Peers in the same run: Huey's FileStorage and SqliteHuey (with and without fsync), RedisHuey where
a server is installed; for durability full the disk's bare create + fsync + rename cycle.
FileStorage is left out above --file-limit: at 100,000 it takes three quarters of an hour.
Run: python -m benchmarks.queue [--sizes 1000,10000,100000] [--repeats N] [--full] [--peers a,b]
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from huey.api import FileHuey, Huey, RedisHuey, SqliteHuey
from huey.consumer import Worker

from mimikit.hueyfiles.storage import ClaimHuey
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files

OURS = "claim"
BARE = "bare cycle"


def peers(redis_socket: Path | None, *, full: bool) -> dict[str, Callable[[Path], Huey]]:
    """Each Huey by its name, made in a folder of its own."""
    if full:
        return {
            OURS: lambda folder: ClaimHuey(path=folder, durable=True),
            "sqlite": lambda folder: SqliteHuey(filename=str(folder / "q.db")),
        }
    made: dict[str, Callable[[Path], Huey]] = {
        OURS: lambda folder: ClaimHuey(path=folder),
        "file": lambda folder: FileHuey(path=str(folder)),
        "sqlite": lambda folder: SqliteHuey(filename=str(folder / "q.db")),
        "sqlite no sync": lambda folder: SqliteHuey(filename=str(folder / "q.db"), fsync=False),
    }
    if redis_socket is not None:
        url = f"unix://{redis_socket}"
        made["redis"] = lambda folder: RedisHuey(folder.name, url=url, blocking=True)
    return made


def drain(huey: Huey, count: int) -> tuple[float, float]:
    """Messages a second: enqueued, and run by one worker of Huey's."""

    @huey.task(name="nothing")
    def nothing(_number: int) -> None:
        return None

    began = time.perf_counter()
    for number in range(count):
        nothing(number)
    put = count / (time.perf_counter() - began)
    worker = Worker(huey, threading.Event(), default_delay=0, max_delay=0, backoff=1)
    worker.loop()  # the index, the connection: once, whatever the backlog; benchmarks/start tells
    began = time.perf_counter()
    while worker.task_count < count:
        worker.loop()
    return put, (count - 1) / (time.perf_counter() - began)


def bare_cycle(folder: Path, count: int) -> float:
    """Files a second: created, flushed, renamed, the folder flushed, then renamed twice more."""
    disk = RealDisk(folder)
    for name in ("queue", "running", "done"):
        disk.make_dir(name)
    files, data = Files(disk, durable=True), b'{"huey":{}}' * 20
    began = time.perf_counter()
    for number in range(count):
        files.write(f"queue/{number}", data)
        disk.rename(f"queue/{number}", f"running/{number}")
        disk.rename(f"running/{number}", f"done/{number}")
    return count / (time.perf_counter() - began)


@contextmanager
def redis_server(folder: Path) -> Iterator[Path | None]:
    """A Redis of our own on a socket, where it and its package are installed."""
    program = shutil.which("redis-server")
    try:
        import redis  # noqa: F401
    except ImportError:
        program = None
    if program is None:
        yield None
        return
    path = folder / "redis.sock"
    argv = [program, "--port", "0", "--unixsocket", str(path), "--dir", str(folder)]
    server = subprocess.Popen([*argv, "--appendonly", "yes"], stdout=subprocess.DEVNULL)
    try:
        while not path.exists():
            time.sleep(0.01)
        yield path
    finally:
        server.terminate()
        server.wait(10)


def measure(
    args: argparse.Namespace, folder: Path
) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """All rounds, peers taking turns, so that a busy machine is busy for all of them."""
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    with redis_server(folder) as redis_socket:
        known = peers(redis_socket, full=args.full)
        chosen = [name for name in known if not args.peers or name in args.peers]
        for count in args.sizes:
            for _ in range(args.repeats):
                for name in chosen:
                    if name == "file" and count > args.file_limit:
                        continue
                    root = Path(tempfile.mkdtemp(dir=folder))
                    huey = known[name](root)
                    found.setdefault((name, count), []).append(drain(huey, count))
                    huey.storage.close()
                    with suppress(OSError):
                        shutil.rmtree(root)
                if args.full:
                    root = Path(tempfile.mkdtemp(dir=folder))
                    rate = bare_cycle(root, count)
                    found.setdefault((BARE, count), []).append((rate, rate))
    return found


def table(
    found: dict[tuple[str, int], list[tuple[float, float]]], sizes: list[int], *, full: bool
) -> None:
    """Medians, and how many times ours is the other: by the drain, or by the whole when flushed."""
    print(f"{'':16}{'backlog':>9}{'enqueue/s':>11}{'drain/s':>10}{'both/s':>10}{'ours/its':>10}")
    counted: dict[tuple[str, int], float] = {}
    for (name, count), rounds in sorted(found.items(), key=lambda item: item[0][1]):
        put = statistics.median(put for put, _ in rounds)
        drained = statistics.median(drained for _, drained in rounds)
        both = put if name == BARE else 1 / (1 / put + 1 / drained)
        counted[name, count] = both if full else drained
        ratio = counted[OURS, count] / counted[name, count]
        print(f"{name:16}{count:>9}{put:>11.0f}{drained:>10.0f}{both:>10.0f}{ratio:>10.2f}")
    rates = [counted[OURS, count] for count in sizes]
    if len(rates) > 1:
        print(f"flat: the fastest backlog is {max(rates) / min(rates):.2f} times the slowest")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--sizes", type=lambda t: [int(n) for n in t.split(",")], default=[1000, 10_000]
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--file-limit", type=int, default=10_000)
    parser.add_argument("--full", action="store_true", help="flush every message to the disk")
    parser.add_argument("--peers", type=lambda t: t.split(","), default=[])
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="bench-queue-", ignore_cleanup_errors=True) as folder:
        found = measure(args, Path(folder))
    table(found, args.sizes, full=args.full)
    print(f"load now: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
