"""An owner's command line where no sandbox can be made: it runs; agents do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimikit.config import Settings
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.engines.shell import ShellEngine
from mimikit.sandbox import programs
from tests.crash.driver import Client
from tests.support.runs import ground
from tests.support.state import start_client


def client_of(root: Path, **settings: object) -> Client:
    here, seat = ground(root), {"engine": "builtin"}
    given = Settings.model_validate(
        {"timezone": "UTC", "roles": {"teller": seat, "planner": seat}, **settings}
    )
    return start_client(
        settings=given,
        more_engines=(BuiltinEngine(), ShellEngine(given)),
        workspace=here.workspace,
        state=here.state,
    )


def test_where_there_is_none_the_line_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find_bwrap", lambda: None)
    client = client_of(tmp_path)
    client.say("m1", "run: touch made")
    client.product.idle()
    assert (tmp_path / "workspace" / "made").exists()
