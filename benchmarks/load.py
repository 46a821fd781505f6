"""The user beside much work: how long a message waits, what it costs, what the consumer holds.

Each row is a consumer of its own over a folder that was filled before: a day of so many messages,
so many ended tasks, so many that wait (paused). The last row drops files while it is talked to;
those are hand-made commands, run by the Workers meanwhile.
Run: python -m benchmarks.load [--messages N] [--tasks N] [--queued N] [--dropped N] [--asked N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, date, timedelta
from pathlib import Path

from benchmarks.consumer import cpu_s, process, rss_mb
from mimikit.clock import SystemClock
from mimikit.memory import markdown
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.ids import new_id
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import InboxItem, Message, RuntimeState, Task, time_text
from mimikit.protocol.results import TaskResult

_CONFIG = """[roles.teller]
engine = "builtin"
[roles.planner]
engine = "builtin"
"""
_LIMIT_S = 120.0


def filled(folder: Path, *, messages: int, tasks: int, queued: int) -> Files:
    """A state folder with such a past; what waits does not run."""
    state = folder / ".mimikit"
    state.mkdir(mode=0o700)
    files = Files(RealDisk(state), durable=False)
    files.make_folders()
    files.write(paths.CONFIG, _CONFIG.encode())
    now = SystemClock().now()
    days: dict[date, list[Message]] = {}
    for number in range(messages):
        at = now - timedelta(milliseconds=2 * (messages - number))
        message = Message(
            id=f"msg-{number:06}", role="agent" if number % 2 else "user", created_at=at,
            text=f"number {number}: what do we know of topic {number % 97}?",
            turn_id=f"turn-{number // 2:06}",
        )  # fmt: skip
        days.setdefault(at.date(), []).append(message)
    for day, said in days.items():
        lines = [dump_line(message.to_dict()) for message in said]
        files.write(paths.transcript(day), b"".join(lines))
        for at in range(0, len(said), 300):  # as the archiver would have left them
            text = markdown.extended("", day, said[at : at + 300], UTC)
            files.write(paths.memory_file(f"{day}-part-{at:06}.md"), text.encode())
    ledger: list[bytes] = []
    for number in range(tasks):
        task = Task(
            id=f"task-{number:06}", prompt="true", profile="command", created_at=now, trace_id="r"
        )
        result = TaskResult(
            id=task.id, status="done", trace_id="r", started_at=now, completed_at=now,
            result={"text": f"this is what came of task {number}"},
        )  # fmt: skip
        files.save(paths.ended("worker", task.id), task)
        files.save(paths.result("worker", task.id), result)
        told = {"at": time_text(now), "id": task.id, "seat": "worker", "traceId": "r"}
        ledger += [dump_line({"event": "queued", **told})]
        ledger += [dump_line({"event": "ended", "status": "done", **told})]
    if ledger:
        files.write(paths.ledger(now), b"".join(ledger))
    for number in range(queued):
        drop(files, number)
    if queued:
        files.save(paths.RUNTIME, RuntimeState(paused=True))
    return files


def drop(files: Files, number: int) -> None:
    """A task as a person or a script makes it."""
    made = {"prompt": "true", "profile": "command", "notify": "none"}
    files.write(paths.queued("worker", f"drop-{number:06}"), json.dumps(made).encode())


def ask(files: Files, number: int) -> float:
    """Seconds from a message's acceptance to its answer."""
    now = SystemClock().now()
    item = InboxItem(id=new_id("msg", now), text=f"hello {number}, topic {number}", created_at=now)
    began = time.perf_counter()
    files.save_new(paths.inbox(item.id), item)
    while files.exists(paths.inbox(item.id)):
        if time.perf_counter() - began > _LIMIT_S:
            raise TimeoutError(f"no answer within {_LIMIT_S:g} s")
        time.sleep(0.002)
    return time.perf_counter() - began


def settle(pid: int) -> None:
    """Wait until what the start has caused (an index made anew, say) is over."""
    for _ in range(120):
        before = cpu_s(pid)
        time.sleep(1)
        if cpu_s(pid) - before < 0.1:
            return


def measure(
    asked: int, pause_s: float, meanwhile: Callable[[Files], None] | None = None, **past: int
) -> dict[str, float]:
    """Start a consumer over a past, talk to it, and look at what it took."""
    with tempfile.TemporaryDirectory(prefix="bench-load-") as name:
        folder = Path(name)
        files = filled(folder, **past)
        argv = [sys.executable, "-m", "mimikit", "--workspace", name, "consumer"]
        with process(argv, folder, folder / ".mimikit" / "health.json") as (child, start_s):
            first_s = ask(files, 0)
            settle(child.pid)
            worker = threading.Thread(target=meanwhile or (lambda _: None), args=(files,))
            worker.start()
            before, waits = cpu_s(child.pid), list[float]()
            for number in range(asked):
                waits.append(ask(files, number))
                time.sleep(pause_s)
            cpu_ms = (cpu_s(child.pid) - before) / asked * 1000
            worker.join()
            return {
                "start_s": start_s,
                "first_s": first_s,
                "p50_s": statistics.median(waits),
                "p95_s": sorted(waits)[int(len(waits) * 0.95)],
                "max_s": max(waits),
                "cpu_ms": cpu_ms,
                "rss_mb": rss_mb(child.pid),
            }


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--queued", type=int, default=29_000)
    parser.add_argument("--dropped", type=int, default=50_000)
    parser.add_argument("--asked", type=int, default=100)
    parser.add_argument("--rows", default="", help="of which rows, by their first letters")
    args = parser.parse_args()
    none = {"messages": 0, "tasks": 0, "queued": 0}
    much = {"messages": args.messages, "tasks": args.tasks, "queued": args.queued}

    def dropped(files: Files) -> None:
        for number in range(args.dropped):
            drop(files, number)

    rows: dict[str, Callable[[], dict[str, float]]] = {
        "nothing": lambda: measure(args.asked, 0.0, **none),
        "messages": lambda: measure(args.asked, 0.0, **none | {"messages": args.messages}),
        "tasks": lambda: measure(args.asked, 0.0, **none | {"tasks": args.tasks}),
        "queued": lambda: measure(args.asked, 0.0, **none | {"queued": args.queued}),
        "all of it": lambda: measure(args.asked, 0.0, **much),
        "dropping": lambda: measure(args.asked, 0.2, dropped, **none),
    }
    columns = ("start_s", "first_s", "p50_s", "p95_s", "max_s", "cpu_ms", "rss_mb")
    print(f"{'':12}" + "".join(f"{column:>10}" for column in columns))
    for name, row in rows.items():
        if name.startswith(tuple(filter(None, args.rows.split(","))) or ""):
            found = row()
            print(f"{name:12}" + "".join(f"{found[c]:10.2f}" for c in columns), flush=True)


if __name__ == "__main__":
    main()
