"""One odd thing never stops the rest: every folder of records × every oddity × {start, running}.

A real disk, as a user who is not root; the product is in this process. What lies in the queues is
judged by Huey's storage, which is not here: tests/process/test_odd_files.py has that.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.records import written_at
from mimikit.testing.twins import FakeClock
from mimikit.views import messages
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.mind import Mind
from tests.support.ordinary_user import NOBODY, folder_of_an_ordinary_user
from tests.support.product import START, Product

"".encode("utf-8-sig")  # read now: the interpreter's own files may not be that user's
HUGE = 300_000_000
"""More than any record may have, and three times what may be held of it."""
AT = "2026-11-30T09:00:00.000Z"
FIRST, LAST = "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"

TASK = {"prompt": "x", "createdAt": AT, "traceId": "t", "origin": "cli", "notify": "none"}
ENDED = {"status": "done", "startedAt": AT, "completedAt": AT, "traceId": "t", "turnId": "t"}
TURN = {"author": "code", "startedAt": AT, "completedAt": AT}
MARK = {"turnId": "odd", "attempt": 1, "token": "t", "pid": 1, "processStarted": "1",
        "bootId": "b", "startedAt": AT, "inputs": ["gone"]}  # fmt: skip
COMMAND = {"action": "resume", "createdAt": AT}
TRIGGER = {"prompt": "x", "schedule": {"interval": 86400}, "createdAt": AT, "traceId": "t"}

RECORDS: dict[str, dict[str, Any]] = {
    paths.INBOX: {"text": "x", "createdAt": AT},
    paths.COMMANDS: COMMAND,
    paths.COMMANDS_DONE: {"order": {"id": "odd", **COMMAND}, "ok": True, "message": "",
                          "appliedAt": AT},
    paths.TURNS: MARK,
    paths.TURNS_NEW: TURN,
    paths.TURNS_DONE: TURN,
    "planner/queue": TASK,
    "planner/running": {**TASK, "role": "planner"},
    "planner/results": {**ENDED, "status": "needs_input", "question": "?"},
    "planner/done": ENDED,
    "planner/ended": TASK,
    "worker/queue": TASK,
    "worker/running": TASK,
    "worker/results": ENDED,
    "worker/ended": TASK,
    paths.TRIGGERS: TRIGGER,
    paths.TRIGGER_STATE: {"lastRunAt": AT},
    paths.TRANSCRIPT: {"role": "user", "text": "x", "createdAt": AT},
    paths.LEDGER: {"event": "ended", "status": "done", "at": AT},
    paths.RUNS: {"at": AT, "type": "note", "text": "x"},
    paths.SIDE: {},
}  # fmt: skip
"""Of each folder a record as it may lie there, but for its id."""

READ = frozenset(
    {paths.INBOX, paths.COMMANDS, paths.TURNS, paths.TURNS_NEW, "planner/results", paths.TRIGGERS}
)
"""Where each file is read at start and while running; elsewhere one is only read by its name."""
READ_AT_START = READ | {"planner/running", "worker/running", paths.TRIGGER_STATE}
LINES = frozenset({paths.TRANSCRIPT, paths.LEDGER, paths.RUNS})


@dataclass
class Planted:
    """What was put into one folder. Paths are as bytes: not each name is text."""

    folder: Path
    suffix: str
    record: dict[str, Any]
    kinds: dict[str, Path] = field(default_factory=dict[str, Path])
    """What can be no record, by what is odd about it."""
    contents: dict[str, Path] = field(default_factory=dict[str, Path])
    """Plain files under a proper name that hold none."""

    @property
    def name(self) -> str:
        return (
            "/".join(self.folder.parts[-2:])
            if self.folder.parent.name in _NESTED
            else (self.folder.name)
        )

    def path(self, stem: str) -> Path:
        return self.folder / f"{stem}{self.suffix}"

    def data(self, stem: str, **changes: object) -> bytes:
        if "turnId" in self.record and "token" in self.record:
            changes = {"turnId": stem.rpartition(".")[0], **changes}
        elif "order" not in self.record:
            changes = {"id": stem, **changes}
        return json.dumps(self.record | changes).encode() + b"\n"


_NESTED = ("planner", "worker", "commands", "turns", "triggers")


def plant_kinds(planted: Planted) -> None:
    """Everything that is no plain file, or has no proper name."""
    here = planted.folder
    target = here.parent / "outside"
    target.write_text("outside")

    def made(kind: str) -> Path:
        planted.kinds[kind] = planted.path(_stem(planted, len(planted.kinds)))
        return planted.kinds[kind]

    made("folder").mkdir()
    full = made("full folder")
    full.mkdir()
    (full / "x").write_text("kept")
    os.mkfifo(made("fifo"))
    made("link").symlink_to(target)
    made("dangling link").symlink_to(here / "nowhere")
    listening = socket.socket(socket.AF_UNIX)
    there = os.getcwd()
    os.chdir(here)  # a socket's path is short
    listening.bind(made("socket").name)
    os.chdir(there)
    listening.close()
    with suppress(PermissionError):  # not everywhere may one make a device
        os.mknod(made("device"), 0o020600, os.makedev(1, 5))
    planted.kinds = {kind: path for kind, path in planted.kinds.items() if os.path.lexists(path)}
    for kind, name in {
        "not UTF-8": b"\xff\xfe-odd",
        "a blank": b"a b",
        "not ASCII": b"\xc3\xa9",
    }.items():
        path = Path(os.fsdecode(os.fsencode(here) + b"/" + name + os.fsencode(planted.suffix)))
        path.write_bytes(planted.data("odd"))
        planted.kinds[kind] = path


def plant_contents(planted: Planted) -> None:
    """Files under proper names that can not be used."""

    def put(kind: str, data: Callable[[str], bytes]) -> Path:
        stem = _stem(planted, 20 + len(planted.contents))
        path = planted.contents[kind] = planted.path(stem)
        path.write_bytes(data(stem))
        return path

    put("mode 000", planted.data).chmod(0)
    os.truncate(put("huge", lambda _: b""), HUGE)
    put("no text", lambda _: b"\x80\x00\xff{")
    put("cut short", lambda stem: planted.data(stem)[:9])
    if planted.name not in (paths.COMMANDS_DONE, *LINES):
        put("another's", lambda _: planted.data("other.1"))
    times = [key for key, value in planted.record.items() if value == AT]
    for key in times:
        put(f"{key} in year 1", lambda stem, key=key: planted.data(stem, **{key: FIRST}))
        put(f"{key} in year 9999", lambda stem, key=key: planted.data(stem, **{key: LAST}))


def _stem(planted: Planted, number: int) -> str:
    """A proper name in this folder."""
    if planted.name == paths.TRANSCRIPT:
        return f"2026-10-{number % 31 + 1:02}" if number < 31 else f"2026-09-{number - 30:02}"
    if planted.name == paths.LEDGER:
        return f"{2027 + number}-01"
    return f"odd{number}.1" if planted.name == paths.TURNS else f"odd{number}"


@pytest.fixture
def state() -> Iterator[Path]:
    with folder_of_an_ordinary_user() as path:
        state = path / "state"
        state.mkdir()
        yield state


@pytest.fixture
def files(state: Path) -> Iterator[Files]:
    """The folder as its owner sees it, who is not root: root may read everything."""
    disk = RealDisk(state)
    files = Files(disk, durable=False)
    files.make_folders()
    yield files
    disk.close()


@contextmanager
def as_owner(state: Path) -> Generator[None]:
    """What is done in here is done by who owns the folder, and is not root."""
    me = os.geteuid()
    if me == 0:
        for path in (state, *state.rglob("*")):
            os.lchown(path, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(me)


def begin(files: Files) -> Client:
    oracle = Oracle()
    return Client(Product(files, FakeClock(START), Mind(oracle.runs)), oracle)


def goes_on(client: Client, number: int) -> None:
    """A message, a task, an order, a plan and a trigger, all new ones, are dealt with."""
    product, files = client.product, client.files
    client.say(f"m{number}", "hello")
    client.say(f"p{number}", f"plan: planned{number}")
    client.submit(f"t{number}", "work", notify="none")
    client.order(f"c{number}", "pause" if number % 2 else "resume")
    client.order(f"d{number}", "resume")
    client.trigger(f"g{number}", 60, f"fired{number}")
    product.clock.advance(61)
    product.idle()
    said = [message.text for message in product.store.conversation.messages]
    assert said.count("hello") == number
    assert any("planned" in text for text in said)
    assert files.exists(paths.result("worker", f"t{number}"))
    assert files.exists(paths.command_done(f"c{number}"))
    assert files.exists(paths.command_done(f"d{number}"))
    assert product.store.ledger.results_of(f"g{number}")
    assert product.log.errors == []


def reasons(state: Path) -> dict[str, str]:
    """Why each thing lies in `corrupt/`, by where it lay."""
    found: dict[str, str] = {}
    for name in os.listdir(state / "corrupt"):
        if name.endswith(".reason.txt"):
            kept = state / "corrupt" / name
            where, _, reason = kept.read_text().partition("\n")
            assert os.path.lexists(str(kept).removesuffix(".reason.txt")), where
            found[where] = reason.strip()
    return found


def shown(state: Path, path: Path) -> str:
    """A path as it is told."""
    return str(path.relative_to(state)).encode(errors="backslashreplace").decode()


FOLDERS = [pytest.param(folder, id=folder.replace("/", "-")) for folder in RECORDS]


def test_every_folder_of_records_is_in_the_table() -> None:
    assert set(RECORDS) == set(paths.RECORDS)
    # Of a page whose word can not be read the worst is taken: nothing there may be set aside.
    others = {"planner", "worker", "memory", "memory/summary", "huey", "secrets", "cache",
              "corrupt", "pages", "prompts"}  # fmt: skip
    assert set(paths.FOLDERS) - set(RECORDS) == others


@pytest.mark.parametrize("at_start", [True, False], ids=["at start", "while running"])
@pytest.mark.parametrize("folder", FOLDERS)
def test_one_odd_thing_never_stops_the_rest(
    folder: str, files: Files, state: Path, *, at_start: bool
) -> None:
    suffix = paths.RECORDS[folder].suffix
    planted = Planted(state / folder, suffix, RECORDS[folder])

    def plant() -> None:
        plant_kinds(planted)
        plant_contents(planted)

    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if at_start:
        plant()
    with as_owner(state):
        client = begin(files)
        client.product.start()
        goes_on(client, 1)
    if not at_start:
        plant()
        client.product.store.events.changed_triggers.put(None)
        with as_owner(state):
            goes_on(client, 2)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100_000

    why = reasons(state)
    for kind, path in planted.kinds.items():
        assert not os.path.lexists(path), kind
        assert "expected" in why.pop(shown(state, path)), kind
    for kind, path in planted.contents.items():
        if folder == paths.TRIGGERS:  # its user's own: it stays where it is, and that is told
            told = {line["triggerId"] for line in client.product.log.audits
                    if line["event"] == "trigger_broken"}  # fmt: skip
            assert path.stem in told, kind
        elif folder in (READ_AT_START if at_start else READ):
            assert not path.exists(), kind
            assert "expected" in why.pop(shown(state, path)), kind
        elif folder in LINES:  # the newest are read first, and of each the lines that are good
            assert path.exists() or "expected" in why.pop(shown(state, path)), kind
        else:
            assert path.exists(), kind
    assert why == {}
    stays_as_it_is(client, state)


ALONE = (
    paths.HISTORY, paths.TASK_STATUS, paths.RUNTIME, paths.PENDING_QUESTION, paths.DROPPED_INBOX,
    paths.EVENTS, paths.LOG, paths.transcript(START.date()), paths.ledger(START),
    "runs/t1.jsonl", "triggers/state/g1.json", "side/t1.txt",
)  # fmt: skip
"""Files that are written, or looked for, by their names."""
KINDS = ("folder", "full folder", "fifo", "link", "socket", "mode 000", "huge", "no text")


def put_odd(path: Path, kind: str) -> None:
    """Have this odd thing stand at a path."""
    path.unlink(missing_ok=True)
    here = Planted(path.parent, path.suffix, {})
    (plant_contents if kind in ("mode 000", "huge", "no text") else plant_kinds)(here)
    made = (here.kinds | here.contents)[kind]
    made.rename(path)
    for other in (here.kinds | here.contents).values():
        if other.is_dir() and not other.is_symlink():
            shutil.rmtree(other)
        elif os.path.lexists(other):
            other.unlink()


@pytest.mark.parametrize("at_start", [True, False], ids=["at start", "while running"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALONE)
def test_what_stands_where_a_file_of_ours_belongs_stops_nothing(
    name: str, kind: str, files: Files, state: Path, *, at_start: bool
) -> None:
    path = state / name
    if at_start:
        put_odd(path, kind)
    with as_owner(state):
        oracle = Oracle()
        product = Product(files, FakeClock(START), Mind(oracle.runs), quiet=False)
        client = Client(product, oracle)
        product.start()
    if not at_start:
        put_odd(path, kind)
    with as_owner(state):
        goes_on(client, 1)
        goes_on(client, 2)
    if name in (paths.HISTORY, paths.transcript(START.date())):
        assert path.read_bytes().count(b'"hello"') == 2
    elif name == paths.ledger(START):
        assert path.read_bytes().count(b'"t2"') == 1
    elif name == paths.DROPPED_INBOX:
        assert not os.path.lexists(path)
    stays_as_it_is(client, state)


def stays_as_it_is(client: Client, state: Path) -> None:
    """Nothing grows by what was passed over."""
    kept, told = reasons(state), len(client.product.log.audits)
    with as_owner(state):
        for _ in range(100):
            client.product.clock.advance(1.5)
            client.product.tick()
    fired = [line for line in client.product.log.audits[told:] if line["event"] != "order"]
    assert (reasons(state), fired) == (kept, [])


def test_a_folder_that_can_not_be_moved_is_told_once_and_passed_over(
    files: Files, state: Path
) -> None:
    with as_owner(state):
        client = begin(files)
        client.product.start()
    shut = state / "inbox" / "shut.json"
    shut.mkdir()
    (shut / "x").write_text("kept")
    shut.chmod(0)
    before = sorted(os.listdir(state / "corrupt"))
    with as_owner(state):
        goes_on(client, 1)
        goes_on(client, 2)
    stays_as_it_is(client, state)
    assert (shut / "x").read_text() == "kept"
    assert sorted(os.listdir(state / "corrupt")) == before
    told = [line for line in client.product.log.audits if line["event"] == "not_set_aside"]
    assert [line["path"] for line in told] == ["inbox/shut.json"]
    shut.chmod(0o700)
    os.utime(shut)  # it has changed: it is tried again
    with as_owner(state):
        goes_on(client, 3)
    assert not shut.exists()
    (kept,) = (state / "corrupt").glob("*-inbox_shut.json")
    assert (kept / "x").read_text() == "kept"


@pytest.mark.parametrize("at_start", [True, False], ids=["at start", "while running"])
def test_files_by_hand_may_be_of_any_year(files: Files, state: Path, *, at_start: bool) -> None:
    """What is filled in from a file's time is a time that a record may have."""

    def plant() -> None:
        by_hand = {
            "inbox/hand.json": {"text": "hello"},
            "worker/queue/hand-task.json": {"prompt": "work"},
            "triggers/hand-trigger.json": {"prompt": "x", "schedule": {"interval": 60}},
        }
        for path, record in by_hand.items():
            (state / path).write_text(json.dumps(record))
            os.utime(state / path, (10**10, 10**10))

    if at_start:
        plant()
    with as_owner(state):
        client = begin(files)
        client.product.start()
    if not at_start:
        plant()
        client.product.store.events.changed_triggers.put(None)
    with as_owner(state):
        client.product.clock.advance(61)
        client.product.idle()
        client.product.clock.advance(61)
        client.product.idle()
    assert [m.text for m in client.product.store.conversation.messages][:2] == [
        "hello",
        "heard hello",
    ]
    assert files.exists("worker/results/hand-task.json")
    assert files.exists("triggers/state/hand-trigger.json")
    assert reasons(state) == {}
    assert client.product.log.errors == []


def test_the_time_of_a_file_is_one_that_a_record_may_have(files: Files, state: Path) -> None:
    for seconds, year in ((-(10**9), 1970), (0, 1970), (10**9, 2001), (10**10, 2199)):
        path = state / "x.json"
        path.write_text("")
        os.utime(path, (seconds, seconds))
        stat = files.stat("x.json")
        assert stat is not None
        assert written_at(stat).year == year


def test_a_message_made_by_hand_needs_a_text_and_no_more(files: Files, state: Path) -> None:
    """What an editor has written half is waited for; what stays without a text is set aside."""
    with as_owner(state):
        client = begin(files)
        client.product.start()
    now_s = START.timestamp()

    def write(name: str, text: str, age_s: float) -> None:
        (state / "inbox" / name).write_text(text)
        os.utime(state / "inbox" / name, (now_s - age_s, now_s - age_s))

    write("b.json", '{"text": "hello"}', 60)
    write("a.json", '{"text": "hello later", "kind": null}', 30)  # null is no kind
    write("half.json", '{"text": "hel', 0)
    write("none.json", "{}", 60)
    shown_ids = [view.id for view in messages.waiting(ReadOnlyFiles(files))]
    assert shown_ids == ["b"]
    with as_owner(state):
        client.product.idle()
    said = [(m.id, m.text, m.created_at) for m in client.product.store.conversation.messages]
    assert said[0] == ("b", "hello", START - timedelta(seconds=60))
    assert len(said) == 2
    assert (state / "inbox/half.json").exists()
    assert {path: why.partition(":")[0] for path, why in reasons(state).items()} == {
        "inbox/a.json": "kind",
        "inbox/none.json": "text",
    }
    write("half.json", '{"text": "hello again"}', 0)
    with as_owner(state):
        client.product.idle()
    assert client.product.store.conversation.messages[2].text == "hello again"
    assert os.listdir(state / "inbox") == []
    assert client.product.log.errors == []
