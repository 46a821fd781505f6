"""The dictionary of Chinese words (jieba's, by its Rust port), loaded once and not before it helps.

Loading takes some 150 ms and 33 MB, in which every thread of the process stands still: a turn never
waits for it. Without it a search goes by characters and pairs, which finds nearly as much.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Literal, cast

from mimikit.memory.text import Cutter

REST_S = 2.0
"""So long after the first Chinese text it is loaded: after the turn that brought it."""


class Words:
    """Knows whether the dictionary is there; safe from any thread."""

    def __init__(self) -> None:
        """Nothing is loaded."""
        self._loading = threading.Lock()
        self._cut: Cutter | None = None
        self._timer: threading.Timer | None = None

    @property
    def state(self) -> Literal["ready", "loading", "not loaded"]:
        """How far it is."""
        if self._cut is not None:
            return "ready"
        return "loading" if self._timer is not None else "not loaded"

    @property
    def cut(self) -> Cutter | None:
        """What cuts a run of Chinese into words; None until it is loaded."""
        return self._cut

    def load(self) -> Cutter:
        """Load it now, if it is not there."""
        with self._loading:
            if self._cut is None:
                search = cast(
                    "Callable[[str], Iterable[str]]", import_module("rjieba").cut_for_search
                )
                self._cut = lambda run: list(search(run))
            return self._cut

    def want(self) -> None:
        """Have it loaded a little later, by a thread of its own."""
        with self._loading:
            if self._cut is not None or self._timer is not None:
                return
            self._timer = threading.Timer(REST_S, self.load)
            self._timer.daemon = True
            self._timer.start()
