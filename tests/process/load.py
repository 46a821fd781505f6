"""Who uses the product while it is killed: repeats each request until it is acknowledged.

What it was told is accepted, and the file to which every run appends, lie outside of the state.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.process.world import World

_MOST_WAITING = 20
"""The load rests while more tasks wait, so that the end comes soon after the last kill."""

_SCRIPT = r"""# What every run of the load does: it says who it is, once, in one write.
file=$(grep -l "$1 $2" "STATE/worker/running/"*.json | tail -1)
before=$(sed -n 's/^ *"attempts": *\([0-9]*\).*/\1/p' "$file")
echo "$(basename "$file" .json) $before" >>"RUNS"
if [ "$3" = stray ]; then (setsid sleep 3600.77 >/dev/null 2>&1 &); fi
sleep "$1"
"""


@dataclass
class Load:
    """Three clients: one talks, one hands in tasks, one cancels some of them."""

    world: World
    seed: str
    messages: dict[str, str] = field(default_factory=dict)
    """Accepted messages: id → text."""
    tasks: dict[str, int] = field(default_factory=dict)
    """Accepted tasks: id → the attempts they may take."""
    cancels: dict[str, str] = field(default_factory=dict)
    """Accepted orders to cancel: the order's id → the task's."""
    in_flight: set[str] = field(default_factory=set)
    """Ids of requests that were sent and are not answered yet."""
    odd: list[str] = field(default_factory=list)
    """Answers that neither accept nor are an ended connection."""
    on_sent: Callable[[], None] = lambda: None
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def script(self) -> Path:
        return self.world.root / "load.sh"

    @property
    def runs_file(self) -> Path:
        return self.world.root / "runs.txt"

    def start(self) -> None:
        text = _SCRIPT.replace("STATE", str(self.world.state))
        self.script.write_text(text.replace("RUNS", str(self.runs_file)))
        self.runs_file.touch()
        for client in (self._talk, self._hand_in, self._cancel):
            dice = random.Random(f"{self.seed} {client.__name__}")
            thread = threading.Thread(target=client, args=(dice,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self, timeout_s: float) -> None:
        """Let every client have its last request accepted."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout_s)
            assert not thread.is_alive(), f"not accepted within {timeout_s:g} s: {self.in_flight}"

    def runs(self) -> list[tuple[str, int]]:
        """(id, attempts before) of every run that began."""
        lines = [line.split() for line in self.runs_file.read_text().splitlines()]
        return [(line[0], int(line[1])) for line in lines]

    def line(self, dice: random.Random) -> str:
        """A shell line of the load."""
        stray = " stray" if dice.random() < 0.1 else ""
        name = f"{dice.getrandbits(64):x}"
        return f"sh {self.script} {dice.choice([0, 0.05, 0.1, 0.3])} {name}{stray}"

    # ---- the clients --------------------------------------------------------------------

    def _talk(self, dice: random.Random) -> None:
        number = 0
        while not self._stop.wait(dice.uniform(0.02, 0.25)):
            number += 1
            id_ = f"msg-{self.seed}-{number}"
            text = dice.choice(["hello", "remember it rains", "what is going on?", "run"])
            text = f"run: {self.line(dice)}" if text == "run" else f"{text} {number}"
            self._insist("/api/input", id_, {"id": id_, "text": text})
            self.messages[id_] = text

    def _hand_in(self, dice: random.Random) -> None:
        number = 0
        while not self._stop.wait(dice.uniform(0.05, 0.3)):
            if len(self.world.names("worker/queue")) > _MOST_WAITING:
                continue
            number += 1
            id_ = f"task-{self.seed}-{number}"
            attempts = dice.choice([1, 1, 1, 2, 5])
            task = {"prompt": self.line(dice), "profile": "command", "maxAttempts": attempts}
            if dice.random() < 0.5:
                self._insist("/api/tasks", id_, {"id": id_, **task})
            else:
                self.world.drop(id_, task)
            self.tasks[id_] = attempts

    def _cancel(self, dice: random.Random) -> None:
        number = 0
        while not self._stop.wait(dice.uniform(0.3, 0.8)):
            if not self.tasks:
                continue
            number += 1
            order, target = f"cmd-{self.seed}-{number}", list(self.tasks)[-1]
            self._insist(f"/api/tasks/{target}/cancel", order, {"id": order})
            self.cancels[order] = target

    def _insist(self, path: str, id_: str, body: dict[str, Any]) -> None:
        """Send it again and again until it is accepted."""
        while True:
            try:
                answer = self.world.post(path, body, sent=lambda: self._sent(id_))
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                threading.Event().wait(0.01)
                continue
            finally:
                self.in_flight.discard(id_)
            if answer.status in (200, 202):
                return
            self.odd.append(f"{path} {answer.status}: {answer.body}")
            threading.Event().wait(0.1)

    def _sent(self, id_: str) -> None:
        self.in_flight.add(id_)
        self.on_sent()
