"""Ports of loopback for servers that are told where to listen, and end and begin anew there."""

from __future__ import annotations

import itertools
import os
import random
import socket

FIRST, EACH = 20_000, 1000
"""Below those that the system gives to whoever asks for any: else another has it by then."""
_TURNS = itertools.count(random.randrange(EACH))


def free_port() -> int:
    """A port that nobody listens at, and no other process of this run of the tests is given."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10
    while True:
        port = FIRST + EACH * worker + next(_TURNS) % EACH
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
