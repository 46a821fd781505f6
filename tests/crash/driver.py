"""Crashes a flow at every operation, recovers, crashes the recovery, and lets the oracle judge.

A flow is a list of actions: what a client does, and `idle`, in which the product works until
nothing is left to do. A *node* is one crash: what is on the disk, what the world outside knows, and
which action was under way. From it a fresh product recovers, works until idle, and the client goes
on: it repeats what it was not told is accepted, then does the rest.

Equal nodes are lived through once: the product decides from the disk and the clock alone.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from mimikit.config import FileSettings, Settings
from mimikit.conversation import attachments, deliveries, inbox
from mimikit.conversation.deliveries import ReceivedCall
from mimikit.conversation.history import HistoryCaps
from mimikit.engines.base import EngineRequest
from mimikit.engines.worktrees import Worktrees
from mimikit.errors import StorageError
from mimikit.hook_settings import HookSettings
from mimikit.memory import notes
from mimikit.memory.archive import RULES, ArchiveRules
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, InboxItem, Task
from mimikit.protocol.triggers import Trigger
from mimikit.tasks import queue
from mimikit.testing.fake_worktrees import FakeWorktrees
from mimikit.testing.memory_disk import DiskStep
from mimikit.testing.twins import FakeClock
from mimikit.triggers import registry
from tests.crash.dice import DICE, dead_owner
from tests.crash.disk import Endless, Site, WatchedDisk, asker
from tests.crash.files import QuickFiles
from tests.crash.images import Contents, Image, shared
from tests.crash.oracle import (
    Expected,
    Frozen,
    Oracle,
    fired_as_expected,
    judge,
    kept_as_expected,
    notified_as_expected,
    planned_as_expected,
    told_as_expected,
)
from tests.support.mind import Mind
from tests.support.product import START, Product

Action: TypeAlias = "Callable[[Client], object]"
Drawn: TypeAlias = tuple[int, int]
"""A position of the dice."""
TOLD_ERRORS = frozenset(
    {
        *("turn_failed", "trigger_fault", "archive_backlog", "history_overflow"),
        *("folders_changed", "channel_fails"),
    }
)
"""What a flow may bring about on purpose."""
START_NS = int(START.timestamp()) * 10**9
_PATIENT_S = 3600.0
_GATHERED_S = 61.0
"""After so long nothing is gathered any more."""


_SITES: dict[Site, Site] = {}
"""One object for each: states are many, and the places are few."""


class Client:
    """Whoever uses the product from outside: every method may be repeated with the same ids."""

    def __init__(self, product: Product, oracle: Oracle) -> None:
        self.product, self.oracle = product, oracle
        self.files = product.files
        self.action = 0
        """Which action of its flow the client is at."""
        self._passed: list[tuple[float, float]] = []
        """(steady time, seconds) of each time it let pass on purpose."""

    @property
    def now(self) -> datetime:
        return self.product.clock.now()

    def say(self, id_: str, text: str, **more: Any) -> None:
        """Send a message."""
        at = self.oracle.note(f"time of {id_}", self.now)
        inbox.put(self.files, InboxItem(id=id_, text=text, created_at=at, **more))
        self.oracle.ack("message", id_)

    def keep(self, data: bytes) -> str:
        """Send a file, as one does before the message; gives its id."""
        kept = attachments.keep(self.files, data, "a.txt", self.now, FileSettings())
        self.oracle.ack("file", kept.id)
        return kept.id

    def say_with(self, id_: str, text: str, *files: bytes | str) -> None:
        """Send a message with files: each sent before it, or by its id."""
        ids = [one if isinstance(one, str) else self.keep(one) for one in files]
        self.say(id_, text, files=attachments.named(self.files, ids, self.now))

    def call(self, hook: str, name: str, body: bytes = b"", **facts: Any) -> None:
        """Call a webhook, as its sender does until it is answered; `name`: the delivery's."""
        at = self.oracle.note(f"time of {hook} {name}", self.now)
        received = ReceivedCall(hook, body, at, sent_id=name, signature=f"signed {name}")
        made = HookSettings.model_validate({"secret_file": "x", **facts})
        kept = deliveries.accept(self.files, received, made, FileSettings())
        self.oracle.ack("delivery", kept.id)

    def submit(self, id_: str, prompt: str, **more: Any) -> None:
        """Put a task into its queue."""
        at = self.oracle.note(f"time of {id_}", self.now)
        known: dict[str, Any] = {"trace_id": f"trace-{id_}", "origin": "cli", **more}
        task = Task(id=id_, prompt=prompt, created_at=at, **known)
        queue.submit(self.files, task)
        self.oracle.ack("task", id_)

    def order(self, id_: str, action: Any, target: str = "", **args: Any) -> None:
        """Give an order."""
        at = self.oracle.note(f"time of {id_}", self.now)
        order = Command(id=id_, action=action, target=target, args=args, created_at=at)
        queue.give_command(self.files, order)
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
        """Store a conditional trigger."""
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
        """Put a file there by hand; whoever does so does not repeat it."""
        if self.oracle.note(f"put {path}", self) is self:
            self.oracle.renote(f"put {path}", True)
            self.files.write(path, data)

    def put_folder(self, path: str) -> None:
        """Put an empty folder there by hand, once."""
        if self.oracle.note(f"put folder {path}", self) is self:
            self.oracle.renote(f"put folder {path}", True)
            self.files.make_folders([path])

    def take_away(self, *folders: str) -> None:
        """Remove folders with what is in them by hand, once."""
        if self.oracle.note(f"take away {folders}", self) is self:
            self.oracle.renote(f"take away {folders}", True)
            assert isinstance(self.files.fs, WatchedDisk)
            self.files.fs.take_away(folders)

    def edit(self, path: str, line: str) -> None:
        """Add a line to a file of memory, as the page does; whoever sees it there is content."""
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
        """What the app does when it ends well."""
        self.product.store.ledger.checkpoint()
        self.product.store.save_runtime(starts=[], seen_at=self.now)

    def restart(self) -> None:
        """Start a new product where the old one has stopped; again, where the disk refuses."""
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
        """Seconds this client let pass on purpose."""
        return sum(seconds for at, seconds in self._passed if at >= steady_s)


def _question_id(data: bytes) -> str:
    return json.loads(data)["questionId"]


@dataclass(frozen=True)
class Flow:
    """What a client does, in order; after each action the product works until it is idle."""

    name: str
    actions: tuple[Action, ...]
    hook: Callable[[Client, EngineRequest], None] | None = None
    """Called inside a Worker's run whose prompt holds `~`."""
    expected: Expected = field(default_factory=Expected)
    base: Callable[[], Contents] | None = None
    rules: ArchiveRules = RULES
    caps: HistoryCaps | None = None
    settings: Settings | None = None
    waits_s: float = 0.0
    """So long it waits of itself, in what time its client does not let pass: for a mind."""
    rarely: int = 1
    """By day so many times fewer of its operations are refused: it is long."""

    def product(self, files: Files, clock: FakeClock, mind: Mind, *, quiet: bool = True) -> Product:
        """What lives through it; `quiet` writes neither log nor events."""
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
        """The same; what its runs use is counted in the flows about that alone, as it costs."""
        if not self.expected.counts:
            product.context.usage.begin = lambda *_facts: None  # pyright: ignore[reportAttributeAccessIssue]
        return product


class Node(NamedTuple):
    """A crash."""

    image: Image
    oracle: Frozen
    now: datetime
    action: int
    operation: str
    path: str
    site: Site
    after: Node | None = None
    """The crash whose recovery crashed."""

    def __str__(self) -> str:
        return (
            f"{self.image.kind} before {self.operation} {self.path} by {self.site} line "
            f"{self.site.line} in action {self.action}"
        )


class Merged(BaseException):
    """What follows was lived through. A BaseException: no handler for errors may catch it."""


class Unequal(BaseException):
    """An audit failed: what decides the rest is not all looked at. As with `Merged`."""


@dataclass
class Report:
    """What was explored, and what went wrong."""

    flow: str
    triples: set[tuple[int, str, Site]] = field(default_factory=set)
    histogram: Counter[tuple[str, str]] = field(default_factory=Counter)
    sites: set[Site] = field(default_factory=set)
    lives: int = 0
    merged: int = 0
    """Recoveries that came to where another one had gone on from."""
    nodes: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)

    def saw(self, image_key: int, operation: str, site: Site) -> None:
        """Count a crash state if it is a new one."""
        self.nodes += 1
        triple = (image_key, operation, site)
        if triple not in self.triples:
            self.triples.add((image_key, operation, _SITES.setdefault(site, site)))
            self.histogram[(str(site), operation)] += 1

    def summary(self) -> str:
        """One line."""
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
    hints: crash it before changes of files that are hints as well.
    then_power: instead, after each kill the power fails: before each change by which the recovery
        settles what lies there, and at its end. What the first process had not flushed is lost
        unless the second one saw to it.
    audit_every: of the recoveries that come to where another one has gone on from, every how many
        go on all the same, to prove that they come to the same place next.
    most_states: with so many seen no further ones are taken up; those with few crashes come first.
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
        audit_every: int = 20,
        most_states: float = math.inf,
        most_violations: int = 20,
    ) -> None:
        self.flow = flow
        self.most_states, self.most_violations = most_states, most_violations
        self.crashes, self.power_every, self.hints = crashes, power_every, hints
        self.inner_every = inner_every
        self.then_power, self.audit_every = then_power, audit_every
        self.report = Report(flow.name)
        self._known: dict[int, bool] = {}
        """Key of each crash that was met → whether it is lived through."""
        self.passed: dict[int, Drawn] = {}
        """By all that decides the rest: what was drawn up to where it was found to be well."""
        self._merges = 0
        self._settled: set[int] = set()
        """What was met, and found to be well, where recoveries had settled what they found."""
        self._swept: set[int] = set()
        """The folders from which recoveries that were well had to sweep temp files."""
        self._judged: set[int] = set()
        """What was judged, and nothing was wrong."""

    def run(self) -> Report:
        """Explore it all: whoever is crashed again comes before whoever is not."""
        started = time.process_time()
        base = self.flow.base() if self.flow.base else warm_folder()
        level = [
            Node(Image("start", base), Oracle().freeze(), START, -1, "start", "", Site("", "", 0))
        ]
        with rare_collections():
            for life in range(max(self.crashes, 1)):
                level = self._through(level, life)
        self.report.seconds = time.process_time() - started
        return self.report

    def _through(self, level: list[Node], life: int) -> list[Node]:
        """Live through these, and crash each; gives the crashes that are to be crashed again."""
        again: list[Node] = []
        for node in level:
            if self._is_over():
                break
            inner: list[Node] = []
            is_full = len(self.report.triples) >= self.most_states
            if not self.live(node, life, None if is_full else inner):
                continue
            if life + 1 < self.crashes:
                again += inner
                continue
            for last in inner if self.crashes else ():
                if self._is_over():
                    break
                self.live(last, life + 1, None)
        return again

    def _is_over(self) -> bool:
        return len(self.report.violations) >= self.most_violations

    def live(self, node: Node, life: int, collect: list[Node] | None) -> bool:
        """One life of the product, from what a crash left to the end of the flow.

        collect: where the crashes within it are put.
        """
        settled, temps = self._begins_as(node, life), node.image.temps()
        is_met = collect is None and temps in self._swept and settled in self._settled
        if is_met and not self.is_audited():
            self.report.merged += 1
            return True
        self.report.lives += 1
        disk = WatchedDisk.of(node.image, start_ns=START_NS)
        disk.hints = self.hints
        clock, oracle = FakeClock(node.now), Oracle.thaw(node.oracle)
        watching = _Watching(self, disk, clock, oracle, collect, node, life, is_audit=is_met)
        disk.watch = watching.see if collect is not None else None
        try:
            violations = self._go(disk, clock, oracle, node, watching)
        except Merged:
            self.report.merged += 1
            violations = []
        except (Exception, Endless, Unequal) as error:  # noqa: BLE001 - the report says where
            violations = [f"{type(error).__name__}: {error}"]
        for violation in violations:
            first = f" (after {node.after})" if node.after else ""
            self.report.violations.append(
                f"{self.flow.name}, life {life}: {node}{first}: {violation}"
            )
        if not violations:
            self.passed |= watching.passed
            if watching.is_settled and node.image.open is None:
                self._settled.add(settled)
                self._swept.add(temps)
        return not violations

    @staticmethod
    def _begins_as(node: Node, life: int) -> int:
        """What decides all of a recovery but the temp files it sweeps: nothing else looks at them.

        Lines torn in the recovery before count as none: how such are read, and what is written
        after them, is lived through where a first process has torn them.
        """
        left = node.image.settled(untorn=life > 1)
        return hash((left, node.oracle, node.now, node.action))

    def _go(
        self,
        disk: WatchedDisk,
        clock: FakeClock,
        oracle: Oracle,
        node: Node,
        watching: _Watching,
    ) -> list[str]:
        DICE.life(watching.life)
        files = QuickFiles(disk)
        dead_owner(files, watching.life)

        def settle(folders: Iterable[str], lines: Iterable[str]) -> None:
            """Until here it has but looked, and swept away temp files that it looks at nowhere."""
            del files.settle
            files.settle(folders, lines)
            watching.is_settled = True
            watching.pass_by(client.product, "settled", self._begins_as(node, watching.life))

        files.settle = settle
        watching.action = node.action
        files.make_folders()
        mind = Mind(oracle.runs)
        product = self.flow.counting(self.flow.product(files, clock, mind))
        product.workspace.files.update(oracle.files())
        client = Client(product, oracle)
        keep_outside(product.worktrees, oracle)
        if self.flow.hook is not None:
            hook = self.flow.hook
            mind.hook = lambda request: hook(client, request)
        product.start()
        watching.pass_by(product, "started", node.action)
        product.idle()
        found = self._judge(disk, oracle, product)
        if watching.life and not found:
            watching.stop(at_rest=self.then_power)
        for number in range(max(node.action, 0), len(self.flow.actions)):
            if found:
                return found
            watching.pass_by(client.product, "idle", number)
            watching.action = client.action = number
            self.flow.actions[number](client)
            client.product.idle()
            found = self._judge(disk, oracle, client.product)
        if not found:
            watching.pass_by(client.product, "idle", len(self.flow.actions))
            found = self._at_end(disk, client)
        return found

    def _judge(self, disk: WatchedDisk, oracle: Oracle, product: Product) -> list[str]:
        folders = disk.kill_image().folders
        key = hash((sum(names.whole for names in shared(folders).values()), oracle.freeze()))
        found = [] if key in self._judged else judge(folders, oracle, self.flow.expected)
        if not found:
            self._judged.add(key)
        told = TOLD_ERRORS | ({"engine_fault"} if self.flow.expected.limited else set())
        errors = [e for e in product.log.errors if e["event"] not in told]
        return found + [f"the product logged: {error}" for error in errors]

    def _at_end(self, disk: WatchedDisk, client: Client) -> list[str]:
        """What is wrong when all was done."""
        product, expected = client.product, self.flow.expected
        if expected.notified:  # a channel may be left alone for long
            product.idle(patience_s=_PATIENT_S)
        left = disk.kill_image().folders
        found = fired_as_expected(left, expected)
        found += kept_as_expected(left, expected)
        found += planned_as_expected(left, expected)
        found += notified_as_expected(left, expected)
        if told_as_expected(left) and not found:
            product.clock.advance(_GATHERED_S)
            product.idle()
            found += told_as_expected(disk.kill_image().folders)
        return found

    def is_audited(self) -> bool:
        """Whether a recovery that could end here goes on all the same."""
        self._merges += 1
        return self._merges % self.audit_every == 0

    def add(self, node: Node, key: int, collect: list[Node]) -> None:
        """Count a crash, and live through it later if no equal one was met; or leave it out.

        key: equal for crashes after which the same happens.
        """
        is_new = key not in self._known
        if is_new:
            is_left_out = node.after is not None and (
                len(self._known) % self.inner_every != 0
                or len(self.report.triples) >= self.most_states
            )
            self._known[key] = not is_left_out
        if self._known[key]:
            self.report.saw(node.image.key(), node.operation, node.site)
            if is_new:
                collect.append(node)


@contextlib.contextmanager
def rare_collections() -> Generator[None]:
    """A product is a knot of objects: looking for such costs a quarter, and finds few.

    What was there before is looked through once for all flows: it stays frozen, as what was seen
    grows, and a look at all of it is as long as the lives of a small flow.
    """
    gc.collect()
    gc.freeze()
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Watching:
    """Turns each change of a life into the crashes before it."""

    def __init__(
        self,
        explorer: Explorer,
        disk: WatchedDisk,
        clock: FakeClock,
        oracle: Oracle,
        collect: list[Node] | None,
        node: Node,
        life: int,
        *,
        is_audit: bool = False,
    ) -> None:
        self.life = life
        self.action = 0
        self.is_settled = False
        """Whether all that an earlier life wrote is flushed."""
        self.passed: dict[int, Drawn] = {}
        """By all that decides the rest: what was drawn up to there."""
        self._is_audit = is_audit
        """Whether it goes on to prove that it comes to where another one has come."""
        self._explorer, self._disk, self._clock, self._oracle = explorer, disk, clock, oracle
        self._collect, self._after = collect, node if life else None
        self._power_every = explorer.power_every if life else 1
        self._steps = 0

    def pass_by(self, product: Product, place: str, *facts: object) -> None:
        """A place from which nobody need go on where others have from one that decides the same.

        Raises:
            Merged: others have.
            Unequal: one before it was such a place, this one is none.
        """
        disk, known = self._disk, self._explorer.passed
        decides = place, facts, self._oracle.freeze(), self._clock.now(), product.news()
        # To who is crashed no more it is one what is flushed, and how far the ledger's index tells;
        # and what lines are torn: a first recovery is lived through with each until it is closed.
        left = disk.left_without(paths.TASK_STATUS, ends=self.life > 1)
        keys = [hash((*decides, left))]
        if disk.watch is not None:
            keys.append(hash((*decides, disk.state(), product.unsaved())))
        drawn = known.get(keys[-1])
        if self._is_audit and not drawn:
            raise Unequal(f"expected what another life met, which was equal, at {place} {facts}")
        self._is_audit = drawn is not None and self._explorer.is_audited()
        if drawn and not self._is_audit:
            raise Merged
        DICE.position = drawn or DICE.position  # names are all that may differ: let them be one
        was_cut = self.life or not self._explorer.then_power  # whether power failed in what follows
        for key in keys if was_cut else keys[:1]:
            self.passed.setdefault(key, DICE.position)

    def stop(self, *, at_rest: bool) -> None:
        """Collect no more: what follows is the flow's own, crashed elsewhere.

        at_rest: collect what a power cut now may leave, with nothing under way.
        """
        if at_rest and self._collect is not None:
            step = DiskStep("rest", "", "")
            self._add(self._disk.power_images(), step, Site("client", "rest", 0))
        self._collect = self._disk.watch = None

    def see(self, step: DiskStep, site: Site) -> None:
        """Before a change."""
        self._explorer.report.sites.add(site)
        if (shared_by := asker(sys._getframe(1))) is not None:
            self._explorer.report.sites.add(shared_by)
        self._steps += 1
        disk = self._disk
        if self._explorer.then_power:
            if self.life == 0:
                self._add([disk.kill_image(then_power=True)], step, site)
            elif not self.is_settled:  # after that a cut takes what it takes without the kill
                self._add(disk.power_images(), step, site)
            return
        images = [disk.kill_image()]
        if step.operation == "write" and (torn := disk.torn_image()):
            images.append(torn)
        if self._power_every and self._steps % self._power_every == 0:
            images += disk.power_images()
        self._add(images, step, site)

    def _add(self, images: Iterable[Image], step: DiskStep, site: Site) -> None:
        assert self._collect is not None
        frozen, now = self._oracle.freeze(), self._clock.now()
        outside = hash((frozen, now, self.action))
        for image in images:
            node = Node(
                image, frozen, now, self.action, step.operation, step.path, site, self._after
            )
            self._explorer.add(node, hash((image.key(), outside)), self._collect)


def keep_outside(worktrees: Worktrees, oracle: Oracle) -> None:
    """What git holds is no crash's to take: as with the files of the workspace."""
    if not isinstance(worktrees, FakeWorktrees):
        return
    known = next((held for name, held in oracle.notes if name == "git"), ((), ()))
    worktrees.refs, worktrees.folders = dict(known[0]), dict(known[1])

    def keep() -> None:
        held = tuple(worktrees.refs.items()), tuple(worktrees.folders.items())
        oracle.note("git", held)
        oracle.renote("git", held)

    worktrees.changed = keep


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


def explore_all(flows: Iterable[Flow], **options: Any) -> list[Report]:
    """Every flow's report."""
    return [Explorer(flow, **options).run() for flow in flows]
