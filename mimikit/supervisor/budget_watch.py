"""Keeps the budget: what waits for tokens is told once and let go on, past days are summed up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from mimikit import config
from mimikit.conversation import turns
from mimikit.conversation.inbox import InboxIndex
from mimikit.errors import BadSettings, StorageError
from mimikit.language import phrases
from mimikit.language.phrases import local_time
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import QueueName, Task, TurnRecord
from mimikit.protocol.runtime import BudgetNote, BudgetStatus
from mimikit.supervisor.code_turns import code_record, system_message
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.tasks.budget import BudgetHold, day_end, day_of
from mimikit.tasks.usage import UsageBook, held_for, roll_up
from mimikit.triggers import registry

_MOST_LOOKED_AT, _MOST_FOUND = 100, 1000


class BudgetWatch:
    """What waits for tokens, and what follows from the settings, the day and the hour."""

    def __init__(
        self,
        store: Store,
        book: UsageBook,
        inputs: InboxIndex,
        commit: Callable[[TurnRecord], None],
    ) -> None:
        self._store, self._book, self._inputs, self._commit = store, book, inputs, commit
        self._config: tuple[int, int] | None = self._config_mark()
        self._ending: dict[str, Task] = {}
        """What was taken out of its queue to wait no longer, and could not be brought back yet."""
        self._summed_up = ""
        """The day on which the days before were summed up."""
        self._is_new = True

    @property
    def holds_teller(self) -> bool:
        """Whether messages wait for tokens."""
        return any(task is None for _, task in self._book.held.values())

    def step(self, now: datetime, *, teller_waits: bool) -> None:
        """Tell what is to be told, and let go on what may.

        Crash: a note of what is held is kept before it is told, which is done once by an id; until
        waits are ended the note stays, and a wait that is ended twice only begins anew.
        """
        if self._is_new:
            self._find_held()
            self._is_new = False
        self._read_settings()
        self._sum_up(now)
        self._let_go(now)
        self._look_at_held(teller_waits=teller_waits)
        held = list(self._book.held.values())
        if held:
            self._note(now)
        if any(hold.held_for == "day" for hold, _ in held):
            self._tell_day(now)
        for hold, task in held:
            if hold.held_for == "trigger" and task is not None:
                self._tell_trigger(hold, task, now)

    def status(self, now: datetime) -> BudgetStatus:
        """How the budget of today stands, for the heartbeat."""
        caps, held = self._book.caps, list(self._book.held.values())
        return BudgetStatus(
            daily_tokens=caps.daily_tokens,
            per_task_tokens=caps.per_task_tokens,
            per_trigger_daily_tokens=caps.per_trigger_daily_tokens,
            used=self._book.used_today(),
            until=day_end(now, self._store.settings.zone) if held else None,
            messages=self._inputs.for_teller if any(task is None for _, task in held) else 0,
            tasks=sum(task is not None for _, task in held),
        )

    def _note(self, now: datetime) -> None:
        """Keep under which caps, on which day, something is held."""
        day = day_of(now, self._store.settings.zone)
        note = BudgetNote(day=day.isoformat(), caps=self._caps())
        if self._store.runtime.budget != note:
            self._store.save_runtime(budget=note)
            self._store.log.write("audit", "budget_holds", day=note.day)
            self._store.feed.tell("status")

    def _let_go(self, now: datetime) -> None:
        """A new day, or other settings: what is held may begin; it is held again if it may not."""
        note = self._store.runtime.budget
        if note is None and not self._ending:
            return
        day = day_of(now, self._store.settings.zone).isoformat()
        if note is not None and (note.day, note.caps) == (day, self._caps()):
            return
        tasks = [task for _, task in self._book.held.values() if task is not None]
        held: list[tuple[QueueName, str]] = [(task.role, task.id) for task in tasks]
        queue.end_waits(self._store.files, self._ending, held)
        self._book.held.clear()
        self._store.save_runtime(budget=None)
        self._store.log.write("audit", "budget_goes_on")
        self._store.feed.tell("status")

    def _tell_day(self, now: datetime) -> None:
        status, zone = self.status(now), self._store.settings.zone
        cap, day = status.daily_tokens or 0, day_of(now, zone).isoformat()
        turn_id = derived_id("turn", "budget", day, str(cap))
        if turns.is_committed(self._store.files, turn_id):
            return
        language = self._inputs.language()
        counts = (("messages", status.messages), ("tasks", status.tasks))
        what = [
            phrases.say(f"{name}_one" if count == 1 else f"{name}_some", language, n=count)
            for name, count in counts
            if count
        ]
        words = phrases.say(
            "budget_day",
            language,
            cap=f"{cap:,}",
            used=f"{status.used:,}",
            what=phrases.say("engine_and", language).join(what),
            until=f"{local_time(day_end(now, zone), zone):%Y-%m-%d %H:%M} ({zone.key})",
        )
        self._say(turn_id, words, now)

    def _tell_trigger(self, hold: BudgetHold, task: Task, now: datetime) -> None:
        zone, trigger_id = self._store.settings.zone, task.source_trigger_id or ""
        day = day_of(now, zone).isoformat()
        turn_id = derived_id("turn", "budget", day, trigger_id, str(hold.cap))
        if turns.is_committed(self._store.files, turn_id):
            return
        trigger, _ = registry.active(self._store.files, trigger_id)
        words = phrases.say(
            "budget_trigger",
            self._inputs.language(),
            title=phrases.code((trigger and trigger.title) or task.title or trigger_id),
            cap=f"{hold.cap:,}",
            until=f"{local_time(day_end(now, zone), zone):%Y-%m-%d %H:%M} ({zone.key})",
        )
        self._say(turn_id, words, now)

    def _say(self, turn_id: str, text: str, now: datetime) -> None:
        base = code_record(turn_id, now)
        self._commit(base.but(messages=[system_message(base, text, task_ids=[])]))

    def _sum_up(self, now: datetime) -> None:
        day = day_of(now, self._store.settings.zone).isoformat()
        if day != self._summed_up:
            roll_up(self._store.files, day_of(now, self._store.settings.zone))
            self._summed_up = day

    def _caps(self) -> dict[str, int | None]:
        return self._book.caps.model_dump()

    def _config_mark(self) -> tuple[int, int] | None:
        try:
            stat = self._store.files.stat(paths.CONFIG)
        except StorageError:
            return None
        return (stat.mtime_ns, stat.size) if stat else None

    def _read_settings(self) -> None:
        """Take the caps of a `config.toml` that was changed; one that is wrong changes nothing."""
        mark = self._config_mark()
        if mark == self._config:
            return
        self._config = mark
        try:
            text = (self._store.files.read(paths.CONFIG) or b"").decode()
            self._book.caps = config.parsed(text, Path(paths.CONFIG)).budget
        except (BadSettings, UnicodeDecodeError) as error:
            self._store.log.write("error", "settings_not_read", error=str(error))
        self._store.feed.tell("status")

    def _find_held(self) -> None:
        """What waited for tokens when the consumer ended waits for them still."""
        if (note := self._store.runtime.budget) is None:
            return
        for seat in paths.QUEUES:
            for name in self._store.files.names(f"{seat}/queue")[:_MOST_FOUND]:
                task = queue.read(self._store.files, seat, f"{seat}/queue/{name}")
                if task is not None and (waits_for := held_for(task.waits_for)):
                    key = "daily_tokens" if waits_for == "day" else "per_trigger_daily_tokens"
                    hold = BudgetHold(waits_for, note.caps.get(key) or 0, 0, task.not_before)
                    self._book.held[task.id] = hold, task

    def _look_at_held(self, *, teller_waits: bool) -> None:
        """Of those that wait some may have been canceled, or taken away."""
        for run_id, (_, task) in [*self._book.held.items()][:_MOST_LOOKED_AT]:
            place = task and queue.where(self._store.files, task.role, run_id)
            if not teller_waits if task is None else place in (None, "ended"):
                self._book.forget(run_id)
