"""`mimikit usage`: how many tokens were used, by what, and how many may be."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import cast, get_args
from zoneinfo import ZoneInfo

import click

from mimikit.cli import terminal
from mimikit.cli.client import change_settings, look_at_consumer
from mimikit.cli.frame import CliContext, LeafCommand, pass_frame
from mimikit.cli.options import parse_past
from mimikit.errors import BadInput
from mimikit.language.phrases import local_time
from mimikit.tasks.budget import day_of
from mimikit.views.usage import (
    BudgetView,
    TokenCounts,
    UsageBy,
    UsageReader,
    UsageReport,
    UsageTodayView,
)

_CAPS = {
    "set_daily": "daily_tokens",
    "set_per_task": "per_task_tokens",
    "set_per_trigger": "per_trigger_daily_tokens",
}


@click.command(cls=LeafCommand)
@click.option("--by", type=click.Choice(get_args(UsageBy)), default="day", show_default=True)
@click.option("--since", metavar="DAY", help="From then on: 2026-11-01, 7d. Else of 30 days.")
@click.option("--set-daily", metavar="TOKENS", help="So many may be used in a day; `none`: any.")
@click.option("--set-per-task", metavar="TOKENS", help="So many by a task, over its attempts.")
@click.option("--set-per-trigger", metavar="TOKENS", help="So many by a trigger in a day.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_frame
def usage(frame: CliContext, by: str, since: str | None, as_json: bool, **caps: str | None) -> None:
    """Show how many tokens were used, and what that cost where a price is set; or cap them."""
    given = {_CAPS[name]: _tokens(name, text) for name, text in caps.items() if text is not None}
    if given:
        keeper = frame.open_as_keeper(create=True)
        terminal.note(terminal.sentence(change_settings(keeper, "budget_set", args=given).message))
        return
    state = frame.open()
    now, zone = state.clock.now(), state.settings.zone
    first = day_of(parse_past(since, now, zone), zone) if since else None
    reader = UsageReader(state.files, state.settings)
    report = reader.report(cast("UsageBy", by), first, now, look_at_consumer(state).current)
    terminal.show(report, _lines(report, zone, now), as_json=as_json)


def usage_words(counts: UsageTodayView) -> str:
    """Today's usage in one line."""
    tokens = counts.input_tokens + counts.output_tokens
    cap = counts.budget.daily_tokens
    of = f" of {cap:,}" if cap is not None else ""
    cost = f", {_cost(counts)}" if counts.cost else ""
    return f"{tokens:,}{of} tokens today in {terminal.plural(counts.runs, 'run')}{cost}"


def held_words(budget: BudgetView, zone: ZoneInfo) -> str | None:
    """What waits for tokens, and until when; None: nothing."""
    counts = ((budget.messages, "message"), (budget.tasks, "task"))
    what = " and ".join(terminal.plural(number, one) for number, one in counts if number)
    if budget.until is None or not what:
        return None
    wait = "wait" if budget.messages + budget.tasks > 1 else "waits"
    until = f"{local_time(budget.until, zone):%Y-%m-%d %H:%M}"
    return f"the tokens are used up; {what} {wait} until {until}; `mimikit usage --set-daily N`"


def _lines(report: UsageReport, zone: ZoneInfo, now: datetime) -> Iterator[str]:
    today = UsageTodayView.of(report.today, budget=report.budget)
    yield usage_words(today)
    if held := held_words(report.budget, zone):
        yield held
    caps = {"a task": report.budget.per_task_tokens}
    caps["a trigger's day"] = report.budget.per_trigger_daily_tokens
    if told := [f"{what} {cap:,}" for what, cap in caps.items() if cap is not None]:
        yield f"At most: {', '.join(told)}."
    yield ""
    heads = [report.by, "runs", "input", "cached", "output", "cost"]
    rows = [row for row in report.rows if row.runs]
    made = [[_name(row.key, row.title, report, now, zone), *_numbers(row)] for row in rows]
    if made:
        made.append(["in all", *_numbers(report.total)])
    yield from terminal.table(heads, made, "Nothing was used.", flexible=0)
    if report.total.estimated:
        estimated = terminal.plural(report.total.estimated, "run")
        yield terminal.dim(f"~ {estimated} estimated: the engine told nothing, or not all of it")


def _name(key: str, title: str, report: UsageReport, now: datetime, zone: ZoneInfo) -> str:
    if report.by == "day":
        return "today" if date.fromisoformat(key) == day_of(now, zone) else key
    if not key:
        return {"trigger": "no trigger", "model": "the engine's own"}.get(report.by, "–")
    return terminal.one_line(title or key)


def _numbers(counts: TokenCounts) -> list[str]:
    mark = "~" if counts.estimated else ""
    tokens = (counts.input_tokens, counts.cached_input_tokens, counts.output_tokens)
    return [f"{counts.runs:,}", *(f"{mark}{number:,}" for number in tokens), _cost(counts)]


def _cost(counts: TokenCounts) -> str:
    told = (
        f"{'<0.01' if 0 < amount < 0.01 else f'{amount:,.2f}'} {currency}"
        for currency, amount in counts.cost.items()
    )
    return ", ".join(told) or "–"


def _tokens(name: str, text: str) -> int | None:
    if text.strip().lower() == "none":
        return None
    plain = text.replace(",", "").replace("_", "")
    if not plain.isascii() or not plain.isdigit() or not 0 < int(plain[:18]) < 10**15:
        option = "--" + name.replace("_", "-")
        raise BadInput(f"{option}: expected a number of tokens above 0, or none; got {text[:40]!r}")
    return int(plain)
