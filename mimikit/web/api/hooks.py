"""Webhooks: the one address at which other programs call, with a secret of their own."""

from __future__ import annotations

from flask import request
from werkzeug.exceptions import LengthRequired

from mimikit.conversation.hook_proof import READ
from mimikit.views.base import View
from mimikit.web.api.routing import EndpointRegistry, site
from mimikit.web.hooks import too_large

area = EndpointRegistry("hooks")


class DeliveryView(View):
    """A delivery that is on disk; `repeated`: it came before, and nothing more comes of it."""

    id: str
    repeated: bool


@area.route("POST", "/hooks/<name>", {202: DeliveryView, 200: DeliveryView})
def receive(name: str) -> tuple[DeliveryView, int]:
    """Call a webhook, with its signature or token in place of a login.

    The body is anything, and is kept as a file; it is on disk before this answers.
    """
    door = site().hooks
    most, size = door.most_bytes, request.content_length
    if size is None and request.headers.get("Transfer-Encoding"):
        raise LengthRequired
    if (size or 0) > most:
        raise too_large(most)
    request.max_content_length = most
    body = request.get_data(cache=False)
    headers = {it: request.headers.get(it, "") for it in READ}
    found = door.take(name, headers, body, request.remote_addr or "")
    return DeliveryView(id=found.id, repeated=not found.is_new), 202 if found.is_new else 200
