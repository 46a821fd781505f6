"""An owner's command line where no sandbox can be made: it runs; agents do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimikit.config import Settings
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.engines.shell import ShellEngine
from mimikit.protocol import paths
from mimikit.sandbox import programs
from tests.crash.driver import Client
from tests.support.ordinary_user import as_an_ordinary_user, folder_of_an_ordinary_user
from tests.support.reading import result
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


@pytest.mark.needs_platform("linux")
@pytest.mark.needs_program("bwrap")
def test_while_a_run_has_shut_the_workspace_others_wait_and_use_no_attempt() -> None:
    """The state folder lies in it."""

    def test() -> None:
        client = client_of(root)
        product = client.product
        workspace = product.context.workspace
        client.submit("task-1", "touch made", profile="command", max_attempts=1)
        workspace.chmod(0o000)
        for _ in range(20):
            product._pass()
            product.clock.advance(0.5)
        assert product.files.names("worker/results") == []
        assert b"chmod u+rwx" in (product.files.read(paths.run_output("task-1")) or b"")
        workspace.chmod(0o700)
        product.idle()
        assert (workspace / "made").exists()
        ended = result(product.files, "task-1")
        assert (ended.status, ended.attempts) == ("done", 1)

    with folder_of_an_ordinary_user() as root:
        as_an_ordinary_user(test)
