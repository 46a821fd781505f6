"""What comes by webhooks: `hooks/new/{id}.json` once it is accepted, `hooks/done/` once taken in.

The page accepts: what it has answered with yes is on disk, and the same delivery again is the same
one. The consumer takes in, in the order in which it numbers them.
"""

from __future__ import annotations

import bisect
import contextlib
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from mimikit.config import FileSettings
from mimikit.conversation import attachments, file_types
from mimikit.errors import UnsafeFile
from mimikit.hook_settings import HookSettings
from mimikit.language import phrases
from mimikit.language.plain_text import plain
from mimikit.protocol import paths
from mimikit.protocol.deliveries import Delivery, SignedDelivery
from mimikit.protocol.files import Files
from mimikit.protocol.ids import derived_id, new_id
from mimikit.protocol.models import MOST_FILES, REMINDER, FileRef

AGAIN = timedelta(hours=12)
"""So long a sender may send again what was not answered: later a signature that was used is worth
nothing, whatever is still kept of its delivery. Shorter than the shortest `retention.days`."""
_MOST_LOOKED_AT = 200
"""Deliveries, for their bodies: a day of them must not hold up the supervisor."""
_SHOWN = 2000
"""Characters of a body that a reminder tells."""
_PLACEHOLDER = re.compile(r"\{(body|name|time)\}")


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """A request to a webhook whose sender is who it says."""

    hook: str
    body: bytes
    at: datetime
    sent_id: str | None = None
    """What the sender calls it: the same when it is sent again."""
    signature: str | None = None
    """What proves it, where that is of this body alone."""


class AcceptedDelivery(NamedTuple):
    id: str
    is_new: bool
    """Else it came before."""


def accept(
    files: Files, call: ReceivedCall, hook: HookSettings, limits: FileSettings
) -> AcceptedDelivery:
    """Keep a delivery; once this returns it is on disk.

    Neither a signature nor a sender's id is taken twice: what comes with one that was used is that
    delivery again, and nothing more comes of it.

    Crash: a mark of the signature, or a file that nothing names. Sent again, it is whole.

    Raises:
        NoRoom: the files kept take all the room there is for them.
    """
    named = call.sent_id or call.signature
    own = derived_id("hook", call.hook, named) if named else new_id("hook", call.at)
    if call.signature is not None:
        own, first_at = _of_signature(files, call.hook, call.signature, own, call.at)
        if call.at - first_at > AGAIN:
            return AcceptedDelivery(own, is_new=False)
    if any(map(files.exists, (paths.hook_new(own), paths.hook_done(own)))):
        return AcceptedDelivery(own, is_new=False)
    file = None
    if call.body:
        name = _file_name(call)
        kept = attachments.keep(files, call.body, name, call.at, limits)
        file = FileRef.model_validate(kept.model_dump(include=set(FileRef.model_fields)))
    delivery = Delivery(
        id=own,
        hook=call.hook,
        created_at=call.at,
        does=hook.does,
        prompt=prompt_of(call, hook, file),
        title=hook.title or f"webhook {call.hook}",
        profile=hook.profile,
        notify=hook.notify,
        size=len(call.body),
        file=file,
    )
    return AcceptedDelivery(own, files.save_new(paths.hook_new(own), delivery))


def _of_signature(
    files: Files, hook: str, signature: str, own: str, at: datetime
) -> tuple[str, datetime]:
    """The delivery that a signature stands for, and since when: this one, unless it was used."""
    mark = derived_id("sign", hook, signature)
    if files.save_new(paths.hook_seen(mark), SignedDelivery(id=mark, delivery=own, at=at)):
        return own, at
    found = files.load(paths.hook_seen(mark), SignedDelivery)
    return (found.delivery, found.at) if found is not None else (own, at)


def prompt_of(call: ReceivedCall, hook: HookSettings, file: FileRef | None) -> str:
    """The settings' words. What the sender wrote is never among them: they name its file.

    A command line stays as it is. A reminder, which nobody carries out, tells the body as a quote.
    """
    template = hook.prompt or ""
    if hook.profile == "command":
        return template
    shown = file.name if file is not None else "(nothing)"
    if hook.does == "task" and hook.profile == REMINDER:
        text = file_types.text_of(call.body)
        text = plain(text if text is not None else f"({len(call.body)} bytes that are no text)")
        cut = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        shown = f"\n\n{phrases.fence(cut)}\n\n" if call.body else shown
    values = {"body": shown, "name": call.hook, "time": f"{call.at:%Y-%m-%d %H:%M:%S} UTC"}
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template).strip()


def _file_name(call: ReceivedCall) -> str:
    is_json = call.body.lstrip()[:1] in (b"{", b"[")
    ending = "json" if is_json else ("txt" if file_types.text_of(call.body) is not None else "bin")
    return f"webhook-{call.hook}-{call.at:%Y%m%d-%H%M%S}.{ending}"


class DeliveryMark(NamedTuple):
    """A delivery as conditions count it."""

    number: int
    id: str
    created_at: datetime


class DeliveryIndex:
    """What has come by each webhook, in order; read when it is asked for first. The supervisor's.

    Numbers only grow, whatever the clock does and however much has gone meanwhile.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._marks: defaultdict[str, list[DeliveryMark]] | None = None
        self._last = 0

    def since(self, hook: str, number: int) -> Sequence[DeliveryMark]:
        """Those that came after this number, oldest first."""
        marks = self._loaded()[hook]
        return marks[bisect.bisect_right(marks, number, key=lambda mark: mark.number) :]

    def newest(self, hook: str, before: datetime | None = None) -> int:
        """The number of the newest, of those that came before then; 0 where there is none."""
        marks = self._loaded()[hook]
        numbers = (m.number for m in reversed(marks) if before is None or m.created_at < before)
        return next(numbers, 0)

    def next_number(self, now: datetime) -> int:
        self._loaded()
        return max(self._last + 1, int(now.timestamp() * 1000))

    def add(self, delivery: Delivery) -> None:
        marks = self._loaded()
        if delivery.number > self._last:
            self._last = delivery.number
            mark = DeliveryMark(delivery.number, delivery.id, delivery.created_at)
            marks[delivery.hook].append(mark)

    def files_of(self, ids: Sequence[str]) -> list[FileRef]:
        """The bodies of the newest of these, as many as a run may have, each once; oldest first."""
        found: dict[str, FileRef] = {}
        for id_ in reversed(ids[-_MOST_LOOKED_AT:]):
            one = self._files.load(paths.hook_done(id_), Delivery)
            if one is not None and one.file is not None:
                found.setdefault(one.file.id, one.file)
            if len(found) >= MOST_FILES:
                break
        return list(found.values())[::-1]

    def _loaded(self) -> defaultdict[str, list[DeliveryMark]]:
        if self._marks is None:
            found: list[Delivery] = []
            for name in self._files.names(paths.HOOKS_DONE):
                with contextlib.suppress(UnsafeFile):
                    one = self._files.load(f"{paths.HOOKS_DONE}/{name}", Delivery)
                    found += [one] if one is not None else []
            self._marks = defaultdict(list)
            for one in sorted(found, key=lambda it: it.number):
                self.add(one)
        return self._marks
