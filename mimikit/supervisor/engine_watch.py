"""Keeps the state of each engine; notifies the user of outages and of their end."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime
from itertools import islice

from mimikit.config import OWN_ENGINES
from mimikit.conversation import turns
from mimikit.conversation.inbox import InboxIndex
from mimikit.engines.registry import EngineRegistry, TaskWait, problem_words
from mimikit.language import phrases
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import EngineStatus, QueueName, time_text
from mimikit.supervisor.code_turns import engine_waits
from mimikit.supervisor.store import Store
from mimikit.tasks import queue

_MAX_CHECKED, _MOST_FOUND = 100, 1000


class EngineWatch:
    """The state of each engine, saved in `runtime.json`."""

    def __init__(
        self,
        store: Store,
        engines: EngineRegistry,
        inputs: InboxIndex,
        notify: Callable[[str, str, datetime], None],
    ) -> None:
        """`notify(turn_id, text, now)` tells the user something, once for each turn id."""
        self._store, self._engines, self._inputs, self._notify = store, engines, inputs, notify
        self.shown: dict[str, EngineStatus] = {}
        """Engine → its state, with how much waits for it."""
        self._is_first_step = True
        self._released: dict[tuple[QueueName, str], TaskWait] = {}
        """Tasks whose wait was ended, until their runs begin."""

    def step(self, now: datetime, awaited: str | None) -> bool:
        """Update all states and notify the user; returns whether an engine is available again.

        awaited: the engine that messages wait for.

        Crash: the id of a notification is derived from the beginning of the outage, which is saved
        first; the end of an outage is saved after its notification. Both are committed once.
        """
        if self._is_first_step:
            self._load_waiting_tasks()
            self._is_first_step = False
        self._forget_gone_tasks()
        is_back = False
        statuses = self._engines.engine_status()
        self._forget_removed(set(statuses))
        for name, found in statuses.items():
            messages = self._inputs.for_teller if name == awaited else 0
            is_back = self._update(found.but(messages=messages), now) or is_back
        self._end_waits(awaited)
        return is_back

    def _update(self, status: EngineStatus, now: datetime) -> bool:
        """Update the state of an engine; returns whether it is available again."""
        before = self._store.runtime.engines.get(status.engine)
        waits = status.messages + status.tasks
        if before is not None and status.fallback and status.fallback == before.fallback:
            status = status.but(since=before.since)  # the id of its notification
        is_over = before is not None and before.state == "waiting" and status.state == "ready"
        if is_over and self._engines.circuits.is_tripped(status.engine):
            # It responds, but no run has ended yet: if that fails, it is the same outage.
            self.shown[status.engine] = status
            return True
        is_learned = status.next_try_at is not None and status.fallback is None
        if is_learned and not self._inputs.for_teller + waits + len(self._store.live.list()):
            # Nothing needs it: the next run updates its state.
            status = EngineStatus(engine=status.engine)
        elif before is not None and status.state == before.state == "waiting":
            status = status.but(since=before.since)
        elif before is not None and is_over:
            self._notify_end(status, before, now)
        if waits and status.state == "waiting":
            self._engines.check_if_back(status.engine)
        if status.fallback is None:
            self._notify_fallback(status, before, now)
        self._save(status, before, now)
        self._notify_wait(self.shown[status.engine], now)
        if status.fallback is not None:
            self._notify_fallback(self.shown[status.engine], before, now)
        return is_over

    def _forget_removed(self, known: set[str]) -> None:
        self.shown = {name: status for name, status in self.shown.items() if name in known}
        before = self._store.runtime.engines
        left = {name: one for name, one in before.items() if name in known or name in OWN_ENGINES}
        if len(left) < len(before):
            self._store.save_runtime(engines=left)
            self._store.feed.publish("status")

    def _end_waits(self, awaited: str | None) -> None:
        """End the waits of tasks whose engine is available; of a half-open one, one task at a time.

        Messages probe it before tasks do.
        """
        waits = self._engines.waiting_tasks()
        self._released = {key: it for key, it in self._released.items() if waits.get(key) is it}
        choose = functools.cache(self._engines.for_role)
        tried = {
            (choose(key[0], it.profile).engine.name, key[0]) for key, it in self._released.items()
        }
        over: list[tuple[QueueName, str]] = []
        for key, wait in waits.items():
            choice = choose(key[0], wait.profile)
            name = choice.engine.name
            if choice.waiting or key in self._released:
                continue
            if self._engines.circuits.needs_probe(name, key[0]):
                if name == awaited or (name, key[0]) in tried:
                    continue
                tried.add((name, key[0]))
            over.append(key)
        if over or self._store.unreleased:
            queue.end_waits(self._store.files, self._store.unreleased, over)
        self._released |= {key: waits[key] for key in over}  # a storage error is retried

    def _save(self, status: EngineStatus, before: EngineStatus | None, now: datetime) -> None:
        if before is not None and _is_same(status, before):
            self.shown[status.engine] = status.but(since=before.since)
            return
        self.shown[status.engine] = status = status.but(since=status.since or now)
        saved = status.but(messages=0, tasks=0)
        self._store.save_runtime(engines=self._store.runtime.engines | {status.engine: saved})
        event = "engine_serves" if status.state == "ready" else "engine_waits"
        facts = {"engine": status.engine, "want": status.problem, "reason": status.reason}
        self._store.log.write("audit", event, **facts)
        self._store.feed.publish("status")

    def _notify_wait(self, status: EngineStatus, now: datetime) -> None:
        """Notify of an unavailable engine, if something waits for it."""
        if status.messages + status.tasks and status.state == "waiting":
            language, zone = self._inputs.language(), self._store.settings.zone
            self._notify(_turn_id(status), engine_waits(status, language, now, zone), now)

    def _notify_end(self, status: EngineStatus, before: EngineStatus, now: datetime) -> None:
        if not turns.is_committed(self._store.files, _turn_id(before)):
            return
        if status.engine in (role.engine for role in self._engines.status().values()):
            text = phrases.say("engine_serves", self._inputs.language(), engine=status.engine)
            self._notify(_turn_id(before, "over"), text, now)

    def _notify_fallback(
        self, status: EngineStatus, before: EngineStatus | None, now: datetime
    ) -> None:
        """Notify of the fallback in use, and of its end."""
        language = self._inputs.language()
        if status.fallback is not None:
            why = problem_words(status, now, self._store.settings.zone)
            words = phrases.say_both("engine_stand_in", why=why, other=status.fallback)
            self._notify(_turn_id(status, "stand-in", status.fallback), words[language], now)
        elif before is not None and before.fallback is not None:
            was_told = _turn_id(before, "stand-in", before.fallback)
            if turns.is_committed(self._store.files, was_told):
                text = phrases.say("engine_back", language, engine=status.engine)
                self._notify(_turn_id(before, "stand-in over", before.fallback), text, now)

    def _load_waiting_tasks(self) -> None:
        for seat in paths.QUEUES:
            for name in self._store.files.names(f"{seat}/queue")[:_MOST_FOUND]:
                task = queue.read(self._store.files, seat, f"{seat}/queue/{name}")
                if task is not None and task.waits_for is not None:
                    self._engines.set_waiting(seat, task.id, task.waits_for, task.profile)

    def _forget_gone_tasks(self) -> None:
        for seat, task_id in islice(self._engines.waiting_tasks(), _MAX_CHECKED):
            if queue.where(self._store.files, seat, task_id) != "queued":
                self._engines.set_waiting(seat, task_id, None)


def _turn_id(status: EngineStatus, *more: str) -> str:
    since = time_text(status.since) if status.since else ""
    return derived_id("turn", "engine", status.engine, since, *more)


def _is_same(one: EngineStatus, other: EngineStatus) -> bool:
    facts = ("state", "problem", "reason", "until", "next_try_at", "fallback")
    return all(getattr(one, fact) == getattr(other, fact) for fact in facts)
