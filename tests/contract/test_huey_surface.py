"""The part of Huey that we stand on: a new version that changes it is noticed here first."""

from __future__ import annotations

import inspect

import huey
import pytest
from huey import api, constants, consumer, registry, serializer, signals, storage, utils
from huey.api import MemoryHuey

from mimikit.hueyfiles.storage import ClaimHuey, ClaimStorage
from mimikit.runner.queues import TaskHuey

STORAGE = {
    "close": "self",
    "enqueue": "self, data, priority=None",
    "dequeue": "self",
    "queue_size": "self",
    "enqueued_items": "self, limit=None",
    "flush_queue": "self",
    "add_to_schedule": "self, data, ts",
    "read_schedule": "self, ts",
    "schedule_size": "self",
    "scheduled_items": "self, limit=None",
    "flush_schedule": "self",
    "put_data": "self, key, value, is_result=False",
    "peek_data": "self, key",
    "peek_many": "self, keys",
    "pop_data": "self, key",
    "delete_data": "self, key",
    "has_data_for_key": "self, key",
    "put_if_empty": "self, key, value, ttl=None",
    "wait_result": "self, key, timeout=None, backoff=1.15, max_delay=1.0",
    "incr": "self, key, amount=1",
    "delete_counter": "self, key",
    "result_store_size": "self",
    "result_items": "self",
    "flush_results": "self",
    "flush_counters": "self",
    "flush_all": "self",
}
HUEY = {
    "create_storage": "self",
    "serialize_task": "self, task",
    "deserialize_task": "self, data",
    "enqueue": "self, task",
    "dequeue": "self",
    "execute": "self, task, timestamp=None",
    "is_revoked": "self, task, timestamp=None, peek=True",
    "delete": "self, key",
    "read_schedule": "self, timestamp=None",
}
CONSUMER = {
    "start": "self",
    "stop": "self, graceful=False",
    "loop": "self, health_check_ts=None",
    "check_worker_health": "self",
    "_create_worker": "self",
    "_create_scheduler": "self",
    "_create_process": "self, process, name",
    "_join_workers": "self",
    "_set_signal_handlers": "self",
    "_handle_signal": "self, signum, frame",
}


def shape(function: object) -> str:
    return str(inspect.signature(function)).strip("()")  # pyright: ignore[reportArgumentType]


def test_the_version_is_the_pinned_one() -> None:
    assert huey.__version__.startswith("3.5.")


@pytest.mark.parametrize(
    ("owner", "expected"),
    [(storage.BaseStorage, STORAGE), (api.Huey, HUEY), (consumer.Consumer, CONSUMER)],
    ids=["BaseStorage", "Huey", "Consumer"],
)
def test_what_we_override_and_call_looks_as_it_did(owner: type, expected: dict[str, str]) -> None:
    assert {name: shape(getattr(owner, name)) for name in expected} == expected


def test_the_storage_s_contract_is_all_of_it_and_all_of_it_is_ours() -> None:
    public = {name for name, _ in inspect.getmembers(storage.BaseStorage, inspect.isfunction)}
    assert {name for name in public if not name.startswith("_")} == set(STORAGE)
    base = storage.BaseStorage
    left = {name for name in STORAGE if getattr(ClaimStorage, name) is getattr(base, name)}
    assert left == {"wait_result", "flush_all"}, "Huey builds these two from the others"


def test_a_message_has_the_fields_we_write() -> None:
    assert registry.Message._fields == (
        "id", "name", "eta", "retries", "retry_delay", "priority", "args", "kwargs", "on_complete",
        "on_error", "expires", "expires_resolved", "timeout", "chord_config", "retry_backoff",
    )  # fmt: skip
    assert registry.Message("id", "name") == registry.Message(id="id", name="name")


def test_values_we_name_are_there() -> None:
    assert utils.Error._fields == ("metadata",)
    assert repr(utils.SKIPPED) == "SKIPPED"
    assert isinstance(constants.EmptyData, type)
    assert signals.SIGNAL_INTERRUPTED == "interrupted"
    assert {"_serialize", "_deserialize"} <= set(serializer.Serializer.__dict__)
    assert issubclass(consumer.ConsumerStopped, Exception)
    assert issubclass(api.PeriodicTask, api.Task)


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


def test_crontab_takes_five_fields_and_is_strict_when_told() -> None:
    assert (
        shape(api.crontab)
        == "minute='*', hour='*', day='*', month='*', day_of_week='*', strict=False"
    )
    with pytest.raises(ValueError, match="not a valid input"):
        api.crontab(minute="often", strict=True)


def test_no_pickle_is_ever_made() -> None:
    assert ClaimHuey.storage_class is ClaimStorage
    for owner in (ClaimHuey, TaskHuey):
        assert "JsonSerializer" in inspect.getsource(owner.__init__)
