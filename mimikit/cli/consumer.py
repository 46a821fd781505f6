"""`mimikit consumer`; and how a process of `mimikit up` ends when that does, however it ends.

Such a process is given a pipe as its input. Nobody ever writes to it: when it closes, `up` is gone.
Nothing heavy is imported before a signal is heard.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

import click

from mimikit.cli.frame import Frame, LeafCommand, pass_frame

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


@click.command(cls=LeafCommand)
@click.option("--workers-only", is_flag=True, help="Only run tasks for a shared queue.")
@parent_option
@pass_frame
def consumer(frame: Frame, workers_only: bool, with_parent: bool) -> None:
    """Start the consumer: it answers messages, plans, runs tasks and fires triggers.

    One at a time for a state folder. Ctrl-C or SIGTERM lets runs end (10 seconds), then leaves.
    """
    if workers_only:
        raise click.UsageError(
            "--workers-only is not supported yet: it needs a queue shared between machines; "
            "leave it out"
        )
    _leave_cleanly_from_the_start()
    if with_parent:
        end_with_parent()
    from mimikit.app import ConsumerApp, take_consumer_lock

    state = frame.open_as_keeper(create=True)
    lock = take_consumer_lock(state)
    try:
        app = ConsumerApp(state)

        def hurry(_number: int, _frame: FrameType | None) -> None:
            # Apart: a handler must not wait for a lock that the thread it interrupts may hold.
            threading.Thread(target=app.store.live.stop_all).start()

        signal.signal(HURRY, hurry)
        if not with_parent:
            click.echo(f"The consumer of {state.path} starts; Ctrl-C ends it.", err=True)
        code = app.run()
    finally:
        lock.release()
    sys.exit(code)


def _leave_cleanly_from_the_start() -> None:
    """Until the consumer listens itself, a signal ends the start as if nothing had begun.

    At once, as a kill would: an exception out of a handler may come in the middle of anything, also
    of a lock being taken. What is half done then is made good at the next start, as after a kill.
    """

    def leave(_number: int, _frame: FrameType | None) -> NoReturn:
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)
