"""The ledger: every end is known, whether read from the checkpoint or from the tail."""

from __future__ import annotations

import errno
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.tasks import ledger
from mimikit.tasks.ledger import Ledger, events_of
from tests.support.memory_disk import DiskStep, MemoryDisk

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def end(book: Ledger, task_id: str, now: datetime = NOW, status: str = "done") -> None:
    book.write("ended", task_id, now, status=status, seat="worker", traceId="r", attempts=1)


def reopened(files: Files) -> Ledger:
    book = Ledger(files)
    book.load()
    return book


def test_an_end_is_known_at_once_and_after_a_restart(files: Files) -> None:
    book = reopened(files)
    assert book.end_of("t1") is None
    book.write("queued", "t1", NOW, seat="worker")
    assert book.end_of("t1") is None
    end(book, "t1", status="failed")
    for known in (book, reopened(files)):
        found = known.end_of("t1")
        assert found is not None
        assert (found.status, found.completed_at, found.trace_id) == ("failed", NOW, "r")
    assert len(reopened(files)) == 1


def test_what_was_checkpointed_is_not_read_again_and_the_rest_is(files: Files) -> None:
    book = reopened(files)
    end(book, "t1")
    book.checkpoint()
    end(book, "t2")
    saved = json.loads(files.read(paths.TASK_STATUS) or b"")
    assert set(saved["entries"]) == {"t1"}
    assert (saved["ledgerFile"], saved["schemaVersion"]) == ("2026-12.jsonl", 1)
    again = reopened(files)
    assert again.end_of("t1") is not None
    assert again.end_of("t2") is not None


def test_the_index_is_rebuilt_without_the_checkpoint(files: Files) -> None:
    book = reopened(files)
    end(book, "t1")
    book.checkpoint()
    end(book, "t2")
    files.remove(paths.TASK_STATUS)
    again = reopened(files)
    assert len(again) == 2


def test_a_checkpoint_that_is_no_record_is_put_aside_and_rebuilt(files: Files) -> None:
    book = reopened(files)
    end(book, "t1")
    files.write(paths.TASK_STATUS, b'{"entries": 5}')
    assert reopened(files).end_of("t1") is not None
    assert files.names(paths.CORRUPT, suffix="task_status.json")


def test_a_thousand_events_make_a_checkpoint(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "CHECKPOINT_EVENTS", 5)
    book = reopened(files)
    for number in range(5):
        assert files.read(paths.TASK_STATUS) is None
        end(book, f"t{number}")
    assert files.read(paths.TASK_STATUS) is not None


def test_a_torn_line_counts_as_none_and_hides_no_other(files: Files, disk: MemoryDisk) -> None:
    book = reopened(files)
    end(book, "t1")
    disk.append_line("tasks/2026-12.jsonl", b'{"event":"ended","id":"t2","status":"do', sync=True)
    book = reopened(files)
    assert book.end_of("t2") is None
    end(book, "t3")
    again = reopened(files)
    assert [again.end_of(id_) is not None for id_ in ("t1", "t2", "t3")] == [True, False, True]


@pytest.mark.parametrize(
    "line",
    [
        {"event": "ended"},
        {"event": "ended", "id": "t", "status": "done", "at": "yesterday"},
        {"event": "ended", "id": ["t"], "status": "done", "at": "2026-12-01T09:00:00Z"},
        {"event": "ended", "id": "t", "status": "weird", "at": "2026-12-01T09:00:00Z"},
        {"event": "ended", "id": "t", "status": "done", "at": "0001-01-01T00:00:00+09:00"},
        {"event": "ended", "id": "t", "status": "done", "at": "2026-12-01T09:00:00", "retryOf": 5},
        {"event": "queued", "id": "t", "retryOf": {"a": 1}},
        {"event": "slot", "id": {"a": 1}, "slot": [1], "taskId": {"b": 2}},
    ],
    ids=json.dumps,
)
def test_a_foreign_line_stops_nothing(files: Files, line: dict[str, object]) -> None:
    files.append("tasks/2026-12.jsonl", line)
    book = reopened(files)
    end(book, "t1")
    book.checkpoint()
    assert reopened(files).end_of("t1") is not None


def test_a_clock_that_was_set_back_hides_no_end(files: Files) -> None:
    book = reopened(files)
    end(book, "t1", NOW + timedelta(days=400))
    book.checkpoint()
    end(book, "t2", NOW)
    again = reopened(files)
    assert again.end_of("t2") is not None
    end(again, "t3", NOW)
    assert reopened(files).end_of("t3") is not None


def test_a_line_whose_flush_failed_is_there_and_not_written_twice(
    files: Files, disk: MemoryDisk
) -> None:
    book = reopened(files)
    end(book, "t0")

    def fail(_number: int, step: DiskStep) -> OSError | None:
        return OSError(errno.EIO, "failed") if step.operation == "sync" else None

    disk.fail = fail
    with pytest.raises(StorageError):
        end(book, "t1")
    disk.fail = None
    assert book.end_of("t1") is not None
    assert len(list(events_of(files, "t1"))) == 1


def test_a_line_that_was_refused_is_not_there(files: Files, disk: MemoryDisk) -> None:
    book = reopened(files)
    end(book, "t0")
    disk.fail = lambda _n, step: (
        OSError(errno.ENOSPC, "full") if step.operation == "write" else None
    )
    with pytest.raises(StorageError):
        end(book, "t1")
    disk.fail = None
    assert book.end_of("t1") is None
    end(book, "t1")
    assert len(list(events_of(files, "t1"))) == 1


def test_a_trace_is_counted_exactly_however_many_tasks_end_meanwhile(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "MOST_ENDS", 5)
    monkeypatch.setattr(ledger, "MOST_TRACES", 20)
    book = reopened(files)
    book.write("queued", "plan", NOW, traceId="r")
    for number in range(12):
        book.write("queued", f"t{number}", NOW, traceId="r")
        end(book, f"t{number}")  # of the trace "r"
    for number in range(300):  # others come and go
        book.write("queued", f"other{number}", NOW, traceId=f"trace{number}")
        book.write("ended", f"other{number}", NOW, status="done", traceId=f"trace{number}")
        if number % 50 == 0:
            book.checkpoint()
            book = reopened(files)
    assert book.end_of("t3") is None  # forgotten, and counted
    assert book.trace_size("r") == 13
    assert reopened(files).trace_size("r") == 13
    end(book, "plan")
    assert (book.trace_size("r"), book.trace_size("trace299")) == (13, 1)
    assert len(book._sizes) <= 2 * 20
    end(book, "t12")  # dropped by a program: no line says that it was queued
    assert book.trace_size("r") == 14
    book.write("queued", "again", NOW, traceId="r", retryOf="run")
    assert book.trace_size("r") == 15
    book.write("ended", "again", NOW, status="done", traceId="r", sourceTriggerId="g")
    assert book.trace_size("r") == 14  # a trigger's run that was repeated


def test_events_of_a_task_are_told_oldest_first(files: Files) -> None:
    book = reopened(files)
    book.write("queued", "t1", NOW)
    book.write("queued", "t2", NOW)
    book.write("ended", "t1", NOW + timedelta(seconds=1), status="done", until=NOW, gone=None)
    events = list(events_of(files, "t1"))
    assert [event["event"] for event in events] == ["queued", "ended"]
    assert events[1]["until"] == "2026-12-01T09:00:00.000Z"
    assert "gone" not in events[1]


def test_the_last_ends_are_found_from_the_end_across_months(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimikit.protocol.files._BLOCK_BYTES", (300, 1000))
    book = reopened(files)
    for number in range(90):
        book.write("queued", f"t{number}", NOW + timedelta(days=number))
        end(book, f"t{number}", NOW + timedelta(days=number))
    end(book, "t80", NOW + timedelta(days=90))
    newest = ["t80", *(f"t{number}" for number in range(89, -1, -1) if number != 80)]
    for limit in (1, 3, 10, 40, 90, 500):
        assert ledger.ended_ids(files, limit) == newest[:limit]
    assert ledger.ended_ids(files, 0) == []


# ---- what triggers ask


def run_of(book: Ledger, trigger_id: str, task_id: str, number: int, status: str = "done") -> None:
    now = NOW + timedelta(seconds=number)
    book.write("slot", trigger_id, now, slot=f"slot{number}", state="ran", taskId=task_id)
    book.write("ended", task_id, now, status=status, sourceTriggerId=trigger_id, traceId="r")


def knows_the_same(files: Files, book: Ledger, subjects: list[str]) -> None:
    """Also after a restart, with and without a checkpoint, and one made just now."""

    def known(one: Ledger) -> list[object]:
        return [
            (one.results_of(id_), one.running_for(id_), one.subjects_of(id_), one.end_of(id_))
            for id_ in subjects
        ]

    expected = known(book)
    assert known(reopened(files)) == expected
    book.checkpoint()
    assert known(reopened(files)) == expected
    files.remove(paths.TASK_STATUS)
    assert known(reopened(files)) == expected


def test_the_results_of_a_trigger_are_those_of_its_runs_oldest_first(files: Files) -> None:
    book = reopened(files)
    for number, status in enumerate(["done", "failed", "done", "canceled"]):
        run_of(book, "g", f"run{number}", number, status)
    end(book, "other")
    assert book.results_of("g") == ["run0", "run1", "run2", "run3"]
    assert book.results_of("run1") == ["run1"]
    assert book.results_of("nobody") == []
    assert book.subjects_of("run1") == ("run1", "g")
    assert book.subjects_of("nobody") == ("nobody",)
    knows_the_same(files, book, ["g", "run0", "run1", "other", "nobody"])


def test_a_repetition_counts_for_the_task_it_repeats_however_often(files: Files) -> None:
    book = reopened(files)
    end(book, "t", status="failed")
    for original, again, status in [("t", "t2", "failed"), ("t2", "t3", "done")]:
        book.write("queued", again, NOW, seat="worker", retryOf=original)
        assert book.running_for("t") == again
        book.write("ended", again, NOW, status=status, retryOf=original, traceId="r")
        assert book.running_for("t") is None
    assert book.results_of("t") == ["t", "t2", "t3"]
    assert book.results_of("t2") == ["t2"]
    assert book.subjects_of("t3") == ("t3", "t")
    knows_the_same(files, book, ["t", "t2", "t3"])


def test_a_repetition_of_a_run_counts_for_the_trigger_only_if_it_says_so(files: Files) -> None:
    book = reopened(files)
    run_of(book, "g", "run", 0, "failed")
    book.write("ended", "again", NOW, status="done", retryOf="run", traceId="r")
    assert book.results_of("g") == ["run"]
    assert book.results_of("run") == ["run", "again"]
    knows_the_same(files, book, ["g", "run", "again"])


def test_what_has_begun_for_a_trigger_is_known_until_it_ends(files: Files) -> None:
    book = reopened(files)
    book.write("slot", "g", NOW, slot="s1", state="ran", taskId="run1")
    assert book.running_for("g") == "run1"
    book.write("slot", "g", NOW, slot="s2", state="skipped", reason="overlap")
    assert book.running_for("g") == "run1"
    assert book.newest_slot("g") == "s2"
    knows_the_same(files, book, ["g", "run1"])
    assert reopened(files).newest_slot("g") == "s2"
    book.write("ended", "run1", NOW, status="done", sourceTriggerId="g", traceId="r")
    assert book.running_for("g") is None
    knows_the_same(files, book, ["g", "run1"])


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["slot", "queued", "ended", "checkpoint", "restart"]),
        st.integers(0, 5),
        st.sampled_from(["done", "failed", "canceled"]),
        st.none() | st.integers(0, 5),
    ),
    max_size=25,
)


@settings(max_examples=100)
@given(EVENTS)
def test_whatever_happens_a_restart_forgets_nothing(
    events: list[tuple[str, int, str, int]],
) -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    book, ended = reopened(files), set[int]()
    for kind, number, status, of in events:
        task, trigger = f"t{number}", f"g{number % 2}"
        if kind == "checkpoint":
            book.checkpoint()
        elif kind == "restart":
            book = reopened(files)
        elif number in ended:
            continue
        elif kind == "slot":
            book.write("slot", trigger, NOW, slot=task, state="ran", taskId=task)
        elif kind == "queued":
            book.write("queued", task, NOW, retryOf=f"t{of}" if of in ended else None)
        else:
            ended.add(number)
            retry = f"t{of}" if of in ended and of != number else None
            book.write(
                "ended", task, NOW, status=status, traceId="r", retryOf=retry,
                sourceTriggerId=trigger if retry is None else None,
            )  # fmt: skip
    knows_the_same(files, book, [*(f"t{number}" for number in range(6)), "g0", "g1"])


def test_the_slots_of_a_trigger_are_found_from_the_end_across_months(files: Files) -> None:
    book = reopened(files)
    book.write("trigger_created", "g", NOW)
    for number in range(8):
        now = NOW + timedelta(days=20 * number)
        book.write("slot", "g", now, slot=f"s{number}", state="ran", taskId=f"t{number}")
        book.write("slot", "g2", now, slot="other", state="ran", taskId=f"u{number}")
        book.write("ended", f"t{number}", now, status="done", sourceTriggerId="g", traceId="g")
    files.append("tasks/2026-12.jsonl", {"event": "slot", "id": "x", "note": {"id": "g"}})
    assert [line["slot"] for line in ledger.slots_of(files, "g", 3)] == ["s5", "s6", "s7"]
    every = ledger.slots_of(files, "g", 100)
    assert [line["event"] for line in every] == ["trigger_created"] + ["slot"] * 8
    assert ledger.slots_of(files, "nobody", 3) == []
    assert ledger.slots_of(files, "g", 0) == []


def test_a_slot_whose_line_a_crash_had_written_twice_counts_once(files: Files) -> None:
    book = reopened(files)
    for number in range(3):
        facts = {"slot": f"s{number}", "state": "ran", "taskId": f"t{number}"}
        book.write("slot", "g", NOW, **facts)
        book.write("slot", "g2", NOW, slot="other", state="ran", taskId=f"u{number}")
        book.write("slot", "g", NOW + timedelta(seconds=9), **facts)
    book.write("ordered", "g", NOW, taskId="o1")
    book.write("ordered", "g", NOW, taskId="o1")
    book.write("slot", "g", NOW, slot="s3", state="skipped", reason="running")
    book.write("slot", "g", NOW, slot="s3", state="ran", taskId="t3")  # told of in another way
    told = [(line.get("slot"), line.get("taskId")) for line in ledger.slots_of(files, "g", 100)]
    assert told == [
        *(("s0", "t0"), ("s1", "t1"), ("s2", "t2"), (None, "o1"), ("s3", None), ("s3", "t3"))
    ]
    assert len(ledger.slots_of(files, "g", 4)) == 4
    known = reopened(files)
    assert (known.newest_slot("g"), known.running_for("g")) == ("s3", "t3")


def test_ends_are_told_apart_by_their_state_and_traces_and_triggers_found(files: Files) -> None:
    book = reopened(files)
    for number in range(4):
        now = NOW + timedelta(days=20 * number)
        book.write("queued", f"t{number}", now, traceId=f"trace-{number % 2}")
        status = "failed" if number == 1 else "done"
        book.write("ended", f"t{number}", now, status=status, traceId=f"trace-{number % 2}")
        book.write("slot", f"g{number}", now, slot="s", state="ran", taskId=f"t{number}")
    files.append("tasks/2027-01.jsonl", {"event": "note", "id": "x", "about": "trace-1"})
    assert ledger.ended_ids(files, 9, ["failed"]) == ["t1"]
    assert ledger.ended_ids(files, 9, ["done"]) == ["t3", "t2", "t0"]
    assert list(dict.fromkeys(ledger.trace_ids(files, "trace-1"))) == ["t3", "t1"]
    assert list(ledger.trigger_ids(files)) == ["g3", "g2", "g1", "g0"]


def test_neither_memory_nor_checkpoint_grows_with_the_tasks_that_ended(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each trigger the newest are known, however many runs of another came after them."""
    monkeypatch.setattr(ledger, "MOST_ENDS", 50)
    monkeypatch.setattr(ledger, "MOST_RESULTS", 20)
    book = reopened(files)
    run_of(book, "seldom", "rare", 0, "done")
    end(book, "t-0", status="failed")
    for number in range(1, 300):
        run_of(book, "often", f"often{number}", number, "done")
        end(book, f"t-{number}")
    assert len(book) == 1 + 20 + 50
    assert book.results_of("seldom") == ["rare"]
    assert book.results_of("often") == [f"often{number}" for number in range(280, 300)]
    assert book.end_of("t-0") is None
    assert book.end_of("t-250") is not None
    knows_the_same(files, book, ["seldom", "rare", "often", "t-0", "t-249", "t-250", "t-299"])


def test_the_checkpoint_is_written_while_running_and_not_too_often(files: Files) -> None:
    book = reopened(files)
    book.keep_up(NOW)
    assert not files.exists(paths.TASK_STATUS)
    end(book, "t1")
    book.keep_up(NOW)
    assert "t1" in (files.read(paths.TASK_STATUS) or b"").decode()
    end(book, "t2")
    book.keep_up(NOW + timedelta(seconds=9))
    assert "t2" not in (files.read(paths.TASK_STATUS) or b"").decode()
    book.keep_up(NOW - timedelta(days=1))  # the clock was set back
    assert "t2" in (files.read(paths.TASK_STATUS) or b"").decode()
    end(book, "t3")
    book.keep_up(NOW + timedelta(days=1))
    assert "t3" in (files.read(paths.TASK_STATUS) or b"").decode()
    before = files.stat(paths.TASK_STATUS)
    book.keep_up(NOW + timedelta(days=2))
    assert files.stat(paths.TASK_STATUS) == before
