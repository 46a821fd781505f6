"""What stands in the way of a start, or of what is typed, is said in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mimikit.cli import process_group, up
from mimikit.protocol import ids, paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.runtime import PageAddress
from mimikit.state import open_state
from tests.cli.conftest import Cli
from tests.support.product import START


def add_page(folder: Path, port: int) -> None:
    """A page of this workspace that listens there; our own process stands for it."""
    page = PageAddress(
        host="127.0.0.1", port=port, local=True, pid=os.getpid(), started_at=START,
        process_started=ids.own_start_time(), boot_id=ids.boot_id(),
    )  # fmt: skip
    Files(RealDisk(folder)).save(paths.page("page-1"), page)


@pytest.mark.parametrize("command", [["init"], ["token"], ["enqueue", "x"]])
def test_a_folder_that_cannot_be_written_names_the_option(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    cli("init")
    monkeypatch.setattr(os, "access", lambda *_args, **_more: False)
    result = cli(*command)
    assert result.exit_code == 2
    assert "cannot be written; name a folder that can be with `--state FOLDER`" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [["chat"], ["memory", "add"], ["memory", "search"]])
def test_bytes_that_are_no_text_are_refused_in_one_line(cli: Cli, command: list[str]) -> None:
    cli("init")
    result = cli(*command, "\udcc4\udce3")
    assert result.exit_code == 2
    assert "expected text in UTF-8" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_link_leads_to_the_workspaces_own_page(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    alone = cli("token", "--link")
    assert "No page of this workspace runs" in alone.stderr
    add_page(tmp_path / ".mimikit", 18111)
    own = cli("token", "--link")
    assert own.stdout.startswith("http://127.0.0.1:18111/")
    assert own.stderr == ""
    assert cli("token", "--link", "--port", "7").stdout.startswith("http://127.0.0.1:7/")


@pytest.mark.parametrize(("lost", "naps"), [([False], 0), ([True, True, False], 2), ([True], 60)])
def test_up_waits_for_the_orphans_of_another(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: list[bool], naps: int
) -> None:
    cli("init")
    folder = tmp_path / ".mimikit"
    add_page(folder, 1)
    assert not process_group.has_lost_parent(os.getpid())
    answers, slept = iter(lost), list[float]()
    monkeypatch.setattr(process_group, "has_lost_parent", lambda _pid: next(answers, lost[-1]))
    monkeypatch.setattr(up.time, "sleep", slept.append)
    up._await_orphans(open_state(folder, tmp_path))
    assert len(slept) == naps
