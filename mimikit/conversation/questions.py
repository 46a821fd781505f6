"""The one question that waits for the user."""

from __future__ import annotations

from datetime import datetime

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Question


def pending(files: Files) -> Question | None:
    return files.load(paths.PENDING_QUESTION, Question)


def ask(files: Files, question: Question) -> bool:
    return files.save_new(paths.PENDING_QUESTION, question)


def close(files: Files, question_id: str) -> None:
    current = pending(files)
    if current is not None and current.question_id == question_id:
        files.remove(paths.PENDING_QUESTION)


def is_expired(question: Question, now: datetime) -> bool:
    return now >= question.expires_at
