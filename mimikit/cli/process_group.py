"""A small process supervisor: start, restart with back-off, end together; and the consumer.

A child's standard input is a pipe that closes when the parent dies. Nothing heavy is imported
here, so that the consumer handles signals early.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal, NamedTuple, NoReturn

import click

import mimikit
from mimikit.cli.frame import CliContext, LeafCommand, pass_cli
from mimikit.clock import Clock

QUICK_DEATH_S = 60.0
"""A process that lived shorter counts as a quick death."""
FIRST_DELAY_S = 1.0
MAX_QUICK_DEATHS = 5
MAX_DELAY_S = 60.0
FAST_SHUTDOWN = signal.SIGUSR1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PARENT_OPTION = "--with-parent"
_MAX_END_S = 30.0


class ProcessEvent(NamedTuple):
    """A shutdown signal, or the exit or due start of a child."""

    kind: Literal["stop", "died", "start"]
    name: str = ""
    code: int = 0


@dataclass
class _Child:
    name: str
    arguments: list[str]
    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0
    quick_deaths: int = 0


class ProcessGroup:
    def __init__(
        self,
        commands: Mapping[str, list[str]],
        clock: Clock,
        print_line: Callable[[str], None],
        fast_signals: Mapping[str, signal.Signals] | None = None,
    ) -> None:
        """`fast_signals`: by process, the signal for an immediate end, by default SIGTERM."""
        self._clock, self._print, self._fast_signals = clock, print_line, fast_signals or {}
        self._children = {name: _Child(name, argv) for name, argv in commands.items()}
        self._events = queue.SimpleQueue[ProcessEvent]()

    def start(self) -> None:
        for number in _SIGNALS:
            signal.signal(number, lambda _n, _frame: self._events.put(ProcessEvent("stop")))
        for child in self._children.values():
            self._launch(child)

    def _launch(self, child: _Child) -> None:
        # In a new session, so that Ctrl-C reaches the parent alone.
        child.started_s = self._clock.monotonic()
        child.process = process = subprocess.Popen(
            child.arguments, stdin=subprocess.PIPE, env=environment(), start_new_session=True
        )

        def wait() -> None:
            code = process.wait()
            if process.stdin is not None:
                process.stdin.close()
            self._events.put(ProcessEvent("died", child.name, code))

        threading.Thread(target=wait, daemon=True).start()

    def next_event(self, timeout_s: float | None) -> ProcessEvent | None:
        with contextlib.suppress(queue.Empty):
            return self._events.get(timeout=timeout_s)
        return None

    def supervise(self) -> None:
        """Restart processes that die, until a shutdown signal."""
        while (event := self._events.get()).kind != "stop":
            child = self._children[event.name]
            if event.kind == "start":
                self._launch(child)
            else:
                self._plan_restart(child, event.code)

    def _plan_restart(self, child: _Child, code: int) -> None:
        child.process = None
        is_quick = self._clock.monotonic() - child.started_s < QUICK_DEATH_S
        child.quick_deaths = child.quick_deaths + 1 if is_quick else 1
        delay_s = restart_delay(child.quick_deaths)
        line = f"The {child.name} {end_words(code)}; it restarts in {delay_s:g} s."
        if child.quick_deaths >= MAX_QUICK_DEATHS:
            line += " `mimikit doctor` and `mimikit logs` say more."
        self._print(line)
        timer = threading.Timer(delay_s, self._events.put, [ProcessEvent("start", child.name)])
        timer.daemon = True
        timer.start()

    def end(self, grace_s: float) -> None:
        """End every process: SIGTERM, then SIGKILL after the grace period.

        A signal meanwhile makes them end immediately, another one kills them.
        """
        for process in self._running().values():
            process.terminate()
        deadline_s = self._clock.monotonic() + grace_s
        may_be_fast = True
        while self._running():
            left_s = deadline_s - self._clock.monotonic()
            event = self.next_event(left_s) if left_s > 0 else None
            if event is not None and event.kind != "stop":
                continue
            if event is not None and may_be_fast:
                may_be_fast = False
                self._print("Ending at once.")
                for name, process in self._running().items():
                    process.send_signal(self._fast_signals.get(name, signal.SIGTERM))
            else:
                self._print("Ending by force.")
                for process in self._running().values():
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)  # gunicorn's workers, too
                deadline_s = self._clock.monotonic() + grace_s

    def _running(self) -> dict[str, subprocess.Popen[bytes]]:
        return {
            child.name: child.process
            for child in self._children.values()
            if child.process is not None and child.process.returncode is None
        }


def restart_delay(quick_deaths: int) -> float:
    """Exponential back-off in seconds: 1, 2, 4, 8, then MAX_DELAY_S."""
    if quick_deaths >= MAX_QUICK_DEATHS:
        return MAX_DELAY_S
    return FIRST_DELAY_S * 2.0 ** (quick_deaths - 1)


def end_words(code: int) -> str:
    if code >= 0:
        return f"ended by itself (exit code {code})"
    known = {number.value: number.name for number in signal.Signals}
    return f"was ended by {known.get(-code, f'signal {-code}')}"


def child_command(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "mimikit", *arguments, _PARENT_OPTION]


def environment() -> dict[str, str]:
    """The environment of a child; finds this mimikit where it is not installed."""
    home = str(Path(mimikit.__file__).parents[1])
    if home in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        return dict(os.environ)
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": home + (os.pathsep + known if known else "")}


def has_lost_parent(pid: int) -> bool:
    """Whether `up` started this process and is gone, so that it ends in a moment."""
    try:
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
        parent = Path(f"/proc/{int(fields[1])}/cmdline").read_bytes()
    except OSError:
        return False
    return _PARENT_OPTION.encode() in argv and b"mimikit" not in parent


# ---- the child's side, and the consumer

parent_option = click.option(
    _PARENT_OPTION, is_flag=True, hidden=True, help="End when the input closes; print little."
)


def end_with_parent() -> None:
    """End this process by SIGTERM when standard input closes, and by force if that hangs."""
    descriptor = sys.stdin.fileno()

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(descriptor, 1024):
                pass
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(_MAX_END_S)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@click.command(cls=LeafCommand)
@click.option("--workers-only", is_flag=True, help="Only run tasks for a shared queue.")
@parent_option
@pass_cli
def consumer(cli: CliContext, workers_only: bool, with_parent: bool) -> None:
    """Start the consumer: it answers messages, plans, runs tasks and fires triggers.

    One at a time for a state folder. Ctrl-C or SIGTERM lets runs end (10 seconds), then leaves.
    """
    if workers_only:
        raise click.UsageError(
            "--workers-only is not supported yet: it needs a queue shared between machines; "
            "leave it out"
        )

    # Until the consumer installs its handlers, a signal ends the process immediately: an exception
    # raised by a handler could interrupt anything, even a lock being taken.
    def leave(_number: int, _frame: FrameType | None) -> NoReturn:
        os._exit(0)

    for number in _SIGNALS:
        signal.signal(number, leave)
    if with_parent:
        end_with_parent()
    from mimikit.processes import ConsumerProcess
    from mimikit.supervisor.consumer_lock import take_consumer_lock

    # A restarted consumer must not create an empty folder in place of one that was moved away.
    state = cli.open_writable(create=not with_parent)
    lock = take_consumer_lock(state)
    try:
        consumer = ConsumerProcess(state, lock)

        def stop_runs(_number: int, _frame: FrameType | None) -> None:
            # In a thread: a handler must not wait for a lock that the interrupted thread may hold.
            threading.Thread(target=consumer.store.live.stop_all, daemon=True).start()

        signal.signal(FAST_SHUTDOWN, stop_runs)
        if not with_parent:
            click.echo(f"mimikit starts on {state.path}; Ctrl-C ends it.", err=True)
        code = consumer.run(lambda line: click.echo(line, err=True))
    finally:
        lock.release()
    sys.exit(code)
