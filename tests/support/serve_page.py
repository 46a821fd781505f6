"""Serves a page: `python -m tests.support.serve_page STATE WORKSPACE [HOST [PORT]]`."""

from __future__ import annotations

import sys
from pathlib import Path

from mimikit.errors import MimikitError
from mimikit.state import open_state
from mimikit.web.serve import serve


def main() -> None:
    folder, workspace = map(Path, sys.argv[1:3])
    host, port = (*sys.argv[3:], "", "")[:2]

    def ready(where: str, at: int) -> None:
        sys.stdout.write(f"http://{where}:{at}\n")
        sys.stdout.flush()

    try:
        state = open_state(folder, workspace)
        serve(state, host or None, int(port) if port else None, ready)
    except MimikitError as error:
        sys.exit(f"mimikit: {error}")


if __name__ == "__main__":
    main()
