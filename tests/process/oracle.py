"""What must be true of an idle state folder after any number of kills, judged from outside."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.process.load import Load
from tests.process.world import World

_FAULTS = frozenset({"operation_failed", "turn_fault", "engine_fault", "run_fault", "web_failed",
                     "supervisor_hung", "cli_fault", "quarantined", "command_refused"})  # fmt: skip
_EMPTY = ("inbox", "turns/new", "commands", "planner/queue", "planner/running", "planner/results",
          "worker/queue", "worker/running", "corrupt")  # fmt: skip


def complaints(world: World, load: Load) -> list[str]:
    """Everything that is not as it must be; empty when all is well."""
    judge = _Judge(world, load)
    found: list[str] = []
    for part in (judge.messages, judge.tasks, judge.runs, judge.told, judge.orders, judge.slots,
                 judge.left, judge.faults):  # fmt: skip
        found += part()
    return found


class _Judge:
    """Reads the folder once, as plain JSON."""

    def __init__(self, world: World, load: Load) -> None:
        self._world, self._load = world, load
        self.transcript = world.transcript()
        self.ledger = world.ledger()
        self.results: dict[str, dict[str, Any]] = {
            id_: world.record(f"worker/results/{id_}.json") or {}
            for id_ in world.names("worker/results")
        }
        self.plans = {
            id_: world.record(f"planner/done/{id_}.json") or {}
            for id_ in world.names("planner/done")
        }
        self.begun = load.runs()

    def messages(self) -> Iterator[str]:
        """Each accepted message is in the transcript once, and answered by one turn."""
        count = Counter(message["id"] for message in self.transcript)
        yield from (f"{id_}: {n} times in the transcript" for id_, n in count.items() if n > 1)
        yield from (f"{id_}: accepted and lost" for id_ in self._load.messages if not count[id_])
        turns: dict[str, set[str]] = {}
        for message in self.transcript:
            for id_ in message["inReplyTo"]:
                turns.setdefault(id_, set()).add(message["turnId"])
        for message in self.transcript:
            if message["role"] == "user" and turns.get(message["id"]) != {message["turnId"]}:
                yield f"{message['id']}: answered by the turns {turns.get(message['id'])}"
        history = (self._world.record("history.json") or {"messages": []})["messages"]
        held = Counter(message["id"] for message in history)
        yield from (f"{id_}: {n} times in history.json" for id_, n in held.items() if n > 1)
        yield from (f"{id_}: in history.json alone" for id_ in held.keys() - count.keys())
        memory = self._in_memory()
        yield from (
            f"{id_}: neither in history.json nor in memory"
            for id_ in count.keys() - held.keys() - memory.keys()
        )
        yield from (f"{id_}: {n} times in memory" for id_, n in memory.items() if n > 1)

    def _in_memory(self) -> Counter[str]:
        """How often each message stands in raw files; it is too young for summaries."""
        texts = [path.read_text() for path in (self._world.state / "memory").glob("*.md")]
        heads = [re.findall(r"(?m)^## .* <!-- (\S+) \S+(?: code)? -->$", text) for text in texts]
        return Counter(id_ for ids in heads for id_ in ids)

    def tasks(self) -> Iterator[str]:
        """Each task that was ever accepted has one end."""
        ends = Counter(line["id"] for line in self.ledger if line["event"] == "ended")
        yield from (f"{id_}: ended {n} times" for id_, n in ends.items() if n > 1)
        yield from (f"{id_}: accepted and lost" for id_ in self._load.tasks if not ends[id_])
        outcomes = self.results | self.plans
        yield from (f"{id_}: ended without an outcome" for id_ in ends.keys() - outcomes.keys())
        yield from (f"{id_}: an outcome without an end" for id_ in outcomes.keys() - ends.keys())
        planned = {task["id"] for plan in self.plans.values() for task in plan["tasks"]}
        yield from (f"{id_}: planned and lost" for id_ in planned - self.results.keys())
        for line in self.ledger:
            if line["event"] == "queued" and line["id"] not in outcomes:
                yield f"{line['id']}: queued and lost"

    def runs(self) -> Iterator[str]:
        """An attempt is begun at most once, and none beyond what the task allows."""
        for (id_, before), n in Counter(self.begun).items():
            if n > 1:
                yield f"{id_}: attempt {before + 1} was begun {n} times"
        last: dict[str, int] = {}
        for id_, before in self.begun:
            last[id_] = max(last.get(id_, 0), before + 1)
        for id_, attempt in last.items():
            result = self.results.get(id_)
            if result is None:
                yield f"{id_}: ran, but has no result"
            elif attempt > result["attempts"] or attempt > self._allowed(id_):
                yield f"{id_}: attempt {attempt} of {self._allowed(id_)}, {result['attempts']} told"
        for id_, result in self.results.items():
            if result["status"] == "done" and last.get(id_) != result["attempts"]:
                yield f"{id_}: done at attempt {result['attempts']}, begun {last.get(id_)}"

    def _allowed(self, id_: str) -> int:
        task = self._world.record(f"worker/ended/{id_}.json") or {}
        return min(self._load.tasks.get(id_, 1), task.get("maxAttempts", 1))

    def told(self) -> Iterator[str]:
        """Each result that is to be told is told once: `killed` and `canceled` ones as well."""
        times = Counter(
            id_ for m in self.transcript if m["role"] != "user" for id_ in set(m["taskIds"])
        )
        for id_, result in self.results.items():
            task = self._world.record(f"worker/ended/{id_}.json")
            if task is None:
                yield f"{id_}: its definition is gone"
            elif task.get("notify") == "failure":
                if times[id_] != (result["status"] == "failed"):
                    yield f"{id_} ({result['status']}, an inner step): told {times[id_]} times"
            elif task.get("notify") == "change":
                least = int(result["status"] == "failed")
                if not least <= times[id_] <= 1:
                    yield f"{id_} ({result['status']}, a trigger's): told {times[id_]} times"
            elif times[id_] != 1:
                how = f"{result['status']} {result['failureReason']}"
                yield f"{id_} ({how}): told {times[id_]} times"
        for id_, plan in self.plans.items():
            # Named once by the turn that delegated it, once more when its failure is told.
            if times[id_] != 1 + (plan["status"] == "failed"):
                yield f"{id_} (a plan, {plan['status']}): named {times[id_]} times"

    def orders(self) -> Iterator[str]:
        """Each accepted order was carried out, and did what it said."""
        for order, target in self._load.cancels.items():
            done = self._world.record(f"commands/done/{order}.json")
            if done is None:
                yield f"{order}: accepted and lost"
            elif done["ok"] and self.results.get(target, {}).get("status") != "canceled":
                yield f"{order}: said to be canceled, but {self.results.get(target)}"

    def slots(self) -> Iterator[str]:
        """A trigger's slot has one run, and each run one slot."""
        pairs = {
            (line["slot"], line["taskId"])
            for line in self.ledger
            if line["event"] == "slot" and line["state"] == "ran"
        }
        for place, name in enumerate(("slot", "run")):
            for value, n in Counter(pair[place] for pair in pairs).items():
                if n > 1:
                    yield f"{name} {value}: {n} times among the trigger's slots"
        yield from (f"{id_}: fired and lost" for _, id_ in pairs if id_ not in self.results)

    def left(self) -> Iterator[str]:
        """Nothing half done is left: no file on its way, no temp file, no process."""
        for folder in _EMPTY:
            there = (self._world.state / folder).iterdir()
            yield from (f"left in {folder}: {path.name}" for path in there if path.is_file())
        yield from (f"left: {name}" for name in self._world.names("turns", ".started"))
        state = Path(self._world.state)
        yield from (f"left: {path}" for path in state.rglob(".tmp-*"))
        yield from (f"left: {path}" for path in self._world.scratch.iterdir())
        yield from (f"left: process {pid}" for pid in self._world.of_runs())

    def faults(self) -> Iterator[str]:
        """No operation failed, nothing was refused, no process told of a fault of its own."""
        for line in self._world.log():
            if line["event"] in _FAULTS:
                yield f"log: {line}"
        for name in ("consumer", "web"):
            said = self._world.output(name)
            if "Traceback" in said:
                yield f"{name} said: {said[said.index('Traceback') :][:2000]}"
        yield from self._load.odd
