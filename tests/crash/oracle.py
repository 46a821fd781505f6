"""The invariants of an idle state folder, checked independently of the product.

The oracle keeps what lies outside the crash domain: what the client was told is accepted, and every
run an engine began. It reads the folder as plain JSON, with none of the product's code.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.crash.disk import Contents

Record: TypeAlias = dict[str, Any]
Frozen: TypeAlias = tuple[tuple[Any, ...], ...]


@dataclass
class Oracle:
    acked: list[tuple[str, str]] = field(default_factory=list)
    """(kind, id) of everything that was acknowledged: message, task, order, drop."""
    runs: list[tuple[str, int]] = field(default_factory=list)
    """(id, attempt) of every run an engine began."""
    notes: list[tuple[str, Any]] = field(default_factory=list)
    """Values the client keeps for its repeats: (name, value)."""

    def freeze(self) -> Frozen:
        return (tuple(self.acked), tuple(self.runs), tuple(self.notes))

    @classmethod
    def thaw(cls, frozen: Frozen) -> Oracle:
        return cls(list(frozen[0]), list(frozen[1]), list(frozen[2]))

    def ack(self, kind: str, id_: str) -> None:
        """Record an acknowledgement."""
        if (kind, id_) not in self.acked:
            self.acked.append((kind, id_))

    def note(self, name: str, value: Any) -> Any:
        """Store a value at the first call; later calls return the stored one."""
        for known, kept in self.notes:
            if known == name:
                return kept
        self.notes.append((name, value))
        return value

    def renote(self, name: str, value: Any) -> None:
        self.notes = [(known, value if known == name else kept) for known, kept in self.notes]

    def files(self) -> dict[str, tuple[int, int]]:
        """The workspace as the client has made it."""
        found: dict[str, tuple[int, int]] = {}
        for key, entry in self.notes:
            if key.startswith("file "):
                name = key.split(" ", 2)[2]
                found.pop(name, None)
                found |= {} if entry is None else {name: entry}
        return found


@functools.lru_cache(maxsize=10_000)
def _parsed(data: bytes) -> Record:
    """A parsed record, cached: most are the same from state to state. Never change it."""
    return json.loads(data)


class Folder:
    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.transcript = [line for _, line in self._lines("history")]
        self.ledger = [line for _, line in self._lines("tasks")]
        self.turns = self.records("turns/done")
        self.results = self.records("worker/results")
        self.plans = {**self.records("planner/done"), **self.records("planner/results")}
        self.tasks = {seat: self.records(f"{seat}/ended") for seat in ("planner", "worker")}
        self.ends = [line for line in self.ledger if line.get("event") == "ended"]

    def names(self, folder: str) -> list[str]:
        return sorted(self.contents.get(folder, {}))

    def subfolders(self, folder: str) -> list[str]:
        above = ((path.rpartition("/")[0], path.rpartition("/")[2]) for path in self.contents)
        return sorted(name for parent, name in above if parent == folder and name)

    def records(self, folder: str) -> dict[str, Record]:
        return {
            name.removesuffix(".json"): _parsed(data)
            for name, data in self.contents.get(folder, {}).items()
            if name.endswith(".json") and not name.startswith(".")
        }

    def record(self, path: str) -> Record | None:
        folder, _, name = path.rpartition("/")
        data = self.contents.get(folder, {}).get(name)
        return None if data is None else _parsed(data)

    def text(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        return self.contents.get(folder, {}).get(name, b"").decode()

    def _lines(self, folder: str) -> Iterator[tuple[str, Record]]:
        for name in self.names(folder):
            for line in self.contents[folder][name].splitlines():
                try:
                    yield name, _parsed(line)
                except ValueError:
                    continue  # torn: it counts as none


@dataclass(frozen=True)
class Expected:
    """Exceptions and expectations of a flow.

    limited: some run was turned away by a limit, which is no attempt and may be repeated.
    faulty: the disk refused now and then, so that a task may begin before its cancel is seen.
    quarantined: at most so many files were no records and lie in `corrupt/`, each with its reason.
    forgets: so much time has passed that what has ended was removed.
    fires: how often each of these triggers has fired at the end.
    memory: how many messages, or parts of other files, such files of memory hold at the end. What
        code wrote stands in the raw file of its day, and counts with the summary of that.
    never: prompts of tasks that nobody is to ask for.
    counts: what runs use is counted in this flow, which costs too much for all of them.
    """

    limited: bool = False
    faulty: bool = False
    quarantined: int = 0
    forgets: bool = False
    fires: tuple[tuple[str, int], ...] = ()
    memory: tuple[tuple[str, int], ...] = ()
    never: tuple[str, ...] = ()
    counts: bool = False


def kept_as_expected(contents: Contents, expected: Expected) -> list[str]:
    """Differences from the expected number of messages in memory files."""
    folder = Folder(contents)
    found: list[str] = []
    kept = [*_raw(folder).items(), *_summarised(folder).items(), *_left_raw(folder)]
    for pattern, wanted in expected.memory:
        held = sum(len(ids) for path, ids in kept if fnmatch.fnmatch(path, pattern))
        if held != wanted:
            found.append(f"{pattern} holds {held} messages or parts instead of {wanted}")
    return found


def planned_as_expected(contents: Contents, expected: Expected) -> list[str]:
    asked = [task["prompt"] for task in Folder(contents).tasks["worker"].values()]
    return [f"{prompt!r} was asked for" for prompt in expected.never if prompt in asked]


def fired_as_expected(contents: Contents, expected: Expected) -> list[str]:
    """Differences from the expected number of firings."""
    folder = Folder(contents)
    found: list[str] = []
    for trigger_id, wanted in expected.fires:
        fired = len(_slots(folder, trigger_id))
        if fired != wanted:
            found.append(f"trigger {trigger_id} has fired {fired} times instead of {wanted}")
    return found


def judge(contents: Contents, oracle: Oracle, expected: Expected = Expected()) -> list[str]:
    """Every violation, as text."""
    folder = Folder(contents)
    found: list[str] = []
    found += _quarantined(folder, expected.quarantined)
    if not (folder.record("runtime.json") or {}).get("budget"):  # else it may wait for tokens
        found += _stuck(folder)
        found += _lost(folder, oracle)
    found += remembered(folder)
    if expected.forgets:
        return found
    found += _messages(folder, oracle)
    found += _tasks(folder, oracle)
    found += _told(folder)
    found += _orders(folder, oracle, faulty=expected.faulty)
    found += _triggers(folder)
    found += _kept(folder)
    found += _questions(folder)
    found += _sides(folder)
    if expected.counts:
        found += _usage(folder, oracle)
    if not expected.limited:
        found += [
            f"run {run} was begun {n} times" for run, n in Counter(oracle.runs).items() if n > 1
        ]
    return found


def _coalescing(folder: Folder) -> set[str]:
    """Results in the inbox that wait to be coalesced."""
    return {id_ for id_, item in folder.records("inbox").items() if item.get("notBefore")}


def told_as_expected(contents: Contents) -> list[str]:
    """Results that are not reported at the end of a flow."""
    return [f"left in inbox: {id_}" for id_ in sorted(_coalescing(Folder(contents)))]


def _stuck(folder: Folder) -> list[str]:
    found: list[str] = []
    paused = (folder.record("runtime.json") or {}).get("paused", False)
    empty = ["inbox", "turns/new", "commands", "planner/running", "worker/running"]
    if not paused:
        empty += ["planner/queue", "worker/queue"]
    gathered = {f"{id_}.json" for id_ in _coalescing(folder)}
    for name in empty:
        there = [left for left in folder.names(name) if left[0] != "." and left not in gathered]
        found += [f"left in {name}: {left}" for left in there]
    found += [f"mark left: {name}" for name in folder.names("turns")]
    for path, names in folder.contents.items():
        found += [f"temp file left: {path}/{name}" for name in names if name.startswith(".tmp-")]
    top = [*folder.names(""), *folder.subfolders("")]
    found += [f"left: {name}" for name in top if "inbox" in name and name != "inbox"]
    return found


def _quarantined(folder: Folder, most: int) -> list[str]:
    names = {name for name in folder.names("corrupt") if not name.startswith(".")}
    names |= set(folder.subfolders("corrupt"))
    kept = {name for name in names if not name.endswith(".reason.txt")}
    found = [f"{name} was quarantined" for name in sorted(kept)] if len(kept) > most else []
    return found + [
        f"{name} has no reason beside it"
        for name in sorted(kept)
        if f"{name}.reason.txt" not in names
    ]


def _users(folder: Folder) -> set[str]:
    return {message["id"] for message in folder.transcript if message["role"] == "user"}


def _lost(folder: Folder, oracle: Oracle) -> list[str]:
    users = _users(folder)
    said = [id_ for kind, id_ in oracle.acked if kind == "message"]
    return [f"acknowledged message {id_} is lost" for id_ in said if id_ not in users]


def _messages(folder: Folder, oracle: Oracle) -> list[str]:
    found: list[str] = []
    said = Counter(message["id"] for message in folder.transcript)
    found += [f"message {id_} is in the transcript {n} times" for id_, n in said.items() if n > 1]
    history = Counter(m["id"] for m in (folder.record("history.json") or {}).get("messages", []))
    found += [f"message {id_} is in history.json {n} times" for id_, n in history.items() if n > 1]
    differ = (set(history) - set(said)) | (set(said) - set(history) - _in_memory(folder))
    if differ:
        found.append(f"history.json and transcript differ: {differ}")
    users = _users(folder)
    consumed = Counter(id_ for turn in folder.turns.values() for id_ in turn["consumed"])
    for id_ in users:
        if consumed[id_] != 1:
            found.append(f"message {id_} was answered by {consumed[id_]} turns")
    for id_, turn in folder.turns.items():
        found += [
            f"turn {id_}: {m['id']} is not told" for m in turn["messages"] if m["id"] not in said
        ]
        replies = [m for m in turn["messages"] if m["role"] != "user"]
        if not replies:
            found.append(f"turn {id_} has no reply")
    for message in folder.transcript:
        turn = folder.turns.get(message["turnId"])
        if turn is None or message["id"] not in {m["id"] for m in turn["messages"]}:
            found.append(f"message {message['id']} belongs to no turn")
    return found


_HEAD = re.compile(r"^## \d\d:\d\d (\w+) <!-- (\S+) (\S+)( code)? -->$", re.MULTILINE)
_PART = re.compile(r"^<!-- part (\S+): from (.+) -->$", re.MULTILINE)


def _raw(folder: Folder) -> dict[str, list[str]]:
    names = [name for name in folder.names("memory") if name[0] != "."]
    texts = {f"memory/{name}": folder.text(f"memory/{name}") for name in names}
    return {path: [head[1] for head in _HEAD.findall(text)] for path, text in texts.items()}


def _summarised(folder: Folder) -> dict[str, list[str]]:
    """What each summary was made from."""
    names = [name for name in folder.names("memory/summary") if name[0] != "."]
    texts = {name: folder.text(f"memory/summary/{name}") for name in names}
    return {
        f"memory/summary/{name}": [
            source for part in _PART.findall(text) for source in part[1].split(", ")
        ]
        for name, text in texts.items()
    }


def _by_code(folder: Folder) -> set[str]:
    """Messages that code wrote: they stay as they are, in no summary."""
    return {m["id"] for m in folder.transcript if m["role"] == "system" or m["engine"] == "builtin"}


def _left_raw(folder: Folder) -> Iterator[tuple[str, list[str]]]:
    """Messages of code on summarised days, by the nearest summary of the day."""
    summaries, by_code = _summarised(folder), _by_code(folder)
    for path, ids in _raw(folder).items():
        day = path[len("memory/") : len("memory/2026-12-01")]
        names = [f"memory/summary/{name}.md" for name in (day, day[: len("2026-12")])]
        if near := [name for name in names if name in summaries]:
            yield near[0], [id_ for id_ in ids if id_ in by_code]


def _in_memory(folder: Folder) -> set[str]:
    return {id_ for ids in (_raw(folder) | _summarised(folder)).values() for id_ in ids}


def remembered(folder: Folder) -> list[str]:
    """Every message is in the working set or in memory, and never twice in the same file or day."""
    found: list[str] = []
    history = {m["id"]: m for m in (folder.record("history.json") or {}).get("messages", [])}
    memory = _in_memory(folder)
    said = {message["id"]: message for message in folder.transcript}
    found += [
        f"message {id_} is neither in history.json nor in memory"
        for id_ in sorted(set(said) - set(history) - memory)
    ]
    found += [
        f"message {id_} says it is archived, but is not in memory"
        for id_, message in history.items()
        if message["archived"] is True and id_ not in memory
    ]
    alive = {
        name.removesuffix(".json")
        for place in ("queue", "running")
        for name in folder.names(f"worker/{place}")
    }
    found += [
        f"message {id_} is pending for nobody"
        for id_, message in history.items()
        if message["archived"] == "pending" and message["archiveTask"] not in alive
    ]
    found += _twice(folder)
    by_code = _by_code(folder)
    found += [
        f"{path} sums up {id_}, which code wrote"
        for path, sources in _summarised(folder).items()
        for id_ in sorted(by_code & set(sources))
    ]
    for path, ids in _raw(folder).items():
        text = folder.text(path)
        marked = {head[1] for head in _HEAD.findall(text) if head[3]}
        if marked != by_code & set(ids):
            found.append(f"{path} says that code wrote {marked}, not {by_code & set(ids)}")
        for id_ in ids:
            if id_ not in said:
                found.append(f"{path} holds {id_}, which nobody said")
            elif f" -->\n\n{said[id_]['text']}\n" not in text and "<!--" not in said[id_]["text"]:
                found.append(f"{path} holds {id_} with another text")
    return found


def _twice(folder: Folder) -> list[str]:
    found: list[str] = []
    days: dict[str, Counter[str]] = {}
    for path, ids in _raw(folder).items():
        days.setdefault(path[: len("memory/2026-12-01")], Counter()).update(ids)
    files = days | {path: Counter(sources) for path, sources in _summarised(folder).items()}
    for path, counts in files.items():
        found += [f"{path} holds {id_} {n} times" for id_, n in counts.items() if n > 1]
    return found


def _tasks(folder: Folder, oracle: Oracle) -> list[str]:
    found: list[str] = []
    paused = {
        name.removesuffix(".json")
        for seat in ("planner", "worker")
        for name in folder.names(f"{seat}/queue")
    }
    wanted = {id_ for kind, id_ in oracle.acked if kind == "task"}
    wanted |= {task["id"] for turn in folder.turns.values() for task in turn["tasks"]}
    wanted |= {
        task["id"]
        for plan in folder.plans.values()
        if plan["status"] == "done"
        for task in plan["tasks"]
    }
    known = set(folder.tasks["planner"]) | set(folder.tasks["worker"])
    found += [f"task {id_} is lost" for id_ in sorted(wanted - known - paused)]
    ends = Counter(line["id"] for line in folder.ends)
    for seat, tasks in folder.tasks.items():
        outcomes = folder.results if seat == "worker" else folder.plans
        for id_ in tasks:
            outcome = outcomes.get(id_)
            if outcome is None:
                found.append(f"task {id_} ended without an outcome")
            elif ends[id_] != (outcome["status"] != "needs_input"):
                found.append(f"task {id_} ({outcome['status']}) has {ends[id_]} ended lines")
        found += [f"outcome {id_} has no task" for id_ in sorted(set(outcomes) - set(tasks))]
    found += [f"ended line of {id_} has no task" for id_ in sorted(set(ends) - known)]
    for line in folder.ends:
        outcome = folder.results.get(line["id"]) or folder.plans.get(line["id"])
        if outcome and outcome["status"] != line["status"]:
            found.append(
                f"ledger says {line['status']} of {line['id']}, its outcome {outcome['status']}"
            )
    began = {id_ for id_, _ in oracle.runs}
    reminders = {
        id_ for id_, task in folder.tasks["worker"].items() if task["profile"] == "reminder"
    }
    found += [f"an engine ran the reminder {id_}" for id_ in sorted(reminders & began)]
    for id_, result in folder.results.items():
        if result["status"] == "done" and id_ not in began | reminders:
            found.append(f"task {id_} is done, but no engine ran it")
    return found


def _told(folder: Folder) -> list[str]:
    found: list[str] = []
    consumed = Counter(id_ for turn in folder.turns.values() for id_ in turn["consumed"])
    for id_, task in folder.tasks["worker"].items():
        status = folder.results.get(id_, {}).get("status")
        least, most = _telling(folder, task, status)
        if task.get("improvement") and status != "done":
            least = most = 0
        times = consumed[f"res-{id_}"]
        if times == 0 and f"res-{id_}" in _coalescing(folder):
            continue
        if not least <= times <= most:
            found.append(f"result {id_} ({task['notify']}, {status}) was told {times} times")
        naming = [
            message["id"]
            for message in folder.transcript
            if message["role"] != "user"
            and id_ in message["taskIds"]
            and f"res-{id_}" in folder.turns.get(message["turnId"], {"consumed": []})["consumed"]
        ]
        if len(naming) != times:
            found.append(f"result {id_} is named by {len(naming)} messages: {naming}")
    for id_, plan in folder.plans.items():
        speaks = plan["status"] == "failed" or (
            plan["status"] == "done"
            and not (plan["tasks"] or plan["triggers"] or plan["cancels"] or plan["orders"])
        )
        if folder.tasks["planner"].get(id_, {}).get("improvement"):
            speaks = False
        if consumed[f"res-{id_}"] != speaks:
            found.append(f"plan {id_} ({plan['status']}) was told {consumed[f'res-{id_}']} times")
    return found


def _telling(folder: Folder, task: Record, status: str | None) -> tuple[int, int]:
    """How often a result must be reported, at least and at most."""
    if task["profile"] == "reminder" or _tripped(folder, task["id"]):
        return 1, 1
    if _is_upstream(folder, task["id"]):
        return 0, 0
    if _is_inner(folder, task):
        told = status == "canceled" or (status == "failed" or task.get("notifyGiven", False))
        return told, told or _is_known_later(folder, task["id"])
    if task["notify"] in ("teller", "message"):
        return 1, 1
    if task["notify"] == "change":
        return 0, 1
    failed = task["notify"] == "failure" and status == "failed"
    return failed, failed


def _is_upstream(folder: Folder, task_id: str) -> bool:
    """Whether it is a step that never ran because one before it failed."""
    return folder.results.get(task_id, {}).get("failureReason") == "upstream"


def _is_inner(folder: Folder, task: Record) -> bool:
    """Whether a one-time step came after it, or will never run because of it."""
    names = {task["id"], None if task["retryOf"] else task["sourceTriggerId"]}
    skipped = (line["slot"] for line in folder.ledger if line.get("reason") == "upstream")
    if any(slot.removeprefix("upstream ") in names for slot in skipped):
        return True
    return any(
        task["id"] in step["upstream"]
        and f"{step['sourceTriggerId']}.json" not in folder.names("triggers")
        for step in folder.tasks["worker"].values()
    )


def _is_known_later(folder: Folder, task_id: str) -> bool:
    """Whether a step after this task was looked at when that had ended: it may have been told."""
    steps = folder.tasks["worker"].values()
    after = {step["sourceTriggerId"] for step in steps if task_id in step["upstream"]}
    events = [(line.get("event"), line["id"]) for line in folder.ledger]
    made = [events.index(("trigger_created", id_)) for id_ in after]
    return bool(made) and min(made) > events.index(("ended", task_id))


def _tripped(folder: Folder, task_id: str) -> bool:
    """Whether this run failed as the two before it of its trigger did: each third one counts."""
    trigger_id = folder.tasks["worker"][task_id]["sourceTriggerId"]
    if trigger_id is None:
        return False
    runs = [r for r in folder.results.values() if r["sourceTriggerId"] == trigger_id]
    alike: list[str] = []
    for run in sorted(runs, key=lambda run: run["completedAt"]):
        if run["failureReason"] in ("killed", "canceled"):
            continue
        same = alike and folder.results[alike[-1]]["error"] == run["error"]
        alike = [*(alike if same else []), run["id"]] if run["status"] == "failed" else []
        if len(alike) == 3:
            if task_id == run["id"]:
                return True
            alike = []
    return False


def _orders(folder: Folder, oracle: Oracle, *, faulty: bool) -> list[str]:
    found: list[str] = []
    outcomes = folder.records("commands/done")
    for kind, id_ in oracle.acked:
        if kind != "order":
            continue
        outcome = outcomes.get(id_)
        if outcome is None:
            found.append(f"order {id_} has no outcome")
        elif outcome["order"]["action"] != "cancel":
            continue
        elif outcome["ok"] and _status(folder, outcome["order"]["target"]) not in (
            None,
            "canceled",
        ):
            found.append(
                f"order {id_} says it canceled {outcome['order']['target']}, which it did not"
            )
        elif not faulty:
            found += _canceled(folder, oracle, id_, outcome["order"]["target"])
    return found


def _status(folder: Folder, task_id: str) -> str | None:
    outcome = folder.results.get(task_id) or folder.plans.get(task_id)
    return str(outcome["status"]) if outcome else None


def _canceled(folder: Folder, oracle: Oracle, order: str, target: str) -> list[str]:
    """A task that was to be canceled is, unless its end had come before; and never runs again."""
    found: list[str] = []
    notes = dict(oracle.notes)
    before = notes.get(f"runs at {order}", 0)
    later = [run for run in oracle.runs[before:] if run[0] == target]
    if later:
        found.append(f"{target} was run after the order to cancel it was accepted: {later}")
    outcome = folder.results.get(target) or folder.plans.get(target)
    ran = any(id_ == target for id_, _ in oracle.runs)
    was_over = notes.get(f"over at {order}", False)
    if outcome and outcome["status"] != "canceled" and not ran and not was_over:
        found.append(f"{target} was canceled before it ran, but ended as {outcome['status']}")
    return found


def _slots(folder: Folder, trigger_id: str) -> dict[str, str]:
    return {
        line["slot"]: line["taskId"]
        for line in folder.ledger
        if line.get("event") == "slot" and line["id"] == trigger_id and line["state"] == "ran"
    }


def _triggers(folder: Folder) -> list[str]:
    found: list[str] = []
    lines = Counter((line["id"], line["slot"]) for line in folder.ledger if "slot" in line)
    found += [f"slot {slot} has {n} lines" for slot, n in lines.items() if n > 1]
    tasks = {
        id_: task
        for seat in ("planner", "worker")
        for id_, task in {**folder.tasks[seat], **folder.records(f"{seat}/queue")}.items()
    }
    found += _runs(folder, tasks, {id_ for id_, _ in lines})
    for id_, state in folder.records("triggers/state").items():
        fired = len(_slots(folder, id_))
        if state["fireCount"] != fired:
            found.append(f"trigger {id_}: fireCount {state['fireCount']} but {fired} slots ran")
        if state["firing"] is not None:
            found.append(f"trigger {id_} is left in the middle of a firing")
        if f"{id_}.json" not in folder.names("triggers"):
            found.append(f"state of {id_} has no trigger")
    found += _chains(folder, tasks)
    planned = {line["id"] for line in folder.ledger if line.get("event") == "slot"}
    planned |= {line["id"] for line in folder.ledger if line.get("event") == "trigger_removed"}
    for plan in folder.plans.values():
        for trigger in plan["triggers"] if plan["status"] == "done" else []:
            id_ = trigger["id"]
            if folder.record(f"triggers/{id_}.json") is None and id_ not in planned:
                found.append(f"planned trigger {id_} is lost")
    return found


def _runs(folder: Folder, tasks: dict[str, Record], known: set[str]) -> list[str]:
    """Each slot that ran has its run, and each run that nobody ordered its slot."""
    ordered = {o["resultId"] for o in folder.records("commands/done").values()}
    by_trigger: dict[str, set[str]] = {id_: set() for id_ in known}
    loops = {line.get("taskId") for line in folder.ledger if line.get("reason") == "loop"}
    for id_, task in tasks.items():
        if _is_upstream(folder, id_) or id_ in loops:  # told, not run
            continue
        if task["sourceTriggerId"] is not None and task["origin"] == "trigger":
            by_trigger.setdefault(task["sourceTriggerId"], set()).add(id_)
    return [
        f"trigger {id_}: slots {_slots(folder, id_)} but runs {sorted(runs - ordered)}"
        for id_, runs in by_trigger.items()
        if runs - ordered != set(_slots(folder, id_).values())
    ]


def _chains(folder: Folder, tasks: dict[str, Record]) -> list[str]:
    """A step builds on what has ended, in its trace, and each result starts a step only once."""
    found: list[str] = []
    used: Counter[tuple[str, str]] = Counter()
    for id_, task in tasks.items():
        for upstream in task.get("upstream", []):
            used[(task["sourceTriggerId"], upstream)] += 1
            if _status(folder, upstream) not in ("done", "failed"):
                found.append(f"{id_} builds on {upstream}, which has not ended")
        if task.get("upstream") and task["parentTaskId"] != task["upstream"][0]:
            found.append(f"{id_} has parent {task['parentTaskId']}, builds on {task['upstream']}")
    return found + [
        f"trigger {trigger} took the result of {task} {n} times"
        for (trigger, task), n in used.items()
        if n > 1
    ]


def _kept(folder: Folder) -> list[str]:
    found: list[str] = []
    memory = "".join(
        folder.text(path)
        for path in ["memory.md", *(f"memory/{n}" for n in folder.names("memory") if n[0] != ".")]
    )
    backlog = folder.text("backlog.md")
    gone = {n["noteId"] for turn in folder.turns.values() for n in turn.get("forgotten", [])}
    for turn in folder.turns.values():
        for note in turn["remembered"]:
            wanted = 0 if note["id"] in gone else 1
            if (times := memory.count(f"<!-- {note['id']} ")) != wanted:
                found.append(f"note {note['id']} is in memory {times} times")
        for change in turn["backlog"]:
            if (times := backlog.count(f"] {change['item']}\n")) != 1:
                found.append(f"item {change['item']!r} is in the backlog {times} times")
    return found


def _questions(folder: Folder) -> list[str]:
    waiting = set(folder.records("planner/results"))
    question = folder.record("pending_question.json")
    if question is None:
        return [f"plan {id_} waits, but nothing is asked" for id_ in sorted(waiting)]
    asker = question.get("plannerTaskId")
    if asker is not None and asker not in waiting:
        return [f"a question of {asker} is open, which does not wait"]
    return []


_SIDE = re.compile(r"\(all of it: (side/\S+)\)")


def _sides(folder: Folder) -> list[str]:
    """A text that names a file in `side/` finds the whole text there."""
    named = [
        (path, task["prompt"])
        for tasks in folder.tasks.values()
        for task in tasks.values()
        for path in _SIDE.findall(task["prompt"])
    ]
    ends = [result["result"] for result in folder.results.values()]
    named += [(end["whole"], end["text"]) for end in ends if "whole" in end]
    diffs = [result["diff"] for result in folder.results.values() if result.get("diff")]
    return [
        *(
            f"{path} does not hold the whole of {text[:40]!r}"
            for path, text in named
            if not folder.text(path).startswith(text[:100])
        ),
        *(f"{path} holds no diff" for path in diffs if not folder.record(path)),
    ]


def _usage(folder: Folder, oracle: Oracle) -> list[str]:
    """What runs have used is counted once, whatever became of them."""
    lines = {line["id"]: line for _, line in folder._lines("usage")}
    told = Counter(
        (line["runId"], line["attempt"]) for line in lines.values() if not line["estimated"]
    )
    begun = Counter(oracle.runs)
    found = [f"{run} is counted {n} times" for run, n in told.items() if n > begun[run]]
    ends = [(id_, it["attempt"]) for id_, it in folder.turns.items() if it["author"] == "teller"]
    ended = [*folder.results.items(), *folder.plans.items()]
    ends += [
        (id_, it.get("attempts")) for id_, it in ended if it["status"] in ("done", "needs_input")
    ]
    return found + [f"{run} is not counted" for run in ends if told[run] != 1]
