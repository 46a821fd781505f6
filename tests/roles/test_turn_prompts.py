"""What a run was told is kept whole, of the last 200, and is nobody's to wait for."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

from mimikit.conversation.turn_prompts import TurnPrompt
from mimikit.engines.base import Done, Outcome, RunSpec, ToolReply, TurnInput
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import InboxItem, Usage
from mimikit.roles.run_trail import RunTrail
from tests.support.engine_requests import make_request
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.reading import transcript
from tests.support.twins import FakeClock


class Counting(Mind):
    """Says what it used, and keeps the requests."""

    def __init__(self) -> None:
        super().__init__([])
        self.requests: list[RunSpec] = []

    def run(self, request: RunSpec) -> Outcome:
        self.requests.append(request)
        return replace(super().run(request), usage=Usage(input_tokens=9), requests=2)


def product_on(files: Files, mind: Mind) -> Product:
    files.make_folders()
    files.write(paths.MEMORY, b"- The user likes green tea.\n")
    product = Product(files, FakeClock(START), mind)
    product.start()
    return product


def say(product: Product, id_: str, text: str) -> None:
    product.files.save(paths.inbox(id_), InboxItem(id=id_, text=text, created_at=START))
    product.idle()


def kept(files: Files, role: str) -> list[TurnPrompt]:
    found = files.load_all(paths.TURN_PROMPTS, TurnPrompt)
    return [made for made in found if made.role == role]


def test_each_role_leaves_what_it_was_told_and_what_it_called() -> None:
    files, mind = Files(MemoryDisk()), Counting()
    say(product_on(files, mind), "m1", "plan: which tea is it")
    for role, calls in (("teller", ["delegate"]), ("planner", ["delegate"]), ("worker", [])):
        made = min(kept(files, role), key=lambda made: (made.at, "## Results" in made.prompt))
        asked = next(request for request in mind.requests if request.run_id == made.id)
        assert (made.instructions, made.prompt) == (asked.instructions, asked.prompt)
        assert (made.engine, made.status, made.attempt) == ("scripted", "done", 1)
        assert (made.requests, made.usage.input_tokens) == (2, 9)
        assert made.tools == [spec.name for spec in asked.tools.specs]
        assert [use.name for use in made.calls] == calls
        assert all(use.ok and "which tea" in use.arguments and use.reply for use in made.calls)
        assert [hit.source for hit in made.hits] == ["memory.md"] * (role != "worker")


class FullFor(MemoryDisk):
    """Full for one folder."""

    def write_new(self, path: str, data: bytes, *, sync: bool) -> None:
        if path.startswith(paths.TURN_PROMPTS):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        super().write_new(path, data, sync=sync)


def test_a_disk_that_refuses_it_ends_no_turn() -> None:
    files = Files(FullFor())
    product = product_on(files, Counting())
    say(product, "m1", "hello")
    assert transcript(files)[-1] == ("agent", "heard hello")
    assert files.names(paths.TURN_PROMPTS) == []
    assert product.log.errors == []


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    files = Files(RealDisk(tmp_path), durable=False)
    say(product_on(files, Counting()), "m1", "hello")
    (path,) = (tmp_path / paths.TURN_PROMPTS).iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0


def test_what_no_file_can_hold_is_replaced_and_ends_nothing() -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    deep: dict[str, object] = {}
    deep["self"] = deep
    trail = RunTrail("scripted", lambda _name, _given: ToolReply(True, "so \ud800"))
    for given in ({"text": "\ud800"}, deep):
        assert trail.call("reply", given).ok
    request = make_request("teller", TurnInput(START), prompt="hi \ud800")
    trail.save(files, request, Done(), START)
    (made,) = kept(files, "teller")
    assert (made.prompt, made.calls[0].arguments) == ("hi ?", '{"text": "?"}')
    assert [use.reply for use in made.calls] == ["so ?", "so ?"]
