"""What every role works with, and the one way a role runs an engine."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.engines.base import (
    UPSTREAM,
    Brief,
    CancelToken,
    EngineRequest,
    Outcome,
    ToolReply,
    ToolSpec,
)
from mimikit.engines.process_tree import state_id
from mimikit.engines.registry import Choice, Rack
from mimikit.errors import StorageError
from mimikit.log import ChangeFeed, EventLog
from mimikit.memory import tokens
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Role, RunEvent
from mimikit.roles import context
from mimikit.roles.output import RunOutput
from mimikit.roles.prompts import Prompts
from mimikit.runs import LiveRuns
from mimikit.tools.session import Desk, Limits, Views

T = TypeVar("T")
_WITHOUT_TOKENS = frozenset({"builtin", "command", "scripted"})
"""Engines that have no use for the prompt's tokens."""


class Door(Protocol):
    """Where engines outside this process reach the tools (`tools/mcp.py`)."""

    @property
    def url(self) -> str:
        """The address of `/mcp`."""
        ...

    def register(
        self,
        specs: tuple[ToolSpec, ...],
        call: Callable[[str, dict[str, object]], ToolReply],
        label: str,
    ) -> str:
        """Open it for one run; gives the run's bearer token."""
        ...

    def unregister(self, token: str) -> None:
        """Close it: the token is worth nothing from now on."""
        ...


@dataclass(frozen=True)
class Office:
    """The tools of the trade, shared by all roles of one consumer."""

    files: Files
    settings: Settings
    clock: Clock
    live: LiveRuns
    rack: Rack
    prompts: Prompts
    views: Views
    feed: ChangeFeed
    log: EventLog
    workspace: Path
    state: Path
    door: Door | None = None
    stopping: threading.Event = field(default_factory=threading.Event)

    def limits(self) -> Limits:
        """What one run may ask for."""
        limits = self.settings.limits
        return Limits(
            delegations=limits.delegations_per_turn,
            plan=limits.tasks_per_plan,
            trace=limits.tasks_per_trace,
            llm_commands=self.settings.allow_llm_commands,
            llm_eval_interval_s=self.settings.triggers.llm_eval_interval_s,
            profiles=tuple(type(self.settings.profiles).model_fields),
        )

    def on_refused(self, run_id: str) -> Callable[[str, str], None]:
        """Write a refused tool call into the log."""
        return lambda tool, reason: self.log.write(
            "audit", "tool_refused", runId=run_id, tool=tool, reason=reason
        )

    def insist(self, do: Callable[[], T]) -> T:
        """Read or write what a run can not do without, however long the disk refuses.

        Given up only at the stop: an outcome that could not be written is found by recovery as an
        interrupted run.
        """
        while True:
            try:
                return do()
            except StorageError as error:
                self.log.write("error", "disk_refuses", error=str(error))
                if error.permanent or self.stopping.wait(1.0):
                    raise

    def output(self, run_id: str, *, is_turn: bool = False) -> RunOutput:
        """The live output of a run."""
        cap = self.settings.limits.output_bytes
        return RunOutput(
            self.files, self.clock, self.feed, self.live, run_id, cap_bytes=cap, is_turn=is_turn
        )


@dataclass(frozen=True, slots=True)
class Job:
    """One engine run as a role asks for it."""

    run_id: str
    attempt: int
    role: Role
    prompt: str
    brief: Brief
    choice: Choice
    cancel: CancelToken
    timeout_s: float
    idle_timeout_s: float
    profile: str = "standard"
    template: str | None = None
    resume: str | None = None
    read_only: bool = False


def run_engine(office: Office, job: Job, desk: Desk | None) -> Outcome:
    """Run one engine with its tools' door open, its output followed, its scratch removed.

    Whatever an engine raises becomes a failed outcome: a role never dies of its engine.
    """
    output = office.output(job.run_id, is_turn=job.role == "teller")
    output.write("started", job.choice.engine.name, {"attempt": job.attempt})
    scratch: Path | None = None
    token = None
    try:
        scratch = Path(tempfile.mkdtemp(prefix=_scratch_prefix(office.state)))
        _lay_out_upstream(office, job, scratch)
        if office.door is not None and desk is not None:
            token = office.door.register(desk.specs, desk.call, job.run_id)
        outcome = job.choice.engine.run(_request(office, job, desk, output, scratch, token))
    except Exception as error:  # noqa: BLE001 - an engine's fault is that run's failure, no more
        office.log.write("error", "engine_fault", runId=job.run_id, error=repr(error))
        outcome = Outcome("failed", error=f"the engine failed: {error}", failure_reason="error")
    finally:
        if token is not None and office.door is not None:
            office.door.unregister(token)
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
    if job.choice.engine.name not in _WITHOUT_TOKENS:
        tokens.load_soon()  # a model is served here: the turns to come are counted, not estimated
    if job.cancel.reason == "killed" and outcome.status != "done":
        outcome = Outcome("failed", error="mimikit was stopped meanwhile", failure_reason="killed")
    output.write("ended", outcome.error or "", {"status": outcome.status})
    return outcome


def sweep_scratch(state: Path) -> None:
    """Remove the scratch folders that a killed consumer of this state has left behind.

    Only while no run of this state is going on.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{_scratch_prefix(state)}*"):
        with contextlib.suppress(FileNotFoundError):
            if path.lstat().st_uid == os.getuid():  # anybody may make a folder of that name
                shutil.rmtree(path, ignore_errors=True)


def _scratch_prefix(state: Path) -> str:
    return f"mimikit-run-{state_id(state)}-"


def _lay_out_upstream(office: Office, job: Job, scratch: Path) -> None:
    """Put the whole text of each result a run builds on into its scratch folder, read-only."""
    for result in job.brief.upstream:
        whole = office.files.read(paths.side(result.id)) if "whole" in result.result else None
        folder = scratch / UPSTREAM
        folder.mkdir(exist_ok=True)
        path = folder / f"{result.id}.txt"
        path.write_bytes(whole if whole is not None else result.text.encode(errors="replace"))
        path.chmod(0o400)


def _request(
    office: Office, job: Job, desk: Desk | None, output: RunOutput, scratch: Path, token: str | None
) -> EngineRequest:
    specs = desk.specs if desk else ()
    instructions = ""
    if job.template is not None:
        instructions = office.prompts.fill(
            job.template,
            {
                "tools": "\n".join(f"- `{spec.name}`: {spec.description}" for spec in specs),
                "workspace": str(office.workspace),
                "now": RunEvent(at=job.brief.now, type="note").to_dict()["at"],
                "timezone": job.brief.timezone,
            },
        )
    return EngineRequest(
        run_id=job.run_id,
        attempt=job.attempt,
        role=job.role,
        profile=job.profile,
        instructions=instructions,
        prompt=_prompt(job, scratch),
        brief=job.brief,
        tools=specs,
        call_tool=desk.call if desk else _no_tools,
        on_event=output.event,
        cancel=job.cancel,
        workspace=office.workspace,
        scratch=scratch,
        state=office.state,
        timeout_s=job.timeout_s,
        idle_timeout_s=job.idle_timeout_s,
        model=job.choice.seat.model,
        effort=job.choice.seat.effort,
        tools_url=office.door.url if office.door and token else None,
        tools_token=token,
        resume=job.resume,
        read_only=job.read_only,
    )


def _prompt(job: Job, scratch: Path) -> str:
    if job.role == "worker" and job.template is not None:
        return context.worker_prompt(job.brief, str(scratch / UPSTREAM))
    return job.prompt


def _no_tools(name: str, _arguments: dict[str, object]) -> ToolReply:
    return ToolReply(False, f"this run has no tools, so no {name!r}")
