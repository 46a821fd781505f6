"""Triggers fire once a slot, whatever the clock, the crash or the pile of runs."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from mimikit.protocol import paths
from mimikit.protocol.triggers import Schedule, Trigger
from mimikit.tasks import ledger
from mimikit.triggers import registry
from mimikit.triggers.decide import make_run
from tests.crash.driver import Client
from tests.support.product import START
from tests.support.reading import at, loaded, results, slots


def planned(client: Client, trigger_id: str = "g1") -> list[str]:
    """The slots that ran, as seconds after the start."""
    return [
        line["slot"][14:19] for line in slots(client.files, trigger_id) if line["state"] == "ran"
    ]


def state(client: Client) -> dict[str, Any]:
    return loaded(client.files, paths.trigger_state("g1"))


def test_a_trigger_fires_an_interval_after_it_was_made_and_then_without_drift(
    judged: Client,
) -> None:
    judged.trigger("g1", 60, "tick")
    at(judged, 59)
    assert planned(judged) == []
    for seconds in (61, 125, 180):  # ticks are late, slots are not
        at(judged, seconds)
    assert planned(judged) == ["01:00", "02:00", "03:00"]
    assert state(judged)["nextRunAt"] == "2026-12-01T09:04:00.000Z"
    assert state(judged)["fireCount"] == 3
    assert set(results(judged.files).values()) == {"done"}


def test_missed_slots_are_told_and_not_made_up(judged: Client) -> None:
    judged.trigger("g1", 60, "tick")
    at(judged, 60)
    at(judged, 600)
    assert planned(judged) == ["01:00", "02:00"]
    (_, late) = slots(judged.files, "g1")
    assert late["missed"] == 8
    at(judged, 659)
    assert len(planned(judged)) == 2
    at(judged, 660)
    assert planned(judged)[-1] == "11:00"


def test_a_run_that_is_not_over_lets_its_next_slot_be_skipped(judged: Client) -> None:
    judged.trigger("g1", 60, "tick")
    judged.order("o1", "pause")
    at(judged, 60)
    at(judged, 120)
    assert [line["state"] for line in slots(judged.files, "g1")] == ["ran", "skipped"]
    assert slots(judged.files, "g1")[1]["reason"]
    judged.order("o2", "resume")
    judged.product.idle()
    at(judged, 180)
    assert [line["state"] for line in slots(judged.files, "g1")] == ["ran", "skipped", "ran"]
    assert len(results(judged.files)) == 2


def test_runs_pile_up_where_they_shall(judged: Client) -> None:
    judged.trigger("g1", 60, "tick")
    data = loaded(judged.files, paths.trigger("g1")) | {"overlap": "queue"}
    judged.files.write(paths.trigger("g1"), json.dumps(data).encode())
    judged.product.store.events.changed_triggers.put("g1")
    judged.order("o1", "pause")
    at(judged, 60)
    at(judged, 120)
    assert len(judged.files.names("worker/queue")) == 2
    judged.order("o2", "resume")


def test_a_clock_set_back_fires_no_slot_again(judged: Client) -> None:
    judged.trigger("g1", 60, "tick")
    at(judged, 60)
    judged.product.clock.jump(START + timedelta(seconds=30))
    for seconds in (60, 119):
        at(judged, seconds)
    assert planned(judged) == ["01:00"]
    at(judged, 120)
    assert planned(judged) == ["01:00", "02:00"]


def test_the_same_slot_always_makes_the_same_run() -> None:
    trigger = Trigger(
        id="g1", type="recurring", prompt="x", created_at=START, trace_id="r",
        schedule=Schedule(interval=60), origin="cli", priority=7, max_attempts=3, timeout=5,
        profile="command", notify="failure",
    )  # fmt: skip
    run = make_run(trigger, "slot", START)
    assert run.id == make_run(trigger, "slot", START + timedelta(hours=1)).id
    assert run.id != make_run(trigger, "other slot", START).id
    assert run.id != make_run(trigger.but(id="g2"), "slot", START).id
    assert (run.origin, run.trigger_origin, run.source_trigger_id) == ("trigger", "cli", "g1")
    assert (run.priority, run.max_attempts, run.timeout, run.profile, run.notify) == (
        7, 3, 5, "command", "failure",
    )  # fmt: skip
    assert run.trace_id == "r"


def test_a_definition_its_user_broke_stays_and_the_last_good_one_stays_in_force(
    judged: Client,
) -> None:
    judged.trigger("g1", 60, "tick")
    judged.product.idle()
    judged.files.write(paths.trigger("g1"), b'{"id": "g1",\n "type": }')
    judged.product.store.events.changed_triggers.put("g1")
    at(judged, 61)
    assert len(planned(judged)) == 1
    assert judged.files.read(paths.trigger("g1")) == b'{"id": "g1",\n "type": }'
    told = [audit for audit in judged.product.log.audits if audit["event"] == "trigger_broken"]
    assert len(told) == 1
    assert "line 2" in str(told[0]["reason"])


def test_an_ordered_run_is_one_more_and_moves_no_slot(judged: Client) -> None:
    judged.trigger("g1", 60, "tick")
    judged.order("o1", "trigger_run", "g1")
    judged.product.idle()
    assert len(results(judged.files)) == 1
    at(judged, 60)
    assert planned(judged) == ["01:00"]
    assert len(results(judged.files)) == 2


# ---- schedules that end, or whose slots are worth nothing later


def limited(client: Client, **limits: Any) -> None:
    client.trigger("g1", 60, "tick")
    data = loaded(client.files, paths.trigger("g1"))
    data |= {"type": None, "schedule": data["schedule"] | limits}
    client.files.write(paths.trigger("g1"), json.dumps(data).encode())
    client.product.store.events.changed_triggers.put("g1")


def events(client: Client) -> list[str]:
    lines = ledger.slots_of(client.files, "g1", 50)
    return [str(line.get("reason") or line.get("state") or line["event"]) for line in lines]


@pytest.mark.parametrize("limits", [{"times": 2}, {"until": "2026-12-01T09:02:30Z"}])
def test_a_schedule_that_has_ended_is_removed_and_recorded(judged: Client, limits: Any) -> None:
    limited(judged, **limits)
    for seconds in (60, 120, 180, 240):
        at(judged, seconds)
    assert planned(judged) == ["01:00", "02:00"]
    assert not registry.exists(judged.files, "g1")
    assert events(judged)[-2:] == ["ran", "trigger_ended"]


def test_its_runs_are_counted_from_the_change_of_the_schedule(judged: Client) -> None:
    limited(judged)
    at(judged, 60)
    limited(judged, times=1)
    at(judged, 61)
    assert registry.exists(judged.files, "g1")
    at(judged, 121)
    assert not registry.exists(judged.files, "g1")


def test_a_slot_later_than_its_limit_is_recorded_as_missed_and_not_run(judged: Client) -> None:
    limited(judged, lateness=20)
    at(judged, 75)
    assert planned(judged) == ["01:00"]
    at(judged, 60 * 10 + 10)  # the slots of 2 to 9 are too late, that of 10 is not
    assert planned(judged) == ["01:00", "10:00"]
    missed = slots(judged.files, "g1")[1]
    assert (missed["state"], missed["reason"], missed["missed"]) == ("missed", "late", 7)
