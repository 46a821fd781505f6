"""Resolves references to tasks and triggers, and describes what they refer to. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from itertools import pairwise
from typing import Literal
from zoneinfo import ZoneInfo

from mimikit.engines.base import TaskLine, TurnInput
from mimikit.engines.builtin.shell_lines import SENTENCES
from mimikit.language import phrases
from mimikit.language.phrases import Language, code, paragraphs, say
from mimikit.protocol.models import FileRef, Hit, Question

ENDED = frozenset({"done", "failed", "canceled"})
_MIN_PREFIX = 4
_SHOWN_PREFIX = 6
_POINTS = " .,:;!?~，：；！？。、"
_MAX_LISTED = 10
_REFERENCE_WORD = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")
_FILLERS = frozenset(SENTENCES["words"]["fillers"].split())
_COMMON = frozenset(f"{SENTENCES['words']['common']} {SENTENCES['words']['talk']}".split())
_EXAMPLE = re.compile(r"`([^`]+)`")
_NEAR = 0.84
"""The likeness of a slip, such as `taks` or `remnid me`, from 0 to 1."""
MAX_TITLE = 80
TASK_ID = re.compile(r"(?:task|trig)-[A-Za-z0-9._-]+\Z")

Asks = Literal["next", "outcome"]


def resolve(reference: str, tasks: Sequence[TaskLine]) -> list[TaskLine]:
    """Live tasks by id, id prefix, or words of the title; ended ones by exact id only."""
    if exact := [task for task in tasks if task.id == reference]:
        return exact[:1]
    return matching(reference, [task for task in tasks if task.state not in ENDED])


def resolve_upstream(reference: str, tasks: Sequence[TaskLine]) -> list[TaskLine]:
    """Tasks and triggers that a command may wait for; ended ones only if no live one matches."""
    tasks = [task for task in tasks if task.seat != "planner"]
    if found := resolve(reference, tasks):
        return found
    ended = matching(reference, [task for task in tasks if task.state in ENDED])
    if len({task.title.casefold() for task in ended}) == 1:
        return [max(ended, key=lambda task: task.created_at or datetime.min.replace(tzinfo=UTC))]
    return ended


def triggers(reference: str, tasks: Sequence[TaskLine]) -> list[TaskLine]:
    return resolve(reference, [t for t in tasks if t.state.startswith(("trigger", "reminder"))])


def newest_mentioned(lines: Sequence[TaskLine], messages: Sequence[str]) -> list[TaskLine]:
    """The last one named in the messages (oldest first), else the newest."""
    for text in reversed(messages):
        found = [line for line in lines if line.id in text or (line.title and line.title in text)]
        if found:  # prefer the longest title, then a trigger's
            return [
                max(found, key=lambda it: (len(it.title), it.seat == "trigger", _created_at(it)))
            ]
    return sorted(lines, key=_created_at)[-1:]


def _created_at(line: TaskLine) -> datetime:
    return line.created_at or datetime.min.replace(tzinfo=UTC)


def matching(reference: str, tasks: Sequence[TaskLine]) -> list[TaskLine]:
    """By id prefix (also `title #prefix`), else the exact title, else words of it."""
    prefix = reference.rpartition("#")[2]
    if len(prefix) >= _MIN_PREFIX:
        by_id = [
            task
            for task in tasks
            if task.id.startswith(prefix) or task.id.partition("-")[2].startswith(prefix)
        ]
        if by_id:
            return by_id
    folded = reference.casefold()
    all_names = ((task, [task.title, *_names(task, "en", "zh")]) for task in tasks)
    if by_title := [task for task, names in all_names if folded in map(str.casefold, names)]:
        return by_title
    words, found = words_of(reference), list[TaskLine]()
    for task in tasks:
        own = set(_REFERENCE_WORD.findall(task.title.casefold()))
        # A Chinese word may be a part of a longer run of characters.
        if words and all(w in own or (not w.isascii() and w in task.title) for w in words):
            found.append(task)
    return found


def words_of(reference: str) -> list[str]:
    return [w for w in _REFERENCE_WORD.findall(reference.casefold()) if w not in _FILLERS]


def notes_about(text: str, hits: Sequence[Hit]) -> list[Hit]:
    wanted = _uncommon(text)
    notes = [hit for hit in hits if hit.kind == "memory" and hit.role is None]
    return [hit for hit in notes if wanted & _uncommon(hit.text)]


def _uncommon(text: str) -> set[str]:
    """English words and pairs of Chinese characters, but for common ones."""
    found = _REFERENCE_WORD.findall(text.casefold())
    words = {word for word in found if word.isascii() and len(word) > 2}
    pairs = {a + b for word in found if not word.isascii() for a, b in pairwise(word)}
    return (words | pairs) - _COMMON


def nearest_sentence(text: str, language: Language) -> str:
    """The example of `help` that the text may be a slip of; empty if none is near."""
    by_start: dict[str, str] = {}
    for example in _EXAMPLE.findall(say("help", language, connect="")):
        for start in _starts(example):
            by_start.setdefault(start, example)
    near = [get_close_matches(start, by_start, n=1, cutoff=_NEAR) for start in _starts(text)]
    return next((by_start[found[0]] for found in near if found), "")


def _starts(text: str) -> tuple[str, str]:
    return (plain := one_line(text.casefold(), MAX_TITLE)), " ".join(plain.split()[:2])


# ---- questions

MAX_CHOICES = 6
_CHOICE = re.compile(r"(?:cancel |取消 ?)(\S.*)", re.IGNORECASE)


def asks_to_cancel(question: Question) -> bool:
    is_own = question.planner_task_id is None and len(question.options) > 1
    return is_own and all(map(task_name, question.options[:-1]))


def task_name(option: str) -> str:
    """What follows `cancel`; empty if it is another option."""
    match = _CHOICE.fullmatch(option)
    return match[1] if match else ""


def chosen_option(text: str, options: Sequence[str]) -> str | None:
    """The option that an answer means: by its text, its number, or the name of its task."""
    answer = text.strip().rstrip(".。!！").casefold()
    by_answer = {str(number): option for number, option in enumerate(options, 1)}
    by_answer |= {task_name(option).casefold(): option for option in options}
    by_answer |= {option.strip().casefold(): option for option in options}
    return by_answer.get(answer) or by_answer.get(task_name(answer) or answer)


# ---- replies


def failed(
    turn_input: TurnInput, day: Literal["today", "yesterday", "lately"], language: Language
) -> str:
    zone = phrases.named_zone(turn_input.timezone) or ZoneInfo("UTC")
    days = {"today": 0, "yesterday": 1}
    found = list(turn_input.look("failed"))
    if day in days:
        wanted = (turn_input.now.astimezone(zone) - timedelta(days=days[day])).date()
        found = [t for t in found if t.ended_at and t.ended_at.astimezone(zone).date() == wanted]
    if not found:
        return say(f"failed_none_{day}", language)
    return paragraphs(say(f"failed_{day}", language), task_list(found, language))


def find_subjects(turn_input: TurnInput, asks: Asks, reference: str) -> list[TaskLine]:
    """The tasks that a question is about: the named ones, or the last mentioned."""
    known = {
        line.id: line
        for line in (*turn_input.tasks, *turn_input.look("triggers"), *turn_input.look("recent"))
        if line.seat != "planner"
    }
    lines = [line for line in known.values() if asks == "outcome" or line.next or line.words]
    if not words_of(reference):
        return newest_mentioned(lines, [message.text for message in turn_input.conversation])
    found = [line for line in lines if line.id == reference] or matching(reference, lines)
    # A trigger covers its runs; of tasks with one title take the newest.
    triggers = [line for line in found if line.seat == "trigger"]
    if triggers or len({line.title.casefold() for line in found}) > 1:
        return triggers or found
    return sorted(found, key=_created_at)[-1:]


def describe(asks: Asks, found: Sequence[TaskLine], language: Language) -> str:
    if len(found) > 1:
        listed = task_list(found[:_MAX_LISTED], language)
        return paragraphs(say("about_several", language), listed)
    line, task = found[0], code(one_line(found[0].title, MAX_TITLE) or found[0].id)
    if asks == "next":
        key = "about_next" if line.next else "about_no_next"
        head = say(key, language, task=task, next=(line.next or {}).get(language))
        rest = [line.words, line.last, line.waits]
    else:
        key = f"about_{line.status}" if line.status and line.last else "about_open"
        head = say(key, language, task=task, last=(line.last or {}).get(language))
        rest = [line.waits, line.next]
    return paragraphs(head, "\n".join(f"- {words[language]}" for words in rest if words))


def one_line(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _names(task: TaskLine, *languages: Language) -> list[str]:
    """Its title, and the same with its times."""
    title, words = one_line(task.title, MAX_TITLE), task.words
    return [title, *(f"{title} ({words[language]})" for language in languages if words)]


def label(task: TaskLine, tasks: Sequence[TaskLine], language: Language) -> str:
    """A name that refers to no other of these; with the start of its id only if need be."""
    names = _names(task, language)
    for name in filter(None, names):
        if resolve(name.strip(_POINTS), tasks) in ([task], []):
            return name
    return f"{names[0]} #{task.id.partition('-')[2][:_SHOWN_PREFIX]}".lstrip()


def task_list(
    tasks: Sequence[TaskLine], language: Language, among: Sequence[TaskLine] | None = None
) -> str:
    """`among`: those that a name may refer to; None: the same."""
    return "\n".join(
        " · ".join(
            [
                f"- {code(label(task, tasks if among is None else among, language))} — "
                f"{phrases.state(task.state, language)}",
                *(words[language] for words in task.facts),
            ]
        )
        for task in tasks
    )


def unread(files: Sequence[FileRef], language: Language) -> str:
    """That these files are kept, and not looked into; empty without files."""
    names = ", ".join(code(ref.name) for ref in files)
    return say("files_unread", language, names=names) if names else ""
