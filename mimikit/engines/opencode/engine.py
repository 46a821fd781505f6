"""The engine `opencode`: one `opencode serve` for all runs, a new session for each.

Its own tools are off in every role: they would run where its login is readable and the network
reachable. All roles get our tools over `/mcp`; those of a Worker, a shell and files, run in the
box.
"""

from __future__ import annotations

import contextlib
import queue
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.engines.base import (
    FAULTS,
    Attachment,
    Done,
    EngineOutage,
    Failed,
    Outcome,
    RunSpec,
    ToolReply,
    Tools,
    ends_turn,
    fault_outcome,
    stop_outcome,
)
from mimikit.engines.kept_server import KeptServer
from mimikit.engines.openai.answer import Body
from mimikit.engines.openai.dialogue import tool_facts
from mimikit.engines.openai.work import WorkTools
from mimikit.engines.opencode import cli
from mimikit.engines.opencode.cli import OpencodeLocation
from mimikit.engines.opencode.reader import SessionReader
from mimikit.engines.opencode.server import OpencodeProcess, RunPlace, ServerGone
from mimikit.engines.program import ProgramEngine
from mimikit.errors import EngineError
from mimikit.language.plain_text import as_json
from mimikit.protocol.json import table_of

MAX_CALL_S = 270.0
"""Below opencode's own timeout of a tool call, five minutes."""
_POLL_S = 0.5
_END_S = 5.0


class OpencodeEngine(ProgramEngine):
    """Runs every role with opencode. Thread-safe."""

    name = "opencode"

    def __init__(self, settings: Settings, state: Path, clock: Clock | None = None) -> None:
        super().__init__(settings, state, clock)
        self._opencode = settings.opencode
        self._server = KeptServer[OpencodeProcess]()

    def check_program(self) -> str | None:
        return cli.unavailable(self._opencode)

    def login_files(self) -> list[Path]:
        place = cli.find(self._opencode)
        return cli.watched(place) if place else []

    def close(self) -> None:
        self._server.close()

    def carry_out(self, request: RunSpec) -> Outcome:
        if request.cancel.reason is not None:
            return stop_outcome(request.cancel.reason)
        place = cli.find(self._opencode)
        if (reason := self.unavailable(request.role)) or place is None:
            want = reason.want if isinstance(reason, EngineOutage) else "unready"
            return Failed.unavailable(want, reason or "opencode is not installed")
        try:
            model = cli.model_of(request.model)
        except EngineError as error:
            return Failed.unavailable("unready", str(error))
        try:
            try:
                return self._run(request, place, model)
            except ServerGone:
                if request.cancel.has_begun or request.cancel.reason is not None:
                    raise
                return self._run(request, place, model)
        except FAULTS as error:
            if isinstance(error, EngineError) and request.cancel.reason is not None:
                return stop_outcome(request.cancel.reason)
            return fault_outcome(self.name, request, error, "broken")

    def _run(
        self, request: RunSpec, place: OpencodeLocation, model: dict[str, str] | None
    ) -> Outcome:
        until = time.monotonic() + request.timeout_s

        def start() -> OpencodeProcess:
            return OpencodeProcess(self._opencode, self._limits, place, self._state)

        with contextlib.ExitStack() as stack:
            tools: Tools | WorkTools = request.tools
            if request.role == "worker":
                tools = WorkTools(
                    request,
                    self._sandbox,
                    self._limits,
                    network=self._opencode.network and not request.read_only,
                    left_s=lambda: max(0.0, until - time.monotonic()),
                    max_call_s=MAX_CALL_S,
                )
            server = stack.enter_context(self._server.use(None, start, request.cancel))
            run = _Run(request, server, tools, until, self._clock)
            outcome = run.carry_out(stack, model)
        text = outcome.text[: self._limits.result_bytes]
        return replace(outcome, text=text, usage=run.reader.usage)


class _Run:
    """A run's session, followed in the run's thread."""

    def __init__(
        self,
        request: RunSpec,
        server: OpencodeProcess,
        tools: Tools | WorkTools,
        until: float,
        clock: Clock,
    ) -> None:
        self._request, self._server, self._tools = request, server, tools
        self._until = until
        self._replies: dict[str, list[ToolReply]] = {}
        """Replies of calls that were made before they arrived over `/mcp`."""
        self.reader = SessionReader(
            "", request.callbacks.on_event, clock.now, shows_tools=request.role != "worker"
        )

    def carry_out(self, stack: contextlib.ExitStack, model: dict[str, str] | None) -> Outcome:
        """Send the prompt, and follow the session until it ends. Raises EngineError."""
        request, reader = self._request, self.reader
        place = stack.enter_context(self._server.place_for(request.role))
        if specs := self._tools.specs:
            if request.tools.serve is None:
                raise EngineError("no tools can be served to opencode here")
            url, token = stack.enter_context(request.tools.serve(specs, self._call_over_mcp))
            place.connect(url, token, request.timeout_s)
        events = stack.enter_context(self._server.events(place.folder))
        asks = [{"permission": f"{cli.AGENT}_*", "pattern": "*", "action": "ask"}]
        rules: Body = {} if request.role == "worker" else {"permission": asks}
        session = table_of(place.ask("POST", "/session", {"title": request.run_id[:100]} | rules))
        reader.session = str(session.get("id"))
        request.cancel.on_cancel(lambda _reason: events.put({}))
        body: Body = {
            "agent": cli.AGENT,
            "system": request.instructions,
            "parts": [
                {"type": "text", "text": request.prompt or "Begin."},
                *map(_picture_part, request.input.pictures),
            ],
            **({"model": model} if model else {}),
            **({"variant": request.effort} if request.effort else {}),
        }
        request.cancel.has_begun = True
        place.ask("POST", f"/session/{reader.session}/prompt_async", body)
        outcome = self._follow(place, events)
        with contextlib.suppress(EngineError):
            place.ask("DELETE", f"/session/{reader.session}")
        return outcome

    def _call_over_mcp(self, name: str, arguments: dict[str, Any]) -> ToolReply:
        if self._request.cancel.reason is not None:
            return ToolReply(False, "the run is over")
        known = self._replies.get(_key(name, arguments))
        return known.pop(0) if known else self._tools.call(name, arguments)

    def _answer(self, place: RunPlace) -> None:
        """Make the calls that wait for permission, before they arrive over `/mcp`, and permit them.

        The one that ends the turn is rejected: else the model would be asked once more.
        """
        request, reader = self._request, self.reader
        calls = [(due, self._tools.call(due.name, due.arguments)) for due in reader.due()]
        for due, reply in calls:
            reader.replies.append(reply)
            reader.reported.add(due.id)
            facts = tool_facts(due.id, due.name, reply)
            request.callbacks.on_event("tool", due.name[:100], facts)
            self._replies.setdefault(_key(due.name, due.arguments), []).append(reply)
        is_over = ends_turn(reader.replies)
        for number, (due, _) in enumerate(calls, 1):
            answer: Body = {"reply": "reject" if is_over and number == len(calls) else "once"}
            try:
                place.ask("POST", f"/permission/{due.question}/reply", answer)
            except ServerGone:
                raise
            except EngineError as error:  # rejected together with another call of the same answer
                note = f"opencode took no permission: {error}"[:200]
                request.callbacks.on_event("note", note, {})

    def _follow(self, place: RunPlace, events: queue.SimpleQueue[Body | None]) -> Outcome:
        """Handle events until the session is idle, or must be stopped."""
        request, reader = self._request, self.reader
        active_at = time.monotonic()
        while not reader.is_idle:
            now = time.monotonic()
            silent_s = 0.0 if reader.working else now - active_at
            if request.cancel.reason is not None or now >= self._until:
                self._abort(place, events)
                return stop_outcome(
                    request.cancel.reason or "timeout", reader.text, request.timeout_s
                )
            if silent_s >= request.idle_timeout_s:
                self._abort(place, events)
                return stop_outcome("idle", reader.text, request.idle_timeout_s)
            left_s = min(self._until, now - silent_s + request.idle_timeout_s) - now
            try:
                event = events.get(timeout=max(0.0, min(_POLL_S, left_s)))
            except queue.Empty:
                continue
            if event is None:
                if request.cancel.reason is not None:
                    return stop_outcome(request.cancel.reason, reader.text)
                self._server.stop()
                return Failed.unavailable(
                    "broken",
                    "opencode ended during the run",
                    text=reader.text,
                    retry_now=not reader.acted,
                )
            if reader.take(event):
                active_at = time.monotonic()
            if reader.failure is not None and not reader.is_idle:
                self._abort(place, events)
                return replace(reader.failure, text=reader.text, acted=reader.acted)
            if events.empty():  # else there may be more calls of the same answer
                self._answer(place)
        place.is_clean = True
        if reader.failure is not None:
            return replace(reader.failure, text=reader.text, acted=reader.acted)
        if reader.text or (reader.acted and request.role != "worker"):
            return Done(reader.text)
        return Failed("error", "opencode ended the turn without an answer; try again")

    def _abort(self, place: RunPlace, events: queue.SimpleQueue[Body | None]) -> None:
        """Abort the session's turn; its folder is reused if it is idle soon."""
        reader, until = self.reader, time.monotonic() + _END_S
        with contextlib.suppress(EngineError):
            place.ask("POST", f"/session/{reader.session}/abort")
            while not reader.is_idle and (left_s := until - time.monotonic()) > 0:
                with contextlib.suppress(queue.Empty):
                    event = events.get(timeout=left_s)
                    if event is None:
                        return
                    reader.take(event)
        place.is_clean = reader.is_idle and not reader.working


def _picture_part(file: Attachment) -> Body:
    media_type = file.picture.removeprefix("data:").partition(";")[0]
    return {"type": "file", "mime": media_type, "filename": file.ref.name, "url": file.picture}


def _key(name: str, arguments: dict[str, object]) -> str:
    return f"{name} {as_json(arguments)}"
