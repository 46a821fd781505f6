"""The doctor's look at the engines: what is installed, logged in, and safe to run."""

from __future__ import annotations

from collections.abc import Iterator

from mimikit.app import State, engines_of
from mimikit.cli.engine_words import engine_lines
from mimikit.cli.finding import Finding
from mimikit.engines import codex_cli, sandbox
from mimikit.engines.choice import Rack
from mimikit.errors import MimikitError
from mimikit.roles.prompts import Prompts


def engines(state: State) -> Iterator[Finding]:
    """Who serves whom, and why not another."""
    try:
        found = engines_of(state)
        served = Rack(found, state.settings).describe()
    except MimikitError as error:
        yield Finding("broken", "engines", str(error))
        return
    yield _codex(state, next((e.unavailable() for e in found if e.name == "codex"), None))
    for line in engine_lines(served):
        waits = " — waiting: " in line
        mend = "until then its work waits in the queue" if waits else ""
        yield Finding("broken" if waits else "ok", "engines", line, mend)


def _codex(state: State, reason: str | None) -> Finding:
    place = codex_cli.find(state.settings.codex)
    if reason is not None or place is None:
        reason = reason or "codex is not installed"
        return Finding("warning", "codex", reason, "without it no language model is connected")
    version = ".".join(map(str, codex_cli.version_of(place.program) or ()))
    return Finding("ok", "codex", f"{version} at {place.program}, logged in ({place.home})")


def worker_sandbox(state: State) -> Iterator[Finding]:
    """Whether a shell in the Worker's sandbox really can not get at the state."""
    reason = sandbox.canary(state.path, state.workspace)
    if reason is None:
        yield Finding("ok", "sandbox", "a Worker's shell can neither read nor write the state")
    else:
        yield Finding("warning", "sandbox", reason, "until then no agent works as a Worker")


def prompts(state: State) -> Iterator[Finding]:
    """The templates in force."""
    try:
        Prompts(state.files)
        yield Finding("ok", "prompts", "all templates are there and can be filled")
    except MimikitError as error:
        yield Finding("broken", "prompts", str(error))
