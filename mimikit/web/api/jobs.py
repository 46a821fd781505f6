"""Work as it is shown: jobs in pages with real totals, and one of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from mimikit.errors import BadInput, NotFound
from mimikit.protocol.ids import ID_PATTERN
from mimikit.views.job_reader import JobFilter
from mimikit.views.jobs import JobList, JobState, JobView
from mimikit.web.api.routing import Answer, EndpointRegistry, Input, site
from mimikit.web.api.tasks import COMMAND_ANSWERS, CommandInput, give_command

area = EndpointRegistry("jobs")

_AT_WORK: frozenset[JobState] = frozenset({"planning", "waiting", "running", "asking"})
_ENDED: frozenset[JobState] = frozenset({"done", "failed", "canceled"})
_STATES: dict[str | None, frozenset[JobState]] = {
    None: frozenset(),
    "live": _AT_WORK,
    "active": _AT_WORK - {"waiting"},
    "ended": _ENDED,
    **{state: frozenset({state}) for state in _AT_WORK | _ENDED},
}
_STEPS = 100
_CURSOR = (
    r"^(e[0-9]{1,15}"
    r"|l[0-2]~-?[0-9]{1,9}~[01]~[0-9TZ:.-]{0,40}~[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
    r"|[0-9]{4}-[0-9]{2}\.jsonl@[0-9]{1,15})?$"
)


class JobsQuery(Input):
    """Which jobs: of a state (live: active or waiting), of a title, or one trigger's firings."""

    state: (
        Literal[
            "planning", "waiting", "running", "asking", "done", "failed", "canceled",
            "live", "active", "ended",
        ]
        | None
    ) = None  # fmt: skip
    trigger: Annotated[str, StringConstraints(pattern=ID_PATTERN)] | None = None
    q: Annotated[str, StringConstraints(max_length=200, strip_whitespace=True)] = ""
    before: Annotated[str, StringConstraints(pattern=_CURSOR)] = ""
    limit: Annotated[int, Field(ge=1, le=100)] = 50


@area.route("GET", "/api/jobs", JobList, query=JobsQuery)
def listed(asked: JobsQuery) -> JobList:
    """Jobs at work, then those that ended last; with `trigger` that one's firings, each alone."""
    is_place = "@" in asked.before
    if asked.before and is_place != (asked.trigger is not None):
        raise BadInput("before: expected the cursor of an answer to this question", field="before")
    if asked.trigger is not None and asked.q:
        raise BadInput("q: expected none beside a trigger, whose firings are alike", field="q")
    state = site().state
    here = state.job_scene()
    wanted = JobFilter(_STATES[asked.state], asked.q)
    if asked.trigger is not None:
        return state.jobs.firings(asked.trigger, here, wanted, asked.before, asked.limit)
    return state.jobs.listed(here, wanted, asked.before, asked.limit)


@area.route("GET", "/api/jobs/<job_id>", JobView, query=Input)
def show(_: Input, job_id: str) -> JobView:
    """One job with its steps; also by the id of one of its tasks."""
    return _found(job_id)


@area.route("POST", "/api/jobs/<job_id>/cancel", COMMAND_ANSWERS, body=CommandInput)
def cancel(asked: CommandInput, job_id: str) -> Answer:
    """Cancel all of a job that waits or runs; of a trigger its firings, and it fires again."""
    return give_command(site(), "cancel_job", _found(job_id).id, command_id=asked.id)


def _found(job_id: str) -> JobView:
    state = site().state
    here = state.job_scene()
    found = state.jobs.find(job_id, here, _STEPS) or state.jobs.of_task(job_id, here, _STEPS)
    if found is None:
        raise NotFound(f"there is no job {job_id}", field="id")
    return found
