"""The doctor's look at what the owner gives to models: skills, and servers of tools."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mimikit.cli.checks import Finding, note, ok, warning
from mimikit.engines.base import CancelToken
from mimikit.protocol import paths
from mimikit.state import State
from mimikit.tools import skills as skill_store
from mimikit.tools.mcp_servers import McpServers
from mimikit.views.status import look_at_consumer

_SHOWN, _NAME = 20, 40


def tool_servers(state: State) -> Iterator[Finding]:
    """Each server of tools, started or greeted as for a run."""
    settings = state.settings.mcp
    if not settings:
        return
    if _began_before_settings(state):
        said = "config.toml was changed after the consumer began, which reads `[mcp]` only then"
        yield note("mcp", said, "restart mimikit if it was `[mcp]` that changed")
    servers = McpServers(state.settings, state.files, state.path, state.workspace, state.log)
    cancel = CancelToken()
    try:
        for name, one in settings.items():
            whom = ", ".join([*[role for role in one.roles if role != "worker"], *one.profiles])
            if not whom:
                advice = f'`[mcp.{name}] profiles = ["specialist"]` would offer them'
                yield note("mcp", f"{name}: its tools are offered to nobody", advice)
            unset = [variable for variable in one.env_from if variable not in os.environ]
            if unset:
                yield warning("mcp", f"{name}: {', '.join(unset)} of its env_from is not set here")
            listing = servers.listing(name, cancel)
            if listing.fault is not None:
                advice = "runs go on without it until it is mended"
                yield warning("mcp", f"{name}: {listing.fault}", advice)
                continue
            names = [tool.name[:_NAME] for tool in listing.tools]
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            tools = (", ".join(names[:_SHOWN]) or "no tools") + more
            left = f"; {listing.left} can not be offered" if listing.left else ""
            yield ok("mcp", f"{name}, for {whom or 'nobody'}: {tools}{left}")
    finally:
        servers.close()


def _began_before_settings(state: State) -> bool:
    consumer = look_at_consumer(state.files, state.clock.now()).current
    written = state.files.stat(paths.CONFIG)
    return bool(
        consumer and written and written.mtime_ns > consumer.started_at.timestamp() * 1_000_000_000
    )


def skills(state: State) -> Iterator[Finding]:
    found, faults = skill_store.look(state.files)
    for fault in faults:
        advice = "mend it, or `mimikit skills remove` it; until then nobody is told of it"
        yield warning("skills", f"{fault.name}: {fault.reason}", advice)
    if found:
        yield ok("skills", ", ".join(skill.name for skill in found))
