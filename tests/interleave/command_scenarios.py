"""Who gives which command as what it is about changes; and who writes as old days are archived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mimikit.errors import Conflict
from mimikit.protocol import paths
from tests.crash.oracle import Expected
from tests.interleave.explorer import Scenario
from tests.interleave.huey_scenarios import left_behind, sweep
from tests.interleave.scenarios import (
    after,
    answered_late,
    beside,
    edit,
    later_on,
    lines_kept,
    make,
    nobody,
    order,
    resumed,
    say,
    submit,
)
from tests.interleave.world import World

_EACH_MINUTE: dict[str, Any] = {"type": "recurring", "schedule": {"interval": 60}}
_FAILED = after(lambda c: c.submit("t1", "bad one"))
_FIRING = after(lambda c: c.trigger("g1", 60, "tick"))
_PAUSED = after(lambda c: c.order("o0", "pause"))


def runs_at_most(name: str, most: int) -> Callable[[World], list[str]]:
    """A task of the folder has no more retries than were asked for."""

    def check(world: World) -> list[str]:
        found = {id_ for id_, _ in world.oracle.runs if id_.startswith(name)}
        return [] if len(found) <= most else [f"{name} was begun as {sorted(found)}"]

    return check


def swept(world: World) -> list[str]:
    """What one has left that was dead before is gone."""
    left = set(left_behind()[paths.INBOX]) & world.disk.kill_image().folders[paths.INBOX].keys()
    return [f"{name} is left" for name in left]


COMMAND_SCENARIOS = (
    Scenario(
        "a failed task is retried by two",
        beside(("page", order("o1", "retry", "t1")), ("terminal", order("o2", "retry", "t1"))),
        base=_FAILED,
        check=runs_at_most("t1", 3),
        kills=("page", "consumer"),
        every=120,
    ),
    Scenario(
        "a failure is dismissed as it is retried",
        beside(("page", order("o1", "dismiss", "t1")), ("terminal", order("o2", "retry", "t1"))),
        base=_FAILED,
        kills=("page",),
        every=60,
    ),
    Scenario(
        "a trigger is paused as it fires",
        beside(("page", order("o1", "trigger_pause", "g1")), then=later_on(seconds=61)),
        base=_FIRING,
        kills=("consumer",),
        every=30,
    ),
    Scenario(
        "a trigger is run by hand as it fires",
        beside(("page", order("o1", "trigger_run", "g1")), then=later_on(seconds=61)),
        base=_FIRING,
        kills=("consumer",),
        every=30,
    ),
    Scenario(
        "a trigger is edited by one and removed by another",
        beside(
            ("page", order("o1", "trigger_edit", "g1", title="new")),
            ("terminal", order("o2", "trigger_remove", "g1")),
        ),
        base=_FIRING,
        every=30,
    ),
    Scenario(
        "a trigger is made by two",
        beside(
            ("page", make("g1", "tick", **_EACH_MINUTE)),
            ("terminal", make("g1", "tick", **_EACH_MINUTE)),
        ),
        kills=("page",),
        every=8,
    ),
    Scenario(
        "all goes on as a task comes",
        beside(("page", order("o1", "resume")), ("terminal", submit("t1", "one"))),
        base=_PAUSED,
        kills=("terminal",),
        every=40,
    ),
    Scenario(
        "one pauses all and one has it go on",
        beside(
            ("page", order("o1", "pause")),
            ("terminal", order("o3", "resume")),
        ),
        base=after(lambda c: c.submit("t1", "one"), works=False),
        later=resumed,
        every=80,
    ),
    Scenario(
        "a task is put into its queue by two",
        beside(("page", submit("t1", "one")), ("terminal", submit("t1", "one"))),
        # Who comes when it has ended, and had looked before: the file is set aside.
        expected=Expected(quarantined=1),
        kills=("page", "consumer"),
        every=25,
    ),
    Scenario(
        "a question is answered by two as its time is over",
        answered_late("page", "other"),
        base=after(lambda c: c.say("m1", "ask: colour? | default")),
        refuses=(Conflict,),
        every=60,
    ),
    Scenario(
        "days are archived as somebody talks and edits",
        beside(
            ("page", say("msg-2", "hello")),
            ("other", edit(paths.MEMORY, "mine")),
            then=later_on(days=7),
        ),
        base=after(lambda c: c.say("m1", "a long day")),
        check=lines_kept,
        kills=("page", "consumer"),
        every=150,
    ),
    Scenario(
        "a message is sent as what dead writers left is swept",
        beside(("doctor", sweep), ("page", say("msg-1", "hello")), ("other", sweep), then=nobody),
        base=left_behind,
        check=swept,
        kills=("page",),
    ),
)
