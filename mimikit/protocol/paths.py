"""The paths of all files in the state folder."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
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
EVENTS, OLD_EVENTS = "events.jsonl", "events.1.jsonl"
HUEY = "huey"
SECRETS = "secrets"
TOKEN = "secrets/token"  # noqa: S105 - a path, not a token
FILES = "files"
NOTIFICATION_STATE = "notifications.json"
CACHE = "cache"
SIDE = "side"
DIFFS = "side/diffs"
TURN_PROMPTS = "side/prompts"
IMPROVEMENTS = "side/self-awake"
"""The working copies of self-awake: real folders of git, not records."""
SELF_AWAKE = "self_awake.json"
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
    CORRUPT, PAGES, PROMPTS, USAGE, USAGE_MONTHS, FILES,
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


def _file_in(folder: str, suffix: str = ".json") -> Callable[[str], str]:
    return lambda name: f"{folder}/{name}{suffix}"


def _file_of(part: str) -> Callable[[QueueName, str], str]:
    return lambda queue, task_id: f"{queue}/{part}/{task_id}.json"


queued, running, ended = _file_of("queue"), _file_of("running"), _file_of("ended")
result = _file_of("results")
"""The result of a task; of a Planner run its commit record."""
inbox = _file_in(INBOX)
command, command_done = _file_in(COMMANDS), _file_in(COMMANDS_DONE)
turn_new, turn_done = _file_in(TURNS_NEW), _file_in(TURNS_DONE)
turn_prompt = _file_in(TURN_PROMPTS)
plan_done = _file_in("planner/done")
trigger, trigger_state = _file_in(TRIGGERS), _file_in(TRIGGER_STATE)
summary = _file_in(SUMMARIES, ".md")
memory_file = _file_in(MEMORY_FOLDER, "")
page = _file_in(PAGES)
run_output = _file_in(RUNS, ".jsonl")
user_file, user_file_record = _file_in(FILES, ""), _file_in(FILES)
side, diff = _file_in(SIDE, ".txt"), _file_in(DIFFS)
usage_day, usage_month = _file_in(USAGE, ".jsonl"), _file_in(USAGE_MONTHS)


def result_inbox_id(task_id: str) -> str:
    """The id of the inbox entry that reports a task's result."""
    whole = f"res-{task_id}"
    return whole if is_id(whole) else derived_id("res", task_id)  # an id may be too long for more


def channel(name: str) -> str:
    return f"{SECRETS}/notify-{name}.url"


def turn_started(turn_id: str, attempt: int) -> str:
    return f"{TURNS}/{turn_id}.{attempt}.started"


def transcript(day: date) -> str:
    return f"{TRANSCRIPT}/{day.isoformat()}.jsonl"


def ledger(now: datetime) -> str:
    return f"{LEDGER}/{now.astimezone(UTC):%Y-%m}.jsonl"
