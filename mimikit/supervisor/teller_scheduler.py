"""When the Teller is woken, and the turns that code takes by itself.

Order: outcomes of attempts → answers and questions → a new Teller turn → plain messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Protocol

from mimikit import permission
from mimikit.clock import LEAP
from mimikit.conversation import inbox, turns
from mimikit.engines.base import EngineChoice, TurnInput
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
    Task,
    TurnAttempt,
    TurnRecord,
)
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult
from mimikit.roles.run import RunContext
from mimikit.roles.teller import TurnJob, TurnOutcome, user_messages
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.tasks.retry import WAITING

MAX_TOLD_AT_ONCE = 20
MOST_PLAIN_HELD = 1000
"""Results that need no mind and are known at a time, however many are in the inbox."""
_RESULTS = paths.result_inbox_id("")
MOST_INPUTS, MOST_CHARACTERS = 100, 1_000_000
"""So much one turn takes in, the oldest first: its record must be one that can be read again."""


class TurnRunner(Protocol):
    """Where a Teller's turn is taken: a thread, or in place for tests."""

    def start(self, job: TurnJob) -> None:
        """Begin a turn; only when nothing is under way."""

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
        self._retry_s = 0.0
        """The same by the steady clock: whichever comes first, as the other may be set."""
        self._expiry = "", 0.0
        """The open question, and when its time is over by the steady clock."""
        self.lived_until: datetime | None = None
        """At the start: until when the consumer before was there."""
        self.waiting: EngineStatus | None = None
        """The engine that inputs wait for, and why; None when none does."""
        self._locale = "en"

    def step(self, now: datetime) -> bool:
        # Turns whose application the disk cut short come first: until they are applied, their
        # inputs must not get into another turn. There are none in good times.
        done = self._applier.apply_turns()
        done = self._take_outcomes(now) or done
        self._look(now)
        done = self._route_answers(now) or done
        # After the answers: one that came in time goes before the default.
        done = self._tend_question(now) or done
        # What the user said does not wait for what code tells.
        done = self._start_turn(now) or done
        return self._tell_plainly(now) or done

    def _look(self, now: datetime) -> None:
        """Know what is unanswered; new arrivals are told to the page.

        Of very many results only some are held: there are more when these are told.
        """
        files = self._store.files
        names = {name.removesuffix(".json") for name in files.names(paths.INBOX)}
        for gone in self._items.keys() - names:
            del self._items[gone]
        plain = sum(not _is_tellers(item) for item in self._items.values())
        fresh_ones = sorted(names - self._items.keys(), key=lambda n: (n.startswith(_RESULTS), n))
        for fresh in fresh_ones:
            if plain >= MOST_PLAIN_HELD and fresh.startswith(_RESULTS):
                break
            item = inbox.load(files, fresh, now)
            if item is None:
                continue
            is_result = item.kind == "task_result"
            if not is_result and self._store.conversation.has(fresh, item.created_at.date()):
                inbox.take_out(files, fresh)  # repeated by a client that had not heard of the first
            else:
                self._items[fresh] = item
                plain += not _is_tellers(item)
                self._locale = item.locale or self._locale
                if not is_result:
                    self._store.feed.tell("inbox", id=fresh)

    def _is_over(self, item: InboxItem) -> bool:
        """Whether a result's end is complete: repeating an incomplete one would enter it anew."""
        if item.task_id is None or item.seat is None:
            return True
        left = [paths.running(item.seat, item.task_id)]
        left += [paths.result("planner", item.task_id)] if item.seat == "planner" else []
        return not any(map(self._store.files.exists, left))

    # ---- the Teller ----------------------------------------------------------------------

    def _start_turn(self, now: datetime) -> bool:
        is_early = self._not_before is not None and now < self._not_before
        if self._under_way is not None or self._context.stopping.is_set():
            return False
        if self._context.shortage.reason():
            return False  # health says so; a turn that can not run would only be tried in vain
        if is_early and self._store.clock.monotonic() < self._retry_s:
            return False
        items, attempt, excused = self._next_inputs()
        if not items:
            self.waiting = None
            return False
        ids = [item.id for item in items]
        turn_id = turns.turn_id(ids)
        if turns.is_committed(self._store.files, turn_id):
            self._take_out(ids)
            return True
        if attempt - excused > turns.MAX_ATTEMPTS:
            self._end_by_code(turn_id, items, now, error="both attempts were cut short")
            return True
        choice = self._context.engines.for_role("teller")
        if choice.waiting:
            self._wait(choice, choice.waiting, None, now)
            return False
        self.waiting = None
        inputs = tuple(item for item in items if item.kind != "task_result")
        newest = inputs[-1] if inputs else None
        turn_input = TurnInput(
            now=now,
            timezone=(newest and newest.timezone) or self._context.settings.zone.key,
            locale=(newest and newest.locale) or "en",
            inputs=inputs,
            results=tuple(self._told(item) for item in items if item.kind == "task_result"),
            question=inbox.pending_question(self._store.files),
            facts=self._facts(),
        )
        self._under_way = turns.start(self._store.files, turn_id, attempt, ids, now)
        cancel = self._store.live.start(turn_id, "teller", items[-1].text[:80], now)
        self._store.feed.tell("turn", state="started", turnId=turn_id, inputs=ids)
        # Without a model an order follows from nothing but itself, whatever is told beside it.
        of = inputs if inputs and permission.is_by_user(choice.engine.name) else items
        trace = next((i.trace_id for i in of if i.trace_id), None) or new_id("trace", now)
        is_last = attempt - excused >= turns.MAX_ATTEMPTS
        job = TurnJob(turn_id, attempt, tuple(items), turn_input, choice, cancel, trace, is_last)
        self._seat.start(job)
        return True

    def _next_inputs(self) -> tuple[list[InboxItem], int, int]:
        """What a turn is to be about, oldest first: one that was cut short, or what is next.

        With the number of its attempt, and how many before it do not count.
        """
        for turn in turns.open_turns(self._store.files):
            items = [self._items[id_] for id_ in turn.inputs if id_ in self._items]
            if items and len(items) == len(turn.inputs):
                return sorted(items, key=_age), turn.attempts + 1, turn.excused
            turns.drop_marks(self._store.files, turn.id)
        found: list[InboxItem] = []
        left, most = MOST_CHARACTERS, self._most_inputs()
        for item in sorted(self._items.values(), key=_age):
            if _is_tellers(item) and self._is_over(item):
                left -= len(item.text) + len(item.quote or "")
                if found and (left < 0 or len(found) == most):
                    break
                found.append(item)
        return found, 1, 0

    def _most_inputs(self) -> int:
        """Of how many inputs a turn is to be.

        Without a model each may be an order, of a plan and its task, and all share the turn's trace
        and what that is allowed.
        """
        if not permission.is_by_user(self._context.engines.for_role("teller").engine.name):
            return MOST_INPUTS
        return min(MOST_INPUTS, max(1, self._context.settings.limits.tasks_per_trace // 2))

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
        elif outcome.failure_reason in WAITING:
            turns.forget_attempt(store.files, mark)
            self._wait(job.choice, outcome.error, outcome.retry_at, now)
        elif outcome.failure_reason == "killed":
            turns.excuse_attempt(store.files, mark)  # a clean stop: the inputs wait for the start
        elif outcome.failure_reason == "canceled":
            self._end_by_code(job.id, job.items, now)
        elif job.is_last:
            self._end_by_code(job.id, job.items, now, error=outcome.error)
        else:
            store.log.write("error", "turn_failed", turnId=job.id, error=outcome.error)

    def _wait(
        self, choice: EngineChoice, reason: str, until: datetime | None, now: datetime
    ) -> None:
        """Inputs wait; nothing was tried, nothing is lost."""
        since = now
        if self.waiting is None or reason != self.waiting.reason:
            self._store.log.write("audit", "teller_waits", reason=reason)
            self._store.feed.tell("status")
        else:
            since = self.waiting.since or now
        self.waiting = EngineStatus(
            engine=choice.engine.name, state="waiting", reason=reason, since=since, until=until
        )
        delay = timedelta(seconds=self._context.settings.limits.engine_retry_s)
        self._not_before = until if until and until > now else now + delay
        wait_s = (self._not_before - now).total_seconds()
        self._retry_s = self._store.clock.monotonic() + wait_s

    def _end_by_code(
        self, turn_id: str, items: Sequence[InboxItem], now: datetime, *, error: str | None = None
    ) -> None:
        """Commit a turn that says it failed, or was stopped: nothing stays unanswered or loops."""
        language = phrases.language(" ".join(item.text for item in items), self._locale)
        failed = error is not None
        text = phrases.say("turn_failed" if failed else "turn_stopped", language, error=error)
        base = _code_record(turn_id, now)
        said = user_messages(tuple(items), turn_id)
        told = [item.task_id for item in items if item.task_id]
        message = system_message(base, text, task_ids=told).but(
            in_reply_to=[m.id for m in said], failed=failed
        )
        self._apply(base.but(consumed=[i.id for i in items], messages=[*said, message]))

    # ---- questions -----------------------------------------------------------------------

    def _ask_next(self, now: datetime) -> bool:
        """Open the question of the plan that has waited longest for its answer."""
        plans = self._store.files.load_all("planner/results", PlanResult)
        asking = [plan for plan in plans if plan.status == "needs_input"]
        if not asking:
            return False
        plan = min(asking, key=lambda plan: plan.completed_at)
        question = Question(
            question_id=derived_id("q", plan.id),
            question=plan.question or "",
            options=plan.options or [],
            default=plan.default,
            timeout=plan.question_timeout,
            created_at=now,
            expires_at=now + timedelta(seconds=plan.question_timeout),
            planner_task_id=plan.id,
            trace_id=plan.trace_id,
        )
        inbox.ask(self._store.files, question)
        self._store.feed.tell("question")
        return True

    def _tend_question(self, now: datetime) -> bool:
        """Open the next question, or take the default of one whose time is over."""
        store = self._store
        question = inbox.pending_question(store.files)
        since, self.lived_until = self.lived_until or now, None
        if question is None:
            # The Teller may be about to ask: one question at a time.
            return self._under_way is None and self._ask_next(now)
        if self._time_left(question, since, now) > timedelta():
            return False
        id_, default = question.question_id, question.default
        base = _code_record(derived_id("turn", "expired", id_), now)
        if default is None:
            text = phrases.say("question_expired", self._last_language())
            record = base.but(closes_question=id_, settles_plan=question.planner_task_id)
        else:
            text = phrases.say("question_default", self._last_language(), default=default)
            record = base.but(answers=[RoutedAnswer(question_id=id_, text=default)])
        said = [_asked(question, base), system_message(base, text, task_ids=[])]
        self._apply(record.but(messages=said))
        return True

    def _time_left(self, question: Question, since: datetime, now: datetime) -> timedelta:
        """How long an answer is still waited for.

        Only time counts in which this consumer was there: neither a leap of the clock nor a night's
        sleep answers for the user. What page and terminal show is put right.
        """
        steady = self._store.clock.monotonic()
        if self._expiry[0] != question.question_id:
            left_s = (question.expires_at - max(since, question.created_at)).total_seconds()
            left_s = min(max(left_s, 0.0), question.timeout)
            self._expiry = question.question_id, steady + left_s
        left = timedelta(seconds=self._expiry[1] - steady)
        if left > timedelta() and abs(now + left - question.expires_at) >= LEAP:
            self._store.files.save(paths.PENDING_QUESTION, question.but(expires_at=now + left))
            self._store.feed.tell("question")
        return left

    def _route_answers(self, now: datetime) -> bool:
        """Answers to a plan's question go by code into a new Planner task."""
        question = inbox.pending_question(self._store.files)
        if question is None or question.planner_task_id is None:
            return False
        answers = (item for item in self._items.values() if item.kind == "answer")
        for item in sorted(answers, key=_age):
            if item.question_id == question.question_id:
                base = _code_record(derived_id("turn", "answer", item.id), now)
                said = [_asked(question, base), *user_messages((item,), base.id)]
                answered = RoutedAnswer(
                    question_id=question.question_id, text=item.text, remote=item.remote
                )
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

    def _tell_plainly(self, now: datetime) -> bool:
        """Tell waiting results that need no mind, together."""
        plain = sorted((i for i in self._items.values() if not _is_tellers(i)), key=_age)
        batch = list(islice(filter(self._is_over, plain), MAX_TOLD_AT_ONCE))
        if not batch:
            return False
        base = _code_record(derived_id("turn", "code", *sorted(item.id for item in batch)), now)
        told = [self._told(item) for item in batch]
        self._apply(message_turn(batch, told, self._last_language(), base))
        return True

    def _told(self, item: InboxItem) -> ToldResult:
        view = queue.show(self._store.files, item.task_id) if item.task_id else None
        if view is not None and view.outcome is not None:
            return told_result(view.task, view.outcome)
        task_id = item.task_id or item.id
        return ToldResult(
            title=item.text or task_id,
            prompt="",
            seat=item.seat or "worker",
            status="failed",
            text="",
            error="its record is gone",
            failure_reason=None,
            task_id=task_id,
        )

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

    def _last_language(self) -> str:
        """The language the user last wrote in."""
        said = [m.text for m in self._store.conversation.messages if m.role == "user"]
        return phrases.language(said[-1] if said else "", self._locale)


def _age(item: InboxItem) -> tuple[datetime, str]:
    """By which the oldest comes first."""
    return item.created_at, item.id


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


def told_result(task: Task, outcome: TaskResult | PlanResult) -> ToldResult:
    """A result with what was asked, for an input or a message."""
    is_plan = isinstance(outcome, PlanResult)
    return ToldResult(
        title=task.title or task.prompt[:60],
        prompt=task.prompt,
        seat="planner" if is_plan else "worker",
        status=outcome.status,
        text=(outcome.summary or "") if is_plan else outcome.text,
        error=outcome.error,
        failure_reason=outcome.failure_reason,
        task_id=task.id,
    )


def message_turn(
    items: list[InboxItem], told: list[ToldResult], language: str, record_base: TurnRecord
) -> TurnRecord:
    """The turn by which code tells results: one message, no mind, consuming their entries."""
    text = phrases.results(told, language)
    return record_base.but(
        consumed=[item.id for item in items],
        messages=[system_message(record_base, text, task_ids=[r.task_id for r in told])],
    )


def system_message(record: TurnRecord, text: str, *, task_ids: list[str]) -> Message:
    """A message of the system's own."""
    return Message(
        id=derived_id("msg", record.id, "system"),
        role="system",
        text=text,
        created_at=record.completed_at,
        turn_id=record.id,
        task_ids=task_ids,
    )
