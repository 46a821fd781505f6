"""Token usage over HTTP: by day and group, with costs and budget."""

from __future__ import annotations

import pytest

from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import Role, Usage
from mimikit.protocol.results import RunUsage, UsageMonth
from mimikit.protocol.runtime import BudgetStatus
from mimikit.tasks.usage import sums_of
from mimikit.views.usage import UsageReader


def use(web, id_: str, tokens: int, day: str = "2026-03-01", role: Role = "teller") -> RunUsage:
    run = RunUsage(
        id=id_,
        at=web.clock.now(),
        run_id=f"run-{id_}",
        attempt=1,
        role=role,
        profile="standard" if role == "worker" else "",
        engine="codex",
        model="m1",
        trigger_id="g1" if role == "worker" else None,
        usage=Usage(input_tokens=tokens, cached_input_tokens=tokens // 2, output_tokens=1),
    )
    web.files.append(paths.usage_day(day), run.to_dict())
    return run


def test_a_line_that_was_written_twice_is_counted_once(web) -> None:
    use(web, "a", 10)
    use(web, "a", 10)
    assert web.get("/api/usage")["today"]["inputTokens"] == 10
    assert web.get("/api/status")["usage"]["runs"] == 1


def test_thirty_days_combine_monthly_sums_and_daily_lines(web) -> None:
    days = {"2026-02-27": sums_of([use(web, "old", 5, "2026-02-27")])}
    web.files.save(paths.usage_month("2026-02"), UsageMonth(days=days))
    web.files.remove(paths.usage_day("2026-02-27"))
    use(web, "new", 7)
    found = web.get("/api/usage")
    assert [row["key"] for row in found["rows"]][::29] == ["2026-01-31", "2026-03-01"]
    told = {row["key"]: row["inputTokens"] for row in found["rows"] if row["runs"]}
    assert told == {"2026-02-27": 5, "2026-03-01": 7}
    assert found["total"]["inputTokens"] == 12
    later = web.get("/api/usage", since="2026-02-28")
    assert (later["total"]["inputTokens"], len(later["rows"])) == (7, 2)


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("engine", ["codex"]),
        ("model", ["m1"]),
        ("role", ["standard", "teller"]),
        ("trigger", ["g1", ""]),
        ("task", ["run-b"]),
        ("message", ["run-a"]),
    ],
)
def test_usage_is_sorted_by_tokens(web, by: str, keys: list[str]) -> None:
    use(web, "a", 10)
    use(web, "b", 30, role="worker")
    assert [row["key"] for row in web.get("/api/usage", by=by)["rows"]] == keys


def test_a_price_gives_a_cost_with_a_separate_rate_for_cached_tokens(web) -> None:
    use(web, "a", 1_000_000)
    price = {"input": 2.0, "cached_input": 0.5, "output": 0.0}
    settings = type(web.settings).model_validate(
        {**web.settings.model_dump(exclude_unset=True), "codex": {"price": price}}
    )
    reader = UsageReader(ReadOnlyFiles(web.files), settings)
    assert reader.today(web.clock.now(), None).cost == {"USD": 1.25}


def test_the_budget_has_the_time_when_waiting_ends(web) -> None:
    assert web.get("/api/status")["usage"]["budget"]["until"] is None
    budget = BudgetStatus(daily_tokens=10, used=12, until=web.clock.now(), tasks=2)
    web.beat(budget=budget)
    told = web.get("/api/status")["usage"]["budget"]
    assert told == {**budget.to_dict(), "until": "2026-03-01T12:00:00.000Z"}
