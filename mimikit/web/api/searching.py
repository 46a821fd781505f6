"""Searching memory, documents, the conversation and the results of tasks."""

from __future__ import annotations

import time
from datetime import MAXYEAR, UTC, datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from flask import Blueprint, Response
from pydantic import Field, StringConstraints

from mimikit.errors import BadInput
from mimikit.views import hits
from mimikit.web.api.asked import Asked, query
from mimikit.web.site import answer, site

routes = Blueprint("searching", __name__)

Time = Annotated[str, StringConstraints(max_length=40)]


class Search(Asked):
    """What is looked for, and where. `after` is a day or time, `before` one that is left out."""

    q: Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    after: Time | None = None
    before: Time | None = None
    scope: Literal["all", "memory"] = "all"


@routes.get("/api/search")
def search() -> Response:
    """The best hits first."""
    asked, here = query(Search), site()
    if not asked.q.strip():
        raise BadInput("q: expected something to search for, got only blanks", field="q")
    zone = here.settings.zone
    after, before = _time(asked.after, "after", zone), _time(asked.before, "before", zone)
    began, memory = time.monotonic(), here.search()
    found = memory.find(
        asked.q, limit=asked.limit, after=after, before=before, everywhere=asked.scope == "all"
    )
    took_ms = round((time.monotonic() - began) * 1000, 1)
    return answer(
        {
            "query": asked.q,
            "hits": [hits.found(hit, asked.q) for hit in found],
            "tookMs": took_ms,
            "fallback": memory.fallback,
        }
    )


def _time(text: str | None, field: str, zone: ZoneInfo) -> datetime | None:
    """A day's beginning or a time; in the workspace's zone unless it names one.

    Raises:
        BadInput: it is neither.
    """
    if not text:
        return None
    time_ = _parsed(text, zone)
    if time_ is None or not 1 < time_.year < MAXYEAR:
        raise BadInput(
            f"{field}: expected a day or time like 2026-01-28 or 2026-01-28T09:30Z, "
            f"got {text[:40]!r}",
            field=field,
        )
    return time_


def _parsed(text: str, zone: ZoneInfo) -> datetime | None:
    try:
        time_ = datetime.fromisoformat(text)
        return (time_ if time_.tzinfo else time_.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
