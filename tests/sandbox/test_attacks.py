"""What a shell in the real box tries, one kind a row, and what must not come of it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from mimikit.engine_settings import SandboxSettings
from mimikit.sandbox.worker import BoxSpec, WorkerSandbox

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("bwrap", "git"),
]

READS = {
    "the state": "cat .mimikit/secrets/token",
    "the state by its real path": 'cat "$WS/.mimikit/secrets/token"',
    "the state through /proc": 'cat /proc/[0-9]*/root"$WS/.mimikit/secrets/token"',
    "the state after umount": "umount .mimikit; umount -l .mimikit; cat .mimikit/secrets/token",
    "the state after a move": "mv .mimikit moved; cat moved/secrets/token",
    "the state by a link": "ln -s .mimikit/secrets/token link; cat link",
    "a key of the home": 'cat "$OWNER_HOME/.ssh/id"',
    "another file of the home": 'cat "$OWNER_HOME/notes"',
    "a folder outside": 'cat "$OUTSIDE/secret"',
    "the environment of the owner's process": "cat /proc/[0-9]*/environ | tr '\\0' '\\n'",
    "a file of root": "cat /etc/shadow && echo CANARY",
    "a user namespace of its own": (
        'unshare -Urm sh -c "umount .mimikit; cat .mimikit/secrets/token"'
    ),
}
"""By what is read: none of it prints CANARY."""
WRITES = {
    "the state": ("echo x > .mimikit/config.toml", "ws/.mimikit/config.toml"),
    "a hook of git": ("echo x > .git/hooks/post-commit", "ws/.git/hooks/post-commit"),
    "the configuration of git": ("git config core.fsmonitor evil", "ws/.git/config"),
    "git's folder after a move": (
        "mv .git old; mkdir -p .git/hooks; echo x > .git/hooks/x",
        "ws/.git/hooks/x",
    ),
    "a folder outside": ('echo x > "$OUTSIDE/made"', "outside/made"),
    "the home": ('echo x > "$OWNER_HOME/.bashrc"', "home/.bashrc"),
    "the system": ("echo x > /usr/bin/mimikit-made", "/usr/bin/mimikit-made"),
}
"""By what is written: the line, and the file outside that stays as it was."""


@dataclass
class Ground:
    root: Path
    workspace: Path
    scratch: Path
    box: WorkerSandbox
    env: dict[str, str]

    def run(self, line: str, *, read_only: bool = False) -> str:
        spec = BoxSpec(self.workspace, self.scratch, read_only=read_only)
        argv = self.box.argv(["/bin/sh", "-c", line], spec)
        done = subprocess.run(
            argv, env=self.env, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout + done.stderr


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    workspace, home, outside = (tmp_path / name for name in ("ws", "home", "outside"))
    for path in (
        workspace / ".mimikit/secrets/token",
        home / ".ssh/id",
        home / "notes",
        outside / "secret",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("CANARY\n")
    (scratch := tmp_path / "scratch").mkdir()
    subprocess.run(["git", "init", "-q", workspace], check=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OWNERS_KEY", "CANARY")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "WS": str(workspace),
        "OWNER_HOME": str(home),
        "OUTSIDE": str(outside),
    }
    box = WorkerSandbox(SandboxSettings(), workspace / ".mimikit")
    assert box.unavailable() is None
    return Ground(tmp_path, workspace, scratch, box, env)


def test_the_work_itself_can_be_done(ground: Ground) -> None:
    said = ground.run(
        "echo made > made.txt; cat made.txt; git status --short; python3 -c 'print(1 + 1)'"
    )
    assert "made\n" in said
    assert "2\n" in said
    assert (ground.workspace / "made.txt").read_text() == "made\n"


@pytest.mark.parametrize("line", READS.values(), ids=READS)
def test_nothing_of_the_owners_is_read(ground: Ground, line: str) -> None:
    assert "CANARY" not in ground.run(line)


@pytest.mark.parametrize(("line", "place"), WRITES.values(), ids=WRITES)
def test_nothing_of_the_owners_is_written(ground: Ground, line: str, place: str) -> None:
    path = ground.root / place
    before = path.read_bytes() if path.exists() else None
    ground.run(line)
    assert (path.read_bytes() if path.exists() else None) == before


def test_there_is_no_network(ground: Ground) -> None:
    said = ground.run("grep -v -e '|' -e ' lo:' /proc/net/dev; echo looked")
    assert said.strip() == "looked"


def test_no_process_outside_is_seen(ground: Ground) -> None:
    said = ground.run("ls /proc | grep -c '^[0-9]'")
    assert int(said) < 10


def test_what_is_left_in_the_background_ends_with_the_run(ground: Ground) -> None:
    ground.run("setsid sleep 86399 >/dev/null 2>&1 & echo started")
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [one for one in lines if b"86399" in one and not one.startswith(b"/bin/sh")]


def test_a_read_only_run_writes_nothing(ground: Ground) -> None:
    ground.run("echo x > made", read_only=True)
    assert not (ground.workspace / "made").exists()


def test_with_write_a_commit_works_and_hooks_stay_shut(ground: Ground) -> None:
    ground.box = WorkerSandbox(SandboxSettings(git="write"), ground.workspace / ".mimikit")
    who = "-c user.name=a -c user.email=a@b"
    said = ground.run(
        f"echo x > f; git add f && git {who} commit -qm one && echo committed; "
        "echo evil > .git/hooks/pre-commit; git config core.pager evil"
    )
    assert "committed" in said
    assert not (ground.workspace / ".git/hooks/pre-commit").exists()
    assert "evil" not in (ground.workspace / ".git/config").read_text()
