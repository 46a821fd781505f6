"""The steps of chains that wait for others to be done: what a job has still before it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from typing import NamedTuple

from mimikit.errors import UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.ids import is_id
from mimikit.protocol.triggers import TaskDone, Trigger
from mimikit.tools import world
from mimikit.triggers import conditions, registry

_MOST_STEPS = 2000
"""Definitions looked through for steps of chains."""


class WaitingStep(NamedTuple):
    """A step of a chain that waits for others to be done; its trigger's id."""

    id: str
    title: str


class WaitingSteps:
    """The steps of chains that have not begun, by trace; read anew when a definition changed."""

    def __init__(self, files: ReadOnlyFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._seen: tuple[FileStat | None, list[str]] = None, []
        self._traces: dict[str, str] = {}
        """By the steps seen last."""
        self._steps: dict[str, list[WaitingStep]] = {}

    def by_trace(self) -> Mapping[str, list[WaitingStep]]:
        """The steps of each trace that has some, oldest first."""
        with self._lock:
            seen = self._files.stat(paths.TRIGGERS), registry.ids(self._files)[:_MOST_STEPS]
            if seen != self._seen:
                self._seen, self._steps = seen, self._read(seen[1])
                steps = {one.id: trace for trace, found in self._steps.items() for one in found}
                self._traces = dict([*self._traces.items(), *steps.items()][-_MOST_STEPS:])
            return self._steps

    def trace_of(self, trigger_id: str) -> str | None:
        """The trace of a step that waits, or waited at an earlier look; None of all else."""
        self.by_trace()
        with self._lock:
            return self._traces.get(trigger_id)

    def _read(self, ids: list[str]) -> dict[str, list[WaitingStep]]:
        found: dict[str, list[Trigger]] = {}
        for id_ in ids:
            with contextlib.suppress(UnsafeFile):
                data = self._files.read(paths.trigger(id_)) or b""
                if b"task_done" in data and is_id(id_):  # few are worth more
                    trigger, _ = world.active(self._files, id_)
                    if trigger is not None and _is_step(trigger):
                        found.setdefault(trigger.trace_id, []).append(trigger)
        return {
            trace: [WaitingStep(one.id, world.title(one)) for one in in_turn(steps)]
            for trace, steps in found.items()
        }


def in_turn(steps: list[Trigger]) -> list[Trigger]:
    """Steps of one trace as they come: each behind those it waits for, then the older first. Pure.

    Hands may have made a circle: what is in it comes last.
    """
    left, found = sorted(steps, key=lambda it: (it.created_at, it.id)), list[Trigger]()
    while left:
        ids = {one.id for one in left}
        free = [one for one in left if not _awaited(one) & (ids - {one.id})] or left
        found += free
        left = [one for one in left if one not in free]
    return found


def _awaited(trigger: Trigger) -> set[str]:
    """The tasks and triggers that it waits for."""
    leaves = conditions.walk(trigger.condition) if trigger.condition else ()
    found = (leaf.condition for leaf in leaves)
    return {it.params.task_id for it in found if isinstance(it, TaskDone)}


def _is_step(trigger: Trigger) -> bool:
    if trigger.stays or not trigger.enabled or trigger.condition is None:
        return False
    return bool(_awaited(trigger))
