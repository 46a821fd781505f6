"""The number of tasks per request is limited, also with concurrent plans."""

from __future__ import annotations

import contextlib
import errno

import pytest

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.models import QueueName, Task
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult
from tests.crash.driver import Client
from tests.support.memory_disk import DiskStep, MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product, scripted_settings
from tests.support.reading import results
from tests.support.twins import FakeClock

MOST = scripted_settings().limits.tasks_per_trace
REQUEST = Task(
    id="p0", role="planner", prompt="x", created_at=START, trace_id="r", origin="teller",
    notify="teller",
)  # fmt: skip


def plan_of(asked: Task, seat: str = "worker") -> PlanResult:
    """Twenty tasks, planned by who saw nothing of the other plans."""
    tasks = [
        REQUEST.but(id=f"{asked.id}-{n}", role=seat, prompt="plan: one", origin="planner")
        for n in range(20)
    ]
    made = PlanResult.of(asked, "done", attempts=1, started_at=START, completed_at=START)
    return made.but(tasks=tasks)


def ends(client: Client) -> list[TaskResult]:
    found = (
        client.files.load(paths.result("worker", id_), TaskResult) for id_ in results(client.files)
    )
    return [end for end in found if end is not None]


def test_plans_made_at_the_same_time_keep_the_limit_together(client: Client) -> None:
    product = client.product
    asked = [REQUEST.but(id=f"p{n}") for n in range(3)]
    for task in asked:
        product.applier.submit(task)
        client.files.move(paths.queued("planner", task.id), paths.running("planner", task.id))
    for task in asked:
        client.files.save(paths.result("planner", task.id), plan_of(task))
        product.applier.end_run("planner", task.id)
    product.idle()
    ran = [end for end in ends(client) if end.status == "done"]
    refused = [end for end in ends(client) if end.failure_reason == "refused"]
    assert len(ran) + len(asked) == MOST
    assert len(refused) == 60 - len(ran)
    said = f"expected at most {MOST} tasks that follow from one request"
    assert {end.error for end in refused} == {said}
    for folder in ("worker/running", "worker/queue", "planner/running", "inbox"):
        assert client.files.names(folder) == []  # and who asked was told


def test_a_restart_and_a_replay_count_nothing_twice(client: Client) -> None:
    full = [REQUEST.but(id=f"t{n}", role="worker", prompt="one") for n in range(MOST - 1)]
    client.order("o1", "pause")
    client.product.tick()
    for task in full:
        client.product.applier.submit(task)
    client.stop()
    again = Product(client.files, FakeClock(START), Mind([]))
    again.start()
    assert again.store.ledger.trace_size("r") == MOST - 1
    plan = plan_of(REQUEST)
    again.applier._publish(plan.tasks[0], START)
    again.applier._publish(plan.tasks[0], START)
    again.applier._publish(plan.tasks[1], START)
    again.applier._publish(plan.tasks[1], START)
    refused = again.store.ledger.end_of("p0-1")
    assert refused is not None
    assert refused.failure_reason == "refused"
    assert again.store.ledger.end_of("p0-0") is None
    assert len(again.queued("worker")) == MOST


@pytest.mark.parametrize("seat", ["worker", "planner"])
def test_a_refusal_interrupted_by_the_disk_is_completed_by_its_replay(
    client: Client, seat: QueueName
) -> None:
    client.order("o1", "pause")
    client.product.tick()
    for n in range(MOST):
        client.product.applier.submit(REQUEST.but(id=f"t{n}", role="worker"))
    disk = client.files.fs
    assert isinstance(disk, MemoryDisk)
    refused_at = 0
    while True:
        number, refused_at = refused_at, refused_at + 1
        task = REQUEST.but(id=f"late-{number}", role=seat)
        left = [number]  # changes until one is refused

        def fail(_number: int, _step: DiskStep, left: list[int] = left) -> OSError | None:
            left[0] -= 1
            return OSError(errno.EIO, "refused") if left[0] == -1 else None

        disk.fail = fail
        with contextlib.suppress(StorageError):
            client.product.applier._publish(task, START)
        disk.fail = None
        client.product.applier._publish(task, START)
        assert client.files.exists(paths.inbox(paths.result_inbox_id(task.id)))
        assert client.files.exists(paths.ended(seat, task.id))
        outcome = paths.plan_done(task.id) if seat == "planner" else paths.result(seat, task.id)
        assert client.files.exists(outcome)
        assert client.files.names(f"{seat}/running") == []
        if left[0] >= 0:
            break
    assert refused_at > 15
