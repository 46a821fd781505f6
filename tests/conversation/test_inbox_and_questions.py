"""What waits for an answer: inputs, each once, and at most one question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mimikit.conversation import inbox
from mimikit.conversation.history import HistoryStore
from mimikit.conversation.inbox import InboxIndex
from mimikit.log import ChangeFeed
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import InboxItem, Question
from mimikit.testing.twins import FakeClock
from tests.support.reading import unanswered

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
