"""What a run prints is kept as it came; what is left out leaves a mark of its size."""

from __future__ import annotations

import errno
from datetime import UTC, datetime
from typing import Any

import pytest

from mimikit.conversation.drafts import DraftCursor
from mimikit.log import ChangeFeed
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import LiveRun
from mimikit.roles.run import LiveRuns
from mimikit.roles.run_output import RunOutput
from mimikit.testing.memory_disk import DiskStep, MemoryDisk
from mimikit.testing.twins import FakeClock

START = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)


class Run:
    """One run's output on a disk in memory."""

    def __init__(self, output_bytes: int = 10_000_000, *, is_turn: bool = False) -> None:
        self.disk = MemoryDisk()
        self.files = Files(self.disk)
        self.files.make_folders()
        clock, self.live = FakeClock(START), LiveRuns()
        self.live.start("task-1", "worker", "", START)
        self.output = RunOutput(
            "task-1",
            self.files,
            ChangeFeed(self.files, clock),
            clock,
            limit=output_bytes,
            headline=self.live.headline,
            draft=DraftCursor(1) if is_turn else None,
        )

    def prints(self, text: str, stream: str = "stdout") -> None:
        self.output.event("output", text, {"stream": stream})

    @property
    def events(self) -> list[dict[str, Any]]:
        return [line for _, line in self.files.lines(paths.run_output("task-1"))]

    @property
    def kept(self) -> list[str | int]:
        """Each text in its order; where something is missing, how much."""
        return [e["data"]["bytes"] if e["type"] == "gap" else e["text"] for e in self.events]

    @property
    def live_run(self) -> LiveRun:
        return self.live.list()[0]


def test_a_long_text_is_kept_whole_in_several_lines() -> None:
    run = Run()
    text = "".join(f"{number}\n" for number in range(20_000))
    run.prints(text, "stderr")
    assert "".join(e["text"] for e in run.events) == text
    assert len(run.events) > 1
    assert {e["stream"] for e in run.events} == {"stderr"}


def test_of_too_much_the_middle_is_left_out_and_its_size_said() -> None:
    run = Run(output_bytes=20_000)
    lines = [f"{number:06d} äöü\n" for number in range(5000)]
    for line in lines:
        run.prints(line)
    whole = sum(len(line.encode()) for line in lines)
    unkept = run.output.end("", "done")
    opened, closed = [e["data"] for e in run.events if e["type"] == "gap"]
    assert opened == {"bytes": 0, "open": True}
    assert closed == {"bytes": unkept}
    texts = [e["text"] for e in run.events if e["type"] == "output"]
    assert (texts[0], texts[-1]) == (lines[0], lines[-1])
    assert sum(len(text.encode()) for text in texts) + unkept == whole
    assert [e["type"] for e in run.events][-1] == "ended"


def test_what_fits_in_the_end_leaves_no_gap() -> None:
    run = Run(output_bytes=10_000)
    for number in range(44):
        run.prints(f"line {number}\n")
    assert run.output.end("", "done") == 0
    texts = [e["text"] for e in run.events if e["type"] == "output"]
    assert texts == [f"line {number}\n" for number in range(44)]
    assert [e["data"].get("bytes") for e in run.events if e["type"] == "gap"] == [0, 0]


def test_a_disk_that_refuses_leaves_a_mark_once_it_takes_again() -> None:
    run = Run()

    def full(_number: int, step: DiskStep) -> OSError | None:
        is_output = step.path.startswith("runs/")
        return OSError(errno.ENOSPC, "no space") if is_output else None

    run.prints("before\n")
    run.disk.fail = full
    run.prints("lost, too\n")
    run.prints("lost\n")
    run.disk.fail = None
    run.prints("after\n")
    assert run.kept == ["before\n", 15, "after\n"]
    assert run.output.end("", "done") == 15


def test_of_a_long_message_the_beginning_is_kept_and_the_rest_is_marked() -> None:
    run = Run()
    run.output.event("message", "x" * 20_500, {})
    run.output.end("", "done")
    assert run.kept == ["x" * 20_000, 500, ""]


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("output", "one\ntwo\n", "two"),
        ("output", "10 %\r20 %\r30 %", "30 %"),
        ("message", "Done.\n\nAll is well.\n\n", "All is well."),
        ("command", "make test", "make test"),
        ("output", "\n\n", ""),
        ("usage", "", ""),
    ],
)
def test_the_headline_is_the_latest_sign_of_life(kind: Any, text: str, said: str) -> None:
    run = Run()
    run.output.event(kind, text, {})
    assert run.live_run.headline == said


def test_a_line_that_comes_in_pieces_is_one_headline() -> None:
    run = Run()
    for piece in ("comp", "iling ma", "in.c\nlink", "ing"):
        run.output.event("delta", piece, {})
    assert run.live_run.headline == "linking"
    run.prints(" it\n")
    assert run.live_run.headline == "linking it"


def test_the_words_of_a_reply_are_no_headline() -> None:
    run = Run(is_turn=True)
    run.output.event("delta", "Hello", {})
    assert run.live_run.headline == ""
