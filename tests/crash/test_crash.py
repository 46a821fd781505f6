"""Whatever operation the process dies at, nothing accepted is lost, doubled or stuck.

Each flow is crashed before every change of a file, in the middle of every write, and with every
state a power cut may leave; then its recovery is crashed the same way, and at night that of the
recovery, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.crash.disk import Site
from tests.crash.driver import Explorer, Flow, Report
from tests.crash.flows import FLOWS
from tests.crash.sites import Place, places

pytestmark = pytest.mark.timeout(0)
"""Work for a processor: how long it takes is the machine's business."""

NEVER_REACHED = {
    ("mimikit.supervisor.loop", "beat"): "the heartbeat is a hint: nothing is decided by it",
    (
        "mimikit.conversation.turn_prompts",
        "keep",
    ): "kept for looking back: nothing is decided by it",
    (
        "mimikit.notifications.courier",
        "_sent",
    ): "in place another courier writes the mark, and `test_kills` kills at this one",
    ("mimikit.roles.owner_tools", "open_door"): "an address, made anew by each consumer",
    ("mimikit.tasks.usage", "_end_unbegun"): "only a disk that refused: see `test_faults`",
    ("mimikit.memory.documents", "_all_stats"): "where a consumer runs, its guard was faster",
}
RECOVERIES = ("what is used is counted", "cancel queued", "told outside of the page")
"""Flows whose recovery changes files that nothing else does: it is watched while it is crashed."""
LEAST_STATES = 200_000
AT_NIGHT, LEAST_AT_NIGHT = 20, 1_000_000
"""From this size on so many states are to be seen."""
MOST_CRASHES, MOST_STATES = 12, 600
"""By night: in a row, and in one flow, times the size; those with fewer crashes come first."""
FLOW = pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)


@pytest.mark.fault(
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    "b",
    "d",
    "f",
    "openclaw#6460",
    "openclaw#42640",
    "complaint 18",
    "upstream 5",
    "upstream 6",
    "upstream 7",
    19,
    22,
    34,
    35,
    37,
    53,
    "a",
    "e",
    "g",
    "h",
    "j",
    "l",
    "upstream 9",
)
@pytest.mark.slow
@FLOW
def test_nothing_is_lost_doubled_or_stuck_by_crashes_and_crashes_of_the_recovery(
    flow: Flow, size: int, tell: list[Report]
) -> None:
    report = Explorer(
        flow,
        crashes=2 if size < AT_NIGHT else MOST_CRASHES,
        power_every=1,
        hints=True,
        most_states=MOST_STATES * size if size >= AT_NIGHT else math.inf,
    ).run()
    tell.append(report)
    assert not report.violations, "\n".join(report.violations[:10])
    assert report.lives > 10


@pytest.mark.fault(9)
@pytest.mark.slow
@FLOW
def test_a_power_cut_after_a_kill_and_its_recovery_takes_back_nothing(
    flow: Flow, tell: list[Report]
) -> None:
    report = Explorer(flow, then_power=True, hints=True).run()
    tell.append(report)
    assert not report.violations, "\n".join(report.violations[:10])


@pytest.mark.fault(59)
def test_feed_log_and_live_output_may_be_torn_as_they_like(tell: list[Report]) -> None:
    flow = next(flow for flow in FLOWS if flow.name == "two messages")
    report = Explorer(flow, hints=True, crashes=1).run()
    tell.append(report)
    assert not report.violations, "\n".join(report.violations[:10])
    assert any(
        (site.module, site.function) == ("mimikit.roles.run_output", "_put")
        for site in report.sites
    )


def test_the_flows_reach_every_place_of_the_core_that_changes_a_file(
    tell: list[Report],
) -> None:
    known = {report.flow for report in tell}
    reports = [
        *tell,
        *(
            Explorer(flow, crashes=2 if flow.name in RECOVERIES else 1, inner_every=6).run()
            for flow in FLOWS
            if flow.name not in known
        ),
        Explorer(FLOWS[0], crashes=0, hints=True).run(),
    ]
    reached = {site for report in reports for site in report.sites}
    missed = [place for place in places() if not _is_reached(place, reached)]
    assert not missed, "no flow changes a file at: " + "; ".join(map(str, missed))


def test_the_states_that_were_seen_are_many_and_each_is_counted_once(
    size: int, tell: list[Report], lines: list[str], proof: Callable[[dict[str, float]], None]
) -> None:
    if {report.flow for report in tell} < {flow.name for flow in FLOWS}:
        return  # only some flows were asked for
    seen = set[tuple[int, str, Site]]().union(*(report.triples for report in tell))
    merged = sum(report.merged for report in tell)
    lines.append(
        f"{len(seen):,} states differ when those that several flows share are counted once; "
        f"{merged:,} recoveries ended where another one had gone on from"
    )
    proof({"distinct states": len(seen)})
    assert len(seen) >= (LEAST_STATES if size < AT_NIGHT else LEAST_AT_NIGHT)


def test_the_list_of_places_holds_the_ones_one_would_name() -> None:
    found = {(place.module, place.function) for place in places()}
    assert ("mimikit.tasks.queue", "submit") in found
    assert ("mimikit.conversation.turns", "commit") in found
    assert ("mimikit.tasks.ledger", "write") in found
    assert ("mimikit.conversation.attachments", "remove_expired") in found
    assert ("mimikit.config_file", "rewrite") in found
    assert len(found) > 25


def _is_reached(place: Place, sites: set[Site]) -> bool:
    if (place.module, place.function) in NEVER_REACHED:
        return True
    return any(
        site.module == place.module and place.first <= site.line <= place.last for site in sites
    )
