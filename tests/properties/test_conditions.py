"""Conditions over random histories, beside a naive reading of what they are said to do."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.triggers import conditions
from mimikit.triggers.conditions import Verdict
from tests.triggers.naive_condition import Naive, World


def node(kind: str, **params: Any) -> dict[str, Any]:
    return {"type": kind, "params": params}


TASKS = st.builds(
    lambda kind, subject: node(kind, taskId=subject),
    st.sampled_from(["task_done", "task_failed"]),
    st.sampled_from(["t1", "t2"]),
)
FILES = st.builds(
    lambda path, init: node("file_changed", path=path, **({"fireOnInit": True} if init else {})),
    st.sampled_from(["a", "b", "*"]),
    st.booleans(),
)
EXISTS = st.sampled_from(["a", "b", "*"]).map(lambda path: node("file_exists", path=path))
ASKS = st.just(node("llm_eval", prompt="is it so?"))


def joined(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda kind, parts: node(kind, conditions=parts),
        st.sampled_from(["and", "or"]),
        st.lists(inner, min_size=1, max_size=3),
    )


def denied(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return inner.map(lambda part: node("not", condition=part))


STATES = st.recursive(EXISTS | ASKS, lambda inner: joined(inner) | denied(inner), max_leaves=3)
TREES = st.recursive(TASKS | FILES | STATES, joined, max_leaves=5)

EVENTS = st.one_of(
    st.tuples(st.just("ends"), st.sampled_from(["t1", "t2"]), st.sampled_from(["done", "failed"])),
    st.tuples(st.just("writes"), st.sampled_from(["a", "b"]), st.integers(1, 3)),
    st.tuples(st.just("deletes"), st.sampled_from(["a", "b"]), st.none()),
    st.tuples(st.just("answers"), st.integers(0, 20), st.sampled_from([True, False, None])),
    st.tuples(st.just("floods"), st.booleans(), st.none()),
    st.tuples(st.just("waits"), st.integers(1, 12), st.none()),
    st.tuples(st.just("looks"), st.none(), st.none()),
)  # fmt: skip


class Life:
    """One conditional trigger as its consumer treats it, and the naive reading beside it."""

    def __init__(self, tree: dict[str, Any], cooldown: float, world: World) -> None:
        self.condition = conditions.read(tree)
        conditions.check(self.condition)
        self.naive = Naive(tree, "$", world)
        self.world, self.cooldown = world, cooldown
        self.seen: dict[str, Any] = {}
        self.now, self.last, self.naive_last = 0.0, -1e9, -1e9
        self.firings: list[dict[str, Any]] = []
        self.look()

    def look(self) -> None:
        """All looks that follow from one event; both readings must do the same."""
        for _ in range(100):
            verdict = conditions.evaluate(
                self.condition, self.world, self.seen, cooldown=self.cooldown
            )
            self.naive.look()
            assert verdict.root.holds == self.naive.holds()
            self._asks_only_where_it_matters(verdict)
            self.seen = {k: v for k, v in self.seen.items() if k not in verdict.turned_false}
            self.seen |= verdict.baseline
            fires = verdict.fires(self.cooldown) and self.now >= self.last + self.cooldown
            expected = self._naive_fires()
            assert fires == (expected is not None), (verdict, self.naive.is_new())
            if expected is None:
                return
            assert verdict.root.consumes == expected
            self.seen |= verdict.root.consumes
            self.last = self.now
            self.firings.append(expected)
            self.world.answers.clear()
            if not verdict.more:
                break
        self.naive.look()
        assert self.cooldown or not (self.naive.holds() and self.naive.is_new()), "one is lost"

    def _naive_fires(self) -> dict[str, Any] | None:
        cooling = self.now < self.naive_last + self.cooldown
        if cooling or not self.naive.holds() or not (self.naive.is_new() or self.cooldown):
            return None
        self.naive_last = self.now
        return self.naive.use(one=self.cooldown == 0)

    def _asks_only_where_it_matters(self, verdict: Verdict) -> None:
        """A model is asked if the outcome is open, and only what can still turn it."""
        unknown = [n for n in self.naive.all() if n.kind == "llm_eval" and n.holds() is None]
        if verdict.root.holds is not None:
            assert not verdict.open_questions
        elif unknown and not self.world.flooded:
            assert verdict.open_questions
        for path in verdict.open_questions:
            mine = next(n for n in unknown if n.path == path)
            outcomes: set[bool | None] = set()
            for others in itertools.product([True, False], repeat=len(unknown)):
                given = dict(zip((n.path for n in unknown), others, strict=True))
                outcomes.add(self._outcome(given | {mine.path: True}))
                outcomes.add(self._outcome(given | {mine.path: False}))
            assert len(outcomes) > 1, f"{path} changes nothing"

    def _outcome(self, given: dict[str, bool]) -> bool | None:
        before = dict(self.world.answers)
        self.world.answers.update(given)
        try:
            return self.naive.holds()
        finally:
            self.world.answers.clear()
            self.world.answers.update(before)

    def happen(self, event: tuple[str, Any, Any], number: int) -> None:
        match event:
            case ("ends", subject, status):
                self.world.ended[subject, status].append(f"r{number}")
            case ("writes", name, size):
                self.world.disk[name] = [number, size]
            case ("deletes", name, _):
                self.world.disk.pop(name, None)
            case ("answers", which, said):
                asked = [n.path for n in self.naive.all() if n.kind == "llm_eval"]
                if asked:
                    path = asked[which % len(asked)]
                    self.world.answers.pop(path, None)
                    if said is not None:
                        self.world.answers[path] = said
            case ("floods", flooded, _):
                self.world.flooded = flooded
            case ("waits", seconds, _):
                self.now += seconds
            case _:
                pass


@pytest.mark.slow
def test_every_history_is_read_as_the_naive_reading_does(size: int) -> None:
    @settings(max_examples=1000 * size)
    @given(
        TREES,
        st.sampled_from([0.0, 5.0]),
        st.lists(EVENTS, max_size=6),
        st.lists(EVENTS, max_size=30),
    )
    def holds(
        tree: dict[str, Any],
        cooldown: float,
        before: list[tuple[str, Any, Any]],
        events: list[tuple[str, Any, Any]],
    ) -> None:
        world = World()
        past = Life(node("file_exists", path="nothing"), 0, world)
        for number, event in enumerate(before):
            past.happen(event, number)
        world.answers.clear()
        life = Life(tree, cooldown, world)
        for number, event in enumerate(events, 100):
            life.happen(event, number)
            life.look()
        for path in {path for firing in life.firings for path in firing}:
            used = [firing[path] for firing in life.firings if path in firing]
            results = [one for one in used if isinstance(one, str)]
            assert len(results) == len(set(results)), "a result fired twice"

    holds()


@settings(max_examples=300)
@given(TREES, st.lists(EVENTS, max_size=20))
def test_after_all_of_a_history_one_quiet_look_more_changes_nothing(
    tree: dict[str, Any], events: list[tuple[str, Any, Any]]
) -> None:
    life = Life(tree, 0, World())
    for number, event in enumerate(events, 100):
        life.happen(event, number)
        life.look()
    firings, seen = len(life.firings), dict(life.seen)
    life.look()
    assert (len(life.firings), life.seen) == (firings, seen)


@settings(max_examples=300)
@given(st.lists(EVENTS, max_size=30), st.sampled_from([0.0, 5.0]))
def test_no_result_is_lost_while_a_sibling_is_false_or_it_cools(
    events: list[tuple[str, Any, Any]], cooldown: float
) -> None:
    """`t1 is done, and a exists`: once both may hold, the last result has been used."""
    tree = node("and", conditions=[node("task_done", taskId="t1"), node("file_exists", path="a")])
    life = Life(tree, cooldown, World())
    for number, event in enumerate(events, 100):
        life.happen(event, number)
        life.look()
    life.happen(("writes", "a", 1), 1000)
    life.look()
    life.now += 100
    life.look()
    used = [firing["$.0"] for firing in life.firings]
    assert used == sorted(used)
    assert used[-1:] == life.world.ended["t1", "done"][-1:]


@settings(max_examples=200)
@given(st.lists(EVENTS, max_size=30))
def test_without_a_cooldown_each_result_has_a_firing_of_its_own(
    events: list[tuple[str, Any, Any]],
) -> None:
    tree = node("or", conditions=[node("task_done", taskId="t1"), node("task_failed", taskId="t2")])
    life = Life(tree, 0, World())
    for number, event in enumerate(events, 100):
        life.happen(event, number)
    life.look()  # one look long after, as when the consumer was down
    used = sorted(value for firing in life.firings for value in firing.values())
    assert used == sorted(life.world.ended["t1", "done"] + life.world.ended["t2", "failed"])
    assert all(len(firing) == 1 for firing in life.firings)
