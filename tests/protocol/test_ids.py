"""Ids are safe as file names, sort by time when fresh, and follow from their parts when derived."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.errors import BadInput
from mimikit.protocol import paths
from mimikit.protocol.ids import check_id, derived_id, is_id, new_id
from mimikit.protocol.models import InboxItem

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
BAD = [
    *("", ".", "..", ".a", "-a", "_a", "a/b", "../a", "/a", "a\x00", "a\n", "é", "ａ", "a b"),
    "a" * 129,
]


@pytest.mark.parametrize("text", ["a", "A1", "task-01", "a.b_c-d", "0", "a" * 128, "a..b"])
def test_what_may_be_an_id(text: str) -> None:
    assert is_id(text)
    assert check_id(text) == text


@pytest.mark.parametrize("text", BAD, ids=repr)
def test_what_may_not(text: str) -> None:
    assert not is_id(text)
    with pytest.raises(BadInput, match="taskId: expected 1 to 128 letters") as caught:
        check_id(text, field="taskId")
    assert caught.value.field == "taskId"
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("text", BAD, ids=repr)
def test_records_and_the_check_agree(text: str) -> None:
    with pytest.raises(ValueError, match="id"):
        InboxItem(id=text, created_at=NOW)


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2900, 1, 1)))  # noqa: DTZ001 - the zone is set below
def test_fresh_ids_are_ids_of_at_most_40_characters(time: datetime) -> None:
    made = new_id("inbox", time.replace(tzinfo=UTC))
    assert is_id(made)
    assert len(made) <= 40


@given(
    st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2900, 1, 1)),  # noqa: DTZ001 - as above
    st.integers(min_value=1, max_value=10**9),
)
def test_fresh_ids_sort_by_time(time: datetime, later_ms: int) -> None:
    earlier = time.replace(tzinfo=UTC)
    assert new_id("x", earlier) < new_id("x", earlier + timedelta(milliseconds=later_ms))


def test_an_id_is_of_the_millisecond_it_is_made_in() -> None:
    time = datetime(2277, 8, 7, 1, 56, 35, 932_000, tzinfo=UTC)  # as a float a little less
    made = [new_id("x", time - timedelta(microseconds=before))[:12] for before in (0, 1)]
    assert made[0] > made[1]


def test_derived_ids_follow_from_their_parts() -> None:
    assert derived_id("task", "a", "b") == derived_id("task", "a", "b")
    assert derived_id("task", "a", "b") != derived_id("task", "ab")
    assert derived_id("task", "a", "b") != derived_id("turn", "a", "b")
    made = derived_id("task", "x" * 1000, "中文")
    assert is_id(made)
    assert len(made) <= 40


@pytest.mark.parametrize("length", [1, 124, 125, 128])
def test_a_task_of_any_id_can_be_told(length: int) -> None:
    task_id = "t" * length
    told = paths.result_inbox_id(task_id)
    assert is_id(told)
    assert told != paths.result_inbox_id("s" * length)
    assert InboxItem(id=told, created_at=NOW, kind="task_result", task_id=task_id).id == told
