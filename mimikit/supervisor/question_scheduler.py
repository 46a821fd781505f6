"""The one open question to the user: asked, answered, or ended by its default."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from mimikit.conversation import inbox
from mimikit.conversation.inbox import InboxIndex
from mimikit.language import phrases
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import FIRST_TIME, InboxItem, Question, RoutedAnswer, TurnRecord
from mimikit.protocol.triggers import PlanResult
from mimikit.roles.teller import user_messages
from mimikit.supervisor.code_turns import code_record, question_message, system_message
from mimikit.supervisor.store import Store


class QuestionScheduler:
    """Opens the questions of plans, one at a time, and brings each to its end."""

    def __init__(
        self, store: Store, inputs: InboxIndex, commit: Callable[[TurnRecord], None]
    ) -> None:
        self._store, self._inputs, self._commit = store, inputs, commit

    def step(self, now: datetime, *, may_ask: bool) -> bool:
        """Route an answer, take the default, or open the next question; returns whether it did.

        may_ask: no turn is in progress, which could ask as well.
        """
        question = inbox.pending_question(self._store.files)
        if question is None:
            return may_ask and self._ask_next(now)
        # An answer takes precedence over the default.
        answer = next(iter(self._inputs.answers_to(question.question_id)), None)
        if answer is not None and question.planner_task_id is not None:
            self._route(question, answer, now)
        elif now >= question.expires_at:
            self._expire(question, now)
        else:
            return False
        return True

    def answered_by(self, items: Iterable[InboxItem]) -> str | None:
        question = inbox.pending_question(self._store.files)
        if question is None or question.planner_task_id is not None:
            return None
        answered = any(item.question_id == question.question_id for item in items)
        return question.question_id if answered else None

    def _ask_next(self, now: datetime) -> bool:
        """Open the question of the oldest plan that has one."""
        plans = self._store.files.load_all("planner/results", PlanResult)
        asking = [plan for plan in plans if plan.status == "needs_input"]
        if not asking:
            return False
        plan = min(asking, key=lambda plan: plan.completed_at)
        with self._store.files.quarantine_if_refused(paths.result("planner", plan.id)):
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
        self._store.feed.publish("question")
        return True

    def _route(self, question: Question, answer: InboxItem, now: datetime) -> None:
        base = code_record(derived_id("turn", "answer", answer.id), now)
        messages = [question_message(question, base), *user_messages((answer,), base.id)]
        routed = RoutedAnswer(
            question_id=question.question_id, text=answer.text, remote=answer.remote, by_user=True
        )
        self._commit(base.but(consumed=[answer.id], messages=messages, answers=[routed]))

    def _expire(self, question: Question, now: datetime) -> None:
        """Close an expired question by its default answer, if it has one."""
        id_, default = question.question_id, question.default
        base = code_record(derived_id("turn", "expired", id_), now)
        if default is None:
            text = phrases.say("question_expired", self._inputs.language())
            record = base.but(closes_question=id_, settles_plan=question.planner_task_id)
        else:
            text = phrases.say("question_default", self._inputs.language(), default=default)
            record = base.but(answers=[RoutedAnswer(question_id=id_, text=default)])
        messages = [question_message(question, base), system_message(base, text, task_ids=[])]
        self._commit(record.but(messages=messages))

    def clock_jumped(self, by: timedelta) -> None:
        question = inbox.pending_question(self._store.files)
        if question is not None:
            moved = question.but(expires_at=max(question.expires_at + by, FIRST_TIME))
            self._store.files.save(paths.PENDING_QUESTION, moved)
            self._store.feed.publish("question")
