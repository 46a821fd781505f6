"""What comes by webhooks, as it lies on disk."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from mimikit.protocol.models import MAX_TEXT, FileRef, Id, Instant, Notify, Record


class Delivery(Record):
    """What came by a webhook, and what is to come of it; `hooks/new`, then `hooks/done`.

    It is whole when it is written: the settings of its webhook may be others by the time it is
    taken in.
    """

    id: Id
    hook: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    created_at: Instant
    number: int = 0
    """Given when it is taken in: deliveries count in this order, whatever the clock does."""
    does: Literal["input", "task", "event"] = "event"
    prompt: Annotated[str, StringConstraints(max_length=MAX_TEXT)] = ""
    """What is said or done; the settings' words, none of the sender's."""
    title: Annotated[str, StringConstraints(max_length=200)] = ""
    profile: str = "standard"
    notify: Notify | None = None
    size: int = 0
    """Bytes of its body."""
    file: FileRef | None = None
    """The body, where there is one."""


class SignedDelivery(Record):
    """`hooks/seen/{id}.json`: what was signed so came before, as this delivery."""

    id: Id
    delivery: Id
    at: Instant
    """When it came first."""
