"""The ledger: every end is known, whether read from the checkpoint or from the tail."""

from __future__ import annotations

import errno
import json
from datetime import UTC, datetime, timedelta

import pytest

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.memory_disk import MemoryDisk, Step
from mimikit.tasks import ledger
from mimikit.tasks.ledger import Ledger, events_of

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


def test_nothing_is_checkpointed_while_nothing_happened(files: Files) -> None:
    reopened(files).checkpoint()
    assert files.read(paths.TASK_STATUS) is None


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
        {"event": "ended", "id": "t", "status": "done"},
        {"event": "ended", "id": "t", "status": "done", "at": "yesterday"},
        {"event": "ended", "id": ["t"], "status": "done", "at": "2026-12-01T09:00:00Z"},
        {"event": "ended", "id": "t", "status": "done", "at": 5},
        {"at": "2026-12-01T09:00:00Z"},
    ],
    ids=json.dumps,
)
def test_a_foreign_line_stops_nothing(files: Files, line: dict[str, object]) -> None:
    files.append("tasks/2026-12.jsonl", line)
    book = reopened(files)
    end(book, "t1")
    assert reopened(files).end_of("t1") is not None


def test_months_follow_one_another(files: Files) -> None:
    book = reopened(files)
    end(book, "t1", NOW)
    book.checkpoint()
    end(book, "t2", NOW + timedelta(days=40))
    assert files.names(paths.LEDGER, suffix=".jsonl") == ["2026-12.jsonl", "2027-01.jsonl"]
    assert len(reopened(files)) == 2
    assert [line["id"] for _, _, line in ledger.lines(files)] == ["t1", "t2"]


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

    def fail(_number: int, step: Step) -> OSError | None:
        return OSError(errno.EIO, "failed") if step.operation == "sync" else None

    disk.fail = fail
    with pytest.raises(StorageError):
        end(book, "t1")
    disk.fail = None
    assert book.end_of("t1") is not None
    assert len(events_of(files, "t1")) == 1


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
    assert len(events_of(files, "t1")) == 1


def test_a_trace_is_counted_without_the_runs_of_triggers(files: Files) -> None:
    book = reopened(files)
    end(book, "t1")
    end(book, "t2")
    book.write("ended", "t3", NOW, status="done", traceId="r", sourceTriggerId="g")
    book.write("ended", "t4", NOW, status="done", traceId="other")
    assert book.trace_size("r") == 2


def test_events_of_a_task_are_told_oldest_first(files: Files) -> None:
    book = reopened(files)
    book.write("queued", "t1", NOW)
    book.write("queued", "t2", NOW)
    book.write("ended", "t1", NOW + timedelta(seconds=1), status="done", until=NOW, gone=None)
    events = events_of(files, "t1")
    assert [event["event"] for event in events] == ["queued", "ended"]
    assert events[1]["until"] == "2026-12-01T09:00:00.000Z"
    assert "gone" not in events[1]


def test_the_last_ends_are_found_from_the_end_across_months(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_TAIL_BYTES", 300)
    book = reopened(files)
    for number in range(90):
        book.write("queued", f"t{number}", NOW + timedelta(days=number))
        end(book, f"t{number}", NOW + timedelta(days=number))
    end(book, "t80", NOW + timedelta(days=90))
    newest = ["t80", *(f"t{number}" for number in range(89, -1, -1) if number != 80)]
    for limit in (1, 3, 10, 40, 90, 500):
        assert ledger.last_ended(files, limit) == newest[:limit]
    assert ledger.last_ended(files, 0) == []
