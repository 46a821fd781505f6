"""Ended things are deleted after their retention time, unless something still needs them."""

from __future__ import annotations

from mimikit.protocol import paths
from mimikit.supervisor.retention import BATCH
from tests.crash.driver import Client
from tests.support.product import START, Product

DAY = 86_400.0


def left(client: Client | Product) -> list[str]:
    return client.files.names("worker/results")


def tidied(product: Product, seconds: float) -> list[str]:
    """What is left after this time and a look of the house-keeping."""
    product.clock.advance(seconds)
    product.retention.ring()
    for _ in range(3):
        product.tick()
    return left(product)


def test_expired_files_are_removed_in_batches_and_logged(client: Client) -> None:
    expired = {f"worker/results/t{number:03}.json" for number in range(BATCH + 10)}
    for path in expired:
        client.files.write(path, b"{}")
    client.files.write("worker/queue/other.txt", b"not ours")
    assert len(tidied(client.product, 29 * DAY)) == BATCH + 10
    client.product.clock.advance(2 * DAY)
    client.product.retention.ring()
    client.product.tick()
    assert 0 < len(left(client)) <= BATCH + 10 - BATCH // 2
    assert tidied(client.product, 0) == []
    assert expired <= {line.get("path") for line in client.product.log.audits}


def test_unreported_results_and_running_tasks_are_not_removed(client: Client) -> None:
    client.submit("t1", "one")
    client.product.pool("worker")  # its result is there; nobody was told of it
    client.product.store.live.start("t2", "worker", "t2", START)
    client.files.write(paths.run_output("t2"), b"{}\n")
    client.product.clock.advance(40 * DAY)
    inbox = {"id": "res-t1", "kind": "task_result", "createdAt": "2026-12-01T09:00:00.000Z"}
    client.files.write(paths.inbox("res-t1"), str(inbox).replace("'", '"').encode())
    client.product.retention.ring()
    for _ in range(3):
        client.product.retention.step(client.now)
    assert left(client) == ["t1.json"]
    assert client.files.exists(paths.run_output("t2"))
    assert not client.files.exists(paths.run_output("t1"))
