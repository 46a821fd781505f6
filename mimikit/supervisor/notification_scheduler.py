"""Has what is to be told outside of the page sent, channel by channel, and says what does not go.

Order: what has ended → the open question → for each channel what was cut short, then what is due.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from mimikit import config_file
from mimikit.conversation import inbox, turns
from mimikit.language import phrases
from mimikit.language.phrases import Language
from mimikit.notifications import rules
from mimikit.notifications.courier import NotificationCourier, ProcessCourier, SendReport
from mimikit.notifications.events import event_of_question
from mimikit.notifications.rules import ChannelHistory
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import time_text
from mimikit.protocol.notifications import MOST_ATTEMPTS, NotificationSend
from mimikit.supervisor.code_turns import code_record, system_message
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.store import Store

REST_S, MOST_REST_S = 1.0, 300.0
"""So long after one could not be begun the next try is; twice as long each time, at most that."""


class NotificationScheduler:
    """Sends what the store's notifications hold; the supervisor's thread alone."""

    def __init__(
        self,
        store: Store,
        applier: CommitApplier,
        language: Callable[[], Language],
        courier: NotificationCourier | None = None,
    ) -> None:
        """`language` gives the one that the user writes in; without a courier processes send."""
        self._store, self._applier, self._language = store, applier, language
        self._courier = courier or ProcessCourier(store.files, store.events.bell.ring)
        self._ledger = store.notifications
        self._under_way: dict[str, NotificationSend] = {}
        """By channel: one at a time."""
        self._again: dict[str, NotificationSend] = {}
        """By channel: what was cut short, and goes before anything else."""
        self._rests: dict[str, float] = {}
        """By channel: until when by the steady clock none is begun, as the last could not be."""
        self._unbegun: dict[str, int] = {}
        """By channel: how many in a row could not be begun."""
        self._asked: str | None = None
        """The question whose event is there."""
        self._reports: list[SendReport] = []
        self.due_at: datetime | None = None
        """When something that waits is next to be looked at."""
        self._due_s = 0.0
        """The same by the steady clock: whichever comes first, as the other may be set."""
        self._looked_at: tuple[object, ...] = ()
        """What was there when everything was looked at last."""
        self._is_closed = False

    def recover(self, now: datetime) -> None:
        """Know what waits, and what was cut short. Crash: it is found again."""
        for send in self._ledger.load(now):
            self._doubt(send, now, "the consumer ended while it was sent")

    def close(self, timeout_s: float) -> None:
        """Begin to send no more, and wait so long for what is under way."""
        self._is_closed = True
        self._courier.close(timeout_s)

    def step(self, now: datetime) -> bool:
        done, ledger, steady = self._take_reports(now), self._ledger, self._store.clock.monotonic()
        if ledger.settings.channels:
            self._note_question()
        is_due = self.due_at is not None and (now >= self.due_at or steady >= self._due_s)
        there = (ledger.changes, ledger.settings, self._asked, *self._rests.values())
        if self._is_closed or (there == self._looked_at and not is_due):
            return done
        # Where the disk refuses something, all of it is looked at again.
        self.due_at, self._looked_at = None, ()
        self._drop_answered()
        ledger.drop_unreachable()
        for channel in {**dict.fromkeys(ledger.settings.channels), **dict.fromkeys(self._again)}:
            if channel not in self._under_way:
                done = self._serve(channel, now) or done
        self._looked_at = there
        if self.due_at is not None:
            self._due_s = steady + (self.due_at - now).total_seconds()
        return done

    # ---- what there is to tell

    def _note_question(self) -> None:
        """Have the open question told. Crash: it is open still, and its event's id follows."""
        question = inbox.pending_question(self._store.files)
        asked = question.question_id if question else None
        if question is not None and asked != self._asked:
            self._ledger.add(event_of_question(question, self._ledger.settings))
        self._asked = asked

    def _drop_answered(self) -> None:
        """A question that is not open any more need not be told where it was not yet."""
        busy = {id_ for send in self._under_way.values() for id_ in send.events}
        for event in list(self._ledger.waiting.values()):
            is_over = event.question_id is not None and event.question_id != self._asked
            if is_over and event.id not in busy:
                self._ledger.drop(event.id)

    # ---- sending

    def _serve(self, channel: str, now: datetime) -> bool:
        """Begin what a channel is to send now; gives whether anything was done."""
        ledger = self._ledger
        if (rest_s := self._rests.get(channel, 0.0) - self._store.clock.monotonic()) > 0:
            at = now + timedelta(seconds=rest_s)
            self.due_at = min(self.due_at or at, at)
            return False
        history, zone = ledger.history(channel), self._store.settings.zone
        free_at = rules.free_from(history, ledger.settings, now, is_unbound=True)
        if free_at > now and (channel in self._again or ledger.waiting):
            self.due_at = min(self.due_at or free_at, free_at)  # before that, not even a look
            return False
        if channel in self._again:
            return self._send_again(channel, now)
        waiting = ledger.waiting_for(channel)
        decision = rules.decide(waiting, history, ledger.settings, now, zone)
        if decision.given_up:
            send = ledger.new_send(channel, decision.given_up, now)
            ledger.settle(send, "given_up", now, history.error)
            facts = {"channel": channel, "events": len(send.events), "reason": history.error}
            self._store.log.write("audit", "notifications_given_up", **facts)
        if decision.events:
            self._post(ledger.new_send(channel, decision.events, now), now)
        elif decision.due_at is not None:
            self.due_at = min(self.due_at or decision.due_at, decision.due_at)
        return bool(decision.given_up)

    def _send_again(self, channel: str, now: datetime) -> bool:
        """Send what was cut short once more; of a channel that is gone nobody knows."""
        send, ledger = self._again[channel], self._ledger
        if channel not in ledger.settings.channels:
            ledger.settle(send, "unknown", now)
            del self._again[channel]
            return True
        self._post(send.but(attempt=send.attempt + 1), now)
        del self._again[channel]
        return False

    def _post(self, send: NotificationSend, now: datetime) -> None:
        channel = self._ledger.settings.channels[send.channel]
        url = config_file.secret_of(self._store.files, channel.url_file)
        self._under_way[send.channel] = send
        if url:
            self._courier.post(send, url)
        else:
            missing = "its address can not be read; `mimikit notify add` sets it anew"
            self._reports.append(SendReport(send, missing))
            self._store.events.bell.ring()

    def _take_reports(self, now: datetime) -> bool:
        """Write down what has ended; what the disk refuses is written later."""
        self._reports += self._courier.reports()
        took = bool(self._reports)
        while self._reports:
            channel = self._reports[0].send.channel
            before = self._ledger.history(channel)
            self._end(self._reports[0], now)
            del self._reports[0]
            self._tell_state(channel, before, now)
        return took

    def _end(self, report: SendReport, now: datetime) -> None:
        """Crash: until its line is written it is a send that was cut short."""
        send, error, channel = report.send, report.error, report.send.channel
        if not report.is_marked:
            if send.doubtful and self._ledger.is_marked(send):
                self._again[channel] = send.but(attempt=send.attempt - 1)
            self._rest(channel, error)
        elif not report.is_known:
            self._ledger.note_try(channel, now, error)
            self._doubt(send, now, error or "")
        else:
            self._ledger.settle(send, "failed" if error else "sent", now, error)
            facts = {"channel": channel, "events": send.events, "doubtful": send.doubtful or None}
            self._store.log.write("task", "notified", **facts, error=error)
        if report.is_marked:
            self._unbegun.pop(channel, None)
        self._under_way.pop(channel, None)
        self._store.feed.tell("status")

    def _rest(self, channel: str, reason: str | None) -> None:
        """It is this machine that lacks something; of the channel nothing is known."""
        before = self._unbegun.get(channel, 0)
        rest_s = min(REST_S * 2 ** min(before, 10), MOST_REST_S)
        self._rests[channel] = self._store.clock.monotonic() + rest_s
        self._unbegun[channel] = times = before + 1
        if times & before == 0:  # 1, 2, 4, 8 …: the log is to last for months
            facts = {"channel": channel, "reason": reason, "times": times}
            self._store.log.write("audit", "notification_not_begun", **facts)

    def _doubt(self, send: NotificationSend, now: datetime, error: str) -> None:
        """It may have arrived: it is sent again, but not for ever."""
        facts = {"channel": send.channel, "events": send.events, "reason": error}
        if send.attempt >= MOST_ATTEMPTS:
            self._ledger.settle(send, "unknown", now, error)
            self._store.log.write("audit", "notification_unknown", **facts)
        else:
            self._again[send.channel] = send
            self._store.log.write("audit", "notification_in_doubt", **facts)

    # ---- a channel that fails

    def _tell_state(self, channel: str, before: ChannelHistory, now: datetime) -> None:
        """Say on the page that a channel fails, once until it works again; then that."""
        history = self._ledger.history(channel)
        if not history.failures and before.failures >= rules.TOLD_FAILURES and before.failing_since:
            text = phrases.say("note_channel_back", self._language(), channel=channel)
            self._say(("notify back", channel, time_text(before.failing_since)), text, now)
        if history.failures < rules.TOLD_FAILURES or history.failing_since is None:
            return
        error = history.error or "?"
        text = phrases.say("note_channel_down", self._language(), channel=channel, error=error)
        since = time_text(history.failing_since)
        if self._say(("notify down", channel, since), text, now):
            self._store.log.write("error", "channel_fails", channel=channel, reason=error)

    def _say(self, parts: tuple[str, ...], text: str, now: datetime) -> bool:
        """Say something on the page, once; whether it was new."""
        files, turn_id = self._store.files, derived_id("turn", *parts)
        if turns.is_committed(files, turn_id):
            return False
        base = code_record(turn_id, now)
        record = base.but(messages=[system_message(base, text, task_ids=[])])
        if turns.commit(files, record):
            self._applier.apply_turn(record)
        return True
