"""One trigger that is damaged, edited at a bad moment or refused never harms it or the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mimikit.protocol import paths
from mimikit.supervisor.loop import LOG_EVERY, REST_S
from tests.crash.disk import WatchedDisk
from tests.crash.driver import Client
from tests.support.reading import at, cond, fired, loaded


def rewrite(client: Client, trigger_id: str, **fields: Any) -> None:
    """Edit a definition by hand, before anybody is told of it."""
    path = paths.trigger(trigger_id)
    client.files.write(path, json.dumps(loaded(client.files, path) | fields).encode())


def test_a_postponement_that_nobody_was_told_of_yet_is_kept(judged: Client) -> None:
    judged.make("g1", "late", type="scheduled", schedule={"runAt": "2026-12-01T09:01:00Z"})
    judged.product.idle()
    rewrite(judged, "g1", schedule={"runAt": "2026-12-01T10:00:00Z"})
    at(judged, 120)
    assert fired(judged) == 0
    at(judged, 3601)
    assert fired(judged) == 1


def test_a_condition_edited_by_hand_is_not_judged_by_what_the_old_one_has_seen(
    judged: Client,
) -> None:
    judged.touch("a")
    judged.when("g1", "build", cond("file_changed", path="a"))
    judged.product.idle()
    rewrite(judged, "g1", condition=cond("file_changed", path="b"))
    judged.product.store.events.changed_files.put({"g1"})
    judged.product.idle()
    assert fired(judged) == 0


def test_a_refused_circle_leaves_the_last_good_version_in_force(judged: Client) -> None:
    judged.trigger("g1", 60, "tick")
    judged.when("g2", "tock", cond("task_done", taskId="g1"))
    judged.product.idle()
    rewrite(
        judged, "g1", type="conditional", schedule=None, condition=cond("task_done", taskId="g2")
    )
    judged.product.store.events.changed_triggers.put("g1")
    at(judged, 60)
    at(judged, 120)
    assert (fired(judged), fired(judged, "g2")) == (2, 2)


def test_the_end_of_a_task_is_heard_of_although_only_its_flush_failed(
    client: Client, disk: WatchedDisk
) -> None:
    client.when("g1", "then", cond("task_done", taskId="t1"))
    client.product.idle()
    failed: list[str] = []

    def refuse(operation: str, path: str) -> OSError | None:
        if operation == "sync" and path.startswith("tasks/") and not failed:
            failed.append(path)
            return OSError(5, "Input/output error", path)
        return None

    client.submit("t1", "one")
    disk.fault = refuse
    client.product.idle()
    disk.fault = None
    assert failed
    assert fired(client) == 1


def test_a_damaged_last_good_version_is_not_used(client: Client) -> None:
    client.when("g1", "build", cond("file_changed", path="a"))
    client.product.idle()
    path = paths.trigger_state("g1")
    known = loaded(client.files, path)
    known["lastGood"]["condition"] = {"uype": "file_changed"}
    client.files.write(path, json.dumps(known).encode())
    client.product.store.events.changed_triggers.put("g1")
    client.product.idle()
    client.touch("a")
    client.product.idle()
    assert fired(client) == 1
    assert client.product.log.errors == []


def test_an_editor_that_has_the_file_away_at_the_start_loses_nothing(judged: Client) -> None:
    judged.trigger("g1", 60, "tick")
    at(judged, 60)
    path = paths.trigger("g1")
    definition = judged.files.read(path)
    assert definition is not None
    judged.files.remove(path)
    judged.product.supervisor.triggers.load(judged.now)
    judged.product.supervisor.triggers.remove_orphaned_states(judged.now)
    judged.files.write(path, definition)
    judged.product.store.events.changed_triggers.put(None)
    at(judged, 121)
    assert loaded(judged.files, paths.trigger_state("g1"))["fireCount"] == 2


@pytest.mark.parametrize(("condition", "old", "runs"), [
    (cond("task_done", taskId="t1"), {"lastSeenResultId": "t1"}, 0),
    (cond("task_done", taskId="t1"), {"lastSeenResultId": "t0"}, 1),
    (cond("file_changed", path="a"), {"lastMtime": 1.0}, 0),
    (cond("file_changed", path="a"), {"lastMtime": 0.0}, 1),
])  # fmt: skip
def test_what_an_earlier_format_has_seen_is_not_seen_again(
    judged: Client, condition: dict[str, Any], old: dict[str, object], runs: int
) -> None:
    judged.submit("t1", "one")
    judged.touch("a")
    judged.product.idle()
    judged.files.write(paths.trigger_state("g1"), json.dumps({"fireCount": 0, **old}).encode())
    judged.when("g1", "then", condition)
    judged.product.idle()
    assert fired(judged) == runs


def test_what_fails_over_and_over_is_told_at_times_and_anew_after_it_went_well(
    client: Client,
) -> None:
    supervisor, outcomes = client.product.supervisor, iter([1] * 650 + [0] + [1] * 2)

    def operation(_now: object) -> bool:
        if next(outcomes):
            raise RuntimeError("as ever")
        return False

    supervisor._operations = [("trouble", operation)]
    for _ in range(653):
        client.product.clock.advance(REST_S + 0.1)
        supervisor.tick()
    told = [e["times"] for e in client.product.log.errors if e["event"] == "operation_failed"]
    assert told == [1, LOG_EVERY, 2 * LOG_EVERY, 1]
    client.product.log.errors.clear()
