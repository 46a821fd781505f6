"""Looks at triggers over random histories: what is decided, and that no slot has two runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.protocol.models import Task
from mimikit.protocol.triggers import FiringIntent, Schedule, Trigger, TriggerState
from mimikit.triggers import conditions
from mimikit.triggers.decide import accept_definition, after_firing, decide, make_run
from tests.properties.test_conditions import TREES
from tests.triggers.naive_condition import World

T0 = datetime(2026, 3, 28, 23, 0, tzinfo=UTC)
ZONE = ZoneInfo("Europe/Berlin")  # an hour is jumped over in the night that follows
STEPS = 3
"""What a firing does after it is written down: the run, the line, the state."""


@dataclass
class Facts(World):
    """What is decided by: tasks and files by name, runs, lines of slots."""

    zone: ZoneInfo = ZONE
    answer_ttl: timedelta = timedelta(seconds=60)
    runs: dict[str, Task] = field(default_factory=dict[str, Task])
    live: set[str] = field(default_factory=set[str])
    ran: list[str] = field(default_factory=list[str])
    skipped: list[str] = field(default_factory=list[str])
    newest: str | None = None
    blind: bool = False

    def window_of(self, run_id: str) -> None:
        return None

    def fires_behind(self, files: object) -> list[datetime]:
        return []

    def is_live(self, task_id: str) -> bool:
        return task_id in self.live

    def was_handled(self, slot: str, run: Task) -> bool:
        return slot == self.newest or run.id in self.runs

    def trace_of(self, task_id: str) -> str | None:
        return f"trace-{task_id}"

    def needs_polling(self) -> bool:
        return self.blind


class Life:
    """One trigger as its consumer treats it, dying wherever it is told to."""

    def __init__(self, more: dict[str, Any], *, may_be_damaged: bool = True) -> None:
        self.facts, self.now = Facts(), T0
        self.may_be_damaged = may_be_damaged
        """What is known of it may be lost, as when its file was put aside."""
        self.trigger = Trigger.model_validate(
            {"id": "t", "prompt": "p", "created_at": T0, "trace_id": "t", **more}
        )
        self.state: TriggerState = TriggerState()
        self.is_gone = False
        self.slots: dict[str, set[str]] = {}
        self.start()

    def start(self) -> None:
        """As at a start, or after an edit: a firing that was cut short is carried out first."""
        if self.state.firing is not None:
            self.carry_out(self.state.firing, STEPS)
        if not self.is_gone:
            is_new = self.state.last_good != self.trigger.to_dict()
            taken = accept_definition(
                self.trigger, None, self.state, self.now, is_new=is_new, zone=ZONE
            )
            self.told(taken.skipped and taken.skipped.slot, self.facts.skipped)
            self.state = taken.state

    def look(self, dies_at: int) -> None:
        """Look; of a firing only so many steps are done before it dies (more: it lives)."""
        if self.is_gone or not self.trigger.enabled:
            return
        before = self.state.to_json()
        decided = decide(self.trigger, self.state, self.facts, self.now)
        assert decide(self.trigger, self.state, self.facts, self.now) == decided
        assert self.state.to_json() == before
        assert decided.firing is None or decided.skipped is None
        if decided.firing is not None:
            self.is_of_its_slot(decided.firing)
            if dies_at:
                self.state = decided.state.but(firing=decided.firing)
                self.carry_out(decided.firing, dies_at - 1)
        elif not decided.not_due:
            self.told(decided.skipped and decided.skipped.slot, self.facts.skipped)
            self.is_gone |= decided.is_finished
            self.state = decided.state
        if dies_at <= STEPS:
            self.start()

    def is_of_its_slot(self, firing: FiringIntent) -> None:
        self.slots.setdefault(firing.slot, set()).add(firing.task.id)
        assert len(self.slots[firing.slot]) == 1
        assert firing.task.id == make_run(self.trigger, firing.slot, self.now).id
        assert self.may_be_damaged or firing.slot not in self.facts.skipped

    def carry_out(self, firing: FiringIntent, steps: int) -> None:
        if steps > 0 and firing.task.id not in self.facts.runs:
            self.facts.runs[firing.task.id] = firing.task
            self.facts.live.add(firing.task.id)
        if steps > 1:
            self.told(firing.slot, self.facts.ran)
        if steps > 2:
            fired = after_firing(self.trigger, self.state, firing, ZONE)
            self.is_gone = fired is None
            self.state = fired or self.state

    def told(self, slot: str | None, lines: list[str]) -> None:
        if slot is not None and slot != self.facts.newest:
            lines.append(slot)
            self.facts.newest = slot

    def happen(self, event: tuple[str, Any], number: int) -> None:
        facts = self.facts
        match event:
            case ("waits", seconds):
                self.now += timedelta(seconds=seconds)
            case ("ends", (subject, status)):
                facts.ended[subject, status].append(f"r{number}")
            case ("writes", name):
                facts.disk[name] = [number, 1]
            case ("is over", _):
                facts.live.clear()
            case ("deletes", name):
                facts.disk.pop(name, None)
            case ("is damaged", _):
                if self.may_be_damaged:
                    self.state = TriggerState()
                    self.start()
            case ("pauses", on):
                self.trigger = self.trigger.but(enabled=not on)
                self.start()
            case ("looks", dies_at):
                self.look(dies_at)
            case _:
                facts.blind = not facts.blind


TIMES = st.one_of(
    st.integers(1, 7200).map(lambda seconds: {"interval": float(seconds)}),
    st.sampled_from(["*/20 * * * *", "30 2 * * *", "0 * * * *"]).map(lambda line: {"cron": line}),
    st.integers(0, 9999).map(lambda seconds: {"run_at": T0 + timedelta(seconds=seconds)}),
).map(Schedule.model_validate)
TRIGGERS = st.builds(
    lambda when, overlap, once, cooldown: {
        **when,
        "overlap": overlap,
        "once": once and "condition" in when,
        "cooldown": cooldown,
    },
    st.one_of(
        TIMES.map(lambda plan: {"type": "recurring", "schedule": plan}),
        TREES.map(lambda tree: {"type": "conditional", "condition": conditions.read(tree)}),
    ),
    st.sampled_from(["skip", "queue"]),
    st.booleans(),
    st.sampled_from([None, 0.0, 30.0]),
)
LOOKS = st.tuples(st.just("looks"), st.integers(0, STEPS + 2))
ENDS = st.tuples(st.sampled_from(["t1", "t2"]), st.sampled_from(["done", "failed"]))
EVENTS = st.one_of(
    LOOKS,
    st.tuples(st.just("waits"), st.sampled_from([-7200, -5, 1, 20, 600, 3600, 3600, 90_000])),
    st.tuples(st.just("ends"), ENDS),
    st.tuples(st.just("writes"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("deletes"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("is damaged"), st.none()),
    st.tuples(st.just("is over"), st.none()),
    st.tuples(st.just("pauses"), st.sampled_from([True, False, False])),
    st.tuples(st.just("is blind"), st.none()),
)  # fmt: skip


@settings(max_examples=300)
@given(TRIGGERS, st.lists(EVENTS, min_size=20, max_size=60), st.booleans())
def test_a_slot_never_has_two_runs_wherever_its_consumer_dies(
    more: dict[str, Any], events: list[tuple[str, Any]], may_be_damaged: bool
) -> None:
    life = Life(more, may_be_damaged=may_be_damaged)
    for number, event in enumerate(events, 100):
        life.happen(event, number)
        life.look(STEPS + 2)
    ran = life.facts.ran
    assert may_be_damaged or len(ran) == len(set(ran)), "a slot has two lines"
    assert set(life.facts.runs) == {make_run(life.trigger, slot, T0).id for slot in ran}
    assert life.is_gone or may_be_damaged or life.state.fire_count == len(ran)


@settings(max_examples=100)
@given(TRIGGERS, st.lists(EVENTS, min_size=10, max_size=30), st.sampled_from([1, 60, 7200]))
def test_a_second_look_at_the_same_moment_fires_nothing_more_by_the_clock(
    more: dict[str, Any], events: list[tuple[str, Any]], later_s: int
) -> None:
    life = Life(more)
    for number, event in enumerate(events, 100):
        life.happen(event, number)
    life.now += timedelta(seconds=later_s)
    life.look(STEPS + 2)
    if life.trigger.condition is None and not life.is_gone and life.trigger.enabled:
        assert decide(life.trigger, life.state, life.facts, life.now).not_due
