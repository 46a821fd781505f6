"""The consumer with real threads: pools, the supervisor's thread, bells, and how it stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mimikit.errors import BadSettings
from mimikit.protocol.files import Files
from mimikit.protocol.models import QueueName, Task
from mimikit.protocol.watch import FolderWatch
from mimikit.runner.consumer import PooledConsumer
from tests.hueyfiles.helpers import START, names, real_files, reasons, until


class Bench:
    """A consumer in a thread over a real folder, and what it did."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.files = real_files(root, product=True)
        self.watch = FolderWatch(root)
        self.ran: list[tuple[QueueName, Task, str]] = []
        self.steps: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        given: dict[str, Any] = {
            "watch": self.watch,
            "threads": {"planner": 1, "worker": 3},
            "run_task": self.run_task,
            "supervise": self.supervise,
            "on_stopping": lambda: self.steps.append("stopping"),
            "handle_signals": False,
            "settle_s": 0.05,
        }
        self.consumer = PooledConsumer(self.files, **{**given, **options})
        self.thread = threading.Thread(target=self.consumer.run)

    def run_task(self, queue: QueueName, task: Task) -> None:
        self.ran.append((queue, task, threading.current_thread().name))
        assert self.gate.wait(60)
        self.files.move(f"{queue}/running/{task.id}.json", f"{queue}/ended/{task.id}.json")
        self.steps.append(f"ran {task.id}")

    def supervise(self, stop: threading.Event) -> None:
        self.steps.append("supervising")
        stop.wait()
        self.steps.append("supervised")

    def submit(self, task_id: str, *, queue: QueueName = "worker", **changes: Any) -> None:
        task = Task(id=task_id, role=queue, prompt="x", created_at=START, trace_id="trace-1")
        self.files.save_new(f"{queue}/queue/{task_id}.json", task.but(**changes))

    def ids(self) -> list[str]:
        return [task.id for _, task, _ in self.ran]

    def close(self) -> None:
        self.gate.set()
        self.consumer.stop()
        if self.thread.ident is not None:
            self.thread.join(30)
            assert not self.thread.is_alive()
        self.watch.close()


@pytest.fixture
def made() -> Iterator[list[Bench]]:
    """Every bench a test made is closed."""
    benches: list[Bench] = []
    yield benches
    for bench in benches:
        bench.close()


@pytest.fixture
def start(tmp_path: Path, made: list[Bench]) -> Any:
    def start(*, run: bool = True, **options: Any) -> Bench:
        bench = Bench(tmp_path, **options)
        made.append(bench)
        if run:
            bench.thread.start()
        return bench

    return start


# ---- pools ----------------------------------------------------------------------------------


def test_tasks_dropped_while_it_idles_are_run_in_their_queues(start: Any) -> None:
    bench = start()
    bench.submit("w")
    bench.submit("p", queue="planner")
    until(lambda: len(bench.ran) == 2)
    assert {(queue, task.id) for queue, task, _ in bench.ran} == {("worker", "w"), ("planner", "p")}
    until(lambda: names(bench.files, "worker/ended") == ["w.json"])


def test_order_is_the_product_s_and_the_pool_s_size_is_the_limit(start: Any) -> None:
    bench = start(run=False, threads={"planner": 1, "worker": 2})
    bench.gate.clear()
    for i, priority in enumerate((5, 9, 1, 5)):
        bench.submit(f"t{i}", priority=priority, created_at=START - timedelta(days=i))
    bench.submit("internal", internal=True)
    bench.thread.start()
    until(lambda: len(bench.ran) == 2)
    assert len(names(bench.files, "worker/running")) == 2
    bench.gate.set()
    until(lambda: len(bench.ran) == 5)
    assert sorted(bench.ids()[:2]) == ["internal", "t1"]
    assert "t2" in bench.ids()[-2:]  # claimed last; the one beside it may be entered after it


def test_a_used_id_and_a_wrong_file_are_quarantined_with_their_reasons(start: Any) -> None:
    bench = start(is_known_id=lambda task_id: task_id == "used")
    bench.gate.clear()
    bench.submit("busy")
    until(lambda: bench.ran)
    bench.submit("busy")
    bench.submit("used")
    bench.files.write("worker/queue/a.json", b'{"id":"b","prompt":"x"}')
    until(lambda: len(reasons(bench.files)) == 3)
    told = "".join(reasons(bench.files))
    assert told.count("id already used") == 2
    assert "expected 'a' as in the file's name, got 'b'" in told
    assert bench.ids() == ["busy"]


def test_a_task_released_for_another_attempt_runs_again(start: Any) -> None:
    bench = start()
    runs: list[int] = []

    def run_task(_queue: QueueName, task: Task) -> None:
        runs.append(task.attempts)
        again = task.but(attempts=task.attempts + 1, released=True)
        bench.files.save("worker/running/a.json", again)
        where = "worker/queue/a.json" if again.attempts < 3 else "worker/ended/a.json"
        bench.files.move("worker/running/a.json", where)

    bench.consumer.hueys["worker"]._wrapper.task_class.execute = (  # pyright: ignore[reportAttributeAccessIssue]
        lambda self: run_task("worker", self.args[0])
    )
    bench.submit("a")
    until(lambda: names(bench.files, "worker/ended"))
    assert runs == [0, 1, 2]


def test_while_paused_nothing_starts(start: Any) -> None:
    bench = start(run=False)
    bench.consumer.storages["worker"].paused = True
    bench.thread.start()
    bench.submit("w")
    bench.submit("p", queue="planner")
    until(lambda: bench.ids() == ["p"])
    assert names(bench.files, "worker/queue") == ["w.json"]
    bench.consumer.storages["worker"].paused = False
    until(lambda: "w" in bench.ids())


# ---- what fails -----------------------------------------------------------------------------


def test_a_run_that_raises_is_logged_and_the_pool_lives_on(
    start: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []

    def run_task(_queue: QueueName, task: Task) -> None:
        ran.append(task.id)
        raise RuntimeError("against the contract")

    bench = start(run_task=run_task, threads={"worker": 1})
    bench.submit("a")
    bench.submit("b", priority=1)
    until(lambda: len(ran) == 2)
    assert "against the contract" in caplog.text


def test_a_worker_thread_that_died_ends_the_process(start: Any) -> None:
    def run_task(_queue: QueueName, _task: Task) -> None:
        sys.exit(1)

    crashes: list[str] = []
    bench = start(run_task=run_task, threads={"worker": 1}, crash=crashes.append)
    bench.submit("deadly")
    until(lambda: crashes)
    assert crashes[0] == "the Worker-1 thread died"
    assert names(bench.files, "worker/running") == ["deadly.json"]


def test_a_supervisor_that_fails_ends_the_process(start: Any) -> None:
    def supervise(_stop: threading.Event) -> None:
        raise RuntimeError("odd")

    crashes: list[str] = []
    start(supervise=supervise, crash=crashes.append)
    until(lambda: crashes)
    assert crashes[0] == "the supervisor failed: RuntimeError('odd')"


# ---- bells ----------------------------------------------------------------------------------


def test_a_periodic_job_rings_and_writes_nothing(start: Any) -> None:
    rung: list[str] = []
    bench = start(
        run=False,
        periodic={
            "archive": ("0 */6 * * *", lambda: rung.append("archive")),
            "batch": ("*/5 * * * *", lambda: rung.append("batch")),
        },
    )
    scheduler = bench.consumer._create_scheduler()
    before = {path: path.stat().st_mtime_ns for path in Path(bench.files.fs.root).rglob("*")}
    for at in ("2026-12-01 05:04", "2026-12-01 05:05", "2026-12-01 06:00"):
        scheduler.enqueue_periodic_tasks(datetime.fromisoformat(at))
    assert rung == ["batch", "archive", "batch"]
    after = {path: path.stat().st_mtime_ns for path in Path(bench.files.fs.root).rglob("*")}
    assert after == before


@pytest.mark.parametrize("cron", ["* * * *", "61 * * * *", "often"])
def test_a_wrong_cron_expression_is_refused_at_once(start: Any, cron: str) -> None:
    with pytest.raises(BadSettings, match="cron"):
        start(run=False, periodic={"x": (cron, lambda: None)})


# ---- the end --------------------------------------------------------------------------------


def test_a_stop_lets_runs_end_and_the_supervisor_see_them(start: Any) -> None:
    bench = start()
    bench.gate.clear()
    bench.submit("a")
    until(lambda: bench.ran)
    stopping = threading.Thread(target=bench.consumer.stop)
    stopping.start()
    until(lambda: "stopping" in bench.steps)
    bench.submit("too-late")
    assert stopping.is_alive()
    bench.gate.set()
    stopping.join(20)
    bench.thread.join(20)
    assert bench.steps == ["supervising", "stopping", "ran a", "supervised"]
    assert names(bench.files, "worker/queue") == ["too-late.json"]


def test_a_run_that_does_not_end_does_not_hold_the_stop_for_ever(
    start: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bench = start(shutdown_timeout_s=0.1)
    bench.gate.clear()
    bench.submit("a")
    until(lambda: bench.ran)
    bench.consumer.stop()
    assert "not every run ended" in caplog.text
    assert names(bench.files, "worker/running") == ["a.json"]


PROGRAM = """
import sys, threading, logging
from pathlib import Path
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.watch import FolderWatch
from mimikit.protocol.files import Files
from mimikit.runner.consumer import PooledConsumer

root = Path(sys.argv[1])
files = Files(RealDisk(root), durable=False)
ending = threading.Event()

def run_task(queue, task):
    print("run", task.id, flush=True)
    ending.wait()
    files.move(f"{queue}/running/{task.id}.json", f"{queue}/ended/{task.id}.json")

def stopping():
    print("stopping", flush=True)
    ending.set()

consumer = PooledConsumer(
    files, watch=FolderWatch(root), threads={"planner": 1, "worker": 1}, run_task=run_task,
    supervise=lambda stop: stop.wait(), on_stopping=stopping)
print("ready", flush=True)
consumer.run()
print("end", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_each_signal_ends_it_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    files: Files = real_files(tmp_path, product=True)
    files.write("worker/queue/a.json", b'{"prompt":"x","priority":9}')
    files.write("worker/queue/b.json", b'{"prompt":"x"}')
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert child.stdout is not None
    told = [child.stdout.readline() for _ in range(2)]
    child.send_signal(number)
    told += child.communicate(timeout=30)[0].splitlines(keepends=True)
    assert [line.strip() for line in told] == ["ready", "run a", "stopping", "end"]
    assert child.returncode == 0
    assert names(files, "worker/queue") == ["b.json"]
    assert json.loads(files.read("worker/ended/a.json") or b"")["id"] == "a"
