"""Files that the user sends with a message: taking them in, and giving them back.

What comes back is data, whatever is in it: an attachment, of a type by its content, in a sandbox.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from flask import Response, request
from pydantic import Field, StringConstraints
from werkzeug.exceptions import LengthRequired

from mimikit.conversation import attachments
from mimikit.errors import NotFound
from mimikit.protocol.ids import check_id
from mimikit.views.messages import SentFileView
from mimikit.web.api.routing import EndpointRegistry, Input, site
from mimikit.web.guard import file_too_large

area = EndpointRegistry("files")

SHUT = "sandbox; default-src 'none'; frame-ancestors 'none'"
"""Of a file that is opened as a page all the same: it is nobody's, and may do nothing."""


class FileQuery(Input):
    """What the file is called; the body is the file itself, as `application/octet-stream`."""

    name: Annotated[str, StringConstraints(max_length=1000)] = Field(default="")


@area.route("POST", "/api/files", SentFileView, query=FileQuery)
def put_file(asked: FileQuery) -> SentFileView:
    """Keep a file under its SHA-256; it is on disk before this answers.

    The same one is kept once. A message names it by its id; one that nothing names goes in time.
    """
    here = site()
    limits = here.settings.files
    most, size = limits.file_mb * 2**20, request.content_length
    if size is None:
        raise LengthRequired
    if size > most:
        raise file_too_large(limits.file_mb)
    request.max_content_length = most
    data = request.get_data(cache=False)
    ref = attachments.keep(here.files, data, asked.name, here.clock.now(), limits)
    return SentFileView.of(ref, kept=True)


@area.route("GET", "/api/files/<file_id>", {200: None}, query=Input)
def get_file(_: Input, file_id: str) -> Response:
    """The file as it was sent, to be saved; never shown as a page."""
    files = site().files
    found = attachments.find(files, check_id(file_id))
    data = attachments.read(files, file_id) if found else None
    if found is None or data is None:
        raise NotFound(
            f"there is no file {file_id[:16]}…, or it is no longer kept", field="id", code="no_file"
        )
    kind = f"{found.media_type}; charset=utf-8" if found.is_text else found.media_type
    answer = Response(data, content_type=kind)
    answer.headers["Content-Disposition"] = (
        f"attachment; filename*=UTF-8''{quote(found.name, safe='')}"
    )
    answer.headers["Content-Security-Policy"] = SHUT
    return answer
