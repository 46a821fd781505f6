"""Following a run: its words, commands and output, as they come."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self

import click

from mimikit.cli import terminal
from mimikit.cli.guest import GuestState
from mimikit.cli.waiting import HINT, Watcher, look_at_consumer
from mimikit.protocol import paths
from mimikit.web.shown import tasks as shown


class EventPrinter:
    """Prints a run's events one after the other, as one readable text."""

    def __init__(self) -> None:
        """Nothing printed yet."""
        self._deltas = ""
        self._at_line_start = True
        self.printed_anything = False

    def event(self, event: dict[str, Any]) -> None:
        """One event of the run."""
        kind, text = event["type"], terminal.safe(event["text"])
        match kind:
            case "delta":
                self._deltas += text
                self._write(text)
            case "message":
                self._message(text)
            case "output":
                stream = event["stream"] or event["data"].get("stream")
                self._write(text, err=stream == "stderr")
            case "started" if event["data"].get("attempt", 1) > 1:
                self._line(terminal.dim(f"— attempt {event['data']['attempt']} —"))
            case "command":
                self._line(terminal.dim(f"$ {terminal.one_line(text)}"))
            case "tool" | "file" | "note":
                self._line(terminal.dim(f"· {terminal.one_line(text)}"))
            case "error":
                self._line(click.style(terminal.one_line(text), fg="red"))
            case _:
                return

    def end(self) -> None:
        """Close a line that is open."""
        if not self._at_line_start:
            self._write("\n")
        self._deltas = ""

    def _message(self, text: str) -> None:
        """A whole message; what was streamed of it already is not said twice."""
        if text.strip() != self._deltas.strip():
            self.end()
            self._write(text)
        self.end()

    def _line(self, text: str) -> None:
        self.end()
        self._write(text + "\n")

    def _write(self, text: str, *, err: bool = False) -> None:
        if not text:
            return
        click.echo(text, nl=False, err=err)
        self.printed_anything = True
        self._at_line_start = text.endswith("\n")


class RunFollower:
    """Prints the output of a task's run, from its beginning."""

    def __init__(self, state: GuestState, task_id: str, *, as_json: bool = False) -> None:
        """Watch from now on; print nothing yet."""
        self._state, self._id, self._as_json = state, task_id, as_json
        folders = [paths.RUNS, *(f"{seat}/results" for seat in paths.SEATS)]
        self._watcher = Watcher(state, folders)
        self._printer = EventPrinter()
        self._offset = 0

    def __enter__(self) -> Self:
        """Be closed at the end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the open line and the watch."""
        self._printer.end()
        self._watcher.__exit__(kind, error, trace)

    @property
    def printed_anything(self) -> bool:
        """Whether there was anything to print."""
        return self._printer.printed_anything

    def print_present(self) -> None:
        """What is there now."""
        at_end = False
        while not at_end:
            events, self._offset, at_end = shown.output(self._state.files, self._id, self._offset)
            for event in events:
                if self._as_json:
                    click.echo(json.dumps(event, ensure_ascii=False))
                else:
                    self._printer.event(event)

    def print_until_end(self) -> None:
        """Everything, until the task has ended."""
        told = False
        while True:
            # Asked before reading: what a run wrote before it ended is then surely read.
            view = shown.find_view(self._state.files, self._id)
            has_ended = view is None or view.completed_at is not None
            self.print_present()
            if has_ended:
                break
            if not told and not look_at_consumer(self._state).is_there:
                terminal.note(f"It waits: {HINT}.")
                told = True
            self._watcher.pause()
        self._printer.end()
        if view is not None and not self._as_json:
            terminal.note(f"Ended: {view.state}{': ' + view.error if view.error else ''}")
