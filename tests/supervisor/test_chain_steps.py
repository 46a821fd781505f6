"""A step that can not run any more comes to its end once."""

from __future__ import annotations

from mimikit.protocol import paths
from mimikit.supervisor import chain_steps
from mimikit.triggers import registry
from tests.crash.driver import Client
from tests.support.product import START


def test_a_step_whose_definition_came_back_has_no_second_end(client: Client) -> None:
    """The disk may refuse its removal after the end of the step was carried out."""
    client.when("s2", "x", {"type": "task_done", "params": {"taskId": "t1"}}, once=True)
    step = registry.active(client.files, "s2")[0]
    assert step is not None
    chain_steps.end_step(client.product.store, step, "t1", START)
    client.product.idle()
    (ended,) = client.files.names("worker/ended")
    client.files.save(paths.trigger("s2"), step)
    chain_steps.end_step(client.product.store, step, "t1", START)
    assert client.files.names("worker/running") == []
    client.product.idle()
    assert client.files.names("worker/ended") == [ended]
    assert not client.files.exists(paths.trigger("s2"))
