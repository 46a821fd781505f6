"""Orders from outside (cancel, retry, pause…): a file each, applied once, kept with its outcome."""

from __future__ import annotations

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Order, OrderOutcome


def give(files: Files, order: Order) -> bool:
    """Hand an order to the supervisor; False when this id was given before."""
    if files.exists(paths.command_done(order.id)):
        return False
    return files.save_new(paths.command(order.id), order)


def waiting(files: Files) -> list[Order]:
    """Orders not applied yet, oldest first."""
    return sorted(files.load_all(paths.COMMANDS, Order), key=lambda o: (o.created_at, o.id))


def outcome(files: Files, order_id: str) -> OrderOutcome | None:
    """What came of an order; None while it waits."""
    return files.load(paths.command_done(order_id), OrderOutcome)


def settle(files: Files, result: OrderOutcome) -> None:
    """Record the outcome, then drop the order.

    Crash: an order with an outcome is dropped at the next look, not applied again.
    """
    files.save_new(paths.command_done(result.order.id), result)
    files.remove(paths.command(result.order.id))
