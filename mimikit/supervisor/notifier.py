"""Sends events to the notification channels.

1. Read the ledger from the saved position, and the open question.
2. Save the position together with the notices of every channel: no event is lost.
3. Mark a channel's next message as in flight, send it, remove it. After a crash between the two it
   is sent again, and marked so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeAlias, cast

from mimikit import notifications
from mimikit.conversation import inbox
from mimikit.language import phrases
from mimikit.language.phrases import Language
from mimikit.language.plain_text import first_line, plain
from mimikit.notifications import DeliveryReport
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.json import Json
from mimikit.protocol.notify import (
    PERSONAL,
    ChannelQueue,
    Notice,
    NoticeKind,
    NotificationState,
    SentNotice,
)
from mimikit.supervisor.code_turns import result_notice
from mimikit.supervisor.run_end import BREAKS_AT
from mimikit.supervisor.store import Store
from mimikit.tasks import ledger, queue

Send: TypeAlias = Callable[[Files, str, str, str], DeliveryReport]
"""Sends title and text to a channel: `notifications.send` in the product."""
MERGE_WINDOW = timedelta(seconds=5)
"""Successes within it are one message."""
SPACING = timedelta(seconds=1.5)
BACK_OFF, LONGEST_BACK_OFF = timedelta(seconds=10), timedelta(minutes=15)
GIVE_UP_AFTER = timedelta(days=1)
MAX_LINES, MAX_CHARACTERS, MAX_MERGED = 6, 300, 10
MOST_AT_ONCE, MOST_WAITING, MAX_SENT = 100, 2000, 30


def next_batch(channel: ChannelQueue, now: datetime, *, is_quiet: bool) -> list[Notice]:
    """The notices of a channel's next message; none: not yet. Pure. Source: spec 6."""
    retry_at, sent_at = channel.retry_at, channel.sent_at
    if retry_at is not None and now < retry_at <= now + LONGEST_BACK_OFF:
        return []
    if sent_at is not None and sent_at <= now < sent_at + SPACING:
        return []
    if batch := channel.sending:
        return batch
    waiting = [one for one in channel.waiting if one.kind in PERSONAL or not is_quiet]
    if personal := [one for one in waiting if one.kind in PERSONAL]:
        return personal[:1]
    first = next((one.at for one in waiting if one.kind == "done"), now)
    is_gathering = first <= now < first + MERGE_WINDOW
    return [one for one in waiting if one.kind != "done" or not is_gathering]


def after_report(
    channel: ChannelQueue, report: DeliveryReport, now: datetime, *, again: bool
) -> ChannelQueue:
    """A channel's queue after an attempt to send; `again`: it was marked so. Pure."""
    if report.outcome == "sent":
        left = [one for one in channel.waiting if one.id not in channel.in_flight]
        return ChannelQueue(waiting=left, sent_at=now)
    since, failures = min(channel.failing_since or now, now), channel.failures + 1
    if now - since >= GIVE_UP_AFTER:
        error = f"{len(channel.waiting)} notifications were given up: {report.error}"
        return ChannelQueue(failures=failures, error=error)
    may_have_arrived = again or report.outcome == "unknown"
    return channel.but(
        in_flight=channel.in_flight if may_have_arrived else [],
        failures=failures,
        failing_since=since,
        retry_at=now + min(BACK_OFF * 2 ** min(failures - 1, 10), LONGEST_BACK_OFF),
        error=report.error,
    )


def message_of(notices: Sequence[Notice], *, again: bool = False) -> tuple[str, str]:
    """Title and text of a message; `again`: it may have been sent before. Pure."""
    first, count = notices[0], len(notices)
    title, text, language = first.title, first.text, first.language
    if count > 1:
        title = phrases.say("notice_merged", language, count=count)
        lines = [notice.title for notice in notices[:MAX_MERGED]]
        if count > MAX_MERGED:
            lines.append(phrases.say("notice_more", language, count=count - MAX_MERGED))
        text = "\n".join(lines)
    if again:
        title = phrases.say("notice_again", language, title=title)
    return title, text or title


def _notice(
    kind: NoticeKind, id_: str, at: datetime, language: Language, name: str, text: str
) -> Notice:
    name, text = first_line(plain(name), 80), first_lines(text)
    title = phrases.say(f"notice_{kind}", language, title=name, count=BREAKS_AT)
    return Notice(id=id_, kind=kind, at=at, title=title, text=text, language=language)


def first_lines(text: str) -> str:
    lines = [line.rstrip() for line in plain(text).splitlines() if line.strip()]
    start = "\n".join(lines[:MAX_LINES])
    is_cut = len(lines) > MAX_LINES or len(start) > MAX_CHARACTERS
    return start[:MAX_CHARACTERS] + "…" * is_cut


class Notifier:
    def __init__(self, store: Store, executor: Executor, send: Send) -> None:
        self._store, self._files, self._executor, self._send = store, store.files, executor, send
        saved = self._files.load(paths.NOTIFICATION_STATE, NotificationState)
        self._state = saved or NotificationState()
        self._sending = dict[str, tuple[bool, Future[DeliveryReport]]]()
        """By channel, with whether it was marked as sent again."""

    def step(self, now: datetime) -> bool:
        for name, (again, sent) in list(self._sending.items()):
            if sent.done():
                del self._sending[name]
                self._settle(name, again, sent.result(), now)
        self.follow_channels()
        if not self._state.channels:
            return False
        has_more = self._collect(now)
        settings = self._store.settings
        is_quiet = settings.notify.is_quiet(now.astimezone(settings.zone).time())
        for name, channel in self._state.channels.items():
            batch = next_batch(channel, now, is_quiet=is_quiet)
            if batch and name not in self._sending:
                self._start(name, batch)
        return has_more

    def follow_channels(self) -> None:
        """Take up the channels that are set up now; the first begins without history."""
        names = notifications.names(self._files)
        if names == list(self._state.channels):
            return
        state, question = self._state, inbox.pending_question(self._files)
        if not state.channels:
            file, offset = ledger.end(self._files)
            state = NotificationState(ledger_file=file, ledger_offset=offset)
            state = state.but(question_id=question and question.question_id)
        channels = {name: state.channels.get(name) or ChannelQueue() for name in names}
        self._save(state.but(channels=channels))

    def _collect(self, now: datetime) -> bool:
        """Queue the notices of new events for every channel; returns whether there are more."""
        state = self._state
        lines = ledger.lines(self._files, state.ledger_file, state.ledger_offset)
        found, question = list(islice(lines, MOST_AT_ONCE)), inbox.pending_question(self._files)
        changes, notices = dict[str, object](), list[Notice]()
        if found:
            changes["ledger_file"], changes["ledger_offset"], _ = found[-1]
            ended = (line for _, _, line in found if line.get("event") == "ended")
            notices += [self._read(line, now) for line in ended if "notice" in line]
        if question is not None and question.question_id != state.question_id:
            changes["question_id"] = question.question_id
            text = "\n- ".join([question.question, *question.options])
            language = phrases.language(text)
            notices.append(_notice("question", question.question_id, now, language, "", text))
        if notices:
            for name, channel in state.channels.items():
                waiting = [*channel.waiting, *notices][-MOST_WAITING:]
                state = state.with_channel(name, channel.but(waiting=waiting))
            self._save(state.but(**changes))
        elif changes:  # after a crash the lines are only read again
            self._state = state.but(**changes)
        return len(found) == MOST_AT_ONCE

    def _read(self, line: dict[str, Json], now: datetime) -> Notice:
        task_id, kind = str(line["id"]), cast("NoticeKind", line["notice"])
        view = queue.show(self._files, task_id)
        if view is None or view.outcome is None:  # its files are gone
            return _notice(kind, task_id, now, "en", str(line.get("title") or task_id), "")
        result = result_notice(view.task, view.outcome)
        language, late = phrases.language(result.prompt, view.task.locale or "en"), result.reminder
        text = result.error or result.text
        if late is not None and late.planned_at is not None:
            text = phrases.reminder(text, late, language, self._store.settings.zone)
        return _notice(kind, task_id, now, language, result.title, text)

    def _start(self, name: str, batch: list[Notice]) -> None:
        channel = self._state.channels[name]
        again = bool(channel.sending)
        ids = [notice.id for notice in batch]
        self._save(self._state.with_channel(name, channel.but(in_flight=ids)))
        message = message_of(batch, again=again)
        self._sending[name] = again, self._executor.submit(self._send, self._files, name, *message)

    def _settle(self, name: str, again: bool, report: DeliveryReport, now: datetime) -> None:
        if (before := self._state.channels.get(name)) is None:
            return
        after = after_report(before, report, now, again=again)
        state = self._state.with_channel(name, after)
        facts = {"channel": name, "ids": ", ".join(before.in_flight), "again": again}
        is_shown = report.outcome == "sent" or not before.failures or not after.waiting
        if is_shown and before.sending:  # of failures the first one, and that it is given up
            title, error = message_of(before.sending)[0], after.error
            sent = SentNotice(
                at=now, channel=name, title=title, again=again, error=error, outcome=report.outcome
            )
            state = state.but(sent=[*state.sent, sent][-MAX_SENT:])
        self._save(state)
        if report.outcome == "sent":
            self._store.log.write("audit", "notified", **facts)
        elif is_shown:
            self._store.log.write("error", "notify_failed", **facts, error=after.error)

    def _save(self, state: NotificationState) -> None:
        self._files.save(paths.NOTIFICATION_STATE, state)
        self._state = state
