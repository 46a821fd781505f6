"""The inbox: one file for each thing the Teller has not answered, created exclusively.

Beside it the door for people and programs (`inbox.json`, claimed by rename, taken in once, removed)
and the one question that waits for the user.
"""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta

from mimikit.errors import BadInput, BadRecord, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.files import MAX_RECORD_BYTES, Files, decode
from mimikit.protocol.ids import check_id, derived_id, new_id
from mimikit.protocol.json import Json, dump_line, parse_json
from mimikit.protocol.models import InboxItem, Question, time_text

SETTLE_S = 2.0
"""A file that is not whole may still be being written: it is judged after so long unchanged."""
_TAKING = ".taking.json"


def put(files: Files, item: InboxItem) -> bool:
    """Accept an item; False when it is there already. Once this returns it is on disk."""
    return files.save_new(paths.inbox(item.id), item)


def waiting(files: Files) -> list[InboxItem]:
    """Everything unanswered, oldest first."""
    items = files.load_all(paths.INBOX, InboxItem)
    return sorted(items, key=lambda item: (item.created_at, item.id))


def take_out(files: Files, item_id: str) -> None:
    """Remove an item whose turn is committed and applied."""
    files.remove(paths.inbox(item_id))


def take_in_dropped(files: Files, now: datetime) -> bool:
    """Take a dropped `inbox.json` in; gives whether there was one.

    Crash: the claimed file stays, and its entries' ids follow from its name, so taking it in again
    adds none twice.
    """
    if _is_ready(files, now):
        files.move(paths.DROPPED_INBOX, new_id("inbox", now) + _TAKING)
    claimed = [n for n in files.names(paths.ROOT) if n.endswith(_TAKING)]
    for name in claimed:
        try:
            for item in _items(files.read(name) or b"", name, now):
                put(files, item)
        except BadInput as error:
            files.quarantine(name, str(error))
        else:
            files.remove(name)
    return bool(claimed)


def _is_ready(files: Files, now: datetime) -> bool:
    """Whether a plain `inbox.json` lies there, whole; what is no list is given time to be one."""
    stat = files.stat(paths.DROPPED_INBOX)
    if stat is None or stat.kind != "file":
        return False
    try:
        with contextlib.suppress(BadRecord):  # perhaps half written
            if isinstance(parse_json(files.read(paths.DROPPED_INBOX) or b""), list):
                return True
    except UnsafeFile:
        return False
    age_s = now.timestamp() - stat.mtime_ns / 1e9
    return age_s >= SETTLE_S or age_s < 0  # a time to come says nothing


def _items(data: bytes, name: str, now: datetime) -> list[InboxItem]:
    if len(data) > MAX_RECORD_BYTES:
        raise BadRecord(f"expected at most {MAX_RECORD_BYTES} bytes, got {len(data)}")
    value = parse_json(data)
    if not isinstance(value, list):
        raise BadRecord('expected a list of texts or inputs, such as ["hello"]')
    items: list[InboxItem] = []
    for number, entry in enumerate(value):
        given = {"text": entry} if isinstance(entry, str) else entry
        if not isinstance(given, dict):
            raise BadRecord(f"entry {number}: expected a text or an input", field=str(number))
        base: dict[str, Json] = {
            "id": derived_id("msg", name, str(number)),
            # A millisecond apart: they are answered in the order they were written in.
            "createdAt": time_text(now - timedelta(milliseconds=len(value) - number)),
            "kind": "user_input",
        }
        item = decode(dump_line(base | given), InboxItem)
        check_id(item.id)
        if not item.text.strip():
            raise BadRecord(f"entry {number}: text: expected some text, got none", field="text")
        items.append(item)
    return items


# ---- the question


def pending_question(files: Files) -> Question | None:
    return files.load(paths.PENDING_QUESTION, Question)


def ask(files: Files, question: Question) -> bool:
    """Have a question wait; False when one does already."""
    return files.save_new(paths.PENDING_QUESTION, question)


def close_question(files: Files, question_id: str) -> None:
    current = pending_question(files)
    if current is not None and current.question_id == question_id:
        files.remove(paths.PENDING_QUESTION)


def is_expired(question: Question, now: datetime) -> bool:
    return now >= question.expires_at
