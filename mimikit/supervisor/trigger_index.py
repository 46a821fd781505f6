"""Which triggers are to be looked at, and when: a heap of due times, an index of events.

In memory only, made anew at each start. It makes a tick cost what is due, however many triggers
there are.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from datetime import datetime


class TriggerIndex:
    def __init__(self) -> None:
        self._heap: list[tuple[datetime, str]] = []
        self._due: dict[str, datetime] = {}
        self._listeners: defaultdict[str, set[str]] = defaultdict(set)
        self._subjects: dict[str, frozenset[str]] = {}
        self._waiting: defaultdict[str, set[str]] = defaultdict(set)
        """Run → the triggers whose next firing waits for its end."""
        self._soon: set[str] = set()

    def look_at(self, trigger_id: str, due: datetime | None) -> None:
        """Look at a trigger at that time and at no other; None: at none."""
        if due is None:
            self._due.pop(trigger_id, None)
        elif self._due.get(trigger_id) != due:
            self._due[trigger_id] = due
            heapq.heappush(self._heap, (due, trigger_id))

    def look_soon(self, trigger_id: str) -> None:
        self._soon.add(trigger_id)

    def look_after(self, task_id: str, trigger_id: str) -> None:
        self._waiting[task_id].add(trigger_id)

    def listen(self, trigger_id: str, subjects: frozenset[str] | None) -> None:
        """Look at a trigger whenever one of these tasks or triggers has news; None: never."""
        for subject in self._subjects.pop(trigger_id, frozenset()):
            self._listeners[subject].discard(trigger_id)
            if not self._listeners[subject]:
                del self._listeners[subject]
        if subjects is not None:
            self._subjects[trigger_id] = subjects
            for subject in subjects:
                self._listeners[subject].add(trigger_id)

    def listens(self, trigger_id: str) -> bool:
        return trigger_id in self._subjects

    def tell(self, subject: str) -> None:
        """This task or trigger has news: look at all who wait for it."""
        self._soon |= self._listeners.get(subject, set())
        self._soon |= self._waiting.pop(subject, set())

    def forget(self, trigger_id: str) -> None:
        """A trigger is gone; who waited for it looks again."""
        self.listen(trigger_id, None)
        self.look_at(trigger_id, None)
        self._soon.discard(trigger_id)
        self.tell(trigger_id)

    def next_due(self) -> datetime | None:
        """The earliest time at which something is to be looked at."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: datetime) -> str | None:
        """The next trigger to look at now; None when there is none."""
        due = self.next_due()
        if due is not None and due <= now:
            _, trigger_id = heapq.heappop(self._heap)
            del self._due[trigger_id]
            return trigger_id
        return self._soon.pop() if self._soon else None

    def planned(self) -> list[tuple[str, datetime]]:
        """Every trigger with the time at which it is to be looked at."""
        return list(self._due.items())
