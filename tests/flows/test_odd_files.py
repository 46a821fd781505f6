"""One odd thing never stops the rest: every folder of records × every oddity × {start, running}.

A real disk, as a user who is not root; the product is in this process. What lies in the queues is
judged by Huey's storage, which is not here: tests/runner/test_queues.py has that.
"""

from __future__ import annotations

import itertools
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
from mimikit.protocol.triggers import PlanResult
from mimikit.views import messages
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.mind import Mind
from tests.support.ordinary_user import NOBODY, folder_of_an_ordinary_user
from tests.support.product import START, Product
from tests.support.reading import record
from tests.support.twins import FakeClock

for _codec in ("utf-8-sig", "utf-16-le"):
    "".encode(_codec)  # read now: the interpreter's own files may not be that user's
HUGE = 300_000_000
"""More than any record may have, and three times what may be held of it."""
AT = "2026-11-30T09:00:00.000Z"
FIRST, LAST = "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"

TASK = {"prompt": "x", "createdAt": AT, "traceId": "t", "origin": "cli", "notify": "none"}
ENDED = {"status": "done", "startedAt": AT, "completedAt": AT, "traceId": "t", "turnId": "t"}
ASKING = {**ENDED, "status": "needs_input", "question": "?"}
TURN = {"author": "code", "startedAt": AT, "completedAt": AT}
MARK = {"turnId": "odd", "attempt": 1, "pid": 1, "processStarted": "1",
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
    "planner/results": ASKING,
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
    paths.USAGE: {"at": AT, "runId": "t", "attempt": 1, "role": "worker",
                  "engine": "scripted", "usage": {"inputTokens": 1}},
    paths.USAGE_MONTHS: {"days": {}},
    paths.SIDE: {},
    paths.DIFFS: {"files": [{"path": "a", "action": "added"}]},
    paths.TURN_PROMPTS: {"role": "teller", "engine": "scripted", "status": "done", "at": AT,
                         "instructions": "x", "prompt": "x"},
}  # fmt: skip
"""Of each folder a record as it may lie there, but for its id."""


OTHERS = {
    paths.MEMORY_FOLDER: ".md", paths.SUMMARIES: ".md", paths.PROMPTS: ".md", paths.PAGES: ".json",
    paths.SECRETS: "", paths.HUEY: ".json", paths.CACHE: "", "planner": ".json",
    "worker": ".json", paths.CORRUPT: ".json", paths.FILES: "",
}  # fmt: skip
"""The folders that hold no records, or people's own files, with an ending that is looked at. Of a
page whose word cannot be read the worst is taken: nothing there may be set aside."""

READ = frozenset(
    {paths.INBOX, paths.COMMANDS, paths.TURNS, paths.TURNS_NEW, "planner/results", paths.TRIGGERS}
)
"""Where each file is read at start and while running; elsewhere one is only read by its name."""
READ_AT_START = READ | {"planner/running", "worker/running", paths.TRIGGER_STATE}
LINES = frozenset({paths.TRANSCRIPT, paths.LEDGER, paths.RUNS, paths.USAGE, paths.USAGE_MONTHS})


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
        depth = 2 if self.folder.parent.name in _NESTED else 1
        return "/".join(self.folder.parts[-depth:])

    def path(self, stem: str) -> Path:
        return self.folder / f"{stem}{self.suffix}"

    def data(self, stem: str, **changes: object) -> bytes:
        if "turnId" in self.record and "bootId" in self.record:
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
    """Files under proper names that cannot be used."""

    def put(
        kind: str, data: Callable[[str], bytes], change: Callable[[Path], None] = lambda _: None
    ) -> None:
        stem = _stem(planted, 20 + len(planted.contents))
        path = planted.contents[kind] = planted.path(stem)
        hidden = path.with_name(f".{path.name}")  # one that runs would take it before it is changed
        hidden.write_bytes(data(stem))
        change(hidden)
        hidden.rename(path)

    put("mode 000", planted.data, lambda path: path.chmod(0))
    put("huge", lambda _: b"", lambda path: os.truncate(path, HUGE))
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
    if planted.name in (paths.TRANSCRIPT, paths.USAGE):
        return f"2026-10-{number % 31 + 1:02}" if number < 31 else f"2026-09-{number - 30:02}"
    if planted.name in (paths.LEDGER, paths.USAGE_MONTHS):
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


def lived_through(
    files: Files, state: Path, plant: Callable[[], None], *, at_start: bool
) -> Client:
    """A product that met what `plant` puts there, before its start or while it ran."""
    if at_start:
        plant()
    with as_owner(state):
        client = begin(files)
        client.product.start()
        goes_on(client, 1)
    if not at_start:
        plant()
        client.product.store.events.changed_triggers.put(None)
        client.product.store.events.ended_runs.put(("planner", "odd"))
        with as_owner(state):
            goes_on(client, 2)
    return client


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
    assert set(paths.FOLDERS) == set(RECORDS) | set(OTHERS)


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
    client = lived_through(files, state, plant, at_start=at_start)
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


LARGE = {"id": "large", "prompt": "x", "createdAt": AT, "traceId": "t"}
"""A task that is to have more bytes than the file of one may."""
QUESTION = {"questionId": "q", "question": "?", "createdAt": AT, "expiresAt": AT}
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a turn's task": (paths.TURNS_NEW, {**TURN, "tasks": [{**LARGE, "role": "planner"}]}, "prompt"),
    "a turn's question": (paths.TURNS_NEW, {**TURN, "question": QUESTION}, "question"),
    "a plan's task": ("planner/results", {**ENDED, "tasks": [LARGE]}, "prompt"),
    "a plan's order": (
        "planner/results",
        {**ENDED, "orders": [{"action": "trigger_edit", "target": "g1", "args": {"x": "x"}}]},
        "x",
    ),
    "a plan's question": ("planner/results", ASKING, "question"),
    "a question for ever": ("planner/results", {**ASKING, "questionTimeout": 1e300}, ""),
}
"""Records that can be read, and ask for what cannot be written: folder, record, what is long."""


def lengthened(record: Any, key: str) -> Any:
    """The record with five million characters at each place of that name."""
    if isinstance(record, list):
        return [lengthened(entry, key) for entry in record]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(record, dict):
        return record
    known = {k: lengthened(v, key) for k, v in record.items()}  # pyright: ignore[reportUnknownVariableType]
    if key == "prompt" and key in known:  # it has its own limit; what it is not known for has none
        return {**known, "odd": "x" * 5_000_000}
    return known | ({key: "x" * 5_000_000} if isinstance(known.get(key), str) else {})


@pytest.mark.parametrize("at_start", [True, False], ids=["at start", "while running"])
@pytest.mark.parametrize("kind", REFUSED)
def test_a_record_that_asks_for_what_cannot_be_is_set_aside(
    kind: str, files: Files, state: Path, *, at_start: bool
) -> None:
    folder, record, long = REFUSED[kind]
    path = state / folder / "odd.json"

    def plant() -> None:
        path.write_text(json.dumps({"id": "odd", **lengthened(record, long)}))

    client = lived_through(files, state, plant, at_start=at_start)
    assert not path.exists()
    why = reasons(state)
    assert list(why) == [f"{folder}/odd.json"]
    assert "it cannot be carried out: " in why[f"{folder}/odd.json"]
    assert not files.names("worker/queue")  # nothing of it was done
    stays_as_it_is(client, state)


def test_who_asked_for_a_plan_that_cannot_be_is_told(files: Files, state: Path) -> None:
    tasks = [LARGE | {"id": "fine"}, LARGE | {"odd": "x" * 5_000_000}]
    plan = {"id": "odd", **ENDED, "tasks": tasks}
    (state / "planner/results/odd.json").write_text(json.dumps(plan))
    task = {"id": "odd", **TASK, "role": "planner", "notify": "message"}
    (state / "planner/running/odd.json").write_text(json.dumps(task))
    client = lived_through(files, state, lambda: None, at_start=True)
    assert "expected at most" in reasons(state)["planner/results/odd.json"]
    assert not files.exists("worker/ended/fine.json")
    assert files.exists("planner/ended/odd.json")
    failed = record(files, paths.plan_done("odd"), PlanResult)
    assert (failed.status, failed.tasks) == ("failed", [])
    assert any("odd" in m.task_ids for m in client.product.store.conversation.messages)
    stays_as_it_is(client, state)


@pytest.mark.parametrize("at_start", [True, False], ids=["at start", "while running"])
@pytest.mark.parametrize("folder", OTHERS)
def test_what_lies_where_no_records_are_stops_nothing_and_stays(
    folder: str, files: Files, state: Path, *, at_start: bool
) -> None:
    planted = Planted(state / folder, OTHERS[folder], {"text": "tea", "createdAt": AT})

    def plant() -> None:
        plant_kinds(planted)
        plant_contents(planted)

    if at_start:
        plant()
    with as_owner(state):
        client = begin(files)
        client.product.start()
        goes_on(client, 1)
        client.say("r1", "remember tea")
        client.product.idle()
    if not at_start:
        plant()
    with as_owner(state):
        client.say("r2", "remember the long way")
        goes_on(client, 2)
        client.product.clock.advance(7 * 3600)  # and something goes into memory
        client.product.idle()
    assert client.product.log.errors == []
    there = planted.kinds | planted.contents
    assert [kind for kind, path in there.items() if not os.path.lexists(path)] == []
    assert reasons(state) == {}
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


def odd_in_its_place() -> Iterator[Any]:
    """Each file × kind × time; by day half of them: each file and each kind meets both times."""
    for (row, name), (column, kind), late in itertools.product(
        enumerate(ALONE), enumerate(KINDS), (0, 1)
    ):
        when = ("at start", "while running")[late]
        yield pytest.param(
            name,
            kind,
            not late,
            id=f"{name}-{kind}-{when}",
            marks=[pytest.mark.nightly] if (row + column + late) % 2 else [],
        )


@pytest.mark.parametrize(("name", "kind", "at_start"), list(odd_in_its_place()))
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
    # What lies in running/ and nobody runs goes to its queue, whose storage judges it.
    usual = ("order", "stray_put_back")
    fired = [line for line in client.product.log.audits[told:] if line["event"] not in usual]
    assert (reasons(state), fired) == (kept, [])


def test_a_folder_that_cannot_be_moved_is_told_once_and_passed_over(
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
