"""When the Teller is woken, and what becomes of its attempts.

Order: outcomes of attempts → answers and questions → a new Teller turn → what code tells itself.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Protocol

from mimikit import permission
from mimikit.conversation import inbox, turns
from mimikit.conversation.inbox import InboxIndex
from mimikit.engines.base import TurnInput
from mimikit.engines.registry import LOCAL, EngineChoice, want_of
from mimikit.errors import BadRecord, StorageError
from mimikit.language import phrases
from mimikit.language.phrases import ToldResult, Words
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id, new_id
from mimikit.protocol.models import EngineStatus, InboxItem, TurnAttempt, TurnRecord
from mimikit.roles.run import RunContext
from mimikit.roles.teller import TurnJob, TurnOutcome, user_messages
from mimikit.roles.turn_context import written_in
from mimikit.supervisor.budget_watch import BudgetWatch
from mimikit.supervisor.code_turns import code_record, message_turn, system_message, told_result
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.engine_watch import EngineWatch
from mimikit.supervisor.question_scheduler import QuestionScheduler
from mimikit.supervisor.run_end import GATHERED
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.tasks.retry import WAITING

MAX_TOLD_AT_ONCE = 20
MOST_INPUTS, MOST_CHARACTERS = 100, 1_000_000
"""So much one turn takes in, the oldest first: its record must be one that can be read again."""


class TurnRunner(Protocol):
    """Where a Teller's turn is taken: a thread, or in place for tests."""

    def start(self, job: TurnJob) -> None:
        """Begin a turn; only when nothing is under way."""

    def outcomes(self) -> list[TurnOutcome]: ...

    def close(self, timeout_s: float) -> None:
        """Take no more turns; the one in progress is waited for."""


class TellerScheduler:
    """Has what is in the inbox answered."""

    def __init__(
        self,
        store: Store,
        applier: CommitApplier,
        context: RunContext,
        seat: TurnRunner,
        facts: Callable[[], tuple[Words, ...]] = tuple,
    ) -> None:
        """`facts` gives the status lines an input carries."""
        self._store, self._applier = store, applier
        self._context, self._seat, self._facts = context, seat, facts
        self.inputs = InboxIndex(store.files, store.conversation, store.feed)
        self.questions = QuestionScheduler(store, self.inputs, self._commit)
        self._outcomes: list[TurnOutcome] = []
        self._under_way: TurnAttempt | None = None
        self._not_before: datetime | None = None
        self._retry_s = 0.0
        """The same by the steady clock: whichever comes first, as the other may be set."""
        self._newest: str | None = None
        """What the user said last, when that was looked at."""
        self.waiting: EngineStatus | None = None
        """The engine that inputs wait for, and why; None when none does."""
        self.engines = EngineWatch(store, context.engines, self.inputs, self._commit)
        self.budget = BudgetWatch(store, context.usage, self.inputs, self._commit)
        self._waits_for_tokens = False

    def step(self, now: datetime) -> bool:
        # Turns whose application the disk cut short come first: until they are applied, their
        # inputs must not get into another turn. There are none in good times.
        done = self._applier.apply_turns()
        done = self._take_outcomes(now) or done
        done = self.inputs.refresh(now) or done
        done = self.questions.step(now, may_ask=self._under_way is None) or done
        for_tokens = self.waiting is not None and self._waits_for_tokens
        awaited = self.waiting.engine if self.waiting and not for_tokens else None
        if self.engines.step(now, awaited) or self._is_served_otherwise(awaited):
            self._not_before = None
        self.budget.step(now, teller_waits=for_tokens)
        if for_tokens and not self.budget.holds_teller:
            self._not_before = None
        # What the user said does not wait for what code tells.
        done = self._start_turn(now) or done
        return self._tell_plainly(now) or done

    def _start_turn(self, now: datetime) -> bool:
        is_early = self._not_before is not None and now < self._not_before
        if self._under_way is not None or self._context.stopping.is_set():
            return False
        if is_early and self._store.clock.monotonic() < self._retry_s:
            return self._answer_commands(now)
        items, attempt, excused = self._next_inputs(now)
        if not items:
            self.waiting = None
            return False
        engines = self._context.engines
        choice = engines.for_role("teller")
        if self._is_asked_anew() and choice.waiting:
            engines.try_now(choice.engine.name)
            choice = engines.for_role("teller")
        if choice.waiting:
            self._wait(choice, choice.waiting, now)
            self._waits_for_tokens = False
            return self._answer_commands(now)
        self.waiting = None
        items, choice = self._by_code_first(items, choice)
        return self._take(items, attempt, excused, choice, now)

    def _is_asked_anew(self) -> bool:
        """Whether the user has said something since the last look."""
        before, self._newest = self._newest, self.inputs.newest
        return before is not None and self._newest not in ("", before)

    def _by_code_first(
        self, items: list[InboxItem], choice: EngineChoice
    ) -> tuple[list[InboxItem], EngineChoice]:
        """Beside a small model code answers what it can: so many of the inputs go together."""
        code = self._context.engines.code
        if choice.engine.name != LOCAL or code is None:
            return items, choice
        tasks = functools.cache(lambda: self._context.reader.tasks("all"))
        question = inbox.pending_question(self._store.files)
        answers = [code.answers(item.text, tasks, question) for item in items]
        alike = list(takewhile(lambda number: answers[number] == answers[0], range(len(items))))
        by_code = EngineChoice(code, choice.seat, None, choice.skipped)
        return items[: len(alike)], by_code if answers[0] else choice

    def _answer_commands(self, now: datetime) -> bool:
        """While a mind is waited for, code answers what is exactly a command, and nothing else."""
        code = self._context.engines.code
        if code is None or self.waiting is None:
            return False
        tasks = functools.cache(lambda: self._context.reader.tasks("all"))
        items, has_more = self.inputs.pick(lambda text: code.understands(text, tasks), now)
        if not items:
            return has_more
        items = items[: self._most_inputs(code.name)]
        turn_id = turns.turn_id([item.id for item in items])
        cut_short = (turn for turn in turns.open_turns(self._store.files) if turn.id == turn_id)
        attempt, excused = _attempt(next(cut_short, None))
        choice = EngineChoice(code, self._context.engines.for_role("teller").seat)
        return self._take(items, attempt, excused, choice, now) or has_more

    def _is_served_otherwise(self, awaited: str | None) -> bool:
        """Whether the owner has chosen another engine than the one that is waited for."""
        return awaited not in (None, self._context.engines.for_role("teller").engine.name)

    def _take(
        self,
        items: list[InboxItem],
        attempt: int,
        excused: int,
        choice: EngineChoice,
        now: datetime,
    ) -> bool:
        """Begin a turn, unless it is over or was tried too often."""
        ids = [item.id for item in items]
        turn_id = turns.turn_id(ids)
        if turns.is_committed(self._store.files, turn_id):
            self.inputs.take_out(ids)
            return True
        if attempt - excused > turns.MAX_ATTEMPTS:
            self._end_by_code(turn_id, items, now, error="both attempts were cut short")
            return True
        inputs = tuple(item for item in items if item.kind != "task_result")
        newest = inputs[-1] if inputs else items[-1]
        locale = newest.locale or ("en" if inputs else self.inputs.language())
        turn_input = TurnInput(
            now=now,
            timezone=newest.timezone or self._context.settings.zone.key,
            locale=written_in(newest.text, locale) if inputs else locale,
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

    def _next_inputs(self, now: datetime) -> tuple[list[InboxItem], int, int]:
        """What a turn is to be about, oldest first: one that was cut short, or what is next.

        With the number of its attempt, and how many before it do not count.
        """
        for turn in turns.open_turns(self._store.files):
            if items := self.inputs.of(turn.inputs):
                return items, *_attempt(turn)
            turns.drop_marks(self._store.files, turn.id)
        found: list[InboxItem] = []
        left, most = MOST_CHARACTERS, self._most_inputs()
        for item in self.inputs.waiting(for_teller=True, has_mind=self._has_mind(), now=now):
            left -= len(item.text) + len(item.quote or "")
            if found and (left < 0 or len(found) == most):
                break
            found.append(item)
        if found and all(self._is_awaited(item, now) for item in found):
            return [], 1, 0
        return [*found, *self._of_their_traces(found, most - len(found), now)], *_attempt(None)

    def _is_awaited(self, item: InboxItem, now: datetime) -> bool:
        """Whether a result is told together with others of its request, which may end soon."""
        if item.kind != "task_result" or item.trigger_id or item.trace_id is None:
            return False
        if not timedelta() <= now - item.created_at < GATHERED:
            return False
        places = (
            queue.where(self._store.files, name, id_)
            for id_ in self._store.ledger.open_of(item.trace_id)
            for name in paths.QUEUES
        )
        return any(place in ("queued", "running") for place in places)

    def _of_their_traces(
        self, found: Sequence[InboxItem], most: int, now: datetime
    ) -> Iterator[InboxItem]:
        """Results that code would tell by itself, of requests whose others the Teller tells."""
        traces = {item.trace_id for item in found if item.kind == "task_result"}
        if traces:
            plain = self.inputs.waiting(for_teller=False, now=now)
            yield from islice((item for item in plain if item.trace_id in traces), max(0, most))

    def _has_mind(self) -> bool:
        """Whether a model tells results, if only later; beside a small one code does."""
        name = self._context.engines.for_role("teller").engine.name
        return name != LOCAL and not permission.is_by_user(name)

    def _most_inputs(self, engine: str | None = None) -> int:
        """Of how many inputs a turn is to be.

        Without a model each may be an order, of a plan and its task, and all share the turn's trace
        and what that is allowed.
        """
        if self._has_mind() if engine is None else not permission.is_by_user(engine):
            return MOST_INPUTS
        return min(MOST_INPUTS, max(1, self._context.settings.limits.tasks_per_trace // 2))

    def _take_outcomes(self, now: datetime) -> bool:
        self._outcomes += self._seat.outcomes()
        took = bool(self._outcomes)
        while self._outcomes:
            outcome = self._outcomes.pop(0)
            mark, job = self._under_way, outcome.job
            if mark is None or (mark.turn_id, mark.attempt) != (job.id, job.attempt):
                continue  # a late outcome: another attempt is under way
            self._store.live.end(job.id)
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
            closed = self.questions.answered_by(job.items)
            self._commit(outcome.record.but(closes_question=closed))
        elif outcome.failure_reason in WAITING:
            turns.forget_attempt(store.files, mark)
            self._turned_away(outcome, now)
        elif outcome.failure_reason == "killed":
            turns.excuse_attempt(store.files, mark)  # a clean stop: the inputs wait for the start
        elif outcome.failure_reason == "canceled":
            self._end_by_code(job.id, job.items, now)
        elif job.is_last:
            self._end_by_code(job.id, job.items, now, error=outcome.error)
        else:
            store.log.write("error", "turn_failed", turnId=job.id, error=outcome.error)

    def _turned_away(self, outcome: TurnOutcome, now: datetime) -> None:
        """What is known of an engine says when it is tried; of anything else time does."""
        used, choice = outcome.job.choice, self._context.engines.for_role("teller")
        self._waits_for_tokens = outcome.failure_reason == "budget" and not choice.waiting
        if choice.waiting:
            self._wait(choice, choice.waiting, now)
        elif choice.engine.name == used.engine.name:
            self._wait(used, outcome.error, now)
            delay = timedelta(seconds=self._context.settings.limits.engine_retry_s)
            known = outcome.retry_at
            self._not_before = known if known and known > now else now + delay
            wait_s = (self._not_before - now).total_seconds()
            self._retry_s = self._store.clock.monotonic() + wait_s

    def _wait(self, choice: EngineChoice, reason: str, now: datetime) -> None:
        """Inputs wait; nothing was tried, nothing is lost."""
        since = now
        if self.waiting is None or reason != self.waiting.reason:
            self._store.log.write("audit", "teller_waits", reason=reason)
            self._store.feed.tell("status")
        else:
            since = self.waiting.since or now
        self.waiting = EngineStatus(
            engine=choice.engine.name,
            state="waiting",
            want=want_of(reason),
            reason=reason,
            since=since,
            until=getattr(reason, "until", None),
        )

    def _end_by_code(
        self, turn_id: str, items: Sequence[InboxItem], now: datetime, *, error: str | None = None
    ) -> None:
        """Commit a turn that says it failed, or was stopped: nothing stays unanswered or loops."""
        language = self.inputs.language(" ".join(item.text for item in items))
        failed = error is not None
        text = phrases.say("turn_failed" if failed else "turn_stopped", language, error=error)
        base = code_record(turn_id, now)
        said = user_messages(tuple(items), turn_id)
        told = [item.task_id for item in items if item.task_id]
        message = system_message(base, text, task_ids=told).but(
            in_reply_to=[m.id for m in said], failed=failed
        )
        self._commit(base.but(consumed=[i.id for i in items], messages=[*said, message]))

    def _tell_plainly(self, now: datetime) -> bool:
        """Tell waiting results that need no mind, together."""
        plain = self.inputs.waiting(for_teller=False, has_mind=self._has_mind(), now=now)
        batch = list(islice(plain, MAX_TOLD_AT_ONCE))
        if not batch:
            return False
        base = code_record(derived_id("turn", "code", *sorted(item.id for item in batch)), now)
        told = [self._told(item) for item in batch]
        zone = self._store.settings.zone
        self._commit(message_turn(batch, told, self.inputs.language(), base, zone))
        return True

    def _told(self, item: InboxItem) -> ToldResult:
        view = queue.show(self._store.files, item.task_id) if item.task_id else None
        if view is not None and view.outcome is not None:
            told = told_result(view.task, view.outcome)
            return dataclasses.replace(told, steps=tuple(item.steps), paused=item.tripped)
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

    def _commit(self, record: TurnRecord) -> None:
        """Commit and apply a turn; of one that was told before only its entries are left."""
        files = self._store.files
        is_new = turns.commit(files, record) or files.exists(paths.turn_new(record.id))
        if is_new and not self._applier.apply_turn(record):
            raise BadRecord(f"{record.id} can not be carried out")  # what it answers waits on
        self.inputs.take_out(record.consumed)


def _attempt(before: turns.OpenTurn | None) -> tuple[int, int]:
    """The number of a turn's next attempt, and how many before it do not count."""
    return (before.attempts + 1, before.excused) if before else (1, 0)
