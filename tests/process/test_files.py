"""Work that comes as files: whole, broken, malicious, and many of them."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.process.world import World, until
from tests.support.pace import within
from tests.support.runs import alive, tag

BROKEN = 1000

UNUSABLE = {
    "half": ('{"prompt": "date", ', "JSON"),
    "empty": ("", "JSON"),
    "no-prompt": ('{"profile": "command"}', "prompt"),
    "named": ('{"prompt": "date", "profile": "command", "id": "another"}', "id"),
    "deep": ("[" * 100_000, "nesting"),
    "twice": ('{"prompt": "date", "prompt": "true"}', "prompt"),
    "number": ('{"prompt": "date", "priority": NaN}', "NaN"),
    "lone": ('{"prompt": "\\ud800"}', "surrogate"),
}
"""What no task can be made of: the text, and a word of the reason."""


def corrupt(world: World) -> dict[str, str]:
    """What lies in `corrupt/`: where each came from, and its name there."""
    found: dict[str, str] = {}
    for name in world.names("corrupt", ".reason.txt"):
        text = (world.state / "corrupt" / f"{name}.reason.txt").read_text()
        found[text.partition("\n")[0]] = name
    return found


def reason(world: World, path: str) -> str:
    """Why the file that was at `path` lies in `corrupt/`."""
    name = until(lambda: corrupt(world).get(path), f"{path} is put aside", facts=world.facts)
    until(lambda: (world.state / "corrupt" / name).exists() or
          (world.state / "corrupt" / name).is_symlink(), "it lies beside its reason")  # fmt: skip
    return (world.state / "corrupt" / f"{name}.reason.txt").read_text()


def test_a_dropped_command_runs_and_is_told(world: World) -> None:
    world.start_consumer()
    world.drop_text("hello", '{"prompt":"date","profile":"command"}')
    (told,) = until(lambda: world.told("hello"), "it is told", facts=world.facts)
    result = world.result("hello") or {}
    assert (result["status"], result["exitCode"], result["attempts"]) == ("done", 0, 1)
    assert result["result"]["text"].strip() in told["text"]
    assert world.names("worker/ended") == ["hello"]
    assert [line["event"] for line in world.ledger() if line["id"] == "hello"] == ["ended"]


def test_a_command_dropped_while_nothing_runs_is_done_at_the_start(world: World) -> None:
    world.start_consumer().terminate()
    assert world.consumer is not None
    assert world.consumer.wait(120) == 0
    world.drop("early", {"prompt": "echo in time", "profile": "command"})
    world.start_consumer()
    (told,) = until(lambda: world.told("early"), "it is told")
    assert "in time" in told["text"]


def test_a_file_that_is_written_slowly_by_hand_is_waited_for(world: World) -> None:
    world.start_consumer()
    path = world.state / "worker/queue/slow.json"
    with path.open("w") as file:
        for part in ('{"prompt": "ec', 'ho by hand", ', '"profile": "command"}\n'):
            file.write(part)
            file.flush()
            threading.Event().wait(0.7)
    (told,) = until(lambda: world.told("slow"), "it is told")
    assert "by hand" in told["text"]
    assert world.names("corrupt", "") == []


@pytest.mark.fault(22)
def test_broken_files_go_to_corrupt_with_the_reason(world: World) -> None:
    world.start_consumer()
    for name, (text, _) in UNUSABLE.items():
        world.drop_text(name, text)
    for name, (text, word) in UNUSABLE.items():
        path = f"worker/queue/{name}.json"
        assert word in reason(world, path)
        assert (world.state / "corrupt" / corrupt(world)[path]).read_text() == text
    world.drop("good", {"prompt": "echo fine", "profile": "command"})
    until(lambda: world.told("good"), "the next one is done")
    assert world.names("worker/results") == ["good"]


@pytest.mark.fault(41)
def test_what_is_no_plain_file_goes_to_corrupt_and_is_not_followed(world: World) -> None:
    world.start_consumer()
    queue = world.state / "worker/queue"
    secret = world.root / "secret"
    secret.write_text('{"prompt": "echo leaked", "profile": "command"}')
    (queue / "link.json").symlink_to(secret)
    os.mkfifo(queue / "fifo.json")
    (queue / "folder.json").mkdir()
    planted = ["link", "fifo"]
    with suppress(PermissionError):  # not everywhere may one make a device
        os.mknod(queue / "zeros.json", stat.S_IFCHR | 0o600, os.makedev(1, 5))
        planted.append("zeros")
    for name in planted:
        assert "plain file" in reason(world, f"worker/queue/{name}.json")
    world.drop("good", {"prompt": "echo fine", "profile": "command"})
    until(lambda: world.told("good"), "the next one is done")
    assert secret.exists()
    assert world.names("worker/results") == ["good"]


@pytest.mark.fault(40)
def test_names_that_are_no_ids_go_to_corrupt(world: World) -> None:
    world.start_consumer()
    names = ["a b", "ünsicher", "-n", "x" * 129]
    for name in [*names, ".hidden"]:
        world.drop(name, {"prompt": "echo no", "profile": "command"})
    for name in names:
        assert "id" in reason(world, f"worker/queue/{name}.json")
    world.drop("good", {"prompt": "echo fine", "profile": "command"})
    until(lambda: world.told("good"), "the next one is done")
    assert world.names("worker/results") == ["good"]


def test_an_id_that_was_used_goes_to_corrupt(world: World) -> None:
    world.start_consumer()
    task = {"prompt": "echo once", "profile": "command"}
    world.drop("job", task)
    until(lambda: world.told("job"), "it is told")
    world.drop("job", task)
    assert "id already used" in reason(world, "worker/queue/job.json")
    assert len(world.told("job")) == 1


def test_a_thousand_broken_files_do_not_delay_a_good_one(
    world: World, record_property: Callable[[str, object], None]
) -> None:
    world.start_consumer()
    ready = world.root / "broken"
    ready.mkdir()
    for number in range(BROKEN):
        (ready / f"broken-{number}.json").write_text('{"prompt": "date", ')
    queue = world.state / "worker/queue"
    for path in list(ready.iterdir()):
        path.rename(queue / path.name)
    begun = time.monotonic()
    world.drop("good", {"prompt": "echo fine", "profile": "command"})
    until(lambda: world.result("good"), "the good one is done")
    took_s = time.monotonic() - begun
    record_property("measured", [(f"a good file behind {BROKEN} broken ones, s", f"{took_s:.2f}")])
    assert took_s <= within(10)
    until(lambda: not world.names("worker/queue"), "all broken ones are moved", timeout_s=60)
    until(lambda: len(world.names("corrupt", "")) == 2 * BROKEN, "each lies beside its reason")


def test_inbox_json_is_taken_in_once(world: World) -> None:
    world.start_consumer()
    dropped = world.root / "dropped"
    dropped.write_text('["hello", {"id": "msg-own", "text": "hello again"}]')
    dropped.rename(world.state / "inbox.json")
    until(lambda: world.replies("msg-own"), "it is answered")
    said = [m["text"] for m in world.transcript() if m["role"] == "user"]
    assert said == ["hello", "hello again"]
    until(lambda: not (world.state / "inbox.json").exists(), "it is taken away")


@pytest.mark.fault(37, 43)
def test_a_result_too_long_is_cut_and_an_endless_one_ended(world: World) -> None:
    number = tag()
    world.settings["LIMITS__OUTPUT_BYTES"] = 100_000
    world.start_consumer()
    world.drop("long", {"prompt": "head -c 900000 /dev/zero | tr '\\0' x; echo end", "profile":
                        "command"})  # fmt: skip
    world.drop("endless", {"prompt": f"yes 'sleep {number}'", "profile": "command"})
    until(lambda: world.told("long") and world.told("endless"), "both are told", facts=world.facts)
    long, endless = world.result("long") or {}, world.result("endless") or {}
    assert (long["status"], endless["status"]) == ("done", "failed")
    assert long["result"]["text"].endswith("xend\n")
    assert "printed more than" in endless["error"]
    for name in ("long", "endless"):
        assert (world.state / f"worker/results/{name}.json").stat().st_size < 1_100_000
        assert (world.state / f"runs/{name}.jsonl").stat().st_size < 300_000
    assert alive(number) == []
