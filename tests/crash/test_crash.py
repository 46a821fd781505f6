"""A crash at any operation loses, doubles and blocks nothing that was accepted.

Each flow is crashed before every change of a file, in the middle of every write, and with every
state a power cut may leave; then its recovery is crashed the same way.
"""

from __future__ import annotations

import pytest

from tests.crash.disk import Site
from tests.crash.driver import Explorer, Flow, Report
from tests.crash.flows import FLOWS
from tests.crash.sites import Place, places

pytestmark = pytest.mark.timeout(0)
"""CPU-bound: no timeout."""

NEVER_REACHED = {
    ("mimikit.supervisor.consumer_lock", "take_consumer_lock"): "a flow has one consumer",
    ("mimikit.supervisor.consumer_lock", "_lock"): "a flow has one consumer",
    ("mimikit.supervisor.loop", "beat"): "the heartbeat is a hint: nothing is decided by it",
    ("mimikit.conversation.turn_prompts", "keep"): "only the oldest of very many are removed",
    ("mimikit.supervisor.recovery", "recover"): "only after a crash: half-made files are swept",
    ("mimikit.supervisor.command_applier", "step"): "only after a crash: an order that was done",
    ("mimikit.memory.documents", "_stats"): "where a consumer runs, its guard was faster",
}
LEAST_STATES = 30_000
FLOW = pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)


@pytest.mark.slow
@FLOW
def test_nothing_is_lost_doubled_or_stuck_by_crashes_and_crashes_of_the_recovery(
    flow: Flow, size: int, tell: list[Report]
) -> None:
    report = Explorer(
        flow,
        crashes=2 if size < 5 else 3,
        inner_every=6 if size < 2 else 1,
        power_every=7 if size < 3 else 1,
    ).run()
    tell.append(report)
    assert not report.violations, "\n".join(report.violations[:10])
    assert report.lives > 10


@pytest.mark.slow
@FLOW
def test_a_power_cut_after_a_kill_and_its_recovery_takes_back_nothing(
    flow: Flow, tell: list[Report]
) -> None:
    report = Explorer(flow, then_power=True).run()
    tell.append(report)
    assert not report.violations, "\n".join(report.violations[:10])


def test_torn_hint_files_cause_no_violation(tell: list[Report]) -> None:
    flow = next(flow for flow in FLOWS if flow.name == "two messages")
    report = Explorer(flow, hints=True, crashes=1).run()
    tell.append(report)
    assert not report.violations, "\n".join(report.violations[:10])
    assert any(site.function == "write" for site in report.sites)


def test_the_flows_reach_every_place_of_the_core_that_changes_a_file() -> None:
    reports = [Explorer(flow, crashes=0, hints=True).run() for flow in FLOWS]
    reached = {site for report in reports for site in report.sites}
    missed = [place for place in places() if not _is_reached(place, reached)]
    assert not missed, "no flow changes a file at: " + "; ".join(map(str, missed))


def test_the_states_that_were_seen_are_many_and_each_is_counted_once(tell: list[Report]) -> None:
    if {report.flow for report in tell} < {flow.name for flow in FLOWS}:
        return  # only some flows were asked for
    assert sum(len(report.triples) for report in tell) >= LEAST_STATES


def _is_reached(place: Place, sites: set[Site]) -> bool:
    if (place.module, place.function) in NEVER_REACHED:
        return True
    return any(
        site.module == place.module and place.first <= site.line <= place.last for site in sites
    )
