"""The order in memory: what may go, what waits for its time, and changes of mind."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.hueyfiles.folder import NEVER, QueueEntry, QueueIndex, WaitingFile


def add(index: QueueIndex, name: str, order: object, ready_at: float | None = None) -> None:
    index.add(WaitingFile(name, QueueEntry(order, ready_at), NEVER))


def drain(index: QueueIndex, now: float = 0.0) -> list[str]:
    found: list[str] = []
    while (waiting := index.pop(now)) is not None:
        found.append(waiting.name)
    return found


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "drop", "pop"]),
            st.sampled_from("abcde"),
            st.integers(0, 3),
            st.one_of(st.none(), st.integers(1, 9)),
            st.integers(0, 10),
        ),
        max_size=60,
    )
)
def test_it_always_agrees_with_a_sorted_table(steps: list[tuple]) -> None:
    """Against the plain model: the smallest order among those whose time has come."""
    index, table = QueueIndex(), dict[str, tuple[int, int | None]]()
    for step, name, order, ready_at, now in steps:
        if step == "add":
            add(index, name, order, ready_at)
            table[name] = (order, ready_at)
        elif step == "drop":
            index.discard(name)
            table.pop(name, None)
        else:
            may = [(o, n) for n, (o, at) in table.items() if at is None or at <= now]
            waiting = index.pop(now)
            assert (waiting and waiting.name) == (min(may)[1] if may else None)
            if may:
                del table[min(may)[1]]
    assert len(index) == len(table)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9), st.sampled_from([None, 5.0, 9.0]))),
    st.sets(st.integers(0, 30)),
    st.integers(0, 12),
)
def test_what_is_next_is_told_without_taking_it(
    put: list[tuple[int, int, float | None]], gone: set[int], most: int
) -> None:
    index = QueueIndex()
    for name, order, ready_at in {entry[0]: entry for entry in put}.values():
        add(index, f"{name:02}", (order,), ready_at)
    for name in gone:
        index.discard(f"{name:02}")
    told, left = index.upcoming(most), len(index)
    assert len(index) == left
    ready = drain(index)
    waiting = sorted(
        (entry.ready_at, name) for name, entry in index.entries().items() if entry.ready_at
    )
    assert told == [*ready, *(name for _, name in waiting)][:most]
