"""Tools for a program of the owner's that speaks MCP: what `mimikit mcp` passes on to `/mcp`.

Such a program is a model's: it may look, and have work planned as the Teller may. What it asks for
carries a model's origin, so that it runs no command line of the owner's.
"""

from __future__ import annotations

import contextlib
import copy
import threading
import time
from collections import deque
from collections.abc import Mapping

from mimikit.engines.base import ToolReply, ToolSpec
from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.ids import new_id
from mimikit.protocol.runtime import ToolAddress
from mimikit.roles.run import RunContext
from mimikit.tasks import queue
from mimikit.tools.planning import PlannerSession
from mimikit.tools.session import TellerSession, ToolCaller

LOOKS = ("list_tasks", "search_memory", "get_recent_history", "get_history_by_time")
DELEGATE = "delegate"
_MINUTE_S = 60
_ITS_TURN = ("reply",)
"""Of the Teller's tool, what only makes sense in a turn of its own."""


class OwnerTools:
    """Each call is a run of its own; safe between threads."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._delegated = deque[float]()

    def specs(self) -> tuple[ToolSpec, ...]:
        looks = {spec.name: spec for spec in PlannerSession.specs()}
        delegate = next(spec for spec in TellerSession.specs() if spec.name == DELEGATE)
        schema = copy.deepcopy(delegate.schema)
        for name in _ITS_TURN:
            schema["properties"].pop(name, None)
        said = "Have mimikit plan and carry out work; the user is told the result in its chat."
        return (ToolSpec(DELEGATE, said, schema), *(looks[name] for name in LOOKS))

    def _too_many(self) -> str | None:
        """Why no more may be delegated just now: a model that goes round in circles ends there."""
        most, now_s = self._context.settings.web.inputs_per_minute, time.monotonic()
        with self._lock:
            while self._delegated and now_s - self._delegated[0] > _MINUTE_S:
                self._delegated.popleft()
            if len(self._delegated) >= most:
                return f"expected at most {most} delegations a minute, got more; wait a minute"
            self._delegated.append(now_s)
        return None

    def call(self, name: str, given: Mapping[str, object]) -> ToolReply:
        """Carry out one call.

        Crash: what is delegated is in the queue whole, or not at all; only then it is told.
        """
        context, now = self._context, self._context.clock.now()
        run_id = new_id("mcp", now)
        caller = ToolCaller(run_id, run_id, now, timezone=context.settings.zone.key)
        if name != DELEGATE:
            reply = context.open_session(PlannerSession, caller).call(name, given)
        elif said := self._too_many():
            reply = ToolReply(False, said)
        else:
            session = context.open_session(TellerSession, caller)
            reply = session.call(name, {k: v for k, v in given.items() if k not in _ITS_TURN})
            try:
                for task in session.close().tasks:
                    queue.submit(context.files, task)
            except StorageError as error:
                reply = ToolReply(False, f"it could not be put into the queue: {error}")
        context.log.write("audit", "owner_tool_called", runId=run_id, tool=name, ok=reply.ok)
        return ToolReply(reply.ok, reply.text)


def open_door(context: RunContext) -> None:
    """Serve the tools of runs, and the owner's; where the owner's are and their token is kept.

    Crash: a record that is left names a server that is gone.
    """
    if (server := context.tool_server) is None:
        return
    server.start()
    tools = OwnerTools(context)
    token = server.register(tools.specs(), tools.call)
    with contextlib.suppress(StorageError):  # `mimikit mcp` says that there is none
        context.files.save(paths.TOOL_ADDRESS, ToolAddress(url=server.url, token=token))
