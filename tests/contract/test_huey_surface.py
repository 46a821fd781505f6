"""What we rely on in Huey beyond its documentation."""

from __future__ import annotations

import inspect

import huey
from huey import api, consumer, registry, storage
from huey.api import MemoryHuey

from mimikit.hueyfiles.storage import ClaimHuey, ClaimStorage
from mimikit.runner.queues import TaskHuey


def test_the_version_is_the_pinned_one() -> None:
    assert huey.__version__.startswith("3.5.")


def test_all_of_the_storage_s_contract_is_ours() -> None:
    base = storage.BaseStorage
    members = inspect.getmembers(base, inspect.isfunction)
    public = {name for name, _ in members if not name.startswith("_")}
    left = {name for name in public if getattr(ClaimStorage, name) is getattr(base, name)}
    assert left == {"wait_result", "flush_all"}, "Huey builds these two from the others"


def test_a_message_has_the_fields_we_write() -> None:
    assert registry.Message._fields == (
        "id", "name", "eta", "retries", "retry_delay", "priority", "args", "kwargs", "on_complete",
        "on_error", "expires", "expires_resolved", "timeout", "chord_config", "retry_backoff",
    )  # fmt: skip


def test_the_consumer_loop_wakes_as_often_as_we_say() -> None:
    assert hasattr(MemoryHuey().create_consumer(), "_stop_flag_timeout")
    assert consumer.Scheduler.periodic_task_seconds == 60


def test_the_worker_asks_executes_and_asks_again_in_one_thread() -> None:
    """What acknowledgement rests on: dequeue, execute, dequeue, all by the same worker."""
    steps: list[str] = []

    class Watched(MemoryHuey):
        def dequeue(self) -> api.Task | None:
            steps.append("dequeue")
            return super().dequeue()

        def execute(self, task: api.Task, timestamp: object = None) -> object:
            steps.append("execute")
            return super().execute(task, timestamp)

    watched = Watched()
    watched.task(name="nothing")(lambda: None)()
    made = consumer.Worker(
        watched,
        consumer.ThreadEnvironment().get_stop_flag(),
        default_delay=0,
        max_delay=0,
        backoff=1,
    )
    made.loop()
    made.loop()
    assert steps == ["dequeue", "execute", "dequeue"]


def test_no_pickle_is_ever_made() -> None:
    assert ClaimHuey.storage_class is ClaimStorage
    for owner in (ClaimHuey, TaskHuey):
        assert "JsonSerializer" in inspect.getsource(owner.__init__)
