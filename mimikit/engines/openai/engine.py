"""The engine `openai`: an endpoint of the settings, with mimikit's own tool loop."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from mimikit.clock import Clock, SystemClock
from mimikit.config import Settings
from mimikit.engine_settings import EndpointSettings
from mimikit.engines.base import (
    FAULTS,
    CancelToken,
    Done,
    EngineOutage,
    Failed,
    Outcome,
    RunSpec,
    ToolReply,
    ToolSpec,
    ends_turn,
    fault_outcome,
    stop_outcome,
)
from mimikit.engines.openai import endpoint as endpoints
from mimikit.engines.openai.dialogue import (
    PATHS,
    AnswerReader,
    Api,
    ModelAnswer,
    ModelCall,
    ModelDialogue,
    parsed_arguments,
    shortened,
    table_of,
)
from mimikit.engines.openai.endpoint import EndpointClient, EndpointError, Trouble
from mimikit.engines.openai.work import WorkTools
from mimikit.errors import EngineError, MimikitError
from mimikit.language import phrases
from mimikit.language.plain_text import plain
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import EngineProblem, Record, Role, Usage
from mimikit.sandbox.worker import WorkerSandbox

_MAX_ROUNDS: dict[Role, int] = {"teller": 12, "planner": 40, "worker": 250}
_TRIES = 4
BACKOFF_S = (0.5, 1.0, 2.0)
_SHOWN_CHARACTERS = 4000
_ARGUMENT_CHARACTERS = 2000

_WANTS: dict[Trouble, EngineProblem] = {
    "logged_out": "logged_out",
    "limited": "limited",
    "unreachable": "unreachable",
    "broken": "broken",
}

Call = Callable[[str, dict[str, object]], ToolReply]


class OpenAIEngine:
    """One named endpoint. Thread-safe."""

    def __init__(
        self, name: str, settings: Settings, state: Path, clock: Clock | None = None
    ) -> None:
        self._name, self._state, self._clock = name, state, clock or SystemClock()
        self._settings: EndpointSettings = settings.engines[name]
        self._limits = settings.limits
        self._sandbox = WorkerSandbox(settings.sandbox, state)
        self._refused_key: str | None = None
        self._lock = threading.Lock()
        self._profile: EndpointProfile | None = None

    @property
    def name(self) -> str:
        return self._name

    def unavailable(self, role: Role | None = None) -> str | None:
        if not endpoints.is_installed():
            return EngineOutage(endpoints.MISSING, "missing")
        try:
            key_of(self._name, self._settings, self._state)
        except EngineError as error:
            return EngineOutage(str(error), "logged_out")
        return self._sandbox.unavailable() if role == "worker" else None

    def recheck(self) -> None: ...

    def has_recovered(self, want: EngineProblem) -> bool:
        """Whether the key has changed, or the port accepts connections."""
        if want == "logged_out":
            with contextlib.suppress(EngineError):
                key = key_of(self._name, self._settings, self._state)
                return key != self._refused_key
        return want == "unreachable" and endpoints.accepts_connections(self._settings.base_url)

    def run(self, request: RunSpec) -> Outcome:
        if request.cancel.reason is not None:
            return stop_outcome(request.cancel.reason)
        if reason := self.unavailable(request.role):
            want = reason.want if isinstance(reason, EngineOutage) else "unready"
            return Failed.unavailable(want, reason)
        try:
            key = key_of(self._name, self._settings, self._state)
            return self._run(request, key)
        except FAULTS as error:
            return fault_outcome(self._name, request, error, "unready")

    def _run(self, request: RunSpec, key: str | None) -> Outcome:
        settings = self._settings
        run = _Run(request, settings, deadline_s=time.monotonic() + request.timeout_s)
        with contextlib.ExitStack() as stack:
            tools: Call = request.tools.call
            specs = request.tools.specs
            if request.role == "worker":
                work = self._work(request, run.left_s)
                tools, specs = work.call, work.specs
            client = stack.enter_context(
                EndpointClient(
                    settings.base_url,
                    key,
                    idle_s=request.idle_timeout_s,
                    now=self._clock.now,
                )
            )
            stack.enter_context(run.deadline(client))
            try:
                profile = self._known(client)
                outcome = run.execute(client, profile, specs, tools)
            except EndpointError as error:
                outcome = self._failed(run, error, key)
        return replace(outcome, usage=run.usage, requests=run.requests)

    def _work(self, request: RunSpec, left_s: Callable[[], float]) -> WorkTools:
        """The Worker's tools. Raises EngineError if its sandbox is broken."""
        network = self._settings.network and not request.read_only
        return WorkTools(request, self._sandbox, self._limits, network=network, left_s=left_s)

    def _known(self, client: EndpointClient) -> EndpointProfile:
        """The endpoint's cached profile. Raises EndpointError."""
        with self._lock:
            if self._profile is None:
                self._profile = learn(self._name, self._settings, self._state, client)
            return self._profile

    def _failed(self, run: _Run, error: EndpointError, key: str | None) -> Outcome:
        if (stopped := run.stopped()) is not None:
            return stopped
        message, text = str(error), run.text
        match error.trouble:
            case "logged_out" | "limited" | "unreachable" | "broken" | "unknown_model" | "absent":
                if error.trouble == "absent":  # another API may be there now
                    self._profile = None
                if error.trouble == "logged_out":
                    self._refused_key = key
                want = _WANTS.get(error.trouble, "missing")
                message = self._with_remedy(error)
                return Failed.unavailable(want, message, text=text, retry_at=error.until)
            case "too_long":
                return Failed("error", message, text, too_long=True, acted=run.acted)
            case "silent":
                return Failed("timeout", message, text)
            case "error":
                return Failed("error", message, text)

    def _with_remedy(self, error: EndpointError) -> str:
        remedy = {
            "logged_out": f"give the right key by `mimikit engine add {self._name}`",
            "unknown_model": "name one it has: `mimikit engine test " + self._name + "` lists them",
            "absent": "check base_url; it often ends in /v1",
        }.get(error.trouble)
        return f"{error}; {remedy}" if remedy else str(error)


class _Run:
    def __init__(self, request: RunSpec, settings: EndpointSettings, *, deadline_s: float) -> None:
        self.request = request
        self._settings, self._deadline_s = settings, deadline_s
        self._stop = CancelToken()
        self.usage, self.text, self.requests = Usage(), "", 0
        self._tries = 0
        """Retries of the current request."""
        self.acted = False

    def left_s(self) -> float:
        return max(0.0, self._deadline_s - time.monotonic())

    def stopped(self) -> Outcome | None:
        return stop_outcome(self._stop.reason, self.text) if self._stop.reason else None

    def deadline(self, client: EndpointClient) -> contextlib.AbstractContextManager[None]:
        return client.deadline(self.request.cancel, self.left_s(), self._stop)

    def execute(
        self,
        client: EndpointClient,
        profile: EndpointProfile,
        specs: tuple[ToolSpec, ...],
        call_tool: Call,
    ) -> Outcome:
        """The tool loop: ask, call tools, repeat. Raises EndpointError."""
        request = self.request
        dialogue = ModelDialogue(request.instructions, request.prompt, specs, profile.window)
        known_ids: set[str] = set()
        for _ in range(_MAX_ROUNDS[request.role]):
            dialogue.make_room()
            answer = self._ask(client, profile, dialogue, known_ids)
            if (stopped := self.stopped()) is not None:
                return stopped
            if not answer.calls:
                return self._ended(answer)
            dialogue.add(shortened(answer, _ARGUMENT_CHARACTERS))
            replies = [(call, self._call(call, call_tool)) for call in answer.calls]
            if (stopped := self.stopped()) is not None:
                return stopped
            for call, reply in replies:
                dialogue.add_output(call, reply.text if reply.ok else f"error: {reply.text}")
            if ends_turn([reply for _, reply in replies]):
                return Done(answer.text)
        message = f"ended: not done after {_MAX_ROUNDS[request.role]} requests to the model"
        if request.role == "teller" and self.text:
            return Done(self.text)
        return Failed("error", message, self.text)

    def _ended(self, answer: ModelAnswer) -> Outcome:
        text = answer.text or self.text
        if answer.is_truncated:
            self.request.callbacks.on_event("note", "the endpoint's limit cut this answer off", {})
        if text or (self.acted and self.request.role != "worker"):
            return Done(text)
        message = "the model ended the turn without an answer; try again"
        return Failed("error", message)

    def _ask(
        self,
        client: EndpointClient,
        profile: EndpointProfile,
        dialogue: ModelDialogue,
        known_ids: set[str],
    ) -> ModelAnswer:
        """The next answer; retries transient errors."""
        settings, request = self._settings, self.request
        effort = request.effort or settings.effort
        model = request.model or settings.model
        for number in range(_TRIES):
            body = dialogue.body(profile.api, model, effort, f"mimikit-{request.role}")
            self.requests += 1
            reader = AnswerReader(
                lambda text: request.callbacks.on_event("delta", text, {}), known_ids
            )
            try:
                events = client.stream(PATHS[profile.api], body)
                with contextlib.closing(events):
                    answer = reader.read(profile.api, events, client.stream_error)
            except EndpointError as error:
                if (
                    self._stop.reason
                    or number == _TRIES - 1
                    or not self._wait_to_retry(error, dialogue)
                ):
                    raise
                request.callbacks.on_event("note", self._retry_note(error), {})
                continue
            self._record_answer(answer)
            return answer
        raise AssertionError  # the last try raises or returns

    def _wait_to_retry(self, error: EndpointError, dialogue: ModelDialogue) -> bool:
        """Back off, or drop tool outputs; whether a retry may help."""
        if error.trouble == "too_long":
            return self.acted and dialogue.make_room(force=True)
        if not error.is_transient or error.until is not None or error.trouble == "silent":
            return False
        wait_s = BACKOFF_S[min(self._tries, len(BACKOFF_S) - 1)]
        self._tries += 1
        return not self._stop.wait(min(wait_s, self.left_s()))

    def _retry_note(self, error: EndpointError) -> str:
        if self.request.role != "teller":
            return f"retrying: {error}"
        given = self.request.input
        language = phrases.language("\n".join(item.text for item in given.inputs), given.locale)
        return phrases.say("note_again", language)

    def _record_answer(self, answer: ModelAnswer) -> None:
        self._tries = 0
        self.usage = self.usage + answer.usage
        if self.usage.tokens:
            self.request.callbacks.on_event("usage", "", self.usage.to_dict())
        if answer.thoughts.strip():
            shown = plain(answer.thoughts.strip())[:_SHOWN_CHARACTERS]
            self.request.callbacks.on_event("note", shown, {"reasoning": True})
        if answer.text:
            self.text = answer.text
            self.request.callbacks.on_event("message", plain(answer.text), {})

    def _call(self, call: ModelCall, call_tool: Call) -> ToolReply:
        """Invalid arguments are reported to the model."""
        if self._stop.reason:
            return ToolReply(False, "the run is over")
        given = parsed_arguments(call.arguments)
        facts: dict[str, object] = {"tool": call.name[:100], "id": call.id}
        is_shown = self.request.role != "worker"  # a Worker's tools report their own events
        if given is None:
            reply = ToolReply(False, "arguments: expected one JSON object, got something else")
        else:
            self.acted = True
            self.request.cancel.has_begun = True
            reply = call_tool(call.name, given)
        if is_shown:
            facts |= {"status": "completed" if reply.ok else "failed"}
            facts |= {} if reply.ok else {"error": plain(reply.text)[:_SHOWN_CHARACTERS]}
            self.request.callbacks.on_event("tool", call.name[:100], facts)
        return reply


# ---- the cached profile of an endpoint

_WINDOWS = ("context_length", "max_model_len", "context_window", "n_ctx", "max_context_length")
"""Names of the context window in model lists."""


class EndpointProfile(Record):
    """Cached in `cache/endpoint-{name}.json`."""

    base_url: str
    model: str
    api: Literal["responses", "chat"]
    window: int | None = Field(default=None, ge=256)
    """In tokens; None: unknown."""


def key_of(name: str, settings: EndpointSettings, state: Path) -> str | None:
    """The API key; None if none is configured. Raises EngineError if it is missing."""
    if variable := settings.api_key_env:
        if key := os.environ.get(variable, "").strip():
            return key
        raise EngineError(f"expected the key of {name} in {variable}, got no such variable")
    if settings.api_key_file is None:
        return None
    place = f"{paths.SECRETS}/{settings.api_key_file}"
    with contextlib.closing(RealDisk(state)) as disk:
        key = (Files(disk).read(place, max_bytes=10_000) or b"").decode("ascii", "replace").strip()
    if not key or not key.isprintable():
        raise EngineError(
            f"expected the key of {name} in {place}, got none; `mimikit engine add {name}`"
        )
    return key


def learn(
    name: str, settings: EndpointSettings, state: Path, client: EndpointClient
) -> EndpointProfile:
    """The cached profile, else a new one. Raises EndpointError."""
    place, window = f"{paths.CACHE}/endpoint-{name}.json", settings.context_tokens
    with contextlib.closing(RealDisk(state)) as disk:
        files = Files(disk, durable=False)
        known = files.peek(place, EndpointProfile)
        if known is None or (known.base_url, known.model) != (settings.base_url, settings.model):
            known = EndpointProfile(
                base_url=settings.base_url,
                model=settings.model,
                api=api_of(settings, client),
                window=_window(settings, client),
            )
            with contextlib.suppress(MimikitError):  # then it is probed again
                files.make_folders()
                files.write(place, known.to_json())
    return known.but(window=window or known.window)


def api_of(settings: EndpointSettings, client: EndpointClient) -> Api:
    """The API of the endpoint, probed by empty requests. Raises EndpointError."""
    if settings.api != "auto":
        return settings.api
    is_openai = settings.base_url.split("/")[2].endswith(("openai.com", "openai.azure.com"))
    order: tuple[Api, ...] = ("responses", "chat") if is_openai else ("chat", "responses")
    for api in order:
        if client.has(PATHS[api]):
            return api
    wanted = " or ".join(f"{settings.base_url}{PATHS[api]}" for api in order)
    raise EndpointError("absent", f"expected {wanted}, found neither")


def _window(settings: EndpointSettings, client: EndpointClient) -> int | None:
    """From the endpoint's list of models."""
    try:
        listed = client.models()
    except EndpointError:
        return None
    for model in (it for it in listed if it["id"] == settings.model):
        for table in (model, table_of(model.get("meta"))):
            for name in _WINDOWS:
                if type(size := table.get(name)) is int and size >= 256:
                    return size
    return None
