"""How the two processes of `mimikit up` end when it does, however it ends.

Each is given a pipe as its input. Nobody ever writes to it: when it closes, `up` is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import click

PARENT_OPTION = "--with-parent"
HURRY = signal.SIGUSR1
"""Tells the consumer that its runs get no more time."""
_LONGEST_END_S = 30.0

parent_option = click.option(
    PARENT_OPTION, is_flag=True, hidden=True, help="End when the input closes; say little."
)


def end_with_parent() -> None:
    """End this process as SIGTERM would when its input closes; by force if that takes long."""
    threading.Thread(target=_wait_for_the_end, args=(sys.stdin.fileno(),), daemon=True).start()


def _wait_for_the_end(descriptor: int) -> None:
    try:
        while os.read(descriptor, 1024):
            pass
    except OSError:
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(_LONGEST_END_S)
    os._exit(1)
