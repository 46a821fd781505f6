"""A set of our own: 60 notes among 5,000 lines of chat and results and 30 documents, 120 questions.

Notes, what was said once, and what the documents say are written by hand, each with questions in
English, Chinese or both; the chatter is made with a fixed seed, of the same words. Many questions
were asked before, in so many words, and code could not answer: that is chatter too.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Literal

from mimikit.memory import markdown
from mimikit.protocol.models import Message
from mimikit.protocol.results import TaskResult

FIRST_DAY = date(2026, 1, 1)
DAYS, CHAT_LINES, RESULTS = 50, 3800, 1200

_DATA: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
NOTES, SAID, DOCS = (
    [[part.strip() for part in line.split("|")] for line in _DATA[name].strip().split("\n")]
    for name in ("notes", "said", "docs")
)
"""Of each: what it says (of a document its title before it), and what is asked."""

Kind = Literal["note", "said", "doc"]


@dataclass(frozen=True)
class Question:
    """What is asked, and the one passage that answers it."""

    text: str
    kind: Kind
    source: str
    answer: str
    """A part of the passage."""


def write(state: Path) -> list[Question]:
    """Write the set into a state folder and the workspace around it; gives the questions."""
    dice = random.Random(20260130)
    asked = [*_write_notes(state), *_write_docs(state.parent)]
    places = dict(zip(dice.sample(range(CHAT_LINES), len(SAID)), SAID, strict=True))
    before = [question.text for question in asked if dice.random() < 0.4]
    for number, messages in enumerate(_days(dice, places, before)):
        day = FIRST_DAY + timedelta(days=number)
        told = "".join(f"{json.dumps(json.loads(m.to_json()))}\n" for m in messages)
        (state / f"history/{day}.jsonl").write_text(told)
        path = f"memory/{day}-made-up.md"
        (state / path).write_text(markdown.extended("", day, messages, UTC))
        texts = {message.text for message in messages}
        asked += [Question(q, "said", path, text) for text, q in SAID if text in texts]
    for number in range(RESULTS):
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number)
        text = _filled(dice, dice.choice(_lines("results")))
        made = TaskResult(
            id=f"task-{number}",
            status="done",
            result={"text": text},
            trace_id=f"task-{number}",
            started_at=at,
            completed_at=at,
        )
        (state / f"worker/results/task-{number}.json").write_bytes(made.to_json())
    return asked


def _write_notes(state: Path) -> Iterator[Question]:
    """Every other one into `memory.md`, the rest into files of days."""
    for number, (note, *questions) in enumerate(NOTES):
        day = FIRST_DAY + timedelta(days=number * 7 % DAYS)
        path = "memory.md" if number % 2 else f"memory/{day}.md"
        file = state / path
        text = file.read_text() if file.exists() else ""
        file.write_text(markdown.with_note(text, f"mem-{number}", note))
        yield from (Question(question, "note", path, note) for question in questions)


def _write_docs(workspace: Path) -> Iterator[Question]:
    """Those that say something, and as many more as make 30."""
    folder = workspace / "docs"
    folder.mkdir(exist_ok=True)
    dice = random.Random(7)
    for number in range(30):
        title, fact, *questions = DOCS[number] if number < len(DOCS) else (f"Page {number}", "")
        chatter = [_filled(dice, dice.choice(_lines("replies"))) for _ in range(12)]
        paragraphs = [f"# {title}", *chatter[:6], *filter(None, [fact]), *chatter[6:]]
        (folder / f"page-{number}.md").write_text("\n\n".join(paragraphs) + "\n")
        for question in questions:
            yield Question(question, "doc", f"docs/page-{number}.md", fact)


def _days(
    dice: random.Random, places: dict[int, list[str]], before: list[str]
) -> Iterator[list[Message]]:
    """What was said each day; `places`: what is said once, by its line."""
    a_day = CHAT_LINES // DAYS
    for day in range(DAYS):
        begun = datetime.combine(FIRST_DAY, datetime.min.time(), UTC) + timedelta(days=day, hours=7)
        messages: list[Message] = []
        for line in range(a_day * day, a_day * (day + 1)):
            role, engine, text = _said(dice, line, before)
            if line in places:
                role, engine, text = "user", None, places[line][0]
            at = begun + timedelta(minutes=7 * (line % a_day))
            messages.append(
                Message(id=f"msg-{line}", role=role, text=text, created_at=at, engine=engine)
            )
        yield messages


def _said(
    dice: random.Random, line: int, before: list[str]
) -> tuple[Literal["user", "agent", "system"], str | None, str]:
    if line % 2 == 0:
        text = dice.choice(before) if dice.random() < 0.1 else dice.choice(_lines("chat"))
        return "user", None, _filled(dice, text)
    if dice.random() < 0.4:
        role: Literal["agent", "system"] = dice.choice(["agent", "system"])
        engine = "builtin" if role == "agent" else None
        again = dice.choice(before) if dice.random() < 0.5 else dice.choice(_lines("chat"))
        return role, engine, dice.choice(_lines("told_by_code")).replace("{}", _filled(dice, again))
    return "agent", "codex", _filled(dice, dice.choice(_lines("replies")))


def _filled(dice: random.Random, text: str) -> str:
    while "{}" in text:
        chinese = any("\u4e00" <= character <= "\u9fff" for character in text)
        text = text.replace("{}", dice.choice(_lines("things_zh" if chinese else "things_en")), 1)
    return text


def _lines(name: str) -> list[str]:
    return _DATA[name].strip().split("\n")
