"""P2 and P7: the whole consumer: idle wake-up, idle CPU, start, memory, import of the terminal.

Peer in the same run: Huey's own consumer on its FileStorage with default polling.
Run: python -m benchmarks.consumer [--tasks N] [--idle SECONDS]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
SPIN_S = 20e-6
PATIENCE_S = 300
"""So long a start or an end may take where much else runs: only what fails waits so long."""


@contextmanager
def process(
    argv: list[str], cwd: Path, ready: Path
) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """A running process and the seconds it took until `ready` stood there."""
    began = time.perf_counter()
    env = {**os.environ, "PYTHONPATH": f"{Path(__file__).parents[1]}:{cwd}"}
    child = subprocess.Popen(argv, cwd=cwd, env=env, stdout=subprocess.DEVNULL)
    try:
        wait_for(ready, PATIENCE_S)
        yield child, time.perf_counter() - began
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(PATIENCE_S)


def wait_for(path: Path, limit_s: float) -> float:
    """The moment `path` appeared, by looking without rest."""
    until = time.perf_counter() + limit_s
    while not path.exists():
        if time.perf_counter() > until:
            raise TimeoutError(f"{path} did not appear within {limit_s} s")
        time.sleep(SPIN_S)
    return time.perf_counter()


def cpu_s(pid: int) -> float:
    """Seconds of processor a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mb(pid: int) -> float:
    """Resident memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def ours(folder: Path, tasks: int, idle_s: float) -> dict[str, float]:
    """Drop tasks one by one into an idle consumer's queue; the start is its first output."""
    state = folder / ".mimikit"
    argv = [sys.executable, "-m", "mimikit", "--workspace", str(folder), "consumer"]
    with process(argv, folder, state / "health.json") as (child, start_s):
        time.sleep(0.5)
        before, began = cpu_s(child.pid), time.perf_counter()
        time.sleep(idle_s)
        idle = (cpu_s(child.pid) - before) / (time.perf_counter() - began) * 100
        delays: list[float] = []
        for number in range(tasks):
            time.sleep(random.uniform(0.05, 0.15))
            name = f"bench-{number}"
            temp = state / "worker" / f".{name}"
            temp.write_text(json.dumps({"prompt": "true", "profile": "command", "notify": "none"}))
            began = time.perf_counter()
            temp.rename(state / "worker" / "queue" / f"{name}.json")
            delays.append((wait_for(state / "runs" / f"{name}.jsonl", 10) - began) * 1000)
        rest = {"idle_cpu_%": idle, "start_s": start_s, "rss_mb": rss_mb(child.pid)}
        return summary(delays) | rest


PEER = """
    from pathlib import Path
    from huey import FileHuey
    huey = FileHuey("peer", path="peer", results=False)
    @huey.task()
    def touch(name):
        Path(name).touch()
"""


def peer(folder: Path, tasks: int, idle_s: float) -> dict[str, float]:
    """The same through Huey's FileStorage, three thread workers, default polling."""
    (folder / "peer_app.py").write_text(textwrap.dedent(PEER))
    argv = [sys.executable, "-m", "huey.bin.huey_consumer", "peer_app.huey", "-w", "3", "-q"]
    with process(argv, folder, folder / "peer") as (child, start_s):
        sys.path.insert(0, str(folder))
        os.chdir(folder)
        import peer_app  # pyright: ignore[reportMissingImports]

        time.sleep(0.5)
        before, began = cpu_s(child.pid), time.perf_counter()
        time.sleep(idle_s)
        idle = (cpu_s(child.pid) - before) / (time.perf_counter() - began) * 100
        delays: list[float] = []
        for number in range(tasks):
            time.sleep(random.uniform(0.05, 0.15))
            began = time.perf_counter()
            peer_app.touch(f"done-{number}")
            delays.append((wait_for(folder / f"done-{number}", 20) - began) * 1000)
        rest = {"idle_cpu_%": idle, "start_s": start_s, "rss_mb": rss_mb(child.pid)}
        return summary(delays) | rest


def summary(delays: list[float]) -> dict[str, float]:
    """Units: milliseconds."""
    ordered = sorted(delays)
    return {"p50_ms": statistics.median(ordered), "p99_ms": ordered[int(len(ordered) * 0.99)]}


def help_s() -> float:
    """The median of `mimikit --help`, in seconds."""
    times: list[float] = []
    for _ in range(7):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mimikit", "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--idle", type=float, default=20)
    args = parser.parse_args()
    print(f"mimikit --help: {help_s():.3f} s (median of 7)\n")
    columns = ["p50_ms", "p99_ms", "idle_cpu_%", "start_s", "rss_mb"]
    print(f"{'idle consumer, drop → start':32}" + "".join(f"{c:>12}" for c in columns))
    for name, measure in (("mimikit consumer", ours), ("Huey FileStorage", peer)):
        with tempfile.TemporaryDirectory() as folder:
            row = measure(Path(folder), args.tasks, args.idle)
        print(f"{name:32}" + "".join(f"{row[c]:12.3f}" for c in columns), flush=True)


if __name__ == "__main__":
    main()
