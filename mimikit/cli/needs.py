"""What waits for its user, as `mimikit status` says it first."""

from __future__ import annotations

from collections.abc import Iterator

from mimikit.cli import client, terminal
from mimikit.cli.usage import held_words
from mimikit.language.phrases import Words
from mimikit.state import ReadOnlyState
from mimikit.tasks.recent import RecentRuns
from mimikit.tools.world import titles
from mimikit.views.needs import SPAN, NeedView, needs
from mimikit.views.status import StateOverview


def needs_of(state: ReadOnlyState, seen: StateOverview) -> list[NeedView]:
    recent = RecentRuns(state.files).look(seen.now, SPAN)
    budget, title_of = seen.usage.budget, titles(state.files)
    return needs(state.files, seen.consumer, seen.listed, budget, recent, title_of, seen.now)


def need_lines(found: list[NeedView], seen: StateOverview) -> Iterator[str]:
    """Each with the command that mends it; what other lines of the status tell is left to them."""
    for need in found:
        title = terminal.one_line(need.title)
        trigger, task = (client.short_id(id_ or "") for id_ in (need.trigger_id, need.task_id))
        when = terminal.ago(need.at, seen.now) if need.at else ""
        match need.kind:
            case "question":
                yield f"{title}  `mimikit chat` answers it"
            case "engine" if need.engine is not None:
                minds = {need.engine.engine: need.engine}
                yield from terminal.awaited_lines(minds, seen.now, seen.zone)
            case "budget":
                yield held_words(seen.usage.budget, seen.zone) or ""
            case "failure":
                times = f", {need.count} times" if need.count > 1 else ""
                error = terminal.one_line(need.error or need.failure_reason or "")
                what = f"{task}  failed {when}{times}  {title}: {error}"
                yield f"{what}; `mimikit tasks retry {task}`"
            case "breaker":
                times = terminal.plural(need.count, "failure")
                yield f"{title}  paused after {times}; `mimikit triggers resume {trigger}`"
            case "late":
                yield f"{title}  was due {when}; `mimikit triggers explain {trigger}`"
            case "broken":
                why = terminal.one_line(need.error or "")
                yield f"{title}  can not be read: {why}; `mimikit triggers show {trigger}`"
            case "blocked":
                yield f"{title}  {_said(need.why)}; `mimikit triggers edit {trigger}`"
            case "degraded" if need.id == "degraded-newer":
                yield terminal.one_line(need.error or "")
            case "disk":
                yield f"the disk is nearly full: {need.count // 2**20} MB left"
            case _:
                pass


def _said(words: Words | None) -> str:
    return terminal.one_line(words["en"]) if words else ""
