"""Files that the user sends with messages: stored, and given back as attachments."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from flask import Response, request
from pydantic import StringConstraints

from mimikit.conversation import attachments
from mimikit.errors import NotFound
from mimikit.protocol.models import FileRef
from mimikit.web.api.routing import EndpointRegistry, Input, current_site

area = EndpointRegistry("files")


class FileQuery(Input):
    name: Annotated[str, StringConstraints(max_length=1000)] = ""


@area.route("POST", "/api/files", FileRef, query=FileQuery)
def upload(query: FileQuery) -> FileRef:
    """Store a file (the body, whole) for a message; it is on disk before the answer."""
    site = current_site()
    site.take_input()
    request.max_content_length = attachments.MAX_FILE_BYTES
    data = request.get_data(cache=False)
    return attachments.keep(site.files, data, query.name, site.settings.files)


@area.route("GET", "/api/files/<file_id>", {200: None}, query=Input)
def download(_: Input, file_id: str) -> Response:
    """A file as it was sent, to be saved."""
    files = current_site().files
    ref = attachments.find(files, file_id)
    data = attachments.content(files, ref) if ref else None
    if ref is None or data is None:
        raise NotFound(f"there is no file {file_id[:60]}", field="id")
    response = Response(data, content_type=attachments.media_type(file_id))
    name = quote(ref.name, safe="")
    response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{name}"
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response
