"""Crashes a flow at every operation, recovers, crashes the recovery, and lets the oracle judge.

A flow is a list of actions: what a client does, and `idle`, in which the product works until
nothing is left to do. A *node* is one crash: what is on the disk, what the world outside knows, and
which action was under way. From it a fresh product recovers, works until idle, and the client goes
on: it repeats what it was not told is accepted, then does the rest.

Equal nodes are lived through once: the product decides from the disk and the clock alone.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from mimikit.config import Settings
from mimikit.conversation import inbox
from mimikit.conversation.history import HistoryCaps
from mimikit.engines.base import RunSpec
from mimikit.errors import StorageError
from mimikit.memory import notes
from mimikit.memory.archive import RULES, ArchiveRules
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, InboxItem, Task
from mimikit.protocol.triggers import Trigger
from mimikit.tasks import queue
from mimikit.triggers import registry
from tests.crash.dice import DICE, dead_owner
from tests.crash.disk import Contents, Endless, Image, Site, WatchedDisk, asker
from tests.crash.oracle import (
    Expected,
    Frozen,
    Oracle,
    fired_as_expected,
    judge,
    kept_as_expected,
    planned_as_expected,
    told_as_expected,
)
from tests.support.memory_disk import DiskStep
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.twins import FakeClock

Action: TypeAlias = "Callable[[Client], object]"
TOLD_ERRORS = frozenset({"turn_failed", "trigger_fault", "archive_backlog", "history_overflow"})
"""Errors in the log that a flow may cause on purpose."""
START_NS = int(START.timestamp()) * 10**9
_COALESCED_S = 61.0
"""Seconds after which no results are coalesced any more."""


class Client:
    """Whoever uses the product from outside: every method may be repeated with the same ids."""

    def __init__(self, product: Product, oracle: Oracle) -> None:
        self.product, self.oracle = product, oracle
        self.files = product.files
        self.action = 0
        """Index of the flow's current action."""
        self._passed: list[tuple[float, float]] = []
        """(monotonic time, seconds) of each pause the client made on purpose."""

    @property
    def now(self) -> datetime:
        return self.product.clock.now()

    def say(self, id_: str, text: str, **more: Any) -> None:
        at = self.oracle.note(f"time of {id_}", self.now)
        inbox.put(self.files, InboxItem(id=id_, text=text, created_at=at, **more))
        self.oracle.ack("message", id_)

    def submit(self, id_: str, prompt: str, **more: Any) -> None:
        at = self.oracle.note(f"time of {id_}", self.now)
        task = Task(
            id=id_, prompt=prompt, created_at=at, trace_id=f"trace-{id_}", origin="cli", **more
        )
        queue.submit(self.files, task)
        self.oracle.ack("task", id_)

    def order(self, id_: str, action: Any, target: str = "", **args: Any) -> None:
        at = self.oracle.note(f"time of {id_}", self.now)
        order = Command(id=id_, action=action, target=target, args=args, created_at=at)
        queue.submit_command(self.files, order)
        over = self.product.store.ledger.end_of(target) is not None
        self.oracle.note(f"runs at {id_}", len(self.oracle.runs))
        self.oracle.note(f"over at {id_}", over)
        self.oracle.ack("order", id_)

    def answer(self, id_: str, text: str) -> None:
        """Answer the open question, if there is one; the same one when it is repeated."""
        open_now = self.files.read(paths.PENDING_QUESTION)
        question = self.oracle.note(f"question of {id_}", open_now and _question_id(open_now))
        if question is not None:
            self.say(id_, text, kind="answer", question_id=question)

    def trigger(self, id_: str, interval: float, prompt: str, **more: Any) -> None:
        """Store a trigger that fires at an interval."""
        self.make(id_, prompt, type="recurring", schedule={"interval": interval}, **more)

    def when(self, id_: str, prompt: str, condition: dict[str, Any], **more: Any) -> None:
        self.make(id_, prompt, type="conditional", condition=condition, **more)

    def make(self, id_: str, prompt: str, **fields: Any) -> None:
        """Store a trigger and say so, as the web process does."""
        at = self.oracle.note(f"time of {id_}", self.now)
        known = {"id": id_, "prompt": prompt, "createdAt": at, "traceId": f"trace-{id_}"}
        trigger = Trigger.model_validate({**known, "notify": "message", **fields}, strict=False)
        if ("trigger", id_) in self.oracle.acked:
            return  # it may have fired and gone: who was told that it is stored does not repeat it
        registry.create(self.files, trigger)
        self.product.store.events.changed_triggers.put(id_)
        self.oracle.ack("trigger", id_)

    def touch(self, name: str, *, gone: bool = False) -> None:
        """Change a file of the workspace, once; it lies outside of what a crash can take."""
        number = sum(1 for key, _ in self.oracle.notes if key.startswith("file "))
        mark = f"touch {name} in action {self.action}"
        if self.oracle.note(mark, self) is not self:
            return
        self.oracle.renote(mark, True)
        entry = None if gone else (number + 1, 1)
        self.oracle.note(f"file {number} {name}", entry)
        if entry is None:
            self.product.workspace.remove(name)
        else:
            self.product.workspace.write(name, *entry)

    def put(self, path: str, data: bytes) -> None:
        """Put a file there by hand, once."""
        if self.oracle.note(f"put {path}", self) is self:
            self.oracle.renote(f"put {path}", True)
            self.files.write(path, data)

    def put_folder(self, path: str) -> None:
        """Put an empty folder there by hand, once."""
        if self.oracle.note(f"put folder {path}", self) is self:
            self.oracle.renote(f"put folder {path}", True)
            self.files.make_folders([path])

    def edit(self, path: str, line: str) -> None:
        """Add a line to a memory file as the page does, unless it is there."""
        note = notes.read(self.files, path)
        text = note.text if note else ""
        if line not in text:
            notes.replace(self.files, path, f"{text}{line}\n", note.hash if note else None)

    def jot(self, action: notes.Action, item: str) -> None:
        """Change the backlog, as the page does."""
        notes.change_backlog(self.files, action, item)

    def drop(self, data: bytes) -> None:
        """Put an `inbox.json` there."""
        self.put(paths.DROPPED_INBOX, data)

    def stop(self) -> None:
        """What the app does on a clean stop."""
        self.product.store.ledger.checkpoint()
        self.product.store.save_runtime(seen_at=self.now)

    def restart(self) -> None:
        """Start a new product after a clean stop; retry while the disk refuses."""
        old = self.product
        for _ in range(100):
            try:
                self.product = Product(
                    self.files,
                    old.clock,
                    old.mind,
                    settings=old.settings,
                    workspace_files=old.workspace,
                    caps=old.store.conversation.caps,
                )
                self.product.log.errors = old.log.errors
                self.product.start()
            except StorageError:
                old.clock.advance(0.1)
            else:
                return
        raise AssertionError("expected a start, but the disk refused it a hundred times")

    def at(self, seconds: float) -> None:
        """Let time pass until `seconds` after the flow's beginning."""
        left = seconds - (self.now - START).total_seconds()
        self._passed.append((self.product.clock.monotonic(), max(left, 0)))
        self.product.clock.advance(max(left, 0))

    def set_clock(self, seconds: float) -> None:
        """Set the wall clock, once, to `seconds` after the flow's beginning; no time passes."""
        if self.oracle.note(f"clock set to {seconds}", self) is self:
            self.oracle.renote(f"clock set to {seconds}", True)
            self.product.clock.jump(START + timedelta(seconds=seconds))

    def passed_since(self, steady_s: float) -> float:
        """Seconds this client let pass on purpose since then."""
        return sum(seconds for at, seconds in self._passed if at >= steady_s)


def _question_id(data: bytes) -> str:
    return json.loads(data)["questionId"]


@dataclass(frozen=True)
class Flow:
    """What a client does, in order; after each action the product works until it is idle."""

    name: str
    actions: tuple[Action, ...]
    hook: Callable[[Client, RunSpec], None] | None = None
    """Called inside a Worker's run whose prompt holds `~`."""
    expected: Expected = field(default_factory=Expected)
    base: Callable[[], Contents] | None = None
    rules: ArchiveRules = RULES
    caps: HistoryCaps | None = None
    settings: Settings | None = None
    waits_s: float = 0.0
    """Seconds the flow waits by itself, for an engine, beside what its client lets pass."""

    def product(self, files: Files, clock: FakeClock, mind: Mind, *, quiet: bool = True) -> Product:
        """The product under test; `quiet` writes neither log nor events."""
        return Product(
            files,
            clock,
            mind,
            quiet=quiet,
            settings=self.settings,
            rules=self.rules,
            caps=self.caps,
        )

    def counting(self, product: Product) -> Product:
        """The same; token usage is counted only in flows about it, as that is slow."""
        if not self.expected.counts:
            product.context.usage.begin = lambda *_facts: None  # pyright: ignore[reportAttributeAccessIssue]
        return product


class Node(NamedTuple):
    image: Image
    oracle: Frozen
    now: datetime
    action: int
    operation: str
    path: str
    site: Site

    def key(self) -> int:
        """Equal for crashes after which the same happens."""
        return hash((self.image.key(), self.oracle, self.now, self.action))

    def __str__(self) -> str:
        return (
            f"{self.image.kind} before {self.operation} {self.path} by {self.site} line "
            f"{self.site.line} in action {self.action}"
        )


@dataclass
class Report:
    """What was explored, and what went wrong."""

    flow: str
    triples: set[tuple[int, str, Site]] = field(default_factory=set)
    histogram: Counter[tuple[str, str]] = field(default_factory=Counter)
    sites: set[Site] = field(default_factory=set)
    lives: int = 0
    nodes: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)

    def saw(self, node: Node, image_key: int) -> None:
        """Count a crash state if it is a new one."""
        self.nodes += 1
        triple = (image_key, node.operation, node.site)
        if triple not in self.triples:
            self.triples.add(triple)
            self.histogram[(str(node.site), node.operation)] += 1

    def summary(self) -> str:
        rate = len(self.triples) / self.seconds * 60 if self.seconds else 0
        return (
            f"{self.flow}: {len(self.triples)} distinct states ({self.nodes} crashes) in "
            f"{self.lives} recoveries, {self.seconds:.1f} s of CPU, {rate:,.0f} states/min, "
            f"{len(self.violations)} violations"
        )


class Explorer:
    """Explores one flow.

    crashes: how many crashes follow one another, from the second on inside a recovery; 0: none.
    power_every: of the crashes inside a recovery, every how many operations also lose power.
    inner_every: of the distinct crashes inside a recovery, every how many are lived through.
    then_power: instead, after each kill and its recovery the power fails, and what the first
        process had not flushed is lost unless the second one saw to it.
    """

    def __init__(
        self,
        flow: Flow,
        *,
        crashes: int = 2,
        power_every: int = 7,
        inner_every: int = 1,
        hints: bool = False,
        then_power: bool = False,
        most_violations: int = 20,
    ) -> None:
        self.flow = flow
        self.most_violations = most_violations
        self.crashes, self.power_every, self.hints = crashes, power_every, hints
        self.inner_every = inner_every
        self.then_power = then_power
        self.report = Report(flow.name)
        self._known: dict[int, bool] = {}
        """Key of each crash that was met → whether it is lived through."""
        self._passed: set[tuple[int, Frozen, datetime, int]] = set()

    def run(self) -> Report:
        started = time.process_time()
        first: list[Node] = []
        base = self.flow.base() if self.flow.base else warm_folder()
        beginning = Node(
            Image("start", base), Oracle().freeze(), START, -1, "start", "", Site("", "", 0)
        )
        self.live(beginning, 0, first, power_every=1)
        for node in first if self.crashes else ():
            if len(self.report.violations) >= self.most_violations:
                break
            self._crash(node, 1, None)
        self.report.seconds = time.process_time() - started
        return self.report

    def _crash(self, node: Node, life: int, after: Node | None) -> None:
        """Recover from a crash, and crash the recovery while `crashes` allows one more."""
        again: list[Node] | None = [] if life < self.crashes else None
        if self.live(node, life, again, power_every=self.power_every, after=after):
            for inner in again or ():
                if len(self.report.violations) >= self.most_violations:
                    return
                self._crash(inner, life + 1, node)

    def live(
        self,
        node: Node,
        life: int,
        collect: list[Node] | None,
        *,
        power_every: int,
        after: Node | None = None,
    ) -> bool:
        """One life of the product, from what a crash left to the end of the flow."""
        self.report.lives += 1
        disk = WatchedDisk.of(node.image, start_ns=START_NS)
        disk.hints = self.hints
        clock, oracle = FakeClock(node.now), Oracle.thaw(node.oracle)
        watching = _Watching(self, disk, clock, oracle, collect, power_every, life)
        disk.watch = watching.see if collect is not None else None
        try:
            violations = self._go(disk, clock, oracle, node, life, watching)
        except (Exception, Endless) as error:  # noqa: BLE001 - whatever it is, the report says where
            violations = [f"{type(error).__name__}: {error}"]
        for violation in violations:
            first = f" (after {after})" if after else ""
            self.report.violations.append(
                f"{self.flow.name}, life {life}: {node}{first}: {violation}"
            )
        return not violations

    def _go(
        self,
        disk: WatchedDisk,
        clock: FakeClock,
        oracle: Oracle,
        node: Node,
        life: int,
        watching: _Watching,
    ) -> list[str]:
        DICE.life(life)
        files = Files(disk)
        dead_owner(files, life)
        watching.action = node.action
        files.make_folders()
        mind = Mind(oracle.runs)
        product = self.flow.counting(self.flow.product(files, clock, mind))
        product.workspace.files.update(oracle.files())
        client = Client(product, oracle)
        if self.flow.hook is not None:
            hook = self.flow.hook
            mind.hook = lambda request: hook(client, request)
        product.start()
        product.idle()
        found = self._judge(disk, oracle, product)
        if life and not found:
            watching.stop(at_rest=self.then_power)
        boundaries: list[tuple[int, Frozen, datetime, int]] = []
        for number in range(max(node.action, 0), len(self.flow.actions)):
            if found:
                return found
            watching.action = client.action = number
            self.flow.actions[number](client)
            client.product.idle()
            boundary = (disk.kill_image().key(), oracle.freeze(), clock.now(), number)
            if boundary in self._passed:
                break
            boundaries.append(boundary)
            found = self._judge(disk, oracle, client.product)
            if number == len(self.flow.actions) - 1:
                left = disk.kill_image().folders
                found += fired_as_expected(left, self.flow.expected)
                found += kept_as_expected(left, self.flow.expected)
                found += planned_as_expected(left, self.flow.expected)
                if told_as_expected(left) and not found:
                    client.product.clock.advance(_COALESCED_S)
                    client.product.idle()
                    found += told_as_expected(disk.kill_image().folders)
        if not found:
            self._passed.update(boundaries)
        return found

    def _judge(self, disk: WatchedDisk, oracle: Oracle, product: Product) -> list[str]:
        found = judge(disk.kill_image().folders, oracle, self.flow.expected)
        told = TOLD_ERRORS | ({"engine_fault"} if self.flow.expected.limited else set())
        errors = [e for e in product.log.errors if e["event"] not in told]
        return found + [f"the product logged: {error}" for error in errors]

    def add(self, node: Node, collect: list[Node], *, inner: bool) -> None:
        """Count a crash; recover from it later unless an equal one was met."""
        key = node.key()
        is_new = key not in self._known
        if is_new:
            self._known[key] = not inner or len(self._known) % self.inner_every == 0
        if self._known[key]:
            self.report.saw(node, node.image.key())
            if is_new:
                collect.append(node)


class _Watching:
    """Records the crashes that are possible before each change of a life."""

    def __init__(
        self,
        explorer: Explorer,
        disk: WatchedDisk,
        clock: FakeClock,
        oracle: Oracle,
        collect: list[Node] | None,
        power_every: int,
        life: int,
    ) -> None:
        self._life = life
        self._explorer, self._disk, self._clock, self._oracle = explorer, disk, clock, oracle
        self._collect, self._power_every = collect, power_every
        self._steps = 0
        self.action = 0

    def stop(self, *, at_rest: bool) -> None:
        """Collect no more: what follows is the flow's own, crashed elsewhere.

        at_rest: collect what a power cut now may leave, with nothing under way.
        """
        if at_rest and self._collect is not None:
            for image in self._disk.power_images():
                self._add(image, DiskStep("rest", ""), Site("client", "rest", 0))
        self._collect = self._disk.watch = None

    def see(self, step: DiskStep, site: Site) -> None:
        self._explorer.report.sites |= {site, asker(sys._getframe(1))}
        self._steps += 1
        if self._explorer.then_power:
            if self._life == 0:
                self._add(self._disk.kill_image(then_power=True), step, site)
            return
        disk = self._disk
        images = [disk.kill_image()]
        if step.operation == "write" and (torn := disk.torn_image()):
            images.append(torn)
        if self._power_every and self._steps % self._power_every == 0:
            images += disk.power_images()
        for image in images:
            self._add(image, step, site)

    def _add(self, image: Image, step: DiskStep, site: Site) -> None:
        assert self._collect is not None
        frozen, now = self._oracle.freeze(), self._clock.now()
        node = Node(image, frozen, now, self.action, step.operation, step.path, site)
        self._explorer.add(node, self._collect, inner=self._life > 0)


@functools.cache
def warm_folder() -> Contents:
    """A state folder that has been started once."""
    disk = WatchedDisk.of(Image("new", {"": {}}), start_ns=START_NS)
    files = Files(disk)
    files.make_folders()
    product = Product(files, FakeClock(START), Mind([]))
    product.start()
    product.idle()
    return disk.kill_image().folders
