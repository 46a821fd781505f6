"""What waits for an answer: inputs, each once, and at most one question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mimikit.conversation import inbox
from mimikit.conversation.history import HistoryStore
from mimikit.conversation.inbox import InboxIndex
from mimikit.errors import StorageError
from mimikit.log import ChangeFeed
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import InboxItem, Question
from mimikit.protocol.records import written_at
from tests.support.reading import unanswered
from tests.support.twins import FakeClock

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
ITEM = InboxItem(id="m1", text="hello", created_at=NOW)
QUESTION = Question(
    question_id="q1", question="colour?", created_at=NOW, expires_at=NOW + timedelta(hours=1)
)


def known(files: Files) -> list[InboxItem]:
    """What the supervisor would have the Teller answer."""
    clock = FakeClock(NOW)
    index = InboxIndex(files, HistoryStore(files), ChangeFeed(files, clock))
    index.refresh(NOW)
    return list(index.waiting(for_teller=True))


def test_an_input_is_taken_once(files: Files) -> None:
    assert inbox.put(files, ITEM)
    assert not inbox.put(files, ITEM.but(text="other"))
    assert unanswered(files) == [ITEM]


def test_inputs_wait_oldest_first(files: Files) -> None:
    inbox.put(files, ITEM.but(id="c", created_at=NOW + timedelta(milliseconds=1)))
    inbox.put(files, ITEM.but(id="b"))
    inbox.put(files, ITEM.but(id="a"))
    assert [item.id for item in known(files)] == ["a", "b", "c"]


def test_one_question_is_open_at_a_time(files: Files) -> None:
    assert inbox.pending_question(files) is None
    assert inbox.ask(files, QUESTION)
    assert not inbox.ask(files, QUESTION.but(question_id="q2"))
    assert inbox.pending_question(files) == QUESTION


def test_only_the_open_question_is_closed(files: Files) -> None:
    inbox.ask(files, QUESTION)
    inbox.close_question(files, "q2")
    assert inbox.pending_question(files) == QUESTION
    inbox.close_question(files, "q1")
    inbox.close_question(files, "q1")
    assert inbox.pending_question(files) is None


def test_the_folder_is_listed_once_and_what_comes_is_heard(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    names = Files.names

    def noted(self: Files, folder: str, *, suffix: str = ".json") -> list[str]:
        listed.append(folder)
        return names(self, folder, suffix=suffix)

    monkeypatch.setattr(Files, "names", noted)
    for number in range(300):
        files.write(paths.inbox(f"drop-{number:03}"), b'{"text": "hello"}')
    index = InboxIndex(files, HistoryStore(files), ChangeFeed(files, FakeClock(NOW)))
    index.is_watched = True

    def seen(now: datetime = NOW) -> list[str]:
        index.refresh(now)
        return [item.id for item in index.waiting(for_teller=True)]

    assert len(seen()) == 300
    listed.clear()
    said = new_id("msg", NOW)
    inbox.put(files, ITEM.but(id=said))
    index.notify([f"{said}.json", "note.txt"])
    assert said in seen()
    half_id = new_id("msg", NOW)
    files.write(paths.inbox(half_id), b'{"text": "he')
    index.notify([f"{half_id}.json"])
    half = files.stat(paths.inbox(half_id))
    assert half is not None
    assert half_id not in seen(written_at(half) + timedelta(seconds=1))
    files.write(paths.inbox(half_id), b'{"text": "hello"}')
    assert half_id in seen(), "it is looked at again until it is whole"
    assert paths.INBOX not in listed
    files.remove(paths.inbox(said))
    index.notify(None)
    assert said not in seen()
    assert paths.INBOX in listed


def test_what_was_heard_is_not_lost_when_the_disk_refuses(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = InboxIndex(files, HistoryStore(files), ChangeFeed(files, FakeClock(NOW)))
    index.is_watched = True
    index.refresh(NOW)
    inbox.put(files, ITEM)
    index.notify(["m1.json"])

    def refuse(*_: object) -> None:
        raise StorageError("the disk refuses")

    with monkeypatch.context() as refusing:
        refusing.setattr(inbox, "load", refuse)
        with pytest.raises(StorageError):
            index.refresh(NOW)
    index.refresh(NOW)
    assert list(index.waiting(for_teller=True)) == [ITEM]


def test_of_very_many_files_only_some_are_read_at_a_time_and_all_are_answered(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "MOST_AT_ONCE", 100)
    reads: list[str] = []
    plain = inbox.read
    monkeypatch.setattr(inbox, "read", lambda f, i: (reads.append(i), plain(f, i))[1])
    result = ITEM.but(kind="task_result", task_id="t", seat="worker", notify="message")
    for number in range(200):
        files.write(paths.inbox(f"drop-{number:04}"), b'{"text": "hello"}')
        inbox.put(files, result.but(id=f"res-{number:04}"))
    index = InboxIndex(files, HistoryStore(files), ChangeFeed(files, FakeClock(NOW)))
    index.is_watched = True
    assert index.refresh(NOW)
    assert index.for_teller == 400
    answered = 0
    for _ in range(30):
        reads.clear()
        index.refresh(NOW)
        assert len(reads) <= 100
        for for_teller in (True, False):
            found = [item.id for item in index.waiting(for_teller=for_teller)][:20]
            index.remove(found)
            answered += len(found)
    assert (answered, len(index), files.names(paths.INBOX)) == (400, 0, [])
