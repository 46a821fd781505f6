"""A long conversation: pages of it, the way to an old message, what a new one costs; memory.

The folder is filled with so many archived messages over so many days. A page without a consumer is
asked for its newest page, for one in the middle and the oldest, for messages long ago; then with
one, for a search and the way to what it found. Each row: milliseconds of the answer, of the page's
CPU for it, and what its worker holds by then. The consumer is talked to while it still makes its
index; with --indexed that is waited for.
Run: python -m benchmarks.history [--messages N] [--days N] [--asked N] [--indexed]; TMPDIR tells on
    which disk.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.consumer import cpu_s, process, rss_mb
from benchmarks.load import CONFIG, ask, peak_mb, settle
from benchmarks.web import Served, client, served
from mimikit.clock import SystemClock
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import History, Message

COLUMNS = ("p50_ms", "max_ms", "cpu_ms", "rss_mb")
_AT, _ID, _TURN, _TEXT = "2000-01-01T00:00:00.000Z", "id-of-it", "turn-of-it", "text of it"
_FACTS = re.compile("|".join(map(re.escape, (_ID, _TEXT, _AT, _TURN))))


def said(number: int) -> str:
    """The id of one of the messages."""
    return f"msg-{number:08}"


def filled(folder: Path, messages: int, days: int) -> list[str]:
    """A state folder with such a conversation, all of it archived; gives its days."""
    state = folder / ".mimikit"
    state.mkdir(mode=0o700)
    files = Files(RealDisk(state), durable=False)
    files.make_folders()
    files.write(paths.CONFIG, CONFIG.encode())
    lines = [_line_of(role) for role in ("user", "agent")]
    first = SystemClock().now().replace(hour=0, minute=0, second=0) - timedelta(days=days)
    each, found = -(-messages // days), list[str]()
    for day in range(days):
        begin, written = first + timedelta(days=day), list[str]()
        today = begin.date().isoformat()
        for number in range(day * each, min((day + 1) * each, messages)):
            minute, second = divmod(86_400 * (number - day * each) // each, 60)
            at = f"{today}T{minute // 60:02}:{minute % 60:02}:{second:02}.000Z"
            a, b, c, d, end = lines[number % 2]
            text = f"number {number}: what do we know of topic {number % 9973}?"
            turn = f"turn-{number // 2:07}"
            written.append(f"{a}msg-{number:08}{b}{text}{c}{at}{d}{turn}{end}")
        files.write(paths.transcript(begin.date()), "".join(written).encode())
        found.append(today)
    newest = [json.loads(line) for line in written[-200:]]
    kept = [Message.model_validate(line, strict=False) for line in newest]
    files.save(paths.HISTORY, History(messages=kept))
    return found


def _line_of(role: str) -> list[str]:
    """What stands in a line of the transcript around the id, the text, the time and the turn."""
    at = datetime(2000, 1, 1, tzinfo=UTC)
    made = {"id": _ID, "role": role, "text": _TEXT, "created_at": at, "turn_id": _TURN}
    message = Message.model_validate({**made, "archived": True})
    return _FACTS.split(dump_line(message.to_dict()).decode())


class Asker:
    """Asks a page for something again and again, and looks at what it took."""

    def __init__(self, page: Served, times: int) -> None:
        self._page, self._times = page, times
        children = Path(f"/proc/{page.process.pid}/task/{page.process.pid}/children").read_text()
        self._worker = int(children.split()[0])

    def row(self, name: str, addresses: Iterator[str]) -> None:
        """Print what so many of these took; the first has to find it as it is."""
        delays, before = list[float](), cpu_s(self._worker)
        for _ in range(self._times):
            client(self._page.port, self._page.token, "GET", next(addresses), 1, delays)
        cpu_ms = (cpu_s(self._worker) - before) / self._times * 1000
        found = (statistics.median(delays), max(delays), cpu_ms, rss_mb(self._worker))
        print(f"{name:34}" + "".join(f"{one:10.1f}" for one in found), flush=True)


def again(address: str) -> Iterator[str]:
    while True:
        yield address


def amid(numbers: Iterator[int], more: str = "") -> Iterator[str]:
    """The way to messages."""
    return (f"/api/messages?around={said(number)}&limit=50{more}" for number in numbers)


def spread(messages: int, times: int) -> Iterator[int]:
    """So many of them, from the oldest on, never the same twice."""
    while True:
        yield from range(7, messages, max(messages // times - 1, 1))


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=180)
    parser.add_argument("--asked", type=int, default=20)
    parser.add_argument("--indexed", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-history-") as name:
        folder = Path(name)
        days = filled(folder, args.messages, args.days)
        middle, state = days[len(days) // 2], folder / ".mimikit"
        each = -(-args.messages // args.days)
        print(f"{f'{args.messages:,} messages, {args.days} days':34}", end="")
        print("".join(f"{column:>10}" for column in COLUMNS))
        argv = [sys.executable, "-m", "mimikit", "--workspace", name, "web", "--port", "0"]
        with served(argv, folder, state) as page:
            asker = Asker(page, args.asked)
            asker.row("snapshot", again("/api/snapshot"))
            asker.row("the newest page", again("/api/messages"))
            asker.row("one in the middle", again(f"/api/messages?before={middle}:0"))
            asker.row("the oldest", again(f"/api/messages?after={days[0]}:0"))
            asker.row("the way to messages of today", amid(iter(range(args.messages - 1, 0, -1))))
            asker.row("to any, their day known", _dated(days, each, args))
            asker.row("to any, their day unknown", amid(spread(args.messages, args.asked)))
        consumer = [sys.executable, "-m", "mimikit", "--workspace", name, "consumer"]
        with process(consumer, folder, state / "health.json") as (child, start_s):
            print(f"consumer: starts in {start_s:.1f} s, {cpu_s(child.pid):.1f} s of CPU")
            files = Files(RealDisk(state), durable=False)
            waits = [ask(files, number) for number in range(args.asked)]
            print(f"a message: p50 {statistics.median(waits):.2f}, most {max(waits):.2f} s", end="")
            print(f"; it holds {rss_mb(child.pid):.0f} MB, at most {peak_mb(child.pid):.0f}")
            if args.indexed:
                settle(child.pid, limit_s=3600)
                print(f"indexed: {cpu_s(child.pid):.0f} s of CPU", end="")
                print(f"; it holds {rss_mb(child.pid):.0f} MB, at most {peak_mb(child.pid):.0f}")
                with served(argv, folder, state) as page:
                    asker = Asker(page, args.asked)
                    searched = (f"/api/search?q=topic+{n}" for n in spread(9973, args.asked))
                    asker.row("a search", searched)


def _dated(days: list[str], each: int, args: argparse.Namespace) -> Iterator[str]:
    for number in spread(args.messages, args.asked):
        yield next(amid(iter([number]), f"&day={days[number // each]}"))


if __name__ == "__main__":
    main()
