"""The harness itself: its images equal those of a crash, and its oracle finds each violation."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

import pytest

from mimikit.protocol.files import Files
from tests.crash.dice import DICE, dead_owner
from tests.crash.disk import Contents, Image, Site, WatchedDisk, is_hint
from tests.crash.driver import START_NS, Client, Explorer, Flow, warm_folder
from tests.crash.flows import FLOWS
from tests.crash.oracle import Oracle, judge
from tests.support.memory_disk import Crash, DiskStep, MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.twins import FakeClock

SOME = ("task", "two messages", "no records", "trigger")


def flow_of(name: str) -> Flow:
    return next(flow for flow in FLOWS if flow.name == name)


def lived(disk: WatchedDisk, flow: Flow) -> None:
    """The first life of a flow on this disk, as the explorer lives it."""
    DICE.life(0)
    files = Files(disk)
    dead_owner(files, 0)
    files.make_folders()
    oracle = Oracle()
    product = Product(files, FakeClock(START), Mind(oracle.runs))
    client = Client(product, oracle)
    product.start()
    product.idle()
    for action in flow.actions:
        action(client)
        product.idle()


def fresh() -> WatchedDisk:
    return WatchedDisk.of(Image("warm", warm_folder()), start_ns=START_NS)


def meaning(disk: MemoryDisk) -> int:
    folders: Contents = {}
    for path, data in disk.contents().items():
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, {})[name] = data
    return Image("", folders).key()


@pytest.mark.parametrize("name", SOME)
def test_images_before_each_change_equal_those_of_a_crash(name: str) -> None:
    shown: list[tuple[int, set[int], int | None]] = []
    disk = fresh()

    def watch(step: DiskStep, _site: Site) -> None:
        torn = disk.torn_image()
        power = {image.key() for image in disk.power_images()}
        shown.append((disk.kill_image().key(), power, torn and torn.key()))

    disk.watch = watch
    lived(disk, flow_of(name))
    numbers = [number for number, step in enumerate(disk.log) if not is_hint(*_parts(step.path))]
    assert len(numbers) == len(shown) > 20
    for number, (kill, power, torn) in list(zip(numbers, shown, strict=True))[::3]:
        for share in (0.0, 0.5):
            crashed = fresh()
            crashed.crash_at, crashed.torn = number, share
            with pytest.raises(Crash):
                lived(crashed, flow_of(name))
            left = meaning(crashed.after_kill())
            assert left == (kill if share == 0.0 or torn is None else torn)
            if share == 0.0:
                cut = {meaning(image) for image in crashed.after_power_loss()}
                assert cut == (power or {kill})


def _parts(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name


def test_a_life_that_never_ends_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.crash.disk.MOST_LOOKS", 50)
    report = Explorer(flow_of("message"), crashes=0).run()
    assert "Endless" in report.violations[0]


def test_an_image_after_a_kill_keeps_unflushed_data() -> None:
    disk = WatchedDisk.of(Image("new", {"": {}, "a": {}}), start_ns=START_NS)
    disk.append_line("a/log", b"one\n", sync=True)
    disk.sync_dir("a")
    disk.append_line("a/log", b"two\n", sync=False)
    disk.write_new("a/x", b"x", sync=True)
    again = WatchedDisk.of(disk.kill_image(then_power=True), start_ns=START_NS)
    assert again.read("a/log") == b"one\ntwo\n"
    assert again.read("a/x") == b"x"
    lost = {(i.folders["a"].get("log"), i.folders["a"].get("x")) for i in again.power_images()}
    assert (b"one\n", None) in lost
    again.sync_file("a/log")
    again.sync_dir("a")
    kept = {(i.folders["a"]["log"], i.folders["a"]["x"]) for i in again.power_images()}
    assert kept <= {(b"one\ntwo\n", b"x")}


# ---- the oracle --------------------------------------------------------------------------


def good() -> tuple[Contents, Oracle]:
    """A correct state folder, and the oracle that belongs to it."""
    disk = fresh()
    DICE.life(0)
    files = Files(disk)
    files.make_folders()
    oracle = Oracle()
    product = Product(files, FakeClock(START), Mind(oracle.runs))
    client = Client(product, oracle)
    product.start()
    for action in (
        lambda: client.say("m1", "plan: one"),
        lambda: client.submit("t1", "two"),
        lambda: client.say("m2", "remember tea"),
        lambda: client.say("m3", "backlog sweep"),
        lambda: client.trigger("g1", 60, "tick"),
        lambda: client.at(61),
        lambda: (client.submit("t2", "three"), client.order("o1", "cancel", "t2")),
        lambda: client.say("m4", "ask: colour?"),
        lambda: client.answer("a1", "blue"),
    ):
        action()
        product.idle()
    return disk.kill_image().folders, oracle


def lines_of(contents: Contents, folder: str) -> tuple[str, list[bytes]]:
    ((name, data),) = contents[folder].items()
    return name, data.splitlines(keepends=True)


def repeat_message(contents: Contents, _oracle: Oracle) -> None:
    name, lines = lines_of(contents, "history")
    contents["history"][name] += lines[0]


def lose_message(contents: Contents, _oracle: Oracle) -> None:
    name, lines = lines_of(contents, "history")
    contents["history"][name] = b"".join(lines[1:])


def forget_in_history(contents: Contents, _oracle: Oracle) -> None:
    history = json.loads(contents[""]["history.json"])
    history["messages"].pop()
    contents[""]["history.json"] = json.dumps(history).encode()


def repeat_end(contents: Contents, _oracle: Oracle) -> None:
    name, lines = lines_of(contents, "tasks")
    ended = next(line for line in lines if b'"ended"' in line)
    contents["tasks"][name] += ended


def lose_end(contents: Contents, _oracle: Oracle) -> None:
    name, lines = lines_of(contents, "tasks")
    kept = [line for line in lines if b'"ended"' not in line or b'"t1"' not in line]
    contents["tasks"][name] = b"".join(kept)


def other_end(contents: Contents, _oracle: Oracle) -> None:
    name, _ = lines_of(contents, "tasks")
    data = contents["tasks"][name]
    contents["tasks"][name] = data.replace(b'"canceled"', b'"failed"', 1)


def drop(folder: str, name: str) -> Callable[[Contents, Oracle], None]:
    def change(contents: Contents, _oracle: Oracle) -> None:
        del contents[folder][name]

    change.__name__ = f"drop {folder}/{name}"
    return change


def put(folder: str, name: str, data: bytes = b"{}") -> Callable[[Contents, Oracle], None]:
    def change(contents: Contents, _oracle: Oracle) -> None:
        contents[folder][name] = data

    change.__name__ = f"put {folder}/{name}"
    return change


def drop_any(folder: str) -> Callable[[Contents, Oracle], None]:
    def change(contents: Contents, _oracle: Oracle) -> None:
        del contents[folder][min(contents[folder])]

    change.__name__ = f"drop any of {folder}"
    return change


def run_again(_contents: Contents, oracle: Oracle) -> None:
    oracle.runs.append(oracle.runs[0])


def run_canceled(_contents: Contents, oracle: Oracle) -> None:
    oracle.runs.append(("t2", 1))


def never_ran(_contents: Contents, oracle: Oracle) -> None:
    oracle.runs = [run for run in oracle.runs if run[0] != "t1"]


def acked_more(_contents: Contents, oracle: Oracle) -> None:
    oracle.ack("message", "m9")
    oracle.ack("task", "t9")
    oracle.ack("order", "o9")


def told_twice(contents: Contents, _oracle: Oracle) -> None:
    """A second turn that tells t1 again, with its message."""
    for data in list(contents["turns/done"].values()):
        turn = json.loads(data)
        if "res-t1" in turn["consumed"]:
            turn["id"] = "turn-again"
            turn["messages"][0] |= {"id": "msg-again", "turnId": "turn-again"}
            contents["turns/done"]["turn-again.json"] = json.dumps(turn).encode()
            line = json.dumps(turn["messages"][0]).encode() + b"\n"
            contents["history"][lines_of(contents, "history")[0]] += line
            history = json.loads(contents[""]["history.json"])
            history["messages"].append(turn["messages"][0])
            contents[""]["history.json"] = json.dumps(history).encode()
            return
    raise AssertionError("no turn told t1")


def fire_more(contents: Contents, _oracle: Oracle) -> None:
    state = json.loads(contents["triggers/state"]["g1.json"])
    contents["triggers/state"]["g1.json"] = json.dumps(state | {"fireCount": 5}).encode()


def note_twice(contents: Contents, _oracle: Oracle) -> None:
    name = next(iter(contents["memory"]))
    contents["memory"][name] *= 2


def lose_note(contents: Contents, _oracle: Oracle) -> None:
    contents[""]["backlog.md"] = b""


def lose_side(contents: Contents, _oracle: Oracle) -> None:
    """Nothing is left of the text that a prompt and a result name."""
    for folder in ("worker/ended", "worker/results"):
        record = json.loads(contents[folder]["t1.json"])
        named = {"prompt": "it … (all of it: side/t1.txt)"}
        if folder == "worker/results":
            named = {"result": {"text": "it", "whole": "side/t1.txt"}}
        contents[folder]["t1.json"] = json.dumps(record | named).encode()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (repeat_message, "is in the transcript 2 times"),
        (lose_message, "is lost"),
        (forget_in_history, "history.json and transcript differ"),
        (repeat_end, "has 2 ended lines"),
        (lose_end, "has 0 ended lines"),
        (other_end, "ledger says failed"),
        (drop("worker/results", "t1.json"), "ended without an outcome"),
        (drop("worker/ended", "t1.json"), "task t1 is lost"),
        (drop_any("turns/done"), "belongs to no turn"),
        (drop("commands/done", "o1.json"), "order o1 has no outcome"),
        (drop("triggers/state", "g1.json"), None),
        (put("inbox", "m1.json"), "left in inbox"),
        (
            put("worker/queue", "t9.json", b'{"id": "t9", "sourceTriggerId": null}'),
            "left in worker/queue",
        ),
        (put("turns", "turn-x.1.started"), "mark left"),
        (put("inbox", ".tmp-1-2-3-4"), "temp file left"),
        (lambda contents, _: contents.update({"corrupt/x": {}}), "x was quarantined"),
        (lose_side, "does not hold the whole of"),
        (put("corrupt", "x.json"), "has no reason beside it"),
        (put("planner/results", "p9.json", b'{"id": "p9", "status": "needs_input", "tasks": [], '
             b'"triggers": [], "cancels": []}'), "waits, but nothing is asked"),
        (put("", "pending_question.json", b'{"plannerTaskId": "p9"}'), "does not wait"),
        (run_again, "was begun 2 times"),
        (run_canceled, "was run after the order to cancel"),
        (never_ran, "no engine ran it"),
        (acked_more, "acknowledged message m9 is lost"),
        (told_twice, "was told 2 times"),
        (fire_more, "fireCount 5"),
        (note_twice, "is in memory 2 times"),
        (lose_note, "is in the backlog 0 times"),
    ],
)  # fmt: skip
def test_the_oracle_finds_each_violation(
    change: Callable[[Contents, Oracle], None], complaint: str | None
) -> None:
    contents, oracle = good()
    contents = copy.deepcopy(contents)
    assert judge(contents, oracle) == []
    change(contents, oracle)
    found = judge(contents, oracle)
    if complaint is None:
        assert found == [], "a trigger whose state is lost fires anew: no harm is done"
    else:
        assert any(complaint in line for line in found), found


def test_the_report_says_where_a_violation_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Files, "sweep_temps", lambda *_args: 0)
    report = Explorer(flow_of("task")).run()
    assert report.violations
    assert report.violations[0].startswith("task, life 1: kill before ")
    assert "temp file left" in report.violations[0]
