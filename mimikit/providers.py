"""Who carries out tools for Planner and Workers in the consumer, outside of any sandbox."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Mapping, Sequence

from mimikit.engines.base import ToolReply, ToolSpec
from mimikit.state import State
from mimikit.tools.mcp_servers import McpServers
from mimikit.tools.provider import ToolProvider, ToolRun
from mimikit.tools.skill_reader import SkillReader

WEB_PACKAGES = ("httpx", "trafilatura", "pypdf", "ddgs")
"""The modules of the extra `web`."""


class LazyProvider:
    """A provider that is made, and its packages imported, when a first run is offered tools."""

    works_in_tree = False

    def __init__(self, name: str, make: Callable[[], ToolProvider]) -> None:
        self.name, self._make = name, make
        self._lock = threading.Lock()
        self._made: ToolProvider | None = None

    def specs(self, run: ToolRun) -> Sequence[ToolSpec]:
        return self._get().specs(run)

    def call(self, name: str, given: Mapping[str, object], run: ToolRun) -> ToolReply:
        return self._get().call(name, given, run)

    def _get(self) -> ToolProvider:
        with self._lock:
            self._made = self._made or self._make()
            return self._made


def missing_for_web() -> list[str]:
    """What of the extra `web` is not installed."""
    return [name for name in WEB_PACKAGES if importlib.util.find_spec(name) is None]


def tool_providers(state: State) -> tuple[ToolProvider, ...]:
    """What the settings and what is installed allow, in the order in which tools are offered."""
    made: list[ToolProvider] = [SkillReader(state.files)]
    if state.settings.mcp:
        made.append(McpServers(state.settings, state.files, state.path, state.workspace, state.log))
    if state.settings.internet.enabled and not missing_for_web():
        made.append(LazyProvider("web", lambda: _web(state)))
    return tuple(made)


def _web(state: State) -> ToolProvider:
    from mimikit.internet.web_tools import WebTools

    return WebTools(state.settings.internet, state.path, state.files, state.clock)
