"""No file and no record of a day to come takes the transcript or the ledger for good."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from mimikit.conversation import history
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Message, TurnRecord
from mimikit.protocol.runtime import RuntimeState
from mimikit.supervisor.store import MOST_AHEAD
from mimikit.tasks import ledger
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.twins import FakeClock

FAR = datetime.fromisoformat("2199-12-31T00:00:00+00:00")
DAY, MONTH = "history/2199-12-31.jsonl", "tasks/2199-12.jsonl"
TODAY, THIS_MONTH = paths.transcript(START.date()), paths.ledger(START)


def begin(files: Files, now: datetime = START) -> Client:
    oracle = Oracle()
    client = Client(Product(files, FakeClock(now), Mind(oracle.runs)), oracle)
    client.product.start()
    return client


def line(id_: str, at: datetime = START) -> bytes:
    message = Message(id=id_, role="user", text=f"said {id_}", created_at=at)
    return json.dumps(message.to_dict()).encode() + b"\n"


def ended(task_id: str) -> bytes:
    told: dict[str, Any] = {"at": "2026-12-01T08:00:00Z", "event": "ended", "id": task_id}
    return json.dumps({**told, "status": "done", "traceId": "t"}).encode() + b"\n"


def names(files: Files, folder: str) -> list[str]:
    return files.names(folder, suffix=".jsonl")


def ids(files: Files) -> list[str]:
    return [message.id for message in history.page(files).messages]


@pytest.mark.parametrize("known", [True, False], ids=["after others", "alone"])
@pytest.mark.parametrize(
    ("said", "wrote"),
    [
        pytest.param(b"", b"", id="none"),
        pytest.param(b"no line\n", b"{}\n", id="foreign"),
        pytest.param(line("odd"), ended("odd"), id="ours"),
        pytest.param(line("odd") + b'{"id": "to', ended("odd") + b'{"at', id="ours, torn"),
    ],
)
def test_a_file_of_a_day_to_come_is_taken_into_the_newest(
    files: Files, said: bytes, wrote: bytes, *, known: bool
) -> None:
    if known:
        client = begin(files)
        client.say("before", "hello")
        client.submit("t0", "work")
        client.product.idle()
    told, ours = ids(files), line("odd") in said
    files.write(DAY, said)
    files.write(MONTH, wrote)
    for number in range(2):
        client = begin(files)
        client.say(f"m{number}", "hello")
        client.submit(f"t{number + 1}", "work")
        client.product.idle()
        assert client.product.log.errors == []
    assert names(files, paths.TRANSCRIPT) == [TODAY.removeprefix("history/")]
    assert names(files, paths.LEDGER) == [THIS_MONTH.removeprefix("tasks/")]
    found = ids(files)
    assert found[: len(told)] == told
    assert [id_ for id_ in found if id_ in ("odd", "m0", "m1")] == ["odd"] * ours + ["m0", "m1"]
    assert len(set(found)) == len(found)
    assert history.page(files, limit=1).messages[-1].task_ids == ["t2"]
    known_ids = set(ledger.ended_ids(files, 100))
    assert {"t1", "t2"} | ({"odd"} if ours else set()) <= known_ids
    again = begin(files).product.store
    assert again.ledger.end_of("t2") is not None
    assert (again.ledger.end_of("odd") is not None) == ours
    assert again.conversation.has("m1", START.date())


def test_what_is_said_of_a_time_to_come_begins_no_file_of_it(files: Files) -> None:
    client = begin(files)
    said = Message(id="far", role="user", text="hi", created_at=FAR)
    turn = TurnRecord(id="odd", author="code", started_at=FAR, completed_at=FAR, messages=[said])
    files.save(paths.turn_new("odd"), turn)
    client.product.store.ledger.write("queued", "t9", FAR, traceId="t")
    client.product.idle()
    client.say("m1", "hello")
    client.product.idle()
    tomorrow = START.date() + timedelta(days=1)
    assert names(files, paths.TRANSCRIPT) == [f"{tomorrow}.jsonl"]
    assert names(files, paths.LEDGER) == [THIS_MONTH.removeprefix("tasks/")]
    assert ids(files)[:2] == ["far", "m1"]
    client = begin(files, START + timedelta(days=2))
    client.say("m2", "hello")
    client.product.idle()
    assert len(names(files, paths.TRANSCRIPT)) == 2


def test_a_clock_that_may_be_wrong_takes_no_day_back(files: Files) -> None:
    """It was set back by a year: what was said lately is of days to come then."""
    client = begin(files)
    client.say("m1", "hello")
    client.product.idle()
    client.stop()
    before = files.read(TODAY)
    client = begin(files, START - timedelta(days=365))
    client.say("m2", "hello")
    client.product.idle()
    assert names(files, paths.TRANSCRIPT) == [TODAY.removeprefix("history/")]
    assert before is not None
    assert (files.read(TODAY) or b"").startswith(before)
    assert [id_ for id_ in ids(files) if id_.startswith("m")][-1:] != ["m1"]


def test_many_days_to_come_say_that_it_is_the_clock(files: Files) -> None:
    for number in range(MOST_AHEAD + 1):
        files.write(f"history/2199-01-0{number + 1}.jsonl", line(f"m{number}", FAR))
    begin(files)
    assert len(names(files, paths.TRANSCRIPT)) == MOST_AHEAD + 1


@pytest.mark.parametrize("name", ["history/2026-02-30.jsonl", "tasks/2026-13.jsonl"])
def test_no_day_of_the_calendar_is_set_aside(files: Files, name: str) -> None:
    files.write(name, b"")
    begin(files)
    assert not files.exists(name)
    assert len(files.names(paths.CORRUPT, suffix=paths.REASON)) == 1


def test_a_start_that_died_in_between_takes_no_line_twice() -> None:
    disk = MemoryDisk()
    files = Files(disk)
    files.make_folders()
    files.write(TODAY, line("a"))
    files.write(DAY, line("b"))
    files.save(paths.RUNTIME, RuntimeState())
    data = files.read(DAY)
    begin(files)
    assert data is not None
    files.write(DAY, data)  # the file's removal was lost
    begin(files)
    assert ids(files) == ["a", "b"]
    assert not files.exists(DAY)
