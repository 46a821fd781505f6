"""A consumer that runs tells a failure outside of the page, by channels set up while it runs."""

from __future__ import annotations

import pytest

from tests.process.world import World, children, until
from tests.support.receiver import Receiver

pytestmark = pytest.mark.needs_platform("linux")


def test_a_failure_reaches_a_channel_that_was_set_up_meanwhile(world: World) -> None:
    with Receiver() as receiver:
        consumer = world.start_consumer()
        secrets = world.state / "secrets/notify-phone.url"
        secrets.write_text(receiver.url("/canary-topic-7fq2"))
        world.order("notify_set", "phone")
        done = world.state / "commands/done"
        until(lambda: list(done.glob("*.json")), "the channel is set up", facts=world.facts)
        world.drop("job", {"prompt": "exit 3", "profile": "command", "title": "nightly tests"})
        until(lambda: receiver.arrived, "it arrives", facts=world.facts)
        assert receiver.arrived[0]["title"] == "Failed: nightly tests"
        (line,) = until(
            lambda: world.lines("notifications"), "it is written down", facts=world.facts
        )
        assert line["outcome"] == "sent"
        until(lambda: not children(consumer.pid), "its process has ended")
    consumer.terminate()  # no file comes and goes any more
    assert consumer.wait(120) == 0
    kept = [path for path in world.state.rglob("*") if path.is_file() and path != secrets]
    assert [path for path in kept if b"canary-topic" in path.read_bytes()] == []
