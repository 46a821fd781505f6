"""When the Teller is woken, and the turns that code takes by itself.

Order: outcomes of attempts → answers and questions → plain messages → a new Teller turn.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from mimikit.conversation import inbox, turns
from mimikit.engines.base import EngineChoice
from mimikit.errors import StorageError
from mimikit.language import phrases
from mimikit.language.phrases import ToldResult
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id, new_id
from mimikit.protocol.models import (
    EngineStatus,
    InboxItem,
    Message,
    Question,
    RoutedAnswer,
    TurnAttempt,
    TurnRecord,
)
from mimikit.roles.run import RunContext
from mimikit.roles.teller import TurnJob, TurnOutcome, user_messages
from mimikit.supervisor import notification, recovery
from mimikit.supervisor.commit_applier import CommitApplier, question_of
from mimikit.supervisor.store import Store
from mimikit.tasks import queue


class TurnRunner(Protocol):
    """Where a Teller's turn is taken: a thread, or in place for tests."""

    def start(self, job: TurnJob) -> None:
        """Begin a turn; only when nothing is under way."""
        ...

    def outcomes(self) -> list[TurnOutcome]: ...


class TellerScheduler:
    """Watches the inbox and the open question."""

    def __init__(
        self,
        store: Store,
        applier: CommitApplier,
        context: RunContext,
        seat: TurnRunner,
        facts: Callable[[], dict[str, str]] = dict,
    ) -> None:
        """`facts` gives the status lines an input carries."""
        self._store, self._applier = store, applier
        self._context, self._seat, self._facts = context, seat, facts
        self._items: dict[str, InboxItem] = {}
        self._outcomes: list[TurnOutcome] = []
        self._under_way: TurnAttempt | None = None
        self._not_before: datetime | None = None
        self._waiting: EngineStatus | None = None
        self._locale = "en"

    @property
    def waiting(self) -> EngineStatus | None:
        """The engine that inputs wait for, and why; None when none does."""
        return self._waiting

    def step(self, now: datetime) -> bool:
        done = self._finish_turns()
        done = self._take_outcomes(now) or done
        items = self._look(now)
        done = self._route_answers(items, now) or done
        # After the answers: one that came in time goes before the default.
        done = self._tend_question(now) or done
        done = self._tell_plainly(items, now) or done
        return self._start_turn(now) or done

    def _finish_turns(self) -> bool:
        """Apply the turns whose application the disk cut short; there are none in good times.

        Until that is done nothing else is: their inputs must not get into another turn.
        """
        unapplied = turns.unapplied(self._store.files)
        for record in unapplied:
            self._applier.apply_turn(record)
        return bool(unapplied)

    # ---- inbox ---------------------------------------------------------------------------

    def _look(self, now: datetime) -> list[InboxItem]:
        """Everything unanswered, oldest first; new arrivals are told to the page."""
        files = self._store.files
        names = {name.removesuffix(".json") for name in files.names(paths.INBOX)}
        for gone in self._items.keys() - names:
            del self._items[gone]
        for fresh in sorted(names - self._items.keys()):
            item = files.load(paths.inbox(fresh), InboxItem)
            if item is not None and item.id == fresh and self._was_said(item):
                inbox.take_out(files, fresh)  # repeated by a client that had not heard of the first
            elif item is not None and item.id == fresh:
                self._items[fresh] = item
                self._locale = item.locale or self._locale
                if item.kind != "task_result":
                    self._store.feed.tell("inbox", id=fresh)
            elif item is not None:
                files.quarantine(
                    paths.inbox(fresh), f"id: expected {fresh!r} as in the name, got {item.id!r}"
                )
        return sorted(self._items.values(), key=lambda i: (i.created_at, i.id))

    def _was_said(self, item: InboxItem) -> bool:
        is_result = item.kind == "task_result"
        return not is_result and self._store.conversation.has(item.id, item.created_at.date())

    def _is_over(self, item: InboxItem) -> bool:
        """Whether a result's end is complete: repeating an incomplete one would enter it anew."""
        if item.task_id is None or item.seat is None:
            return True
        files = self._store.files
        if files.exists(paths.running(item.seat, item.task_id)):
            return False
        return item.seat == "worker" or not files.exists(paths.result("planner", item.task_id))

    # ---- the Teller ----------------------------------------------------------------------

    def _start_turn(self, now: datetime) -> bool:
        if self._under_way is not None or (self._not_before and now < self._not_before):
            return False
        frozen = self._frozen()
        if frozen is None:
            items = [i for i in self._items.values() if _is_tellers(i) and self._is_over(i)]
            if not items:
                self._waiting = None
                return False
            attempt = 1
        else:
            items, attempt = frozen
        items.sort(key=lambda i: (i.created_at, i.id))
        turn_id = turns.turn_id([item.id for item in items])
        if turns.is_committed(self._store.files, turn_id):
            self._take_out([item.id for item in items])
            return True
        if attempt > turns.MAX_ATTEMPTS:
            self._give_up(turn_id, items, "both attempts were cut short", now)
            return True
        return self._begin(turn_id, attempt, items, now)

    def _frozen(self) -> tuple[list[InboxItem], int] | None:
        """The inputs of a turn that began and was not committed, and its next attempt."""
        for turn in turns.open_turns(self._store.files):
            items = [self._items[id_] for id_ in turn.inputs if id_ in self._items]
            if items and len(items) == len(turn.inputs):
                return items, turn.attempts + 1
            turns.drop_marks(self._store.files, turn.id)
        return None

    def _begin(self, turn_id: str, attempt: int, items: list[InboxItem], now: datetime) -> bool:
        choice = self._context.engines.for_role("teller")
        if choice.waiting:
            self._wait(choice, choice.waiting, None, now)
            return False
        self._waiting = None
        results = tuple(self._told(item) for item in items if item.kind == "task_result")
        question = inbox.pending_question(self._store.files)
        ids = [item.id for item in items]
        self._under_way = turns.start(self._store.files, turn_id, attempt, ids, now)
        cancel = self._store.live.start(turn_id, "teller", items[-1].text[:80], now)
        self._store.feed.tell("turn", state="started", turnId=turn_id, inputs=ids)
        trace = next((i.trace_id for i in items if i.trace_id), None) or new_id("trace", now)
        self._seat.start(
            TurnJob(
                turn_id,
                attempt,
                tuple(items),
                results,
                question,
                self._facts(),
                now,
                choice,
                cancel,
                trace,
            )
        )
        return True

    def _take_outcomes(self, now: datetime) -> bool:
        self._outcomes += self._seat.outcomes()
        took = bool(self._outcomes)
        while self._outcomes:
            outcome = self._outcomes.pop(0)
            self._store.live.end(outcome.job.id)
            mark = self._under_way
            if mark is None or mark.turn_id != outcome.job.id:
                continue  # fenced off: not the attempt that is under way
            self._under_way = None
            self._store.feed.tell("turn", state="ended", turnId=outcome.job.id)
            try:
                self._end_attempt(outcome, mark, now)
            except StorageError:
                # What the engine said is not thrown away: it is written once the disk is back.
                self._outcomes.insert(0, outcome)
                self._under_way = mark
                raise
        return took

    def _end_attempt(self, outcome: TurnOutcome, mark: TurnAttempt, now: datetime) -> None:
        store, job = self._store, outcome.job
        if outcome.record is not None:
            self._apply(outcome.record.but(closes_question=self._own_question(job.items)))
        elif outcome.waits:
            turns.forget_attempt(store.files, mark)
            self._wait(job.choice, outcome.error, outcome.retry_at, now)
        elif outcome.failure_reason == "killed":
            turns.forget_attempt(store.files, mark)  # a clean stop: the inputs wait for the start
        elif outcome.stopped:
            self._stop(job.id, list(job.items), now)
        elif job.attempt >= turns.MAX_ATTEMPTS:
            self._give_up(job.id, list(job.items), outcome.error, now)
        else:
            store.log.write("error", "turn_failed", turnId=job.id, error=outcome.error)

    def _wait(
        self, choice: EngineChoice, reason: str, until: datetime | None, now: datetime
    ) -> None:
        """Inputs wait; nothing was tried, nothing is lost."""
        since = now
        if self._waiting is None or reason != self._waiting.reason:
            self._store.log.write("audit", "teller_waits", reason=reason)
            self._store.feed.tell("status")
        else:
            since = self._waiting.since or now
        self._waiting = EngineStatus(
            engine=choice.engine.name, state="waiting", reason=reason, since=since, until=until
        )
        delay = timedelta(seconds=self._context.settings.limits.engine_retry_s)
        self._not_before = until if until and until > now else now + delay

    def _give_up(self, turn_id: str, items: list[InboxItem], error: str, now: datetime) -> None:
        """Commit a turn that says it failed: nothing stays unanswered, nothing loops."""
        text = phrases.say("turn_failed", self._language(items), error=error)
        self._commit_code(turn_id, items, text, now, failed=True)

    def _stop(self, turn_id: str, items: list[InboxItem], now: datetime) -> None:
        text = phrases.say("turn_stopped", self._language(items))
        self._commit_code(turn_id, items, text, now)

    def _commit_code(
        self,
        turn_id: str,
        items: list[InboxItem],
        text: str,
        now: datetime,
        *,
        failed: bool = False,
    ) -> None:
        base = _code_record(turn_id, now)
        said = user_messages(tuple(items), turn_id)
        told = [item.task_id for item in items if item.task_id]
        message = notification.system_message(base, text, task_ids=told).but(
            in_reply_to=[m.id for m in said], failed=failed
        )
        self._apply(base.but(consumed=[i.id for i in items], messages=[*said, message]))

    # ---- questions -----------------------------------------------------------------------

    def _tend_question(self, now: datetime) -> bool:
        """Open the next question, or take the default of one whose time is over."""
        store = self._store
        question = inbox.pending_question(store.files)
        if question is None:
            if self._under_way is not None:
                return False  # the Teller may be about to ask: one question at a time
            for plan in recovery.waiting_plans(store)[:1]:
                inbox.ask(store.files, question_of(plan, now))
                store.feed.tell("question")
                return True
            return False
        if not inbox.is_expired(question, now):
            return False
        turn_id = derived_id("turn", "expired", question.question_id)
        base = _code_record(turn_id, now)
        if question.default is None:
            text = phrases.say("question_expired", self._locale_language())
            record = base.but(
                closes_question=question.question_id, settles_plan=question.planner_task_id
            )
        else:
            text = phrases.say(
                "question_default", self._locale_language(), default=question.default
            )
            answered = RoutedAnswer(question_id=question.question_id, text=question.default)
            record = base.but(answers=[answered])
        said = [_asked(question, base), notification.system_message(base, text, task_ids=[])]
        self._apply(record.but(messages=said))
        return True

    def _route_answers(self, items: list[InboxItem], now: datetime) -> bool:
        """Answers to a plan's question go by code into a new Planner task."""
        question = inbox.pending_question(self._store.files)
        if question is None or question.planner_task_id is None:
            return False
        for item in items:
            if item.kind == "answer" and item.question_id == question.question_id:
                base = _code_record(derived_id("turn", "answer", item.id), now)
                said = [_asked(question, base), *user_messages((item,), base.id)]
                answered = RoutedAnswer(question_id=question.question_id, text=item.text)
                self._apply(base.but(consumed=[item.id], messages=said, answers=[answered]))
                return True
        return False

    def _own_question(self, items: tuple[InboxItem, ...]) -> str | None:
        """The Teller's own question, when one of these inputs answers it."""
        question = inbox.pending_question(self._store.files)
        if question is None or question.planner_task_id is not None:
            return None
        answered = any(i.question_id == question.question_id for i in items)
        return question.question_id if answered else None

    # ---- plain messages ------------------------------------------------------------------

    def _tell_plainly(self, items: list[InboxItem], now: datetime) -> bool:
        """Tell waiting results that need no mind, together."""
        batch = [i for i in items if i.kind == "task_result" and i.notify != "teller"]
        batch = [i for i in batch if self._is_over(i)][: notification.MAX_TOLD_AT_ONCE]
        if not batch:
            return False
        ids = [item.id for item in batch]
        base = _code_record(derived_id("turn", "code", *sorted(ids)), now)
        told = [self._told(item) for item in batch]
        self._apply(notification.message_turn(batch, told, self._locale_language(), base))
        return True

    def _told(self, item: InboxItem) -> ToldResult:
        view = queue.show(self._store.files, item.task_id) if item.task_id else None
        outcome = view and (view.result or view.plan)
        if view is None or outcome is None:
            return ToldResult(
                title=item.text or (item.task_id or item.id),
                prompt="",
                seat=item.seat or "worker",
                status="failed",
                text="",
                error="its record is gone",
                failure_reason=None,
                task_id=item.task_id or item.id,
            )
        return notification.told_result(view.task, outcome)

    def _apply(self, record: TurnRecord) -> None:
        files = self._store.files
        if not turns.commit(files, record) and turns.find(files, record.id) is not None:
            self._take_out(record.consumed)  # told before: only its entries are left
            return
        self._applier.apply_turn(record)
        for item_id in record.consumed:
            self._items.pop(item_id, None)

    def _take_out(self, item_ids: list[str]) -> None:
        for item_id in item_ids:
            inbox.take_out(self._store.files, item_id)
            self._items.pop(item_id, None)

    def _language(self, items: list[InboxItem]) -> str:
        return phrases.language(" ".join(i.text for i in items), self._locale)

    def _locale_language(self) -> str:
        """The language the user last wrote in."""
        said = [m.text for m in self._store.conversation.messages if m.role == "user"]
        return phrases.language(said[-1] if said else "", self._locale)


def _is_tellers(item: InboxItem) -> bool:
    return item.kind != "task_result" or item.notify == "teller"


def _code_record(turn_id: str, now: datetime) -> TurnRecord:
    return TurnRecord(id=turn_id, author="code", started_at=now, completed_at=now)


def _asked(question: Question, record: TurnRecord) -> Message:
    """The question as it stands in the transcript once it is answered."""
    return Message(
        id=derived_id("msg", record.id, "question"),
        role="agent",
        text=question.question,
        created_at=question.created_at,
        turn_id=record.id,
    )
