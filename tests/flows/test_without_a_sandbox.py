"""An owner's command line where no sandbox can be made: refused in words, or it waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimikit.config import Settings
from mimikit.engines import sandbox, shell
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.engines.sandbox import SandboxAnswer
from mimikit.engines.shell import ShellEngine
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.ordinary_user import as_an_ordinary_user, folder_of_an_ordinary_user
from tests.support.product import START, Product
from tests.support.reading import result, transcript
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


def test_where_there_is_none_the_line_is_refused_and_the_user_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "find_bwrap", lambda: None)
    client = client_of(tmp_path)
    client.say("m1", "run: touch made")
    client.product.idle()
    told = transcript(client.product.files)[-1][1]
    assert "expected bubblewrap for the sandbox, got none; install its package" in told
    assert '`command.sandbox = "off"`' in told
    assert not list(tmp_path.rglob("made"))
    shown = client.product.context.engines.status()["command"]
    assert shown.state == "waiting"
    assert shown.reason
    assert shown.reason in told


def test_by_the_setting_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "find_bwrap", lambda: None)
    client = client_of(tmp_path, command={"sandbox": "off"})
    client.say("m1", "run: touch made")
    client.product.idle()
    assert (tmp_path / "workspace" / "made").exists()


@pytest.mark.needs_platform("linux")
@pytest.mark.needs_program("bwrap")
def test_while_none_can_be_made_it_waits_and_uses_no_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(shell._REMEMBER_S, "not now", -1.0)
    client = client_of(tmp_path)
    product = client.product
    with monkeypatch.context() as now:
        now.setattr(sandbox, "ask", lambda: SandboxAnswer("not now", "no room for a sandbox"))
        client.submit("task-1", "touch made", profile="command", max_attempts=1)
        for _ in range(20):
            product._pass()
            product.clock.advance(0.5)
        assert not list(tmp_path.rglob("made"))
        assert product.files.names("worker/results") == []
    product.idle()
    assert (tmp_path / "workspace" / "made").exists()
    ended = result(product.files, "task-1")
    assert (ended.status, ended.attempts) == ("done", 1)


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
