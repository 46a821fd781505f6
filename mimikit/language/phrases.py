"""What mimikit itself says, in English and Chinese: the words where no model speaks.

One catalogue by message id (`phrases.toml`); both languages hold the same ids and the same
`{placeholders}`. Content that came from elsewhere stands in a fence or a code span that it cannot
close.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from mimikit.language.time_words import Language

MAX_OUTPUT = 2000
"""Characters of one result that are shown."""
MAX_OUTPUTS = 12_000
"""Characters of all results in one message."""

_CATALOGUE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TABLE: dict[Language, dict[str, str]] = {
    "en": {key: both["en"] for key, both in _CATALOGUE.items()},
    "zh": {key: both["zh"] for key, both in _CATALOGUE.items()},
}

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_WORD = re.compile(r"[A-Za-z]+")
_READ = 4000
"""Characters of a text that are enough to tell its language."""


def say(key: str, language: str, **values: object) -> str:
    """The message of that id in that language (English when the language is another)."""
    return TABLE["zh" if language == "zh" else "en"][key].format(**values)


def language(text: str, locale: str = "en") -> Language:
    """The language to answer in: the text's, by its share of Chinese; in doubt the locale's."""
    by_locale: Language = "zh" if locale.lower().startswith("zh") else "en"
    read = text[:_READ]
    han, words = len(_HAN.findall(read)), len(_WORD.findall(read))
    if not han + words or _KANA_OR_HANGUL.search(read):
        return by_locale
    share = han / (han + words)
    if share >= 0.5:
        return "zh"
    return "en" if share <= 0.15 else by_locale


def fence(text: str, info: str = "text") -> str:
    """The text in a code fence longer than any run of backticks in it."""
    ticks = "`" * max(3, _longest_ticks(text) + 1)
    return f"{ticks}{info}\n{text}\n{ticks}"


def code(text: str) -> str:
    """The text as a code span in one line, whatever it holds."""
    line = " ".join(text.split())
    ticks = "`" * (_longest_ticks(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def paragraphs(*parts: str) -> str:
    """Parts as paragraphs, empty ones left out."""
    return "\n\n".join(part for part in parts if part)


def state(name: str, language: str) -> str:
    """A task's or trigger's state in words; one that has none as it is."""
    key = "state_" + name.replace(", ", "_")
    return say(key, language) if key in TABLE["en"] else name


# ---- tasks that ended


class EndedTask(Protocol):
    """What is told of a task that ended."""

    @property
    def task_id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def seat(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def error(self) -> str | None: ...
    @property
    def failure_reason(self) -> str | None: ...


def results(told: Sequence[EndedTask], language: str) -> str:
    """Tasks that ended, in one message."""
    limit = min(MAX_OUTPUT, MAX_OUTPUTS // max(1, len(told)))
    return "\n\n".join(_result(result, language, limit) for result in told)


def _result(result: EndedTask, language: str, limit: int) -> str:
    title = code(result.title or result.task_id)
    text = result.text.strip("\n")
    if result.status == "done":
        key = "result_done" if text.strip() else "result_done_silent"
        head = say(key, language, title=title)
        if result.seat == "planner" and text.strip():
            return f"{head}\n\n{_cut(text, result.task_id, language, limit)}"
        return paragraphs(head, _fenced(text, result.task_id, language, limit))
    if result.status == "failed":
        why = say(f"reason_{result.failure_reason or 'unknown'}", language)
        head = say("result_failed", language, title=title, reason=why)
        error = (result.error or "").strip()
        output = "" if text.strip() == error else text
        return paragraphs(
            head,
            _fenced(error, result.task_id, language, limit),
            _fenced(output, result.task_id, language, limit, end=True),
        )
    if result.status == "canceled":
        return say("result_canceled", language, title=title)
    return say("result_other", language, title=title, status=result.status)


def _fenced(text: str, task_id: str, language: str, limit: int, *, end: bool = False) -> str:
    """Output in a fence; of a long one the start, or the end where errors stand."""
    if not text.strip():
        return ""
    hidden = len(text) - limit
    if hidden <= 0:
        return fence(text)
    note = say("cut_start" if end else "cut_end", language, hidden=f"{hidden:,}", id=task_id)
    return f"{fence(text[-limit:] if end else text[:limit])}\n\n{note}"


def _cut(text: str, task_id: str, language: str, limit: int) -> str:
    hidden = len(text) - limit
    if hidden <= 0:
        return text
    return f"{text[:limit]}…\n\n{say('cut_end', language, hidden=f'{hidden:,}', id=task_id)}"


def _longest_ticks(text: str) -> int:
    return max((len(ticks) for ticks in re.findall("`+", text)), default=0)
