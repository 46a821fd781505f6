"""The number of tasks per request is limited, also with concurrent plans."""

from __future__ import annotations

from mimikit.protocol import paths
from mimikit.protocol.models import Task
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult
from tests.crash.driver import Client
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
