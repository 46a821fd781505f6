"""Has the user told what of the backlog is due: a reminder for each open item, by its time.

The list is the truth, whoever wrote it. A reminder's id follows from the item and its time, so that
looking again makes no second one, and what the list no longer says is taken away.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from mimikit.errors import UnsafeFile
from mimikit.memory import notes
from mimikit.memory.due import instant
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import END_OF_TIME, FIRST_TIME, REMINDER, time_text
from mimikit.protocol.triggers import Schedule, Trigger
from mimikit.supervisor.store import Store
from mimikit.tasks import queue
from mimikit.triggers import registry
from mimikit.triggers.decide import make_run

LATEST = timedelta(days=7)
"""What was due longer ago, and first seen now, is told no more."""
_MOST = 500
"""Reminders of one list."""
_OURS = re.compile(r"due-[a-z2-7]{26}")


class BacklogReminders:
    """Keeps the reminders of the backlog in line with it. The supervisor's."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked: object = None

    def step(self, now: datetime) -> bool:
        """Look at the list where it has changed; gives whether a reminder came or went.

        Crash: the next look, at the start, finds what is missing and what is too much.
        """
        store, zone = self._store, self._store.settings.zone
        stat = store.files.stat(paths.BACKLOG)
        seen = stat and (stat.inode, stat.mtime_ns, stat.size), zone.key
        if seen == self._looked:
            return False
        try:
            found = notes.load_backlog(store.files)
        except UnsafeFile:
            self._looked = seen  # no list: what was made of it stays until there is one
            return False
        wanted = due_reminders(found, now, zone)
        worked = False
        # Of one whose removal was cut short what is known of it is left.
        states = (name.removesuffix(".json") for name in store.files.names(paths.TRIGGER_STATE))
        for trigger_id in dict.fromkeys([*registry.ids(store.files), *states]):
            if _OURS.fullmatch(trigger_id) and trigger_id not in wanted:
                store.ledger.write("trigger_removed", trigger_id, now)
                registry.remove(store.files, trigger_id)
                store.trigger_changed(trigger_id)
                worked = True
        for trigger in wanted.values():
            if not registry.exists(store.files, trigger.id) and not self._was_told(trigger, now):
                registry.create(store.files, trigger)
                store.trigger_changed(trigger.id)
                worked = True
        self._looked = seen
        return worked

    def _was_told(self, trigger: Trigger, now: datetime) -> bool:
        at = trigger.schedule and trigger.schedule.run_at
        run = make_run(trigger, time_text(at or now), now)
        return queue.where(self._store.files, run.role, run.id) is not None


def due_reminders(found: notes.BacklogList, now: datetime, zone: ZoneInfo) -> dict[str, Trigger]:
    """The reminders that a list asks for, by id. Pure."""
    wanted: dict[str, Trigger] = {}
    for item in found.items:
        if item.due is None or item.done or len(wanted) >= _MOST:
            continue
        at = instant(item.due, zone)
        if not FIRST_TIME <= at < END_OF_TIME or at < now - LATEST:
            continue
        trigger_id = derived_id("due", item.text, time_text(at))
        wanted[trigger_id] = Trigger(
            id=trigger_id,
            type="scheduled",
            title=item.text[:200],
            prompt=item.text,
            profile=REMINDER,
            created_at=now,
            origin="file",
            trace_id=derived_id("trace", trigger_id),
            notify="message",
            schedule=Schedule(run_at=at, timezone=zone.key),
        )
    return wanted
