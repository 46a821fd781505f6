"""P5: what triggers cost: an idle tick, a changed file, a chain.

The tick is measured beside itself, with 10 triggers and with 10,000 of all kinds, in turns. Files
and chains go through a whole consumer: from the write to the moment the task's own process runs,
and from the end of a chain's first step to that of its tenth.
Run: python -m benchmarks.triggers [--triggers N] [--files N] [--chains N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from benchmarks.consumer import process, wait_for
from mimikit.processes import ConsumerProcess
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import Task
from mimikit.protocol.triggers import Condition, Schedule, Trigger
from mimikit.state import open_state
from mimikit.supervisor.consumer_lock import take_consumer_lock
from mimikit.tasks import queue
from mimikit.triggers import conditions, registry

STEPS = 10


def trigger(number: int, now: object, **fields: object) -> Trigger:
    """A trigger that makes a command."""
    return Trigger.model_validate(
        {
            "id": f"trig-{number:06}",
            "type": "conditional" if "condition" in fields else "recurring",
            "prompt": "true",
            "profile": "command",
            "created_at": now,
            "trace_id": f"trig-{number:06}",
            "origin": "cli",
            "notify": "none",
            **fields,
        }
    )


def idle_consumer(folder: Path, count: int) -> ConsumerProcess:
    """A consumer that has looked at so many triggers, none of which is due."""
    state = open_state(folder / ".mimikit", folder)
    fast = Files(RealDisk(state.path), durable=False)  # the set-up need not be flushed
    now = state.clock.now() + timedelta(days=1)
    for number in range(count):
        kinds: tuple[dict[str, object], ...] = (
            {"schedule": Schedule(interval=86400)},
            {"schedule": Schedule(cron="0 9 * * *", timezone="Europe/Berlin")},
            {"condition": condition("task_done", taskId=f"task-{number}")},
            {"condition": condition("file_changed", path=f"src/{number}/*.py")},
        )
        registry.create(fast, trigger(number, now, **kinds[number % 4]))
    app = ConsumerProcess(state, take_consumer_lock(state))
    app.supervisor.start()
    app.supervisor.tick()
    return app


def condition(kind: str, **params: object) -> Condition:
    """A condition of one node."""
    return conditions.read({"type": kind, "params": params})


def tick_cost(many: int) -> tuple[float, float]:
    """Microseconds of a tick (median) with 10 triggers and with many."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        few_app, many_app = idle_consumer(Path(first), 10), idle_consumer(Path(second), many)
        found: dict[int, list[float]] = {0: [], 1: []}
        for _ in range(2000):
            for number, app in enumerate((few_app, many_app)):
                began = time.perf_counter()
                app.supervisor.tick()
                found[number].append((time.perf_counter() - began) * 1e6)
        for app in (few_app, many_app):
            app.file_watch.close()
            app.watch.close()
        return statistics.median(found[0]), statistics.median(found[1])


def file_delays(files: Files, workspace: Path, rounds: int) -> list[float]:
    """Milliseconds from the change of a file to the run of the command it starts."""
    now = open_state(workspace / ".mimikit", workspace).clock.now()
    watched = trigger(1, now, condition=condition("file_changed", path="watched/*.txt"))
    (workspace / "watched").mkdir()
    command = 'touch "$(mktemp -p started XXXXXX.tmp)" && touch started/now'
    (workspace / "started").mkdir()
    registry.create(files, watched.but(prompt=command))
    until = time.monotonic() + 10
    while not registry.state(files, watched.id).initialized and time.monotonic() < until:
        time.sleep(0.01)
    found: list[float] = []
    for number in range(rounds):
        time.sleep(0.3)
        (workspace / "started/now").unlink(missing_ok=True)
        began = time.perf_counter()
        (workspace / f"watched/{number}.txt").write_text("x")
        found.append((wait_for(workspace / "started/now", 10) - began) * 1000)
    return found


def chain_times(files: Files, workspace: Path, rounds: int) -> list[float]:
    """Milliseconds from the end of a chain's first step to the end of its tenth."""
    clock = open_state(workspace / ".mimikit", workspace).clock
    found: list[float] = []
    for number in range(rounds):
        first, last = workspace / f"first-{number}", workspace / f"last-{number}"
        before = new_id("task", clock.now())
        task = before
        for step in range(1, STEPS):
            made = trigger(
                1000 + number * STEPS + step,
                clock.now(),
                once=True,
                prompt=f"touch {last}" if step == STEPS - 1 else "true",
                condition=condition("task_done", taskId=before),
            )
            registry.create(files, made)
            before = made.id
        time.sleep(0.5)
        queue.submit(
            files,
            Task(
                id=task, prompt=f"touch {first}", profile="command", created_at=clock.now(),
                trace_id=task, origin="cli", notify="none",
            ),
        )  # fmt: skip
        began = wait_for(first, 20)
        found.append((wait_for(last, 20) - began) * 1000)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--triggers", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--chains", type=int, default=5)
    args = parser.parse_args()
    few, many = tick_cost(args.triggers)
    print(f"idle tick: {few:.0f} µs with 10 triggers, {many:.0f} µs with {args.triggers:,}")
    print(f"  ratio {many / few:.2f} (at most 1.5)")
    with tempfile.TemporaryDirectory(prefix="bench-triggers-") as folder:
        workspace = Path(folder)
        state = workspace / ".mimikit"
        argv = [sys.executable, "-m", "mimikit", "consumer"]
        with process(argv, workspace, state / "health.json"):
            files = open_state(state, workspace).files
            delays = file_delays(files, workspace, args.files)
            chains = chain_times(files, workspace, args.chains)
    print(f"changed file → its command runs: p50 {statistics.median(delays):.0f} ms (at most 100)")
    print(f"  slowest {max(delays):.0f} ms of {len(delays)}")
    print(f"chain of {STEPS} commands, first to last: p50 {statistics.median(chains):.0f} ms")
    print(f"  slowest {max(chains):.0f} ms of {len(chains)} (at most 1000)")
    print(f"load now: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
