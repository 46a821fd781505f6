"""Each guard that the syntax tree shows is left out once, and somebody has to notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.crash.mutants import Mutant, mutants
from tests.crash.noticing import EXPLAINED, NOTICED, OPEN, notices, who_may_notice

pytestmark = pytest.mark.timeout(0)
MUTANTS = mutants()
BY_DAY = {"flow": 4, "test": 150}
"""Every how manyth is tried in each run of the tests."""
_TRIED: list[tuple[Mutant, str | None]] = []


def _marks(number: int, mutant: Mutant) -> tuple[pytest.MarkDecorator, ...]:
    if str(mutant) in OPEN:
        return pytest.mark.nightly, pytest.mark.xfail(reason="still open", strict=False)
    who = NOTICED.get(str(mutant), "")
    by_day = who and number % BY_DAY["flow" if who.startswith("flow") else "test"] == 0
    return () if by_day else (pytest.mark.nightly,)


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(one, marks=_marks(n, one), id=str(one)) for n, one in enumerate(MUTANTS)],
)
def test_a_guard_that_is_left_out_is_noticed(
    mutant: Mutant, proof: Callable[[dict[str, float]], None]
) -> None:
    by = next((who for who in who_may_notice(mutant) if notices(who, mutant)), None)
    _TRIED.append((mutant, by))
    proof({"left out": 1, "noticed": by is not None})
    if by is None:
        assert str(mutant) in EXPLAINED, "nobody notices, and guards.toml does not say why"
    else:
        assert str(mutant) not in EXPLAINED, f"it is noticed: {by}"


def test_each_guard_has_its_row_and_each_row_its_guard() -> None:
    rows = Counter([*NOTICED, *EXPLAINED, *OPEN])
    guards = Counter(map(str, MUTANTS))
    assert guards - rows == {}, "guards.toml does not say who notices that these are left out"
    assert rows - guards == {}, "guards.toml names what is no guard, or names it twice"


def test_the_guards_are_summed_up(lines: list[str]) -> None:
    if not _TRIED:
        return  # only this was asked for
    kinds = Counter(one.kind for one in MUTANTS)
    told = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
    noticed = sum(by is not None for _, by in _TRIED)
    lines.append(
        f"{len(MUTANTS)} guards ({told}), {len(EXPLAINED)} of them explained, {len(OPEN)} open; "
        f"{len(_TRIED)} left out, one at a time: {noticed} noticed"
    )
