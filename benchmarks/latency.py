"""P2 at the storage: an idle worker of Huey's, and how long after its enqueueing a message starts.

Producer and consumer are two processes. Peers in the same run: FileHuey with its default polling,
and with polling every 10 ms. The pauses are long enough for ours to be idle; FileHuey's delay grows
with them (4 to 6 s after a minute), so short ones are kind to it.
Run: python -m benchmarks.latency [--tasks N] [--pause SECONDS] [--idle SECONDS]
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from huey.api import FileHuey, Huey

from mimikit.hueyfiles.storage import ClaimHuey

POLLING = {"claim": {}, "file": {}, "file 10 ms": {"initial_delay": 0.01, "max_delay": 0.01}}
TICKS = os.sysconf("SC_CLK_TCK")


def make_huey(name: str, folder: str) -> Huey:
    """The Huey that both processes share; its one task says when it started."""
    made = ClaimHuey(path=folder) if name == "claim" else FileHuey(path=folder)

    @made.task(name="tell")
    def tell(out: int) -> None:
        os.write(out, f"{time.monotonic()!r}\n".encode())

    made.tell = tell
    return made


def consume(name: str, folder: str) -> None:
    """The consumer's process: ready when it has written a line."""
    huey = make_huey(name, folder)
    consumer = huey.create_consumer(workers=1, periodic=False, **POLLING[name])
    os.write(1, b"ready\n")
    consumer.run()


def delays(
    name: str, folder: Path, tasks: int, pause_s: float, idle_s: float
) -> tuple[list[float], float]:
    """Milliseconds from enqueueing to start, and the share of a processor used while idle."""
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.latency", "--consume", name, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    said = child.stdout or sys.stdin
    said.readline()
    huey = make_huey(name, str(folder))
    found: list[float] = []
    try:
        time.sleep(1.0)
        used, began = cpu_s(child.pid), time.monotonic()
        time.sleep(idle_s)
        idle = (cpu_s(child.pid) - used) / (time.monotonic() - began)
        for _ in range(tasks):
            time.sleep(pause_s * random.uniform(0.5, 1.5))  # never in step with a poller
            enqueued = time.monotonic()
            huey.tell(1)
            found.append((float(said.readline()) - enqueued) * 1000)
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(20)
        huey.storage.close()
    return found, idle


def cpu_s(pid: int) -> float:
    """Seconds of processor a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0.2)
    parser.add_argument("--idle", type=float, default=5.0)
    parser.add_argument("--consume", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    if args.consume:
        consume(*args.consume)
        return
    print(f"{'':12}{'p50 ms':>9}{'p99 ms':>9}{'idle CPU':>10}{'its/ours':>10}")
    ours = 0.0
    for name in POLLING:
        with tempfile.TemporaryDirectory(prefix="bench-latency-") as folder:
            found, idle = delays(name, Path(folder), args.tasks, args.pause, args.idle)
        p50, p99 = statistics.median(found), statistics.quantiles(found, n=100)[98]
        ours = ours or p50
        print(f"{name:12}{p50:>9.2f}{p99:>9.2f}{idle:>10.2%}{p50 / ours:>10.1f}")
    print(f"load now: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    # By its real name: Huey calls a task by the module it was defined in.
    from benchmarks import latency

    latency.main()
