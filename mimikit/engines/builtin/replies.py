"""Tasks that ended, told where no model speaks."""

from __future__ import annotations

from collections.abc import Sequence

from mimikit.engines.base import ToldResult
from mimikit.language.phrases import code, fence, say

MAX_OUTPUT = 2000
"""Characters of one result that are shown."""
MAX_OUTPUTS = 12_000
"""Characters of all results in one message."""


def results(told: Sequence[ToldResult], language: str) -> str:
    """Tasks that ended, in one message."""
    limit = min(MAX_OUTPUT, MAX_OUTPUTS // max(1, len(told)))
    return "\n\n".join(_result(result, language, limit) for result in told)


def reason(result: ToldResult, language: str) -> str:
    """Why a task failed, in words."""
    return say(f"reason_{result.failure_reason or 'unknown'}", language)


def _result(result: ToldResult, language: str, limit: int) -> str:
    title = code(result.title or result.task_id)
    text = result.text.strip("\n")
    if result.status == "done":
        key = "result_done" if text.strip() else "result_done_silent"
        head = say(key, language, title=title)
        if result.seat == "planner" and text.strip():
            return f"{head}\n\n{_cut(text, result.task_id, language, limit)}"
        return _joined(head, _fenced(text, result.task_id, language, limit))
    if result.status == "failed":
        head = say("result_failed", language, title=title, reason=reason(result, language))
        error = (result.error or "").strip()
        output = "" if text.strip() == error else text
        return _joined(
            head,
            _fenced(error, result.task_id, language, limit),
            _fenced(output, result.task_id, language, limit, end=True),
        )
    if result.status == "canceled":
        return say("result_canceled", language, title=title)
    return say("result_other", language, title=title, status=result.status)


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


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
