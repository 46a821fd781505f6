"""The token budget: ends waits for tokens, notifies the user once, sums up past days."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

from mimikit import config
from mimikit.conversation.inbox import InboxIndex
from mimikit.errors import BadSettings
from mimikit.language import phrases
from mimikit.language.phrases import local_time
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Task
from mimikit.protocol.runtime import BudgetNote, BudgetStatus
from mimikit.supervisor.code_turns import waiting_counts
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.tasks.usage import BudgetHold, UsageBook, day_end, day_of, roll_up
from mimikit.triggers import registry

_MAX_CHECKED = 100


class BudgetWatch:
    def __init__(
        self,
        store: Store,
        book: UsageBook,
        inputs: InboxIndex,
        notify: Callable[[str, str, datetime], None],
    ) -> None:
        self._store, self._book, self._inputs, self._notify = store, book, inputs, notify
        self._config = store.files.stat(paths.CONFIG)
        self._note: BudgetNote | None = None

    @property
    def holds_teller(self) -> bool:
        return any(task is None for _, task in self._book.held.values())

    def step(self, now: datetime, *, teller_waits: bool) -> None:
        """End waits that are over; notify the user of new ones, once.

        Crash: the note is saved before the notification, which has a derived id, and stays until
        the waits are ended; ending a wait twice is harmless.
        """
        day = day_of(now, self._store.settings.zone)
        self._read_settings()
        note = BudgetNote(day=day.isoformat(), caps=self._book.caps.model_dump())
        if note != self._note:
            self._start_window(note, day)
        self._forget_canceled(teller_waits=teller_waits)
        held = list(self._book.held.values())
        if held and self._store.runtime.budget != note:
            self._store.save_runtime(budget=note)
            self._store.log.write("audit", "budget_holds", day=note.day)
            self._store.feed.publish("status")
        # One notification for the day, and one for each trigger.
        caps = {_trigger_of(*one): one for one in held if one[0].held_for != "task"}
        for trigger_id, (hold, task) in caps.items():
            self._notify_cap(hold, trigger_id, task.title if task else "", now)

    def _start_window(self, note: BudgetNote, day: date) -> None:
        """At the start, on a new day or under new caps: end all waits."""
        if self._note is None or note.day != self._note.day:
            roll_up(self._store.files, day)
        if self._store.runtime.budget is not None:
            queue.end_waits(self._store.files, self._store.unreleased)
            self._book.held.clear()
            self._store.save_runtime(budget=None)
            self._store.log.write("audit", "budget_goes_on")
            self._store.feed.publish("status")
        self._note = note

    def status(self, now: datetime) -> BudgetStatus:
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

    def _notify_cap(self, hold: BudgetHold, trigger_id: str, title: str, now: datetime) -> None:
        """Notify the user of a cap that is reached, once a day."""
        zone, language = self._store.settings.zone, self._inputs.language()
        status = self.status(now)
        trigger = registry.active(self._store.files, trigger_id)[0] if trigger_id else None
        words = phrases.say(
            f"budget_{hold.held_for}",
            language,
            title=phrases.code((trigger and trigger.title) or title or trigger_id),
            cap=f"{hold.cap:,}",
            used=f"{status.used:,}",
            what=waiting_counts(status.messages, status.tasks, language),
            until=f"{local_time(day_end(now, zone), zone):%Y-%m-%d %H:%M} ({zone.key})",
        )
        about = (day_of(now, zone).isoformat(), *filter(None, [trigger_id]), str(hold.cap))
        self._notify(derived_id("turn", "budget", *about), words, now)

    def _read_settings(self) -> None:
        """Reload the caps when `config.toml` has changed, if it is valid."""
        if (found := self._store.files.stat(paths.CONFIG)) == self._config:
            return
        self._config = found
        try:
            text = (self._store.files.read(paths.CONFIG) or b"").decode()
            self._book.caps = config.parsed(text, Path(paths.CONFIG)).budget
        except (BadSettings, UnicodeDecodeError) as error:
            self._store.log.write("error", "settings_not_read", error=str(error))
        self._store.feed.publish("status")

    def _forget_canceled(self, *, teller_waits: bool) -> None:
        for run_id, (_, task) in [*self._book.held.items()][:_MAX_CHECKED]:
            where = task and queue.where(self._store.files, task.role, run_id)
            if not teller_waits if task is None else where in (None, "ended"):
                self._book.forget(run_id)


def _trigger_of(hold: BudgetHold, task: Task | None) -> str:
    """The trigger whose cap is reached; empty: it is the day's."""
    return (task and hold.held_for == "trigger" and task.source_trigger_id) or ""
