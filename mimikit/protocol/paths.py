"""The paths of all files in the state folder."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, date, datetime
from typing import Literal, NamedTuple, TypeAlias

from mimikit.protocol.ids import ID_PATTERN, derived_id, is_id

QueueName: TypeAlias = Literal["planner", "worker"]

STATE_FOLDER = ".mimikit"
ROOT = ""
CONFIG = "config.toml"
INBOX = "inbox"
DROPPED_INBOX = "inbox.json"
COMMANDS = "commands"
COMMANDS_DONE = "commands/done"
TURNS = "turns"
TURNS_NEW = "turns/new"
TURNS_DONE = "turns/done"
PENDING_QUESTION = "pending_question.json"
HISTORY = "history.json"
TRANSCRIPT = "history"
MEMORY = "memory.md"
MEMORY_FOLDER = "memory"
SUMMARIES = "memory/summary"
BACKLOG = "backlog.md"
TRIGGERS = "triggers"
TRIGGER_STATE = "triggers/state"
TASK_STATUS = "task_status.json"
LEDGER = "tasks"
RUNS = "runs"
EVENTS = "events.jsonl"
HUEY = "huey"
SECRETS = "secrets"
TOKEN = "secrets/token"  # noqa: S105 - a path, not a token
CACHE = "cache"
SIDE = "side"
DIFFS = "side/diffs"
TURN_PROMPTS = "side/prompts"
USAGE = "usage"
USAGE_MONTHS = "usage/months"
CORRUPT = "corrupt"
REASON = ".reason.txt"
"""Suffix of the file in `corrupt/` that says why a file was quarantined."""
RUNTIME = "runtime.json"
HEALTH = "health.json"
PAGES = "pages"
PROMPTS = "prompts"
LOG = "log.jsonl"
LOG_LOCK = "log.lock"
CONSUMER_LOCK = "consumer.lock"
CONSUMER_HOLDER = "consumer.json"
MEMORY_LOCK = "memory.lock"

QUEUES: tuple[QueueName, ...] = ("planner", "worker")

FOLDERS: tuple[str, ...] = (
    INBOX, COMMANDS, COMMANDS_DONE, TURNS, TURNS_NEW, TURNS_DONE,
    TRANSCRIPT, MEMORY_FOLDER, SUMMARIES,
    *QUEUES,
    *(f"{queue}/{part}" for queue in QUEUES for part in ("queue", "running", "results", "ended")),
    "planner/done",
    TRIGGERS, TRIGGER_STATE, LEDGER, RUNS, HUEY, SECRETS, CACHE, SIDE, DIFFS, TURN_PROMPTS,
    CORRUPT, PAGES, PROMPTS, USAGE, USAGE_MONTHS,
)  # fmt: skip


class RecordNames(NamedTuple):
    """The valid file names in a folder of records; `is_dated`: the stem is a day or month."""

    suffix: str = ".json"
    stem: re.Pattern[str] = re.compile(ID_PATTERN)
    expected: str = "a name of 1 to 128 letters, digits, '.', '_' or '-', as of an id"
    is_dated: bool = False

    def fit(self, stem: str) -> bool:
        with contextlib.suppress(ValueError):
            is_date = not self.is_dated or date.fromisoformat(f"{stem}-01"[:10])
            return bool(is_date and self.stem.fullmatch(stem))
        return False


_YEAR = r"(?:19[7-9]|2[01][0-9])[0-9]"
_DAY, _MONTH = re.compile(rf"{_YEAR}-[01][0-9]-[0-3][0-9]"), re.compile(rf"{_YEAR}-[01][0-9]")
_DAYS = RecordNames(".jsonl", _DAY, "a day for a name", is_dated=True)
_MONTHS = RecordNames(".jsonl", _MONTH, "a month for a name", is_dated=True)

RECORDS: dict[str, RecordNames] = {
    folder: RecordNames()
    for folder in (
        INBOX, COMMANDS, COMMANDS_DONE, TURNS_NEW, TURNS_DONE, "planner/done",
        *(f"{queue}/{part}" for queue in QUEUES
          for part in ("queue", "running", "results", "ended")),
        TRIGGERS, TRIGGER_STATE, DIFFS, TURN_PROMPTS,
    )
} | {
    TURNS: RecordNames(".started"),
    TRANSCRIPT: _DAYS,
    LEDGER: _MONTHS,
    USAGE: _DAYS,
    USAGE_MONTHS: _MONTHS._replace(suffix=".json"),
    RUNS: RecordNames(".jsonl"),
    SIDE: RecordNames(".txt"),
}  # fmt: skip


def inbox(item_id: str) -> str:
    return f"{INBOX}/{item_id}.json"


def result_inbox_id(task_id: str) -> str:
    """The id of the inbox entry that reports a task's result."""
    whole = f"res-{task_id}"
    return whole if is_id(whole) else derived_id("res", task_id)  # an id may be too long for more


def command(command_id: str) -> str:
    return f"{COMMANDS}/{command_id}.json"


def command_done(command_id: str) -> str:
    return f"{COMMANDS_DONE}/{command_id}.json"


def turn_started(turn_id: str, attempt: int) -> str:
    return f"{TURNS}/{turn_id}.{attempt}.started"


def turn_new(turn_id: str) -> str:
    return f"{TURNS_NEW}/{turn_id}.json"


def turn_done(turn_id: str) -> str:
    return f"{TURNS_DONE}/{turn_id}.json"


def queued(queue: QueueName, task_id: str) -> str:
    return f"{queue}/queue/{task_id}.json"


def running(queue: QueueName, task_id: str) -> str:
    return f"{queue}/running/{task_id}.json"


def result(queue: QueueName, task_id: str) -> str:
    """The result of a task; of a Planner run its commit record."""
    return f"{queue}/results/{task_id}.json"


def ended(queue: QueueName, task_id: str) -> str:
    return f"{queue}/ended/{task_id}.json"


def plan_done(task_id: str) -> str:
    return f"planner/done/{task_id}.json"


def trigger(trigger_id: str) -> str:
    return f"{TRIGGERS}/{trigger_id}.json"


def trigger_state(trigger_id: str) -> str:
    return f"{TRIGGER_STATE}/{trigger_id}.json"


def transcript(day: date) -> str:
    return f"{TRANSCRIPT}/{day.isoformat()}.jsonl"


def memory_file(name: str) -> str:
    return f"{MEMORY_FOLDER}/{name}"


def summary(name: str) -> str:
    return f"{SUMMARIES}/{name}.md"


def ledger(now: datetime) -> str:
    return f"{LEDGER}/{now.astimezone(UTC):%Y-%m}.jsonl"


def page(page_id: str) -> str:
    return f"{PAGES}/{page_id}.json"


def run_output(run_id: str) -> str:
    return f"{RUNS}/{run_id}.jsonl"


def side(record_id: str) -> str:
    return f"{SIDE}/{record_id}.txt"


def diff(task_id: str) -> str:
    return f"{DIFFS}/{task_id}.json"


def turn_prompt(run_id: str) -> str:
    return f"{TURN_PROMPTS}/{run_id}.json"


def usage_day(day: str) -> str:
    return f"{USAGE}/{day}.jsonl"


def usage_month(month: str) -> str:
    return f"{USAGE_MONTHS}/{month}.json"
