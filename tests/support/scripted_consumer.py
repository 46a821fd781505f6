"""The product's consumer with an engine that plays a script, as a program of its own.

`python -m tests.support.scripted_consumer SCRIPT.json WORKSPACE`; settings name it `scripted`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mimikit import app, processes
from mimikit.state import find_state, open_state
from mimikit.supervisor.consumer_lock import take_consumer_lock
from tests.support.twins import ScriptedEngine


def main(script: Path, workspace: Path) -> int:
    state = open_state(*find_state(None, workspace))
    engines = [*app.engines_of(state), ScriptedEngine(json.loads(script.read_text()))]
    return processes.ConsumerProcess(state, take_consumer_lock(state), engines).run()


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
