"""`mimikit mcp`: tools for a program that speaks MCP by its input and output, such as an editor."""

from __future__ import annotations

import http.client
import json
import sys
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

import click

from mimikit.cli.frame import CliContext, LeafCommand, pass_frame
from mimikit.errors import BadRecord
from mimikit.protocol import paths
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.runtime import ToolAddress

if TYPE_CHECKING:
    from mimikit.state import ReadOnlyState

_MOST_BYTES = 2**20
_ANSWER_S = 120.0
_PARSE_ERROR, _UNREACHABLE = -32700, -32001
NOT_RUNNING = "mimikit's consumer is not running here; `mimikit up` starts it"


@click.command(cls=LeafCommand)
@pass_frame
def mcp(frame: CliContext) -> None:
    """Serve tools to a program that starts this and speaks MCP with it: an editor, an assistant.

    It may look at tasks, memory and the conversation, and have work done. Nothing is kept here:
    each message is passed on to the consumer, and may be while that is started anew.
    """
    state = frame.open()
    pass_on(state, sys.stdin.buffer, sys.stdout.buffer)


def pass_on(state: ReadOnlyState, given: BinaryIO, out: BinaryIO) -> None:
    """Pass lines on, one message each, until the input ends; an answer is a line."""
    while line := given.readline(_MOST_BYTES + 1):
        if len(line) > _MOST_BYTES:
            while line and not line.endswith(b"\n"):  # the rest of it
                line = given.readline(_MOST_BYTES)
            answer = _error(None, _PARSE_ERROR, f"expected at most {_MOST_BYTES:,} bytes a line")
        elif line.strip():
            answer = _answered(state, line)
        else:
            continue
        if answer is not None:
            out.write(answer + b"\n")
            out.flush()


def _answered(state: ReadOnlyState, line: bytes) -> bytes | None:
    """The answer to one message; None where it wants none."""
    try:
        number = parse_object(line).get("id")
    except BadRecord as error:
        return _error(None, _PARSE_ERROR, str(error))
    try:
        status, body = _sent(state, line)
        if body:
            answer = parse_object(body)
            if "jsonrpc" in answer:
                return json.dumps(answer).encode()
            reason = str(answer.get("error"))
        elif status < http.client.BAD_REQUEST:
            return None
        else:
            reason = f"HTTP {status}"
    except (OSError, http.client.HTTPException, BadRecord):
        reason = NOT_RUNNING
    return None if number is None else _error(number, _UNREACHABLE, reason)


def _sent(state: ReadOnlyState, line: bytes) -> tuple[int, bytes]:
    """What the consumer answers; where it is found is looked up for each, as it may have changed.

    Raises:
        OSError, HTTPException: nobody answers.
    """
    address = state.files.peek(paths.TOOL_ADDRESS, ToolAddress)
    if address is None:
        raise OSError(NOT_RUNNING)
    where = urlsplit(address.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=_ANSWER_S)
    try:
        headers = {"content-type": "application/json", "authorization": f"Bearer {address.token}"}
        connection.request("POST", where.path, line.strip(), headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _error(number: Json, code: int, message: str) -> bytes:
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()
