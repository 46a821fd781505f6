"""Tools that are carried out here, outside the sandbox, for runs of a Planner or Worker.

A provider (the web, a server of tools that the settings name) says what it offers a run and
carries out its calls. Each call is audited, whatever comes of it. Without a provider a run is what
it is without this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from mimikit import permission
from mimikit.engines.base import CancelToken, ToolReply, ToolSpec
from mimikit.engines.registry import CODE_ENGINES, LOCAL
from mimikit.errors import BadInput, MimikitError, Refused
from mimikit.language.plain_text import as_json
from mimikit.protocol.models import Role

_MOST_TOLD = 500
"""Characters of a call's arguments in the audit."""
DEAF_ENGINES = CODE_ENGINES | {LOCAL}
"""Engines that read no tools but those they were made for."""
OnAudit: TypeAlias = Callable[[str, Mapping[str, object]], None]


@dataclass(slots=True)
class RunScratch:
    """Where a run works beside the workspace; known as soon as it has begun."""

    scratch: Path | None = None


@dataclass(frozen=True, slots=True)
class ToolRun:
    """The run whose calls a provider carries out."""

    run_id: str
    role: Role
    profile: str | None = None
    """A Worker's."""
    cancel: CancelToken = field(default_factory=CancelToken)
    """Tells that the run is over: a call that waits for something ends then."""
    place: RunScratch = field(default_factory=RunScratch)
    notes: list[str] = field(default_factory=list[str])
    """What the run's output is to tell of what it is not offered."""


class ToolProvider(Protocol):
    """Carries out calls of tools. Called from many threads, from those of one run one at a time."""

    @property
    def name(self) -> str:
        """As it stands in the audit."""
        ...

    @property
    def works_in_tree(self) -> bool:
        """Whether what it does is done in the user's own tree, wherever the run works."""
        ...

    def specs(self, run: ToolRun) -> Sequence[ToolSpec]:
        """What it offers this run; nothing if the settings do not name its role and profile.

        Asked once as the run begins, which waits for it: what takes time is kept at hand.
        """
        ...

    def call(self, name: str, given: Mapping[str, object], run: ToolRun) -> ToolReply:
        """Carry out one call, in bounded time.

        What the reply quotes of others is fenced, and told as data with its source.

        Raises:
            Refused: a rule says no; the model is told why, and it is audited as refused.
            MimikitError: it could not be done; the model is told.
        """
        ...


@runtime_checkable
class WarmProvider(ToolProvider, Protocol):
    """One that keeps a process between its calls."""

    def close(self) -> None:
        """End it; no call comes any more."""
        ...


class ProvidedTools:
    """What providers offer one run, by the names of the tools."""

    def __init__(
        self,
        providers: Sequence[ToolProvider],
        run: ToolRun,
        audit: OnAudit = lambda _event, _facts: None,
    ) -> None:
        """`audit(event, facts)` hears of every call, and of every tool that can not be offered."""
        self._run, self._audit = run, audit
        self._tools: dict[str, tuple[ToolProvider, ToolSpec]] = {}
        for provider in providers:
            for spec in self._offered_by(provider):
                if reason := permission.provided_name_refusal(spec.name, self._tools):
                    self._tell("tool_not_offered", provider, spec.name, reason=reason)
                else:
                    self._tools[spec.name] = provider, spec

    def begin(self, scratch: Path) -> list[str]:
        """Tell where the run works; gives what is to be told of what it is not offered."""
        self._run.place.scratch = scratch
        return self._run.notes

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(spec for _, spec in self._tools.values())

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def call(self, name: str, given: Mapping[str, object]) -> ToolReply:
        """Carry out one call; whatever goes wrong is an answer."""
        provider, _ = self._tools[name]
        began, event, reason = time.monotonic(), "tool_called", None
        try:
            if self._run.cancel.reason is not None:
                raise Refused("the run is over")  # noqa: TRY301 - answered as all refusals are
            reply = provider.call(name, given, self._run)
            reply = ToolReply(reply.ok, reply.text)  # it ends no turn: what it gives is to be read
        except Refused as error:
            event, reply = "tool_refused", ToolReply(False, str(error))
        except BadInput as error:
            reply = ToolReply(False, str(error))
        except MimikitError as error:
            reply = ToolReply(False, f"{name} could not be carried out: {error}")
        except Exception as error:  # noqa: BLE001 - a provider's fault is told to the model
            reason = repr(error)
            reply = ToolReply(False, f"{name} failed: {type(error).__name__}")
        reason = reason or (None if reply.ok else reply.text[:_MOST_TOLD])
        took = round((time.monotonic() - began) * 1000)
        self._tell(event, provider, name, _told(given), ok=reply.ok, tookMs=took, reason=reason)
        return reply

    def _offered_by(self, provider: ToolProvider) -> Sequence[ToolSpec]:
        """A provider that fails offers nothing: the run goes on without it."""
        try:
            return provider.specs(self._run)
        except Exception as error:  # noqa: BLE001 - whatever it is, the work can be done without
            self._tell("tool_not_offered", provider, "", reason=repr(error))
            return ()

    def _tell(
        self,
        event: str,
        provider: ToolProvider,
        tool: str,
        arguments: str | None = None,
        **facts: object,
    ) -> None:
        about: dict[str, object] = {"runId": self._run.run_id, "role": self._run.role}
        about |= {"provider": provider.name, "tool": tool or None, "arguments": arguments}
        self._audit(event, {**about, **facts})


def provided_for(
    providers: Sequence[ToolProvider],
    run: ToolRun,
    engine: str,
    audit: OnAudit,
    *,
    internal: bool = False,
) -> ProvidedTools | None:
    """What a run is offered beside its role's own tools; None: nothing.

    internal: asked for a word by this program itself, which nobody asked for work.
    """
    if not providers or engine in DEAF_ENGINES or internal:
        return None
    if not permission.may_be_provided(run.role, run.profile):
        return None
    made = ProvidedTools(providers, run, audit)
    return made if made.specs or run.notes else None


def _told(given: Mapping[str, object]) -> str:
    try:
        return as_json(dict(given))[:_MOST_TOLD]
    except (ValueError, RecursionError, TypeError):
        return "(not to be told)"
