"""A promise in a reply is kept by a tool call, or the reply says that nothing was set up."""

from __future__ import annotations

import pytest

from mimikit.conversation import history
from mimikit.engines.base import Done, Failed, Outcome, RunSpec
from mimikit.protocol.files import Files
from tests.support.mind import Mind
from tests.support.state import start_client

NOTHING = "(Nothing was set up for this.)"
PROMISE = "I'll remind you tomorrow."


class Promising(Mind):
    """A Teller with these replies; one that begins with `delegate` calls the tool with the rest."""

    def __init__(self, replies: list[str], runs: list[tuple[str, int]]) -> None:
        super().__init__(runs)
        self.replies, self.notes = replies, list[str]()

    def _teller(self, request: RunSpec) -> Outcome:
        if not request.input.inputs:
            return super()._teller(request)
        self.notes.append(request.prompt.partition("(From mimikit")[2])
        reply = self.replies.pop(0)
        if reply == "fail":
            return Failed("error", "it broke")
        if reply.startswith("delegate "):
            request.tools.call("remember", {"content": "likes tea"})
            arguments = {"prompt": "every 86400: call mum", "reply": reply[9:]}
            request.tools.call("delegate", arguments)
            return Done("")
        return Done(reply)


@pytest.mark.parametrize(
    ("asked", "replies", "expected"),
    [
        ("hello", ["Good morning."], "Good morning."),
        ("call mum", [f"delegate {PROMISE}"], PROMISE),
        ("call mum", [PROMISE, f"delegate {PROMISE}"], PROMISE),
        ("call mum", [PROMISE, "I cannot do that."], "I cannot do that."),
        ("call mum", [PROMISE, PROMISE], f"{PROMISE}\n\n{NOTHING}"),
        ("call mum", [PROMISE, "fail"], f"{PROMISE}\n\n{NOTHING}"),
        ("叫我", ["我会提醒你。"] * 2, "我会提醒你。\n\n（并没有为此设置任何任务。）"),
    ],
)
def test_a_promise_is_kept_or_told(
    files: Files, asked: str, replies: list[str], expected: str
) -> None:
    runs = len(replies)
    client = start_client(files, lambda made: Promising(replies, made))
    client.say("m1", asked)
    client.product.idle()
    (answer,) = [
        m for m in history.page(files, limit=100).messages if m.role == "agent" and m.in_reply_to
    ]
    notes = client.product.mind.notes
    assert answer.text == expected
    assert [bool(note) for note in notes] == [False, True][:runs]
    assert replies[runs:] == []
    assert answer.usage is not None
    assert answer.usage.input_tokens == 90 * runs


def test_a_promise_about_what_is_set_up_is_not_doubted(files: Files) -> None:
    replies = [PROMISE, "我会提醒你喝水。", "I'll let you know when it is done."]
    client = start_client(files, lambda made: Promising(replies, made))
    client.trigger("g1", 3600, "call mum", profile="reminder", title="call mum")
    client.trigger("g2", 3600, "喝水", profile="reminder", title="喝水")
    client.order("o1", "pause")
    for id_, text in (("m1", "will you tell me to call mum?"), ("m2", "喝水的提醒设置了吗")):
        client.say(id_, text)
        client.product.idle()
    client.submit("t1", "paint the fence")  # it waits
    client.say("m3", "and, is that over?")
    client.product.idle()
    assert client.product.mind.notes == ["", "", ""]
