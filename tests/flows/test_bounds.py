"""No record is made that reading would refuse: what is too long is cut, put off or kept aside."""

from __future__ import annotations

import pytest

from mimikit.engines.base import Done, Outcome, RunSpec
from mimikit.errors import BadRecord
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import MAX_TEXT, InboxItem, Task, TurnRecord
from mimikit.protocol.records import decode, max_record_bytes
from mimikit.tools import session
from tests.crash.driver import Client
from tests.support.product import START
from tests.support.reading import transcript

LONG = "字" * MAX_TEXT


def turn_sizes(files: Files) -> list[int]:
    names = files.names(paths.TURNS_DONE)
    return [len(files.read(f"{paths.TURNS_DONE}/{name}") or b"") for name in names]


def test_very_many_messages_are_answered_in_turns_that_can_be_read_again(judged: Client) -> None:
    for number in range(250):
        judged.say(f"m{number:03}", f"hello {number}")
    judged.product.idle()
    said = [text for role, text in transcript(judged.files) if role == "user"]
    assert sorted(said) == sorted(f"hello {number}" for number in range(250))
    assert len(turn_sizes(judged.files)) == 3
    assert said[0] == "hello 0"


def test_very_long_messages_are_answered_in_turns_that_can_be_read_again(judged: Client) -> None:
    for number in range(12):
        judged.say(f"m{number:02}", LONG)
    judged.product.idle()
    assert len([1 for role, _ in transcript(judged.files) if role == "user"]) == 12
    sizes = turn_sizes(judged.files)
    assert len(sizes) == 3
    assert max(sizes) < max_record_bytes(TurnRecord)


def test_a_reply_without_end_is_cut_and_kept_whole_beside(judged: Client) -> None:
    long = "x" * 20_000_000

    def endless(request: RunSpec) -> Outcome:
        return Done(long)

    judged.product.mind._teller = endless
    judged.say("m1", "hello")
    judged.product.idle()
    (_, reply) = transcript(judged.files)[1]
    limit = judged.product.settings.limits.result_bytes
    assert reply[:limit] == long[:limit]
    (name,) = judged.files.names(paths.SIDE, suffix=".txt")
    assert reply[limit:] == f"\n\n… (side/{name})"
    assert judged.files.read(f"side/{name}") == long.encode()
    assert judged.files.names(paths.CORRUPT, suffix="") == []


def test_all_that_a_run_asks_for_fits_into_its_record(judged: Client) -> None:
    """Of plans of very long prompts the last are refused, and the planner is told."""
    told: list[str] = []

    def planner(request: RunSpec) -> Outcome:
        for number in range(20):
            reply = request.tools.call("delegate", {"prompt": LONG, "title": f"t{number}"})
            told.append(reply.text)
        return Done("planned")

    judged.product.mind._planner = planner
    judged.say("m1", "plan: one")
    judged.product.idle()
    accepted = [text for text in told if text.startswith("planned as")]
    assert len(accepted) == session.MAX_CHARACTERS // MAX_TEXT - 1
    assert "expected at most 2,000,000 characters" in told[-1]
    assert len(judged.files.names("worker/results")) == len(accepted)
    assert judged.files.names(paths.CORRUPT, suffix="") == []


def test_an_answer_to_a_very_long_request_goes_on_with_it(client: Client) -> None:
    """The answer stays whole; what no prompt has room for is kept beside."""
    asks = f"ask: {'x' * (MAX_TEXT - 30)} | red; blue"
    client.submit("p1", asks, role="planner")
    client.product.idle()
    client.answer("a1", "the blue one")
    client.product.idle()
    ended = [name for name in client.files.names("planner/ended") if name != "p1.json"]
    (name,) = ended
    task = decode(client.files.read(f"planner/ended/{name}") or b"", Task)
    assert len(task.prompt) <= MAX_TEXT
    assert task.prompt.startswith(asks[:1000])
    assert task.prompt.endswith("The user answered: the blue one")
    whole = (client.files.read(paths.side(task.id)) or b"").decode()
    assert whole.startswith(asks)
    assert whole.endswith("The user answered: the blue one")
    assert f"all of it: side/{task.id}.txt" in task.prompt


def test_a_record_that_could_not_be_read_again_is_not_written(files: Files) -> None:
    files.save("inbox/m.json", InboxItem(id="m", text="hello", created_at=START))
    before = files.read("inbox/m.json")
    long = InboxItem(
        id="m", text="hello", created_at=START, quote="x" * max_record_bytes(InboxItem)
    )
    with pytest.raises(BadRecord, match="InboxItem: expected at most 4,194,304 bytes"):
        files.save("inbox/m.json", long)
    with pytest.raises(BadRecord):
        files.save_new("inbox/new.json", long)
    assert files.read("inbox/m.json") == before
    assert files.names("inbox") == ["m.json"]
