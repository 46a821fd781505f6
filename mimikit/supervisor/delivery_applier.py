"""Takes in what came by webhooks: makes it an input or a task, and an event for conditions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from mimikit.conversation import inbox
from mimikit.protocol import paths
from mimikit.protocol.deliveries import Delivery
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import REMINDER, InboxItem, Task
from mimikit.protocol.notify import usual
from mimikit.supervisor.store import Store
from mimikit.triggers.conditions import hook_subject

BATCH = 100
"""So many in one pass: others have their turn in between."""


class DeliveryApplier:
    """The one who moves deliveries from `hooks/new` to `hooks/done`."""

    def __init__(self, store: Store, came: Callable[[str], None]) -> None:
        """`came(subject)` has those looked at who wait for it."""
        self._store, self._came = store, came

    def step(self, now: datetime) -> bool:
        """Take in what has come, in the order of its arrival; gives whether anything had."""
        files = self._store.files
        names = set(files.names(paths.HOOKS_NEW))
        if not names:
            return False
        stats = files.stats(paths.HOOKS_NEW, suffix=".json")
        here = [name for name in stats if name in names]
        here.sort(key=lambda name: (stats[name].mtime_ns, name))
        for name in here[:BATCH]:
            delivery = files.load(f"{paths.HOOKS_NEW}/{name}", Delivery)
            if delivery is not None:
                self._take_in(delivery, now)
        return True

    def _take_in(self, delivery: Delivery, now: datetime) -> None:
        """Do what one asks for.

        Crash: all that comes of it has ids that follow from its own, so that doing it again finds
        it. It lies in `hooks/done` before it goes from `hooks/new`, and what lies in both is done.
        """
        store, done = self._store, paths.hook_done(delivery.id)
        # One there that can not be used is set aside, and what it was of is taken in again.
        if (numbered := store.files.load(done, Delivery)) is None:
            if delivery.does == "input":
                inbox.put(store.files, input_of(delivery))
            elif delivery.does == "task":
                store.submit(task_of(delivery))
            numbered = delivery.but(number=store.deliveries.next_number(now))
            store.files.save_new(done, numbered)
            store.deliveries.add(numbered)
            store.log.write("audit", "hook_taken_in", hook=delivery.hook, deliveryId=delivery.id)
        else:
            # Whoever put it there may not have got any further: neither flushed it nor counted it.
            store.files.save(done, numbered)
            store.deliveries.add(numbered)
        store.files.remove(paths.hook_new(delivery.id))
        self._came(hook_subject(delivery.hook))


def input_of(delivery: Delivery) -> InboxItem:
    """The settings' words as if the user had said them, with the body as a file beside them."""
    return InboxItem(
        id=derived_id("msg", delivery.id),
        text=delivery.prompt,
        created_at=delivery.created_at,
        hook=delivery.hook,
        files=[delivery.file] if delivery.file else [],
    )


def task_of(delivery: Delivery) -> Task:
    """The settings' words as a task, whose run is given the body as a file.

    Their origin is the file in which they stand: whoever writes there is at the machine.
    """
    task_id = derived_id("task", delivery.id)
    is_reminder = delivery.profile == REMINDER
    told = delivery.notify if delivery.notify and not is_reminder else None
    return Task(
        id=task_id,
        profile=delivery.profile,
        title=delivery.title,
        prompt=delivery.prompt,
        created_at=delivery.created_at,
        trace_id=task_id,
        origin="file",
        notify=told or usual(delivery.profile, "file"),
        notify_given=told is not None,
        files=[delivery.file] if delivery.file and not is_reminder else [],
    )
