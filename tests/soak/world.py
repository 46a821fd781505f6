"""Simulates days of a machine in seconds: all kinds of triggers, kills, suspends, clock jumps.

The product is the real one on a disk in memory with a clock that is told. It is killed in the
middle of its writes, left switched off, suspended; its clock is set, its triggers are paused and
edited, files of the workspace change, runs fail. What came of each trigger is judged in `judge.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mimikit.protocol.files import Files
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Command, time_text
from mimikit.protocol.triggers import Trigger
from mimikit.tasks import queue
from mimikit.triggers import registry
from tests.support.desk import Desk
from tests.support.memory_disk import Crash, MemoryDisk
from tests.support.mind import Mind
from tests.support.product import Product
from tests.support.twins import FakeClock

ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe",
    "Asia/Kolkata", "America/St_Johns", "Pacific/Chatham", "America/Sao_Paulo", "Africa/Casablanca",
)  # fmt: skip
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    id: str
    kind: str
    fields: Fields
    at: datetime


@dataclass
class World:
    """One life. hours: how long it lasts; triggers: how many; set_back: may the clock go back?"""

    seed: int
    start: datetime
    hours: float
    triggers: int
    set_back: bool = False
    made: dict[str, Made] = field(default_factory=dict[str, Made])
    disturbed: set[str] = field(default_factory=set[str])
    """Triggers that were paused or edited: their times are not checked."""
    touched: dict[str, int] = field(default_factory=dict[str, int])
    """File → how often it changed."""
    happened: dict[str, int] = field(default_factory=dict[str, int])
    runs: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Runs that the engine began, kept outside of the disk."""

    def __post_init__(self) -> None:
        """A machine that is off; `live` switches it on."""
        self.dice = random.Random(self.seed)
        self.clock = FakeClock(self.start)
        self.desk = Desk()
        self.disk = MemoryDisk()
        self._let_files_age()
        self.end = self.start + timedelta(hours=self.hours)

    @property
    def files(self) -> Files:
        return self.product.files

    def live(self) -> None:
        self._switch_on()
        for number in range(self.triggers):
            self._make(number)
        self.product.idle()
        events = self._events()
        at, event = next(events)
        while self.clock.now() < self.end:
            due = self.product.supervisor.triggers.index.next_due()
            until = min(due or at, at, self.end)
            self.clock.advance(max(0.0, (until - self.clock.now()).total_seconds()))
            self._work()
            if self.clock.now() >= at:
                self.happened[event.__name__] = self.happened.get(event.__name__, 0) + 1
                event()
                self._work()
                at, event = next(events)
        self._work()

    # ---- the machine ---------------------------------------------------------------------

    def _switch_on(self) -> None:
        """Start the product; a crash while it starts is followed by another start."""
        while True:
            files = Files(self.disk)
            try:
                files.make_folders()
                self.product = Product(files, self.clock, Mind(self.runs))
                self.product.workspace = self.desk
                self.product.supervisor.triggers._workspace = self.desk
                self.product.supervisor.triggers._watch = self.desk
                self.desk.changed = self.product.store.events.changed_files.put
                self.product.start()
            except Crash:
                self._bury()
                continue
            return

    def _work(self) -> None:
        try:
            self.product.idle()
        except Crash:
            self._bury()
            self._switch_on()
            self._work()

    def _bury(self) -> None:
        self.disk = self.disk.after_kill()
        self._let_files_age()

    def _let_files_age(self) -> None:
        self.disk._time = iter(lambda: int(self.clock.now().timestamp() * 1e9), None)

    def _kill_soon(self) -> None:
        """The process dies before one of its next changes of a file."""
        self.disk.log.clear()
        self.disk.crash_at = self.dice.randrange(1, 60)
        self.disk.torn = self.dice.choice([0.0, 0.3, 1.0])

    def _off_for_hours(self) -> None:
        self.disk.log.clear()
        self.clock.advance(self.dice.uniform(0.2, 6) * 3600)
        self._bury()
        self._switch_on()

    def _suspend(self) -> None:
        self.clock.jump(self.clock.now() + timedelta(hours=self.dice.uniform(0.2, 6)))

    def _be_kept_right(self) -> None:
        self.clock.jump(self.clock.now() + timedelta(seconds=self.dice.uniform(-0.5, 0.5)))

    def _set_back(self) -> None:
        self.clock.jump(self.clock.now() - timedelta(minutes=self.dice.uniform(5, 300)))

    # ---- its users -----------------------------------------------------------------------

    def _touch(self) -> None:
        name = f"src/{self.dice.randrange(8)}.py"
        self.touched[name] = self.touched.get(name, 0) + 1
        self.desk.write(name, self.touched[name])

    def _pause_one(self) -> None:
        trigger_id = self._any()
        self.disturbed.add(trigger_id)
        self._order("trigger_pause", trigger_id)
        self._work()
        self.clock.advance(self.dice.uniform(0, 2) * 3600)
        self._work()
        self._order("trigger_resume", trigger_id)

    def _edit_one(self) -> None:
        trigger_id = self._any()
        self.disturbed.add(trigger_id)
        self._order("trigger_edit", trigger_id, title=f"edited {self.dice.random()}")

    def _hold_queues(self) -> None:
        self._order("pause", "")
        self._work()
        self.clock.advance(self.dice.uniform(0.1, 1) * 3600)
        self._work()
        self._order("resume", "")

    def _order(self, action: Any, target: str, **args: Any) -> None:
        order = Command(
            id=derived_id("cmd", action, target, str(self.dice.random())),
            action=action,
            target=target,
            args=args,
            created_at=self.clock.now(),
        )
        while True:
            try:
                queue.submit_command(self.files, order)
            except Crash:
                self._bury()
                self._switch_on()
            else:
                return

    def _any(self) -> str:
        return self.dice.choice(sorted(self.made))

    def _events(self) -> Iterator[tuple[datetime, Callable[[], None]]]:
        kinds: list[tuple[Callable[[], None], int]] = [
            (self._touch, 30),
            (self._kill_soon, 30),
            (self._off_for_hours, 3),
            (self._suspend, 3),
            (self._be_kept_right, 10),
            (self._pause_one, 4),
            (self._edit_one, 4),
            (self._hold_queues, 2),
            (self._set_back, 4 if self.set_back else 0),
        ]
        while True:
            (event,) = self.dice.choices([k for k, _ in kinds], [weight for _, weight in kinds])
            yield self.clock.now() + timedelta(minutes=self.dice.uniform(5, 50)), event

    # ---- the triggers --------------------------------------------------------------------

    def _make(self, number: int) -> None:
        id_ = f"trig-{number:05}"
        kind = ("interval", "cron", "each", "cron", "scheduled", "files", "failed", "chain")[
            number % 8
        ]
        fields, prompt = getattr(self, f"_{kind}")(number)
        now = self.clock.now()
        trigger = Trigger.model_validate(
            {
                "id": id_,
                "prompt": prompt,
                "createdAt": time_text(now),
                "traceId": f"trace-{id_}",
                "notify": "none",
                "maxAttempts": 1 if kind == "chain" else 9,
                **fields,
            },
            strict=False,
        )
        registry.create(self.files, trigger)
        self.product.store.events.changed_triggers.put(id_)
        self.made[id_] = Made(id_, kind, fields, now)

    def _interval(self, _number: int) -> tuple[Fields, str]:
        seconds = self.dice.choice([1800, 3600, 5400, 7200, 20_000, 40_000])
        return {"type": "recurring", "schedule": {"interval": seconds}}, "tick"

    def _cron(self, _number: int) -> tuple[Fields, str]:
        hours = self.dice.choice(["*/4", "*/6", "1,2,3", str(self.dice.randrange(24)), "0-5"])
        line = f"{self.dice.choice([0, 15, 30, 59])} {hours} * * {self.dice.choice(['*', '0-6'])}"
        zone = self.dice.choice(ZONES)
        return {"type": "recurring", "schedule": {"cron": line, "timezone": zone}}, "tock"

    def _scheduled(self, _number: int) -> tuple[Fields, str]:
        at = self.start + timedelta(hours=self.dice.uniform(-1, self.hours * 0.9))
        return {"type": "scheduled", "schedule": {"runAt": time_text(at)}}, "once"

    def _each(self, number: int) -> tuple[Fields, str]:
        """Follows every run of the trigger made just before, a cron one."""
        return _when("task_done", taskId=f"trig-{number - 1:05}"), "follow"

    def _chain(self, number: int) -> tuple[Fields, str]:
        """Follows the one that follows: the second step; no two failures are alike."""
        return _when("task_done", taskId=f"trig-{number - 5:05}"), "bad anew"

    def _failed(self, number: int) -> tuple[Fields, str]:
        """Follows the failures of an earlier chain."""
        target = number - 7 if number >= 8 else number - 5
        return _when("task_failed", taskId=f"trig-{target:05}"), "mourn"

    def _files(self, _number: int) -> tuple[Fields, str]:
        return _when("file_changed", path=f"src/{self.dice.randrange(8)}.*"), "build"


def _when(kind: str, **params: Any) -> Fields:
    return {"type": "conditional", "condition": {"type": kind, "params": params}}
