"""Tool calls while the disk refuses: a clear refusal, nothing half done, nothing twice."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from mimikit.config import Settings
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task
from mimikit.tools.planning import PlannerSession
from mimikit.tools.reader import RoleReader
from mimikit.tools.session import TellerSession, ToolCaller, ToolSession
from tests.support.memory_disk import MemoryDisk
from tests.support.searching import plain_search

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


class RefusingDisk(MemoryDisk):
    """A disk that refuses to be read, and to be looked at, while it is told to."""

    code: int | None = None

    def _check(self) -> None:
        if self.code is not None:
            raise OSError(self.code, "it refuses")

    def read(self, path: str, **more: Any) -> bytes:
        self._check()
        return super().read(path, **more)

    def stat(self, path: str) -> Any:
        self._check()
        return super().stat(path)

    def list_dir(self, path: str) -> Any:
        self._check()
        return super().list_dir(path)

    @contextmanager
    def refusing(self, code: int) -> Generator[None]:
        self.code = code
        yield
        self.code = None


def session(kind: type[ToolSession]) -> tuple[RefusingDisk, ToolSession]:
    disk = RefusingDisk()
    files = Files(disk)
    files.make_folders()
    files.write(paths.BACKLOG, b"- [ ] paint\n")
    parent = Task(
        id="task-plan", role="planner", prompt="p", created_at=NOW, trace_id="trace-1",
        notify="teller", origin="teller",
    )  # fmt: skip
    is_plan = kind is PlannerSession
    caller = ToolCaller("run-1", "trace-1", NOW, by_user=True, parent=parent if is_plan else None)
    settings = Settings()
    reader = RoleReader(files, plain_search(files, settings.zone), lambda _trace: 0)
    return disk, kind(caller, reader, settings)


READING: list[tuple[type[ToolSession], str, dict[str, object]]] = [
    (TellerSession, "list_tasks", {"scope": "all"}),
    (TellerSession, "cancel_task", {"id": "task-1"}),
    (TellerSession, "update_backlog", {"action": "add", "item": "wash"}),
    (PlannerSession, "get_recent_history", {"count": 5}),
    (PlannerSession, "delegate", {"prompt": "go", "after": ["task-1"]}),
    (PlannerSession, "change_trigger", {"id": "trig-1", "action": "pause"}),
]


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE])
@pytest.mark.parametrize(("kind", "tool", "given"), READING)
def test_what_cannot_be_looked_up_is_refused_and_noted_nowhere(
    kind: type[ToolSession], tool: str, given: dict[str, object], code: int
) -> None:
    disk, here = session(kind)
    with disk.refusing(code):
        reply = here.call(tool, given)
    assert not reply.ok
    assert "the storage failed" in reply.text
    assert "nothing was done, call again" in reply.text
    assert here.effects == type(here.effects)()


def test_a_call_made_again_is_noted_once() -> None:
    disk, here = session(TellerSession)
    with disk.refusing(errno.EIO):
        for _ in range(3):
            assert not here.call("update_backlog", {"action": "add", "item": "wash"}).ok
    assert here.call("update_backlog", {"action": "add", "item": "wash"}).ok
    assert [(change.action, change.item) for change in here.effects.backlog] == [("add", "wash")]
