"""Checks the slots of every trigger of a soak run against naive references."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.soak.world import Made, World

MINUTE = timedelta(minutes=1)
Line = dict[str, Any]


class Outcome:
    def __init__(self, world: World) -> None:
        self.world = world
        folders = world.disk._folders
        self.slots: dict[str, list[Line]] = {}
        self.ends: dict[str, list[Line]] = {}
        for name in sorted(folders["tasks"]):
            for raw in folders["tasks"][name].data.splitlines():
                line = _read(raw)
                if line.get("event") == "slot":
                    self.slots.setdefault(line["id"], []).append(line)
                if line.get("event") == "ended" and line.get("sourceTriggerId"):
                    self.ends.setdefault(line["sourceTriggerId"], []).append(line)
        self.left = {name[:-5] for name in folders["triggers"] if name.endswith(".json")}
        self.states = {
            name[:-5]: json.loads(file.data)
            for name, file in folders["triggers/state"].items()
            if name.endswith(".json")
        }
        self.waiting = [
            name
            for folder in ("worker/queue", "worker/running")
            for name in folders[folder]
            if name[0] != "."
        ]

    def ran(self, trigger_id: str) -> list[Line]:
        return [line for line in self.slots.get(trigger_id, []) if line["state"] == "ran"]


def judge(world: World) -> list[str]:
    """Every violation, as text."""
    outcome = Outcome(world)
    found = [f"task {name} is left" for name in outcome.waiting]
    begun = Counter(world.runs)
    found += [f"run {run} was begun {n} times" for run, n in begun.items() if n > 1]
    for made in world.made.values():
        found += [f"{made.id} ({made.kind}): {text}" for text in _wrong(made, outcome)]
    return found


def _wrong(made: Made, outcome: Outcome) -> Iterator[str]:
    lines = outcome.slots.get(made.id, [])
    names = Counter(line["slot"] for line in lines)
    yield from (f"slot {name} has {n} lines" for name, n in names.items() if n > 1)
    tasks = Counter(line["taskId"] for line in lines if line["state"] == "ran")
    yield from (f"task {task} stands for {n} slots" for task, n in tasks.items() if n > 1)
    ended = {line["id"] for line in outcome.ends.get(made.id, [])}
    yield from (f"run {task} of a slot never ended" for task in tasks.keys() - ended)
    yield from (f"run {task} belongs to no slot" for task in ended - tasks.keys())
    yield from _KINDS[made.kind](made, outcome)


def _interval(made: Made, outcome: Outcome) -> Iterator[str]:
    """Planned time + interval while on time, now + interval after a missed slot."""
    if made.id in outcome.world.disturbed or outcome.world.set_back:
        return
    interval = timedelta(seconds=made.fields["schedule"]["interval"])
    wanted = made.at + interval
    for line in outcome.slots.get(made.id, []):
        slot, at = _time(line["slot"]), _time(line["at"])
        if abs(slot - wanted) > timedelta(milliseconds=1):
            yield f"expected the slot {wanted}, got {slot}"
            return
        passed = (at - slot) // interval
        if line.get("missed", 0) != passed:
            yield f"slot {slot}: expected {passed} missed, got {line.get('missed', 0)}"
        wanted = at + interval if passed else slot + interval
    if wanted < outcome.world.clock.now():
        yield f"the slot {wanted} is lost"


def _cron(made: Made, outcome: Outcome) -> Iterator[str]:
    """Every time of the line has run, was skipped, or is counted as missed; and no other has."""
    world, plan = outcome.world, made.fields["schedule"]
    began = made.at - (timedelta(days=2) if world.set_back else timedelta())
    wanted = list(times(plan["cron"], ZoneInfo(plan["timezone"]), began, world.clock.now()))
    got = [(_time(line["slot"]), line.get("missed", 0)) for line in outcome.slots.get(made.id, [])]
    if made.id in world.disturbed or world.set_back:
        yield from (f"{slot} is no time of it" for slot, _ in got if slot not in wanted)
        return
    position = 0
    for slot, missed in got:
        if position >= len(wanted) or slot != wanted[position]:
            missing = wanted[position] if position < len(wanted) else "none"
            yield f"expected the slot {missing}, got {slot}"
            return
        position += 1 + missed
    if position < len(wanted):
        yield f"{len(wanted) - position} slots from {wanted[position]} on are lost"


def times(line: str, zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """The times of a cron line, found by looking at every minute there is."""
    minutes, hours = (
        _field(text, top) for text, top in zip(line.split()[:2], (60, 24), strict=True)
    )
    now = after.replace(second=0, microsecond=0)
    while (now := now + MINUTE) <= until:
        local = now.astimezone(zone)
        if local.fold == 0 and local.minute in minutes and local.hour in hours:
            yield now


def _field(text: str, top: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        low, high = (0, top - 1) if span == "*" else (int(first), int(last or first))
        found |= set(range(low, high + 1, int(step or 1)))
    return found


def _scheduled(made: Made, outcome: Outcome) -> Iterator[str]:
    ran = len(outcome.ran(made.id))
    at = _time(made.fields["schedule"]["runAt"])
    due = at <= outcome.world.clock.now() or ran
    if ran != (1 if due else 0) and made.id not in outcome.world.disturbed:
        yield f"planned for {at}, ran {ran} times"
    if ran and made.id in outcome.left:
        yield "ran and is still there"


def _follows(status: str):
    def judged(made: Made, outcome: Outcome) -> Iterator[str]:
        """Each result of the one it waits for has started it once."""
        upstream = made.fields["condition"]["params"]["taskId"]
        results = [e for e in outcome.ends.get(upstream, []) if e["status"] == status]
        ran = len(outcome.ran(made.id))
        if ran != len(results):
            yield f"{upstream} {status} {len(results)} times, but it ran {ran} times"

    return judged


def _files(made: Made, outcome: Outcome) -> Iterator[str]:
    """It has seen every file as it is; it ran at most once a change."""
    name = made.fields["condition"]["params"]["path"].replace("*", "py")
    changes = outcome.world.touched.get(name, 0)
    ran = len(outcome.ran(made.id))
    if ran > changes:
        yield f"{name} changed {changes} times, but it ran {ran} times"
    seen = outcome.states[made.id]["seen"].get("$", {}).get(name, [0])[0]
    if changes and seen != changes:
        yield f"{name} has changed {changes} times, it has seen {seen}"


_KINDS = {
    "interval": _interval,
    "cron": _cron,
    "scheduled": _scheduled,
    "each": _follows("done"),
    "chain": _follows("done"),
    "failed": _follows("failed"),
    "files": _files,
}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _read(raw: bytes) -> Line:
    try:
        return json.loads(raw)
    except ValueError:
        return {}
