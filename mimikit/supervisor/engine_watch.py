"""Keeps the state of each engine; tells once that something waits for it, and once its end."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice

from mimikit.config import OWN_ENGINES
from mimikit.conversation import turns
from mimikit.conversation.inbox import InboxIndex
from mimikit.engines.registry import EngineRegistry, TaskWait, problem_words
from mimikit.language import phrases
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import EngineStatus, QueueName, TurnRecord, time_text
from mimikit.supervisor.code_turns import engine_waits, text_turn
from mimikit.supervisor.store import Store
from mimikit.tasks import queue

TOLD_AFTER = timedelta(seconds=60)
"""A failure of no known kind is reported once it has lasted this long."""
_MOST_LOOKED_AT, _MOST_FOUND = 100, 1000


class EngineWatch:
    """The state of the engines that served here, as `runtime.json` keeps it."""

    def __init__(
        self,
        store: Store,
        engines: EngineRegistry,
        inputs: InboxIndex,
        commit: Callable[[TurnRecord], None],
    ) -> None:
        self._store, self._engines, self._inputs, self._commit = store, engines, inputs, commit
        self.shown: dict[str, EngineStatus] = {}
        """Engine → its state, with how much waits for it."""
        self._is_new = True
        self._released: dict[tuple[QueueName, str], TaskWait] = {}
        """Tasks whose wait was ended, until their runs begin."""

    def step(self, now: datetime, awaited: str | None) -> bool:
        """Update their state, tell what is to be told; whether one can serve again.

        awaited: the engine that messages wait for.

        Crash: an outage is reported under an id made from its beginning, which is saved first; its
        end is reported before it is saved. Both are committed once.
        """
        if self._is_new:
            self._find_tasks()
            self._is_new = False
        self._look_at_tasks()
        serves = False
        statuses = self._engines.engine_status()
        self._forget_removed(set(statuses))
        for name, found in statuses.items():
            messages = self._inputs.for_teller if name == awaited else 0
            serves = self._look_at(found.but(messages=messages), now) or serves
        self._end_waits(awaited)
        return serves

    def _look_at(self, status: EngineStatus, now: datetime) -> bool:
        """Update and tell the state of one; whether it can serve again."""
        before = self._store.runtime.engines.get(status.engine)
        waits = status.messages + status.tasks
        if before is not None and status.stand_in and status.stand_in == before.stand_in:
            status = status.but(since=before.since)  # told by that
        is_over = before is not None and before.state == "waiting" and status.state == "ready"
        if is_over and self._engines.circuits.is_tripped(status.engine):
            # It has answered, but no run is done yet: should that fail, it is the same outage.
            self.shown[status.engine] = status
            return True
        is_learned = status.next_try_at is not None and status.stand_in is None
        if is_learned and not self._inputs.for_teller + waits + len(self._store.live.list()):
            # Nothing waits for it any more: the next run shows how it is.
            status = EngineStatus(engine=status.engine)
        elif before is not None and status.state == before.state == "waiting":
            status = status.but(since=before.since)
        elif before is not None and is_over:
            self._tell_end(status, before, now)
        if waits and status.state == "waiting":
            self._engines.check_if_back(status.engine)
        if status.stand_in is None:
            self._tell_fallback(status, before, now)
        self._keep(status, before, now)
        self._tell_wait(self.shown[status.engine], now)
        if status.stand_in is not None:
            self._tell_fallback(self.shown[status.engine], before, now)
        return is_over

    def _forget_removed(self, known: set[str]) -> None:
        """Forget endpoints that were removed."""
        self.shown = {name: status for name, status in self.shown.items() if name in known}
        before = self._store.runtime.engines
        left = {name: one for name, one in before.items() if name in known or name in OWN_ENGINES}
        if len(left) < len(before):
            self._store.save_runtime(engines=left)
            self._store.feed.tell("status")

    def _end_waits(self, awaited: str | None) -> None:
        """End the waits of tasks whose engine can serve; of a half-open one, one task at a time.

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
        if over or self._store.held:
            queue.end_waits(self._store.files, self._store.held, over)
        self._released |= {key: waits[key] for key in over}  # what the disk refused is retried

    def _keep(self, status: EngineStatus, before: EngineStatus | None, now: datetime) -> None:
        if before is not None and _is_alike(status, before):
            self.shown[status.engine] = status.but(since=before.since)
            return
        self.shown[status.engine] = status = status.but(since=status.since or now)
        kept = status.but(messages=0, tasks=0)
        self._store.save_runtime(engines=self._store.runtime.engines | {status.engine: kept})
        event = "engine_serves" if status.state == "ready" else "engine_waits"
        facts = {"engine": status.engine, "want": status.want, "reason": status.reason}
        self._store.log.write("audit", event, **facts)
        self._store.feed.tell("status")

    def _tell_wait(self, status: EngineStatus, now: datetime) -> None:
        """Say that it is waited for, once something does."""
        is_lasting = now - (status.since or now) >= TOLD_AFTER
        if not status.messages + status.tasks or (status.want == "unready" and not is_lasting):
            return
        if status.state == "waiting":
            language, zone = self._inputs.language(), self._store.settings.zone
            self._tell_once(_turn_id(status), engine_waits(status, language, now, zone), now)

    def _tell_end(self, status: EngineStatus, before: EngineStatus, now: datetime) -> None:
        if not turns.is_committed(self._store.files, _turn_id(before)):
            return
        if status.engine in (role.engine for role in self._engines.status().values()):
            said = phrases.say("engine_serves", self._inputs.language(), engine=status.engine)
            self._tell_once(_turn_id(before, "over"), said, now)

    def _tell_fallback(
        self, status: EngineStatus, before: EngineStatus | None, now: datetime
    ) -> None:
        """Say who serves in its place, once; and that it serves again."""
        language = self._inputs.language()
        if status.stand_in is not None:
            why = problem_words(status, now, self._store.settings.zone)
            words = phrases.say_both("engine_stand_in", why=why, other=status.stand_in)
            self._tell_once(_turn_id(status, "stand-in", status.stand_in), words[language], now)
        elif before is not None and before.stand_in is not None:
            was_told = _turn_id(before, "stand-in", before.stand_in)
            if turns.is_committed(self._store.files, was_told):
                said = phrases.say("engine_back", language, engine=status.engine)
                self._tell_once(_turn_id(before, "stand-in over", before.stand_in), said, now)

    def _tell_once(self, turn_id: str, text: str, now: datetime) -> None:
        if not turns.is_committed(self._store.files, turn_id):
            self._commit(text_turn(turn_id, text, now))

    def _find_tasks(self) -> None:
        """Tasks that waited for an engine when the consumer ended still wait."""
        for seat in paths.QUEUES:
            for name in self._store.files.names(f"{seat}/queue")[:_MOST_FOUND]:
                task = queue.read(self._store.files, seat, f"{seat}/queue/{name}")
                if task is not None and task.waits_for is not None:
                    self._engines.set_waiting(seat, task.id, task.waits_for, task.profile)

    def _look_at_tasks(self) -> None:
        """Some of those that wait may have been canceled or removed."""
        for seat, task_id in islice(self._engines.waiting_tasks(), _MOST_LOOKED_AT):
            if queue.where(self._store.files, seat, task_id) != "queued":
                self._engines.set_waiting(seat, task_id, None)


def _turn_id(status: EngineStatus, *more: str) -> str:
    since = time_text(status.since) if status.since else ""
    return derived_id("turn", "engine", status.engine, since, *more)


def _is_alike(one: EngineStatus, other: EngineStatus) -> bool:
    facts = ("state", "want", "reason", "until", "next_try_at", "stand_in")
    return all(getattr(one, fact) == getattr(other, fact) for fact in facts)
