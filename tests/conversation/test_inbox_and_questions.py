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
from mimikit.protocol.json import Json, dump_line
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


def test_an_input_that_was_answered_is_gone_and_may_be_taken_out_again(files: Files) -> None:
    inbox.put(files, ITEM)
    inbox.take_out(files, "m1")
    inbox.take_out(files, "m1")
    assert unanswered(files) == []


def test_a_file_that_is_no_input_holds_up_no_other(files: Files) -> None:
    files.write(paths.inbox("bad"), b'{"id": "bad"}')
    inbox.put(files, ITEM)
    assert known(files) == [ITEM]


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


def test_a_question_expires_at_its_time_and_not_before() -> None:
    assert not inbox.is_expired(QUESTION, NOW + timedelta(minutes=59, seconds=59))
    assert inbox.is_expired(QUESTION, NOW + timedelta(hours=1))


def test_a_heap_of_files_is_listed_once_and_what_comes_is_heard(
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
    index.is_told = True

    def seen(now: datetime = NOW) -> list[str]:
        index.refresh(now)
        return [item.id for item in index.waiting(for_teller=True)]

    first = [f"drop-{number:03}" for number in range(100)]
    assert sorted(seen()) == first
    listed.clear()
    said = new_id("msg", NOW)
    inbox.put(files, ITEM.but(id=said))
    index.hear([f"{said}.json", "note.txt"])
    assert seen()[0] == said, "before the heap"
    index.take_out(first)
    assert sorted(seen()) == [f"drop-{number}" for number in range(100, 200)] + [said]
    index.take_out([f"drop-{number}" for number in range(100, 200)])
    half_id = new_id("msg", NOW)
    files.write(paths.inbox(half_id), b'{"text": "he')
    index.hear([f"{half_id}.json"])
    half = files.stat(paths.inbox(half_id))
    assert half is not None
    assert half_id not in seen(written_at(half) + timedelta(seconds=1))
    files.write(paths.inbox(half_id), b'{"text": "hello"}')
    assert half_id in seen(), "it is looked at again until it is whole"
    assert paths.INBOX not in listed
    files.remove(paths.inbox(said))
    index.hear(None)
    assert said not in seen()
    assert paths.INBOX in listed


def test_what_was_heard_is_not_lost_when_the_disk_refuses(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = InboxIndex(files, HistoryStore(files), ChangeFeed(files, FakeClock(NOW)))
    index.is_told = True
    index.refresh(NOW)
    inbox.put(files, ITEM)
    index.hear(["m1.json"])

    def refuse(*_: object) -> None:
        raise StorageError("the disk refuses")

    with monkeypatch.context() as refusing:
        refusing.setattr(inbox, "load", refuse)
        with pytest.raises(StorageError):
            index.refresh(NOW)
    index.refresh(NOW)
    assert list(index.waiting(for_teller=True)) == [ITEM]


HEAPS: dict[str, dict[str, Json]] = {
    "by hand": {"text": "hello"},
    "a script's": {"text": "hello"},
    "a program's": ITEM.to_dict(),
    "results": ITEM.but(kind="task_result", task_id="t", seat="worker", notify="message").to_dict(),
    "for a mind": ITEM.but(kind="task_result", task_id="t", seat="worker").to_dict(),
    "no results": {"text": "hello"},
}


@pytest.mark.parametrize("heap", HEAPS)
def test_of_a_heap_only_some_are_known_and_read_at_a_time_however_they_are_named(
    files: Files, monkeypatch: pytest.MonkeyPatch, heap: str
) -> None:
    bounds = {"said": 40, "for a mind": 50, "result": 60, "by hand": 30}
    monkeypatch.setattr(inbox, "MOST_HELD", bounds)
    monkeypatch.setattr(inbox, "MOST_AT_ONCE", 100)
    reads: list[str] = []
    plain = inbox.read
    monkeypatch.setattr(inbox, "read", lambda f, i: (reads.append(i), plain(f, i))[1])
    named = {"by hand": "drop-{:04}", "a script's": "msg-{:04}", "a program's": "msg-{:026}"}
    ids = [named.get(heap, "res-t{:04}").format(number) for number in range(400)]
    for id_ in ids:
        item = HEAPS[heap] | ({"id": id_} if len(HEAPS[heap]) > 1 else {})
        files.write(paths.inbox(id_), dump_line(item))
    index = InboxIndex(files, HistoryStore(files), ChangeFeed(files, FakeClock(NOW)))
    index.is_told = True
    answered: list[str] = []
    said, looks = "", 0
    while files.names(paths.INBOX):
        reads.clear()
        more = index.refresh(NOW)
        looks += 1
        assert len(reads) <= 100
        assert len(index) <= max(bounds.values()) + 1
        plainly = list(index.waiting(for_teller=False))
        heard = [item.id for item in (*index.waiting(for_teller=True), *plainly)]
        assert heard or more
        if said:
            assert said in heard
            if heap in ("by hand", "a script's", "no results"):
                assert heard[0] == said, "before what was made by hand"
            index.take_out([said])
            answered.append(said)
            said = ""
        elif looks == 1 and heap != "a program's":
            said = new_id("msg", NOW)
            inbox.put(files, ITEM.but(id=said))
            index.hear([f"{said}.json"])
        index.take_out(heard[:20])
        answered += [id_ for id_ in heard[:20] if id_ not in answered]
        assert looks < 200
    assert set(ids) <= {*answered}


def test_results_that_need_no_mind_do_not_wait_behind_those_that_do(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mind may be away for hours."""
    monkeypatch.setattr(inbox, "MOST_HELD", dict.fromkeys(inbox.MOST_HELD, 10))
    monkeypatch.setattr(inbox, "MOST_AT_ONCE", 25)
    for number in range(100):
        told = "message" if number >= 95 else "teller"
        item = ITEM.but(id=f"res-{number:03}", kind="task_result", notify=told)
        inbox.put(files, item)
    index = InboxIndex(files, HistoryStore(files), ChangeFeed(files, FakeClock(NOW)))
    index.is_told = True
    while index.refresh(NOW):
        assert len(index) <= 20
    assert len(list(index.waiting(for_teller=False))) == 5
    assert len(list(index.waiting(for_teller=True))) == 10
