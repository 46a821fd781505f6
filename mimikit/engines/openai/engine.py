"""The engine `openai`: an endpoint of the settings, with mimikit's own tool loop."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mimikit.clock import Clock, SystemClock
from mimikit.config import Settings
from mimikit.engine_settings import EndpointSettings
from mimikit.engines.base import (
    FAULTS,
    EngineOutage,
    Failed,
    Outcome,
    RunSpec,
    ToolSpec,
    fault_outcome,
    stop_outcome,
)
from mimikit.engines.openai import endpoint as endpoints
from mimikit.engines.openai.endpoint import EndpointClient
from mimikit.engines.openai.failure import EndpointError, Trouble
from mimikit.engines.openai.profile import EndpointProfile, key_of, profile_of
from mimikit.engines.openai.run import Call, EndpointRun
from mimikit.engines.openai.work import WorkTools
from mimikit.errors import EngineError
from mimikit.protocol.models import EngineProblem, Role
from mimikit.sandbox.worker import WorkerSandbox

_RECHECK = timedelta(days=1)
_PROBLEMS: dict[Trouble, EngineProblem] = {
    "logged_out": "logged_out",
    "account": "account",
    "region": "region",
    "limited": "limited",
    "unknown_model": "unknown_model",
    "unreachable": "unreachable",
    "absent": "unreachable",
    "broken": "broken",
    "silent": "broken",
}


class OpenAIEngine:
    """One named endpoint. Thread-safe."""

    def __init__(
        self, name: str, settings: Settings, state: Path, clock: Clock | None = None
    ) -> None:
        self.name, self._state, self._clock = name, state, clock or SystemClock()
        self._settings: EndpointSettings = settings.engines[name]
        self._limits = settings.limits
        self._sandbox = WorkerSandbox(settings.sandbox, state)
        self._refused_key: str | None = None
        self._lock = threading.Lock()
        self._profile: EndpointProfile | None = None
        self._learned_at = datetime.min.replace(tzinfo=UTC)
        self._has_warned = False

    def unavailable(self, role: Role | None = None) -> str | None:
        if reason := endpoints.why_not_ready(self._settings.base_url):
            return EngineOutage(f"not ready: {reason}", "unready")
        try:
            key_of(self.name, self._settings, self._state)
        except EngineError as error:
            return EngineOutage(str(error), "logged_out")
        return self._sandbox.unavailable() if role == "worker" else None

    def recheck(self) -> None: ...

    def has_recovered(self, want: EngineProblem) -> bool:
        """Whether the key has changed, or the port accepts connections."""
        if want == "logged_out":
            with contextlib.suppress(EngineError):
                key = key_of(self.name, self._settings, self._state)
                return key != self._refused_key
        return want == "unreachable" and endpoints.accepts_connections(self._settings.base_url)

    def run(self, request: RunSpec) -> Outcome:
        if request.cancel.reason is not None:
            return stop_outcome(request.cancel.reason)
        if reason := self.unavailable(request.role):
            want = reason.want if isinstance(reason, EngineOutage) else "unready"
            return Failed.unavailable(want, reason)
        try:
            return self._run(request, key_of(self.name, self._settings, self._state))
        except FAULTS as error:
            return fault_outcome(self.name, request, error, "unready")

    def _run(self, request: RunSpec, key: str | None) -> Outcome:
        chosen = {"model": request.model, "effort": request.effort}
        own = self._settings
        settings = own.model_copy(update={key: value for key, value in chosen.items() if value})
        run = EndpointRun(
            request,
            self.name,
            settings,
            time.monotonic() + request.timeout_s,
            self._omit if settings.model == own.model else lambda _fields: None,
            self._has_warned or request.role != "teller",
        )
        with contextlib.ExitStack() as stack:
            tools: Call = request.tools.call
            specs = request.tools.specs
            if request.role == "worker":
                network = settings.network and not request.read_only
                work = WorkTools(
                    request, self._sandbox, self._limits, network=network, left_s=run.left_s
                )
                tools, specs = work.call, work.specs
            idle_s, now = request.idle_timeout_s, self._clock.now
            client = stack.enter_context(EndpointClient(settings, key, idle_s=idle_s, now=now))
            stack.enter_context(client.deadline(request.cancel, run.left_s(), run.stop))
            try:
                outcome = self._executed(run, client, specs, tools)
            except EndpointError as error:
                outcome = self._failed(run, error, key)
        self._has_warned |= run.has_warned
        return replace(outcome, usage=run.usage, requests=run.requests)

    def _executed(
        self, run: EndpointRun, client: EndpointClient, specs: tuple[ToolSpec, ...], tools: Call
    ) -> Outcome:
        """Run it; once more if the endpoint contradicts its profile. Raises EndpointError."""
        profile = self._known(client)
        try:
            return run.execute(client, profile, specs, tools)
        except EndpointError as error:
            if error.trouble != "absent" or run.acted:
                raise
        self._profile = None
        return run.execute(client, self._known(client), specs, tools)

    def _known(self, client: EndpointClient) -> EndpointProfile:
        """The profile, asked again each day. Raises EndpointError."""
        with self._lock:
            profile, now = self._profile, self._clock.now()
            if profile is None or not timedelta() <= now - self._learned_at < _RECHECK:
                profile, self._learned_at = profile_of(self._settings, client), now
                self._profile = profile
            return profile

    def _omit(self, fields: frozenset[str]) -> None:
        with self._lock:
            if self._profile is not None:
                self._profile = replace(self._profile, omitted=fields)

    def _failed(self, run: EndpointRun, error: EndpointError, key: str | None) -> Outcome:
        if (stopped := run.stopped()) is not None:
            return stopped
        message, text = self._with_remedy(error), run.text
        if error.trouble == "absent":
            self._profile = None
        if error.trouble == "logged_out":
            self._refused_key = key
        if problem := _PROBLEMS.get(error.trouble):
            return Failed.unavailable(problem, message, text=text, retry_at=error.until)
        return Failed(
            "error",
            message,
            text,
            too_long=error.trouble == "too_long",
            refused=error.trouble == "refused",
            acted=run.acted,
        )

    def _with_remedy(self, error: EndpointError) -> str:
        remedy = {
            "logged_out": f"give the right key by `mimikit engine add {self.name}`",
            "unknown_model": "name one it has: `mimikit engine test " + self.name + "` lists them",
            "absent": "check base_url; it often ends in /v1",
        }.get(error.trouble)
        return f"{error}; {remedy}" if remedy else str(error)
