"""Decides when the Teller takes a turn; commits, retries or fails its attempts.

Order: outcomes of attempts → answers and questions → a new turn → reports without a model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Protocol, TypeAlias

from mimikit import permission
from mimikit.conversation import inbox, turns
from mimikit.conversation.inbox import InboxIndex
from mimikit.engines.base import TurnInput
from mimikit.engines.registry import LOCAL, EngineChoice, problem_of
from mimikit.errors import BadRecord, StorageError
from mimikit.language.phrases import ResultNotice, Words
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id, new_id
from mimikit.protocol.models import EngineStatus, InboxItem, TurnRecord
from mimikit.protocol.runtime import TurnAttempt
from mimikit.roles.run import RunContext
from mimikit.roles.teller import TurnJob, TurnOutcome
from mimikit.roles.turn_context import detect_locale
from mimikit.supervisor.budget_watch import BudgetWatch
from mimikit.supervisor.code_turns import (
    code_record,
    message_turn,
    result_notice,
    text_turn,
    unfinished_turn,
)
from mimikit.supervisor.commit_applier import CommitApplier
from mimikit.supervisor.engine_watch import EngineWatch
from mimikit.supervisor.question_scheduler import QuestionScheduler
from mimikit.supervisor.run_end import REPORT_COALESCE_WINDOW
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.tasks.retry import WAITING

MAX_RESULTS_PER_TURN = 20
MOST_INPUTS, MOST_CHARACTERS = 100, 1_000_000
"""Of one turn, whose record has a size limit."""


class TurnRunner(Protocol):
    """Runs the Teller's turns: on a thread, or in place for tests."""

    def start(self, job: TurnJob) -> None:
        """Begin a turn; only while none is in progress."""

    def outcomes(self) -> list[TurnOutcome]: ...

    def close(self, timeout_s: float) -> None:
        """Begin no more turns, and wait for the one in progress."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing waits for an answer."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Inputs wait for an engine or for tokens; code answers plain commands meanwhile."""

    status: EngineStatus
    for_tokens: bool = False
    not_before: datetime | None = None
    """End of the back-off after a refused turn; None: until the engine is available."""


@dataclass(frozen=True, slots=True)
class Replying:
    attempt: TurnAttempt
    then: Idle | Waiting
    """The next state: other inputs may wait while code answers a command."""


State: TypeAlias = Idle | Replying | Waiting


def next_step(state: State, choice: EngineChoice | None, now: datetime) -> State | EngineChoice:
    """The engine for a turn now, or the state in which none begins. Pure.

    choice: the engine for the waiting inputs; None: there are none.
    """
    if isinstance(state, Replying) or is_backing_off(state, now):
        return state
    if choice is None:
        return Idle()
    if choice.waiting is None:
        return choice
    return waiting_for(state, choice.engine.name, choice.waiting, now)


def is_backing_off(state: State, now: datetime) -> bool:
    return isinstance(state, Waiting) and state.not_before is not None and now < state.not_before


def waiting_for(state: State, engine: str, reason: str, now: datetime) -> Waiting:
    """Waiting for that reason; `since` is when it began. Pure."""
    before = state.status if isinstance(state, Waiting) else None
    since = before.since if before is not None and before.reason == reason else now
    return Waiting(
        EngineStatus(
            engine=engine,
            state="waiting",
            problem=problem_of(reason),
            reason=reason,
            since=since,
            until=getattr(reason, "until", None),
        )
    )


class TellerScheduler:
    def __init__(
        self,
        store: Store,
        applier: CommitApplier,
        context: RunContext,
        runner: TurnRunner,
        facts: Callable[[], tuple[Words, ...]] = tuple,
    ) -> None:
        """`facts` gives the status lines for a turn's input."""
        self._store, self._applier = store, applier
        self._context, self._runner, self._facts = context, runner, facts
        self.inputs = InboxIndex(store.files, store.conversation, store.feed)
        self.questions = QuestionScheduler(store, self.inputs, self.commit)
        self.engines = EngineWatch(store, context.engines, self.inputs, self.notify)
        self.budget = BudgetWatch(store, context.usage, self.inputs, self.notify)
        self._state: State = Idle()
        self._outcomes: list[TurnOutcome] = []
        self._newest_seen: str | None = None
        """The user's newest input when a turn was last considered."""

    @property
    def wait(self) -> Waiting | None:
        state = self._state.then if isinstance(self._state, Replying) else self._state
        return state if isinstance(state, Waiting) else None

    @property
    def waiting(self) -> EngineStatus | None:
        """The engine that inputs wait for, and why."""
        return self.wait.status if self.wait else None

    def step(self, now: datetime) -> bool:
        # Committed turns first: until they are applied, their inputs must not get into another.
        done = self._applier.apply_turns()
        done = self._apply_outcomes(now) or done
        done = self.inputs.refresh(now) or done
        may_ask = not isinstance(self._state, Replying)
        done = self.questions.step(now, may_ask=may_ask) or done
        self._watch_wait(now)
        # Messages of the user come before reports without a model.
        done = self._start_turn(now) or done
        return self._report_without_model(now) or done

    def clock_jumped(self, by: timedelta) -> None:
        """Recompute waits: turns are retried now."""
        self._end_back_off()
        self.questions.clock_jumped(by)

    def _end_back_off(self) -> None:
        match self._state:
            case Waiting():
                self._state = replace(self._state, not_before=None)
            case Replying(then=Waiting() as then):
                self._state = replace(self._state, then=replace(then, not_before=None))
            case _:
                pass

    def _watch_wait(self, now: datetime) -> None:
        """End the back-off when an engine is available, another was chosen, or tokens are left."""
        wait = self.wait
        for_tokens = wait is not None and wait.for_tokens
        awaited = wait.status.engine if wait and not for_tokens else None
        is_over = self.engines.step(now, awaited)
        self.budget.step(now, teller_waits=for_tokens)
        if awaited is not None and awaited != self._context.engines.for_role("teller").engine.name:
            is_over = True
        if is_over or (for_tokens and not self.budget.holds_teller):
            self._end_back_off()

    def _start_turn(self, now: datetime) -> bool:
        if isinstance(self._state, Replying) or self._context.stopping.is_set():
            return False
        if is_backing_off(self._state, now):
            return self._answer_commands(now)
        items, interrupted = self._next_inputs(now)
        step = next_step(self._state, self._choose_engine() if items else None, now)
        if not isinstance(step, EngineChoice):
            self._set_state(step)
            return self._answer_commands(now)
        self._state = Idle()
        items, choice = self._try_builtin_first(items, step)
        return self._begin_turn(items, interrupted, choice, now)

    def _choose_engine(self) -> EngineChoice:
        """The Teller's engine; its back-off ends when the user has written since."""
        engines = self._context.engines
        choice = engines.for_role("teller")
        before, self._newest_seen = self._newest_seen, self.inputs.newest
        if choice.waiting and before is not None and self._newest_seen not in ("", before):
            engines.try_now(choice.engine.name)
            choice = engines.for_role("teller")
        return choice

    def _set_state(self, state: State) -> None:
        reason = state.status.reason if isinstance(state, Waiting) else None
        if reason is not None and (self.waiting is None or self.waiting.reason != reason):
            self._store.log.write("audit", "teller_waits", reason=reason)
            self._store.feed.publish("status")
        self._state = state

    def _try_builtin_first(
        self, items: list[InboxItem], choice: EngineChoice
    ) -> tuple[list[InboxItem], EngineChoice]:
        """With the local model, have code answer what it can; a turn has inputs of one kind."""
        code = self._context.engines.code
        if choice.engine.name != LOCAL or code is None:
            return items, choice
        tasks = functools.cache(lambda: self._context.reader.tasks("all"))
        question = inbox.pending_question(self._store.files)
        answers = [code.answers(item.text, tasks, question) for item in items]
        alike = list(takewhile(lambda number: answers[number] == answers[0], range(len(items))))
        by_code = EngineChoice(code, choice.profile, None, choice.skipped)
        return items[: len(alike)], by_code if answers[0] else choice

    def _answer_commands(self, now: datetime) -> bool:
        """While an engine is unavailable, have code answer inputs that are exactly a command."""
        code = self._context.engines.code
        if code is None or self.wait is None:
            return False
        tasks = functools.cache(lambda: self._context.reader.tasks("all"))
        items, has_more = self.inputs.pick(lambda text: code.understands(text, tasks))
        if not items:
            return has_more
        items = items[: self._most_inputs(code.name)]
        turn_id = turns.turn_id([item.id for item in items])
        open_turns = (turn for turn in turns.open_turns(self._store.files) if turn.id == turn_id)
        choice = EngineChoice(code, self._context.engines.for_role("teller").profile)
        return self._begin_turn(items, next(open_turns, None), choice, now) or has_more

    def _begin_turn(
        self,
        items: list[InboxItem],
        interrupted: turns.OpenTurn | None,
        choice: EngineChoice,
        now: datetime,
    ) -> bool:
        """Begin a turn, unless it is committed or has no attempts left."""
        attempt = interrupted.attempts + 1 if interrupted else 1
        counted = attempt - (interrupted.excused if interrupted else 0)
        ids = [item.id for item in items]
        turn_id = turns.turn_id(ids)
        if turns.is_committed(self._store.files, turn_id):
            self.inputs.remove(ids)
            return True
        if counted > turns.MAX_ATTEMPTS:
            self._end_by_code(turn_id, items, now, "both attempts were cut short")
            return True
        inputs = tuple(item for item in items if item.kind != "task_result")
        newest = inputs[-1] if inputs else items[-1]
        locale = newest.locale or ("en" if inputs else self.inputs.language())
        turn_input = TurnInput(
            now=now,
            timezone=newest.timezone or self._context.settings.zone.key,
            locale=detect_locale(newest.text, locale) if inputs else locale,
            inputs=inputs,
            results=tuple(self._notice(item) for item in items if item.kind == "task_result"),
            question=inbox.pending_question(self._store.files),
            facts=self._facts(),
        )
        mark = turns.start(self._store.files, turn_id, attempt, ids, now)
        self._state = Replying(mark, self.wait or Idle())
        cancel = self._store.live.start(turn_id, "teller", items[-1].text[:80], now)
        self._store.feed.publish("turn", state="started", turnId=turn_id, inputs=ids)
        # Without a model a command has its own trace, not that of the results beside it.
        of = inputs if inputs and permission.is_by_user(choice.engine.name) else items
        trace = next((i.trace_id for i in of if i.trace_id), None) or new_id("trace", now)
        is_last = counted >= turns.MAX_ATTEMPTS
        job = TurnJob(turn_id, attempt, tuple(items), turn_input, choice, cancel, trace, is_last)
        self._runner.start(job)
        return True

    def _next_inputs(self, now: datetime) -> tuple[list[InboxItem], turns.OpenTurn | None]:
        """The inputs of the next turn, oldest first: of an interrupted one, or new ones."""
        for turn in turns.open_turns(self._store.files):
            if items := self.inputs.of(turn.inputs):
                return items, turn
            turns.drop_marks(self._store.files, turn.id)
        found: list[InboxItem] = []
        left, most = MOST_CHARACTERS, self._most_inputs()
        for item in self.inputs.waiting(for_teller=True, has_model=self._has_model(), now=now):
            left -= len(item.text) + len(item.quote or "")
            if found and (left < 0 or len(found) == most):
                break
            found.append(item)
        if found and all(self._waits_for_others(item, now) for item in found):
            return [], None
        return [*found, *self._results_of_same_traces(found, most - len(found), now)], None

    def _waits_for_others(self, item: InboxItem, now: datetime) -> bool:
        """Whether a result is to be reported with others of its request, which may end soon."""
        if item.kind != "task_result" or item.trigger_id or item.trace_id is None:
            return False
        if not timedelta() <= now - item.created_at < REPORT_COALESCE_WINDOW:
            return False
        places = (
            queue.where(self._store.files, name, id_)
            for id_ in self._store.ledger.open_of(item.trace_id)
            for name in paths.QUEUES
        )
        return any(place in ("queued", "running") for place in places)

    def _results_of_same_traces(
        self, found: Sequence[InboxItem], most: int, now: datetime
    ) -> Iterator[InboxItem]:
        traces = {item.trace_id for item in found if item.kind == "task_result"}
        if traces:
            plain = self.inputs.waiting(for_teller=False, now=now)
            yield from islice((item for item in plain if item.trace_id in traces), max(0, most))

    def _has_model(self) -> bool:
        """Whether a model reports results; with the local one, code does."""
        name = self._context.engines.for_role("teller").engine.name
        return name != LOCAL and not permission.is_by_user(name)

    def _most_inputs(self, engine: str | None = None) -> int:
        """The most inputs of a turn.

        Without a model each may be a command (a plan and its task), and all share one trace, which
        has a limit.
        """
        if self._has_model() if engine is None else not permission.is_by_user(engine):
            return MOST_INPUTS
        return min(MOST_INPUTS, max(1, self._context.settings.limits.tasks_per_trace // 2))

    def _apply_outcomes(self, now: datetime) -> bool:
        self._outcomes += self._runner.outcomes()
        had_some = bool(self._outcomes)
        while self._outcomes:
            outcome, replying = self._outcomes.pop(0), self._state
            job = outcome.job
            if not isinstance(replying, Replying):
                continue
            mark = replying.attempt
            if (mark.turn_id, mark.attempt) != (job.id, job.attempt):
                continue  # a late outcome: another attempt is in progress
            self._store.live.end(job.id)
            self._state = replying.then
            self._store.feed.publish("turn", state="ended", turnId=job.id)
            try:
                self._end_attempt(outcome, mark, now)
            except StorageError:
                # The engine's reply is written once the disk is available.
                self._outcomes.insert(0, outcome)
                self._state = replying
                raise
        return had_some

    def _end_attempt(self, outcome: TurnOutcome, mark: TurnAttempt, now: datetime) -> None:
        store, job = self._store, outcome.job
        if outcome.record is not None:
            closed = self.questions.answered_by(job.items)
            self.commit(outcome.record.but(closes_question=closed))
        elif outcome.failure_reason in WAITING:
            turns.forget_attempt(store.files, mark)
            for item in job.items:
                store.feed.publish("inbox", id=item.id)  # it is no longer being answered
            self._back_off(outcome, now)
        elif outcome.failure_reason == "killed":
            turns.excuse_attempt(store.files, mark)  # a clean stop: the inputs wait for the start
        elif outcome.failure_reason == "canceled":
            self._end_by_code(job.id, job.items, now, outcome=outcome)
        elif job.is_last or outcome.is_final:
            self._end_by_code(job.id, job.items, now, outcome.error, outcome)
        else:
            store.log.write("error", "turn_failed", turnId=job.id, error=outcome.error)

    def _back_off(self, outcome: TurnOutcome, now: datetime) -> None:
        """After a refused turn: wait for its engine, or back off if that seems available."""
        used, choice = outcome.job.choice, self._context.engines.for_role("teller")
        if choice.waiting:
            wait = waiting_for(self._state, choice.engine.name, choice.waiting, now)
            self._set_state(wait)
        elif choice.engine.name == used.engine.name:
            wait = waiting_for(self._state, used.engine.name, outcome.error, now)
            delay = timedelta(seconds=self._context.settings.limits.engine_retry_s)
            known = outcome.retry_at
            not_before = known if known and known > now else now + delay
            for_tokens = outcome.failure_reason == "budget"
            self._set_state(replace(wait, not_before=not_before, for_tokens=for_tokens))

    def _end_by_code(
        self,
        turn_id: str,
        items: Sequence[InboxItem],
        now: datetime,
        error: str | None = None,
        outcome: TurnOutcome | None = None,
    ) -> None:
        """Commit a turn that reports a failure or a stop, so that no input is retried forever."""
        language = self.inputs.language(" ".join(item.text for item in items))
        self.commit(unfinished_turn(code_record(turn_id, now), items, language, error, outcome))

    def _report_without_model(self, now: datetime) -> bool:
        """Report waiting results that need no model, in one turn."""
        plain = self.inputs.waiting(for_teller=False, has_model=self._has_model(), now=now)
        batch = list(islice(plain, MAX_RESULTS_PER_TURN))
        if not batch:
            return False
        base = code_record(derived_id("turn", "code", *sorted(item.id for item in batch)), now)
        notices = [self._notice(item) for item in batch]
        zone = self._store.settings.zone
        self.commit(message_turn(batch, notices, self.inputs.language(), base, zone))
        return True

    def _notice(self, item: InboxItem) -> ResultNotice:
        view = queue.show(self._store.files, item.task_id) if item.task_id else None
        if view is not None and view.outcome is not None:
            notice = result_notice(view.task, view.outcome)
            return replace(notice, steps=tuple(item.steps), paused=item.tripped)
        task_id = item.task_id or item.id
        return ResultNotice(
            title=item.text or task_id,
            prompt="",
            seat=item.seat or "worker",
            status="failed",
            text="",
            error="its record is gone",
            failure_reason=None,
            task_id=task_id,
        )

    def notify(self, turn_id: str, text: str, now: datetime) -> None:
        if not turns.is_committed(self._store.files, turn_id):
            self.commit(text_turn(turn_id, text, now))

    def commit(self, record: TurnRecord) -> None:
        """Commit and apply a turn; if it was committed before, only remove its inputs."""
        files = self._store.files
        is_new = turns.commit(files, record) or files.exists(paths.turn_new(record.id))
        if is_new and not self._applier.apply(record):
            raise BadRecord(f"{record.id} cannot be carried out")  # what it answers waits on
        self.inputs.remove(record.consumed)
