"""The state as every command but the keepers have it: they create and read, and move nothing."""

from __future__ import annotations

from dataclasses import dataclass

from mimikit.app import State
from mimikit.web.guest import GuestFiles


@dataclass(frozen=True)
class GuestState(State):
    """An opened state folder, used as a guest."""

    files: GuestFiles


def as_guest(state: State) -> GuestState:
    """The same state for a guest; its log still writes."""
    return GuestState(
        path=state.path,
        workspace=state.workspace,
        files=GuestFiles(state.files),
        settings=state.settings,
        clock=state.clock,
        log=state.log,
    )
