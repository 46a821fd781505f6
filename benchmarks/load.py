"""The user beside much work: how long a message waits, what it costs, what the processes hold.

Each row is a consumer of its own over a folder that was filled before: a day of so many messages,
so many ended tasks, as many of one trigger, so many that wait (paused). The rows `drop …` drop that
many hand-made files into a folder while it is talked to. Of each row a page is started as well and
looked at. Two last lines go on for long: CPU for each of the first and of the last ones.
Run: python -m benchmarks.load [--messages N] [--tasks N] [--queued N] [--dropped N] [--asked N]
    [--long N] [--rows NAME,NAME]; TMPDIR tells on which disk.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path

from benchmarks.consumer import cpu_s, process, rss_mb
from benchmarks.web import client, served
from mimikit.clock import SystemClock
from mimikit.memory import markdown
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.ids import new_id
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import InboxItem, Message, Task, time_text
from mimikit.protocol.results import TaskResult
from mimikit.protocol.runtime import RuntimeState

_CONFIG = """[roles.teller]
engine = "builtin"
[roles.planner]
engine = "builtin"
"""
_LIMIT_S = 120.0


def filled(
    folder: Path, *, messages: int = 0, tasks: int = 0, fired: int = 0, queued: int = 0
) -> Files:
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
    if fired:
        every = {"prompt": "true", "profile": "command", "schedule": {"interval": 10}}
        files.write(paths.trigger("every-10-s"), json.dumps(every | {"notify": "none"}).encode())
    for number in range(tasks + fired):
        trigger = "every-10-s" if number >= tasks else None
        at = now - timedelta(seconds=10 * (tasks + fired - number)) if trigger else now
        task = Task(
            id=f"task-{number:06}", prompt="true", profile="command", created_at=at,
            trace_id=f"trace-{number:06}", source_trigger_id=trigger,
        )  # fmt: skip
        result = TaskResult(
            id=task.id, status="done", trace_id=task.trace_id, started_at=at, completed_at=at,
            result={"text": f"this is what came of task {number}"},
        )  # fmt: skip
        files.save(paths.ended("worker", task.id), task)
        files.save(paths.result("worker", task.id), result)
        told = {"at": time_text(at), "id": task.id, "seat": "worker", "traceId": task.trace_id}
        if trigger:
            slot = {"event": "slot", "slot": time_text(at), "state": "fired", "taskId": task.id}
            ledger += [dump_line({"at": time_text(at), "id": trigger, **slot})]
            told["sourceTriggerId"] = trigger
        ledger += [dump_line({"event": "queued", **told})]
        ledger += [dump_line({"event": "ended", "status": "done", **told})]
    if ledger:
        files.write(paths.ledger(now), b"".join(ledger))
    for number in range(queued):
        drop(files, "worker", number)
    if queued:
        files.save(paths.RUNTIME, RuntimeState(paused=True))
    return files


WORK = {"prompt": "true", "profile": "command", "notify": "none"}
DROPPED: dict[str, dict[str, object]] = {
    "worker": WORK,
    "planner": {"prompt": "plan the day", "notify": "none"},
    "commands": {"action": "cancel", "target": "nothing", "createdAt": "2026-01-01T00:00:00Z"},
    "triggers": WORK | {"schedule": {"interval": 86_400}},
    "inbox": {"text": "hello"},
}
"""By folder: what a person or a script may put into it."""


def drop(files: Files, folder: str, number: int) -> None:
    """A file as a person or a script makes it."""
    place = f"{folder}/queue" if folder in ("worker", "planner") else folder
    name, made = f"drop-{number:06}", DROPPED[folder]
    made = {"id": name, **made} if folder == "commands" else made
    files.write(f"{place}/{name}.json", json.dumps(made).encode())


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


def wait_indexed(files: Files) -> None:
    """Wait until the consumer has indexed what has ended: it looks each minute."""
    for _ in range(180):
        manifest = json.loads(files.read("cache/search/manifest.json") or b'{"files": []}')
        if len(manifest["files"]) >= len(files.names("worker/results")):
            return
        time.sleep(0.5)


PAGES = ("/api/snapshot", "/api/status", "/api/messages", "/api/tasks", "/api/triggers",
         "/api/memory", "/api/search?q=topic")  # fmt: skip


def page_mb(folder: Path) -> float:
    """What the page's worker holds when everything was looked at three times."""
    argv = [sys.executable, "-m", "mimikit", "--workspace", str(folder), "web", "--port", "0"]
    with served(argv, folder, folder / ".mimikit") as page:
        for path in PAGES * 3:
            client(page.port, page.token, "GET", path, 1, [])
        return page.rss_mb()[1]


@contextmanager
def consumer(**past: int) -> Iterator[tuple[Files, int, float, Path]]:
    """A consumer over a past: its files, its pid, how long it took to start."""
    with tempfile.TemporaryDirectory(prefix="bench-load-") as name:
        folder = Path(name)
        files = filled(folder, **past)
        argv = [sys.executable, "-m", "mimikit", "--workspace", name, "consumer"]
        with process(argv, folder, folder / ".mimikit" / "health.json") as (child, start_s):
            yield files, child.pid, start_s, folder


def measure(
    asked: int, pause_s: float, meanwhile: Callable[[Files], None] | None = None, **past: int
) -> dict[str, float]:
    """Start a consumer over a past, talk to it, and look at what it took."""
    with consumer(**past) as (files, pid, start_s, folder):
        start_cpu_s = cpu_s(pid)
        first_s, first_cpu = ask(files, 0), cpu_s(pid)
        settle(pid)
        worker = threading.Thread(target=meanwhile or (lambda _: None), args=(files,))
        worker.start()
        before, waits = cpu_s(pid), list[float]()
        for number in range(asked):
            waits.append(ask(files, number))
            time.sleep(pause_s)
        cpu_ms = (cpu_s(pid) - before) / asked * 1000
        worker.join()
        if past:
            wait_indexed(files)
            settle(pid)
        return {
            "start_s": start_s,
            "start_cpu": start_cpu_s,
            "first_s": first_s,
            "first_cpu": first_cpu,
            "p50_s": statistics.median(waits),
            "p95_s": sorted(waits)[int(len(waits) * 0.95)],
            "max_s": max(waits),
            "cpu_ms": cpu_ms,
            "rss_mb": rss_mb(pid),
            "peak_mb": peak_mb(pid),
            "page_mb": page_mb(folder),
        }


def peak_mb(pid: int) -> float:
    """The most memory it ever held."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def go_on(kind: str, total: int) -> str:
    """Messages one by one, or tasks by the thousand: CPU for each of the first and the last."""
    part = min(1000, total // 4)
    with consumer() as (files, pid, _, folder):
        cpu = [cpu_s(pid)]
        for begin in range(0, total, part):
            for number in range(begin, begin + part):
                if kind == "message":
                    ask(files, number)
                else:
                    drop(files, "worker", number)
            while kind == "task" and len(files.names("worker/ended")) < begin + part:
                time.sleep(0.2)
            cpu.append(cpu_s(pid))
        each = [(after - before) / part * 1000 for before, after in pairwise(cpu)]
        held = f"{rss_mb(pid):.0f} MB, at most {peak_mb(pid):.0f}; page {page_mb(folder):.0f} MB"
        shown = f"first {part:,} {each[0]:.1f} ms of CPU each, last {each[-1]:.1f} ms"
        return f"{total:,} {kind}s, one by one: {shown}; {held}"


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--fired", type=int, default=44_000)
    parser.add_argument("--queued", type=int, default=29_000)
    parser.add_argument("--dropped", type=int, default=50_000)
    parser.add_argument("--asked", type=int, default=100)
    parser.add_argument("--long", type=int, default=20_000)
    parser.add_argument("--rows", default="", help="of which rows, by their first letters")
    args = parser.parse_args()
    much = {"messages": args.messages, "tasks": args.tasks, "queued": args.queued}

    def dropped(folder: str) -> dict[str, float]:
        def meanwhile(files: Files) -> None:
            for number in range(args.dropped):
                drop(files, folder, number)

        return measure(args.asked, 0.2, meanwhile)

    rows: dict[str, Callable[[], dict[str, float]]] = {
        "nothing": lambda: measure(args.asked, 0.0),
        "messages": lambda: measure(args.asked, 0.0, messages=args.messages),
        "tasks": lambda: measure(args.asked, 0.0, tasks=args.tasks),
        "fired": lambda: measure(args.asked, 0.0, fired=args.fired),
        "queued": lambda: measure(args.asked, 0.0, queued=args.queued),
        "all of it": lambda: measure(args.asked, 0.0, **much),
        **{f"drop {folder}": partial(dropped, folder) for folder in DROPPED},
    }
    columns = ("start_s", "start_cpu", "first_s", "first_cpu", "p50_s", "p95_s", "max_s", "cpu_ms",
               "rss_mb", "peak_mb", "page_mb")  # fmt: skip
    wanted = tuple(filter(None, args.rows.split(","))) or ("",)
    print(f"{'':14}" + "".join(f"{column:>10}" for column in columns))
    for name, row in rows.items():
        if name.startswith(wanted):
            found = row()
            print(f"{name:14}" + "".join(f"{found[c]:10.2f}" for c in columns), flush=True)
    for kind in ("message", "task"):
        if f"long {kind}".startswith(wanted):
            print(go_on(kind, args.long), flush=True)


if __name__ == "__main__":
    main()
