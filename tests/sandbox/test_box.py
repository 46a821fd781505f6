"""The command line of the box: what it shows, and in which order."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mimikit.engine_settings import SandboxSettings
from mimikit.sandbox import programs
from mimikit.sandbox.box import Box, box_argv, namespace_argv
from mimikit.sandbox.git import git_access
from mimikit.sandbox.worker import BoxSpec, WorkerSandbox


def mounts(argv: list[str]) -> list[tuple[str, ...]]:
    """The mounts of a line, each with its paths, in order."""
    takes = {"--bind": 2, "--ro-bind": 2, "--tmpfs": 1, "--remount-ro": 1, "--symlink": 2}
    at, found = 0, list[tuple[str, ...]]()
    while at < len(argv) and argv[at] != "--":
        size = takes.get(argv[at], 0)
        if size:
            found.append(tuple(argv[at : at + size + 1]))
        at += size + 1
    return found


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for name in ("ws/.mimikit/cache", "ws/.git/hooks", "ws/deep/state", "tools", "scratch", "home"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def line(top: Path, **fields: object) -> list[str]:
    given = {"writable": [top / "ws", top / "scratch"], "hidden": [top / "ws/.mimikit"], **fields}
    box = Box(cwd=top / "ws", home=top / "home", **given)  # pyright: ignore[reportArgumentType]
    return box_argv("/usr/bin/bwrap", ["true"], box)


def test_only_named_folders_are_mounted(top: Path) -> None:
    of_ours = [one for one in mounts(line(top)) if one[-1].startswith(str(top))]
    ws, scratch, state = (str(top / name) for name in ("ws", "scratch", "ws/.mimikit"))
    assert of_ours == [
        ("--tmpfs", str(top / "home")),
        ("--bind", ws, ws),
        ("--bind", scratch, scratch),
        ("--tmpfs", state),
        ("--remount-ro", state),
    ]
    shown = {one[-1] for one in mounts(line(top))} - {one[-1] for one in of_ours}
    assert {path for path in shown if path.count("/") == 1} <= {
        *("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/run", "/var"),
        "/tmp",  # noqa: S108 - the box's own
    }


def test_there_is_a_network_only_when_asked_for(top: Path) -> None:
    assert "--unshare-net" in line(top)
    assert "--unshare-net" not in line(top, network=True)


def test_no_right_of_roots_is_kept(top: Path) -> None:
    argv = line(top)
    assert argv[argv.index("--cap-drop") + 1] == "ALL"
    assert "--cap-add" not in argv


def test_what_is_shown_within_the_hidden_is_mounted_after_it(top: Path) -> None:
    kept = top / "ws/.mimikit/cache"
    found = mounts(line(top, shown=[kept]))
    assert found.index(("--tmpfs", str(kept.parent))) < found.index(
        ("--ro-bind", str(kept), str(kept))
    )
    assert found[-1] == ("--remount-ro", str(kept.parent))


def test_what_is_hidden_and_not_in_sight_is_not_made(top: Path) -> None:
    (top / "other").mkdir()
    paths = {one[-1] for one in mounts(line(top, hidden=[top / "other", top / "nothing"]))}
    assert paths.isdisjoint({str(top / "other"), str(top / "nothing")})


def test_a_hidden_file_is_empty(top: Path) -> None:
    secret = top / "ws/key"
    secret.touch()
    assert ("--ro-bind", "/dev/null", str(secret)) in mounts(line(top, hidden=[secret]))


def test_a_namespace_shows_all_but_what_is_hidden(top: Path) -> None:
    state = top / "ws/.mimikit"
    argv = namespace_argv("bwrap", ["x"], hidden=[state], writable=[state / "cache", top / "ws"])
    assert argv[:6] == ["bwrap", "--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/"]
    assert [one[:2] for one in mounts(argv)] == [
        ("--tmpfs", str(state)),
        ("--bind", str(state / "cache")),
        ("--remount-ro", str(state)),
    ]


def test_git_is_read_only(top: Path) -> None:
    access = git_access(top / "ws", "read-only")
    assert (access.shown, access.writable) == ((top / "ws/.git",), None)


def test_with_write_what_names_programs_stays_shut(top: Path) -> None:
    ws = top / "repo"
    subprocess.run(["git", "init", "-q", str(ws)], check=True)
    access = git_access(ws, "write")
    assert access.writable == ws / ".git"
    shut = {path.name for path in access.shown}
    assert {"hooks", "config", "info", "modules", "worktrees", "commondir"} <= shut
    assert all(path.exists() for path in access.shown)
    assert subprocess.run(["git", "-C", str(ws), "status"], check=False).returncode == 0


@pytest.mark.parametrize("name", ["hooks", "config"])
def test_a_link_among_it_shuts_all(top: Path, name: str) -> None:
    git = top / "repo/.git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / name).symlink_to(top / "tools")
    assert git_access(top / "repo", "write").shown == (git,)


def linked(top: Path) -> Path:
    own, ws = top / "main/.git/worktrees/one", top / "one"
    own.mkdir(parents=True)
    ws.mkdir()
    (top / "main/.git/HEAD").write_text("ref: refs/heads/main\n")
    (own / "gitdir").write_text(f"{ws}/.git\n")
    (ws / ".git").write_text(f"gitdir: {own}\n")
    return ws


def test_the_repository_of_a_linked_worktree_is_shown(top: Path) -> None:
    ws = linked(top)
    for mode in ("read-only", "write"):
        assert git_access(ws, mode).shown == (ws / ".git", top / "main/.git")


def test_a_file_that_a_worker_wrote_shows_nothing(top: Path) -> None:
    linked(top)
    for target in (top / "main/.git/worktrees/one", top / "home", top / "none"):
        (top / "ws2").mkdir(exist_ok=True)
        (top / "ws2/.git").write_text(f"gitdir: {target}\n")
        assert git_access(top / "ws2", "write").shown == (top / "ws2/.git",)


def program(folder: Path, name: str = "tool") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder / name


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(programs, "_workspaces", {tmp_path / "ws"})
    monkeypatch.setenv("PATH", f"{tmp_path}/ws/bin:{tmp_path}/bin")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_program_below_the_workspace_is_passed_over(path: Path) -> None:
    program(path / "ws/bin")
    assert programs.find("tool") is None
    assert "lies in the workspace" in programs.why_missing("tool")
    good = program(path / "bin")
    assert programs.find("tool") == str(good)


def test_neither_a_path_nor_a_link_leads_below_the_workspace(path: Path) -> None:
    inner = program(path / "ws/bin")
    assert programs.find(str(inner)) is None
    (path / "bin").mkdir()
    (path / "bin/tool").symlink_to(inner)
    assert programs.find("tool") is None


def test_an_engine_reads_the_login_in_its_own_home(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(top / "home"))
    codex = top / "home/.codex"
    codex.mkdir()
    (codex / "auth.json").write_text("{}")
    (ssh := top / "home/.ssh").mkdir()
    monkeypatch.setattr(programs, "find_bwrap", lambda: "/usr/bin/bwrap")
    box = WorkerSandbox(SandboxSettings(show=[str(ssh)]), top / "ws/.mimikit")
    argv = box.argv(["codex"], BoxSpec(top / "ws", top / "scratch", writable=[codex]))
    assert not any(str(codex / "auth.json") in one for one in mounts(argv))
    assert ("--tmpfs", str(ssh)) in mounts(argv)


def test_a_package_in_the_current_folder_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "codex_cli_bin"
    (planted / "bin").mkdir(parents=True)
    (planted / "__init__.py").touch()
    (planted / "bin/codex").write_text("#!/bin/sh\n")
    (planted / "bin/codex").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    found = programs.packaged("bin", "codex")
    assert found is None or not Path(found).is_relative_to(tmp_path)
