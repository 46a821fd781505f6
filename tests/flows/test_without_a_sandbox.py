"""An owner's command line where no sandbox can be made: it runs; agents do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimikit.config import Settings
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.engines.shell import ShellEngine
from mimikit.protocol.files import Files
from mimikit.sandbox import programs
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.runs import ground
from tests.support.twins import FakeClock


def client_of(root: Path, **settings: object) -> Client:
    here, seat, oracle = ground(root), {"engine": "builtin"}, Oracle()
    given = Settings.model_validate(
        {"timezone": "UTC", "roles": {"teller": seat, "planner": seat}, **settings}
    )
    files = Files(MemoryDisk())
    files.make_folders()
    product = Product(
        files,
        FakeClock(START),
        Mind(oracle.runs),
        settings=given,
        more_engines=(BuiltinEngine(), ShellEngine(given)),
        workspace=here.workspace,
        state=here.state,
    )
    product.start()
    return Client(product, oracle)


def test_where_there_is_none_the_line_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find_bwrap", lambda: None)
    client = client_of(tmp_path)
    client.say("m1", "run: touch made")
    client.product.idle()
    assert (tmp_path / "workspace" / "made").exists()
