"""Kills an import before each of its changes of the disk: `import_killer.py EXPORT FOLDER`.

A child for each step dies there as by a kill. Prints a line for each: how many steps were lived
through, and what stands at the target then.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from mimikit.protocol.state_import import import_state

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def main() -> None:
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    step, is_done = 0, False
    while not is_done:
        place = folder / str(step)
        place.mkdir()
        child = os.fork()
        if child == 0:
            die_at(step)
            import_state(source, place / ".mimikit")
            os._exit(0)
        is_done = os.waitpid(child, 0)[1] == 0
        there = sorted(path.name for path in place.iterdir())
        state = place / ".mimikit"
        files = sum(path.is_file() for path in state.rglob("*")) if state.exists() else None
        again = None
        if files is None:
            again = len(import_state(source, state).files)
        left = sorted(path.name for path in place.iterdir())
        told = {"step": step, "there": there, "files": files, "again": again, "left": left}
        sys.stdout.write(json.dumps(told) + "\n")
        step += 1


def die_at(step: int) -> None:
    """From now on die before the change with this number."""
    left = step

    def hear(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        is_write = event == "open" and isinstance(args[2], int) and bool(args[2] & WRITING)
        if is_write or event in CHANGES:
            if left == 0:
                os._exit(9)
            left -= 1

    sys.addaudithook(hear)


if __name__ == "__main__":
    main()
