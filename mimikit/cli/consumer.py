"""`mimikit consumer`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from mimikit.cli.frame import Frame, LeafCommand, pass_frame
from mimikit.cli.parent import HURRY, end_with_parent, parent_option

if TYPE_CHECKING:
    from mimikit.app import ConsumerApp


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
        _end_runs_on_hurry(app)
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


def _end_runs_on_hurry(app: ConsumerApp) -> None:
    """Whoever asked us to leave may say that it is urgent."""

    def hurry(_number: int, _frame: FrameType | None) -> None:
        # Apart: a handler must not wait for a lock that the thread it interrupts may hold.
        threading.Thread(target=app.office.live.stop_all, args=("killed",)).start()

    signal.signal(HURRY, hurry)
