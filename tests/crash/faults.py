"""Lets the disk refuse, at every operation of a flow in turn, and looks whether all goes on after.

The client repeats what was refused, as a user presses the button again; nothing else helps.
"""

from __future__ import annotations

import errno
import itertools
import os
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from mimikit.errors import StorageError
from mimikit.testing.twins import FakeClock
from tests.crash.dice import DICE, dead_owner
from tests.crash.disk import Endless, WatchedDisk
from tests.crash.driver import (
    START_NS,
    Client,
    Drawn,
    Flow,
    keep_outside,
    rare_collections,
    warm_folder,
)
from tests.crash.files import QuickFiles
from tests.crash.images import Contents, Image
from tests.crash.oracle import Frozen, Oracle, judge, kept_as_expected, planned_as_expected
from tests.support.mind import Mind
from tests.support.product import START

WRITES_ONLY = frozenset({errno.ENOSPC, errno.EROFS})
LOOKS = frozenset({"read", "list"})
LONGEST_WAIT_S = 2.0


@dataclass
class Fault:
    """Refuses `burst` operations from the `first` on; after these the disk asks it no more."""

    code: int
    first: int
    burst: int
    clock: FakeClock
    disk: WatchedDisk
    count: int = 0
    ended_s: float | None = None
    """When it was over, by the steady clock."""
    hit: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.count >= self.first + self.burst and self.ended_s is not None

    def __call__(self, operation: str, path: str) -> OSError | None:
        if operation in LOOKS and self.code in WRITES_ONLY:
            return None
        number, self.count = self.count, self.count + 1
        if not self.first <= number < self.first + self.burst:
            return None
        self.hit.append(f"{operation} {path}")
        self.ended_s = self.clock.monotonic()
        if self.is_over:
            self.disk.fault = None
        return OSError(self.code, os.strerror(self.code), path)


@dataclass
class FaultReport:
    """What came of all faults in a flow."""

    flow: str
    runs: int = 0
    merged: int = 0
    """Of them those that came to where another one had gone on from."""
    slowest_s: float = 0.0
    violations: list[str] = field(default_factory=list)


def explore(
    flow: Flow,
    codes: tuple[int, ...],
    bursts: tuple[int, ...],
    *,
    every: int = 1,
    most_violations: int = 20,
) -> FaultReport:
    """Each error × each burst, from every `every`-th operation on."""
    report, passed = FaultReport(flow.name), dict[int, float]()
    faults = list(itertools.product(codes, bursts))
    with rare_collections():
        stops = _stops(flow)
        for number, (code, burst) in enumerate(faults):
            first = number * every // len(faults)  # together they meet as many as can be
            while len(report.violations) < most_violations:
                if not _Run(flow, stops, code, first, burst, report, passed).live():
                    break
                first += every
    return report


class _Stop(NamedTuple):
    """A product that was idle before an action, and stopped well."""

    folders: Contents
    oracle: Frozen
    now: datetime
    action: int
    drawn: Drawn
    looks: int
    """How many times it had looked at the disk by then."""
    changes: int
    """How many changes it had made."""


def _stops(flow: Flow) -> list[_Stop]:
    """Those of a life in which nothing is refused: whatever is, is refused after one of them."""
    base = flow.base() if flow.base else warm_folder()
    begin = _Stop(base, Oracle().freeze(), START, 0, (0, 0), 0, 0)
    disk, client = _begun(flow, begin, FakeClock(START))
    looks = changes = 0

    def count(operation: str, _path: str) -> None:
        nonlocal looks, changes
        is_look = operation in LOOKS
        looks, changes = looks + is_look, changes + (not is_look)

    disk.fault = count
    stops = [begin]
    for number, action in enumerate(flow.actions[:-1], start=1):
        _insist(client, flow, action)
        client.product.idle()
        disk.fault = None
        client.stop()
        disk.fault = count
        left, oracle = disk.kill_image().folders, client.oracle.freeze()
        drawn = DICE.position
        stops.append(_Stop(left, oracle, client.now, number, drawn, looks, changes))
    return stops


def _begun(flow: Flow, stop: _Stop, clock: FakeClock) -> tuple[WatchedDisk, Client]:
    """A product that has started there, and its client."""
    disk = WatchedDisk.of(Image("warm", stop.folders), start_ns=START_NS)
    oracle = Oracle.thaw(stop.oracle)
    DICE.life(0)
    DICE.position = stop.drawn
    files = QuickFiles(disk)
    dead_owner(files, 0)
    product = flow.counting(flow.product(files, clock, Mind(oracle.runs)))
    product.workspace.files.update(oracle.files())
    client = Client(product, oracle)
    keep_outside(product.worktrees, oracle)
    if flow.hook is not None:
        hook = flow.hook
        product.mind.hook = lambda request: _insist(client, flow, lambda c: hook(c, request))
    product.start()
    if stop.action:
        product.idle()
    return disk, client


class _Run:
    """One life with one fault, from the last stop before it on.

    passed: from places, by all that decides the rest, how long the rest waits; it is well.
    """

    def __init__(
        self,
        flow: Flow,
        stops: list[_Stop],
        code: int,
        first: int,
        burst: int,
        report: FaultReport,
        passed: dict[int, float],
    ) -> None:
        self.flow, self.report, self.passed = flow, report, passed
        self.where = f"{flow.name}: {errno.errorcode[code]} × {burst} from operation {first}"
        counts = [s.changes if code in WRITES_ONLY else s.changes + s.looks for s in stops]
        number = max(n for n, count in enumerate(counts) if count <= first)
        self.action, self.clock = stops[number].action, FakeClock(stops[number].now)
        self.disk, self.client = _begun(flow, stops[number], self.clock)
        self.fault = Fault(code, first, burst, self.clock, self.disk, counts[number])
        self.oracle = self.client.oracle

    def live(self) -> bool:
        """False when the flow was over before the fault came."""
        self.disk.fault = self.fault
        places: list[tuple[int, float]] = []
        try:
            rest = self._through(places)
        except (Exception, Endless) as error:  # noqa: BLE001 - whatever it is, the report says where
            found = f"{self.where} {self.fault.hit}: {type(error).__name__}: {error}"
            self.report.violations.append(found)
            return True
        if self.fault.ended_s is None:
            return False
        self.report.runs += 1
        waited = max(self._waited() + (rest or 0.0) - self.flow.waits_s, 0.0)
        self.report.slowest_s = max(self.report.slowest_s, waited)
        found = self._judged() if rest is None else []
        if waited > LONGEST_WAIT_S:
            found.append(f"went on only {waited} s after the fault was over")
        self.report.violations += [f"{self.where} {self.fault.hit}: {it}" for it in found]
        if not found:
            self.passed |= {key: self._waited() + (rest or 0.0) - at for key, at in places}
        return True

    def _through(self, places: list[tuple[int, float]]) -> float | None:
        """Do all; or come to where another run has gone on from, and give how long that waited."""
        for number, action in enumerate(self.flow.actions[self.action :], start=self.action):
            if self.fault.is_over and self.client.product.rests():
                key = hash((self.disk.state(), self.oracle.freeze(), self.clock.now(), number))
                if key in self.passed:
                    self.report.merged += 1
                    return self.passed[key]
                places.append((key, self._waited()))
            _insist(self.client, self.flow, action)
            self.client.product.idle()
        return None

    def _waited(self) -> float:
        """Seconds since the fault was over that the client did not let pass on purpose."""
        ended_s = self.fault.ended_s or 0.0
        return self.clock.monotonic() - ended_s - self.client.passed_since(ended_s)

    def _judged(self) -> list[str]:
        left, expected = self.disk.kill_image().folders, self.flow.expected
        found = judge(left, self.oracle, replace(expected, faulty=True))
        found += kept_as_expected(left, expected)
        found += planned_as_expected(left, expected)
        return [v for v in found if ".tmp-" not in v]  # swept at the next start: its writer lives


def _insist(client: Client, flow: Flow, action) -> None:
    for _ in range(100):
        try:
            return action(client)
        except StorageError:
            client.product.clock.advance(0.1)
            client.product.tick()
    raise AssertionError(f"{flow.name}: the client was refused a hundred times")
