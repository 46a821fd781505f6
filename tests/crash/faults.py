"""Injects a disk error at every operation of a flow in turn; work must go on afterwards.

The client repeats what was refused, as a user presses the button again; nothing else helps.
"""

from __future__ import annotations

import errno
import itertools
import os
from dataclasses import dataclass, field, replace

from mimikit.errors import StorageError
from mimikit.protocol.files import Files
from tests.crash.dice import DICE, dead_owner
from tests.crash.disk import Contents, Endless, Image, WatchedDisk
from tests.crash.driver import START_NS, Client, Flow, warm_folder
from tests.crash.oracle import Oracle, judge, kept_as_expected, planned_as_expected
from tests.support.mind import Mind
from tests.support.product import START
from tests.support.twins import FakeClock

WRITES_ONLY = frozenset({errno.ENOSPC, errno.EROFS})
LONGEST_WAIT_S = 2.0


@dataclass
class Fault:
    """Refuses `burst` operations from the `first` on."""

    code: int
    first: int
    burst: int
    clock: FakeClock
    count: int = 0
    began_s: float = 0.0
    ended_s: float | None = None
    """When it was over, by the monotonic clock."""
    hit: list[str] = field(default_factory=list)

    def __call__(self, operation: str, path: str) -> OSError | None:
        if operation == "stat" or (operation in ("read", "list") and self.code in WRITES_ONLY):
            return None
        number, self.count = self.count, self.count + 1
        if not self.first <= number < self.first + self.burst:
            return None
        self.hit.append(f"{operation} {path}")
        self.began_s = self.ended_s = self.clock.monotonic()
        return OSError(self.code, os.strerror(self.code), path)


@dataclass
class ClosedFolder(Fault):
    """The folder of the `first` operation is closed (EACCES) for `burst` fifths of a second.

    A single file that may not be read is set aside by design: it is no record of ours.
    """

    folder: str | None = None

    def __call__(self, operation: str, path: str) -> OSError | None:
        folders = {path} if operation == "list" else {_parent(one) for one in path.split(" → ")}
        if self.ended_s is None:
            if operation == "stat":
                return None
            number, self.count = self.count, self.count + 1
            if number < self.first:
                return None
            self.folder = path if operation == "list" else _parent(path.split(" → ")[0])
            self.began_s = self.clock.monotonic()
            self.ended_s = self.began_s + self.burst / 5
        if self.folder not in folders or self.clock.monotonic() >= self.ended_s:
            return None
        self.hit.append(f"{operation} {path}")
        return OSError(self.code, os.strerror(self.code), path)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


@dataclass
class FaultReport:
    flow: str
    runs: int = 0
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
    report = FaultReport(flow.name)
    base = flow.base() if flow.base else warm_folder()
    faults = list(itertools.product(codes, bursts))
    for number, (code, burst) in enumerate(faults):
        first = number * every // len(faults)  # together they meet as many operations as can be
        while len(report.violations) < most_violations:
            if not _one(flow, base, code, first, burst, report):
                break
            first += every
    return report


def _one(
    flow: Flow, base: Contents, code: int, first: int, burst: int, report: FaultReport
) -> bool:
    """One run with one fault; False when the flow was over before the fault came."""
    disk = WatchedDisk.of(Image("warm", base), start_ns=START_NS)
    clock, oracle = FakeClock(START), Oracle()
    kind = ClosedFolder if code == errno.EACCES else Fault
    fault = kind(code, first, burst, clock)
    where = f"{flow.name}: {errno.errorcode[code]} × {burst} from operation {first}"
    DICE.life(0)
    files = Files(disk)
    dead_owner(files, 0)
    product = flow.counting(flow.product(files, clock, Mind(oracle.runs)))
    client = Client(product, oracle)
    if flow.hook is not None:
        hook = flow.hook
        product.mind.hook = lambda request: _retry(client, flow, lambda c: hook(c, request))
    product.start()
    disk.fault = fault
    try:
        for action in flow.actions:
            _retry(client, flow, action)
            client.product.idle()
    except (Exception, Endless) as error:  # noqa: BLE001 - whatever it is, the report says where
        report.violations.append(f"{where} {fault.hit}: {type(error).__name__}: {error}")
        return True
    if fault.ended_s is None:
        return False
    if clock.monotonic() < fault.ended_s:
        clock.advance(fault.ended_s - clock.monotonic())
        client.product.idle()
    report.runs += 1
    waited = clock.monotonic() - fault.ended_s - client.passed_since(fault.began_s)
    waited = max(waited - flow.waits_s, 0.0)
    report.slowest_s = max(report.slowest_s, waited)
    found = judge(disk.kill_image().folders, oracle, replace(flow.expected, faulty=True))
    found += kept_as_expected(disk.kill_image().folders, flow.expected)
    found += planned_as_expected(disk.kill_image().folders, flow.expected)
    found = [v for v in found if ".tmp-" not in v]  # swept at the next start: its writer lives
    if waited > LONGEST_WAIT_S:
        found.append(f"went on only {waited} s after the fault was over")
    report.violations += [f"{where} {fault.hit}: {violation}" for violation in found]
    return True


def _retry(client: Client, flow: Flow, action) -> None:
    for _ in range(100):
        try:
            return action(client)
        except StorageError:
            client.product.clock.advance(0.1)
            client.product.tick()
    raise AssertionError(f"{flow.name}: the client was refused a hundred times")
