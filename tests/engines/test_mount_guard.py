"""What somebody outside puts in place of what a sandbox hides or shuts is hidden or shut too."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from mimikit.engines import mounts, process, process_tree, sandbox
from tests.support.runs import Ground, alive, ground, tag

pytestmark = [
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("bwrap", "unshare"),
]
LATE = (".ssh", ".config/gh", "deep/er/mine")
UNTIL = "n=0; while {} && [ $n -lt 500 ]; do n=$((n+1)); sleep 0.01; done; "


class Boxed:
    """A shell in a sandbox, which is told line after line."""

    def __init__(self, here: Ground, *inner: str) -> None:
        git, home = here.workspace / ".git", here.root / "home"
        argv = sandbox.masked(
            [*inner, "/bin/sh"],
            here.state,
            read_only=[git / "config", git / "hooks"],
            pinned=[git],
            hidden=[home / name for name in (".netrc", ".aws", *LATE)],
        )
        self._child = subprocess.Popen(
            argv,
            cwd=here.workspace,
            env={**os.environ, "HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.ask("echo here") == "here\n"

    def ask(self, line: str) -> str:
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write(f"{{ {line}; }} 2>&1; echo; echo =\n")
        self._child.stdin.flush()
        said = ""
        while not said.endswith("\n=\n"):
            more = self._child.stdout.readline()
            assert more, self.end()
            said += more
        return said.removesuffix("\n=\n")

    def end(self) -> tuple[int, str]:
        """Its exit code and complaints, as soon as it ends."""
        assert self._child.stderr
        return self._child.wait(60), self._child.stderr.read()

    def close(self) -> None:
        self._child.kill()
        self._child.communicate()
        process_tree.reap_orphans()


Boxes: TypeAlias = Callable[..., Boxed]


@pytest.fixture
def boxed(here: Ground) -> Iterator[Boxes]:
    """Makes shells in sandboxes, which end with the test."""
    with contextlib.ExitStack() as stack:

        def make(*inner: str) -> Boxed:
            return stack.enter_context(contextlib.closing(Boxed(here, *inner)))

        yield make


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    made = ground(tmp_path)
    for path in (made.workspace / ".git/hooks", tmp_path / "home/.aws"):
        path.mkdir(parents=True)
        (path / "old").write_text("OLD")
    (made.workspace / ".git/config").write_text("OLD")
    (tmp_path / "home/.netrc").write_text("OLD")
    return made


def outside(here: Ground, line: str) -> None:
    subprocess.run(["/bin/sh", "-ec", line], cwd=here.workspace, check=True)


def test_what_is_moved_as_it_is_looked_at_is_gone_and_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config"
    path.write_text("OLD")
    opened = mounts._opened

    def moved(name: str, flags: int = 0) -> int | None:
        handle = opened(name, flags)
        if path.exists():
            path.rename(tmp_path / "moved")
        return handle

    monkeypatch.setattr(mounts, "_opened", moved)
    with pytest.raises(FileNotFoundError, match="it is gone"):
        mounts._mount_again(str(path), mounts.SHUT, 0)
    (tmp_path / "folder").symlink_to(tmp_path)
    with pytest.raises(OSError, match="a link is there"):
        mounts._mount_again(str(tmp_path / "folder/moved"), mounts.SHUT, 0)


NESTED = ("unshare", "-Urm", "--propagation", "slave")
"""As a sandbox within the sandbox is made."""


@pytest.mark.parametrize("inner", [(), NESTED], ids=["plain", "nested"])
@pytest.mark.parametrize(
    "line",
    [
        "echo NEW > .git/config.lock; mv .git/config.lock .git/config",
        "rm .git/config; echo NEW > .git/config",
        "rm -r .git/hooks; mkdir .git/hooks; echo NEW > .git/hooks/new",
        "mkdir new; echo NEW > new/new; rm .git/hooks/*; mv -T new .git/hooks",
        "cp -r .git new; echo NEW > new/config; rm -r .git; mv new .git",
        "rm -r .git; sleep 1; mkdir -p .git/hooks; echo NEW > .git/config",
    ],
)
def test_what_is_replaced_is_read_only_again(
    here: Ground, boxed: Boxes, inner: tuple[str], line: str
) -> None:
    box = boxed(*inner)
    path = ".git/config" if "config" in line else ".git/hooks/new"
    for _ in range(2):  # and once more
        outside(here, line)
        box.ask(UNTIL.format("! mountpoint -q .git") + "true")
        box.ask(UNTIL.format("test -w .git/config") + UNTIL.format("test -w .git/hooks") + "true")
        assert box.ask(f"cat {path}") == "NEW\n"
        assert "Read-only file system" in box.ask(f"echo forged > {path}")
        assert "Read-only" in box.ask("echo forged > .git/hooks/forged")
        box.ask(
            "mv .git away; rm -rf .git/hooks .git/config; cd .git; mv config x; mv hooks y; cd .."
        )
    box.ask("echo x > .git/index")
    git = here.workspace / ".git"
    assert (here.workspace / path).read_text() == "NEW\n"
    assert sorted(entry.name for entry in git.iterdir()) == ["config", "hooks", "index"]


@pytest.mark.parametrize("inner", [(), NESTED], ids=["plain", "nested"])
@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("echo NEW > t; mv t ../home/.netrc", ".netrc"),
        ("rm -f ../home/.netrc; echo NEW > ../home/.netrc", ".netrc"),
        ("rm -rf ../home/.aws; mkdir ../home/.aws; echo NEW > ../home/.aws/key", ".aws/key"),
        ("mkdir ../home/.ssh; echo NEW > ../home/.ssh/id", ".ssh/id"),
        ("mkdir -p new; echo NEW > new/id; mv new ../home/.ssh", ".ssh/id"),
        ("mkdir -p ../home/.config/gh; echo NEW > ../home/.config/gh/hosts", ".config/gh/hosts"),
        ("mkdir -p ../home/deep/er; echo NEW > ../home/deep/er/mine", "deep/er/mine"),
    ],
)
def test_a_secret_that_is_replaced_or_comes_late_is_hidden(
    here: Ground, boxed: Boxes, inner: tuple[str], line: str, path: str
) -> None:
    box = boxed(*inner)
    for _ in range(2):
        outside(here, line)
        assert "NEW" not in box.ask(UNTIL.format(f"grep -q NEW ~/{path}") + f"cat ~/{path}; ls ~")
        outside(here, f"rm -rf ../home/{path.partition('/')[0]} ../home/.config; mkdir -p new")


@pytest.mark.parametrize(
    ("line", "path", "why"),
    [
        ("ln -s /etc/passwd t; mv t ../home/.netrc", "home/.netrc", "a link is there"),
        ("mkdir x; ln -s $PWD/x ../home/.ssh", "home/.ssh", "a link is there"),
        ("mkdir -p x/gh; ln -s $PWD/x ../home/.config", "home/.config/gh", "a link is there"),
        ("ln -s ../x t; mv t .git/config", "workspace/.git/config", "a link is there"),
        ("rm .git/config; mkfifo .git/config", "workspace/.git/config", "it is neither a file nor"),
        ("rm .git/config", "workspace/.git/config", "it is gone"),
        ("rm -r .git/hooks", "workspace/.git/hooks", "it is gone"),
        ("mv .git old; ln -s old .git", "workspace/.git", "a link is there"),
        ("rm -r .git; sleep 1; mkdir .git; touch .git/config", ".git/hooks", "it is gone"),
    ],
)
def test_what_can_not_be_kept_ends_all(
    here: Ground, boxed: Boxes, line: str, path: str, why: str
) -> None:
    box, name = boxed(), tag()
    box.ask(f"(setsid sleep {name} &)")
    outside(here, line)
    code, complaints = box.end()
    assert code == 1
    assert complaints.startswith(f"{mounts.ENDED} {here.root}/")
    assert f"{path}: {why}" in complaints
    assert alive(name) == []


def test_the_agent_has_none_of_the_guards_rights(boxed: Boxes) -> None:
    box = boxed()
    for each in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        left = int(box.ask(f"grep {each} /proc/self/status").split()[1], 16)
        assert left in (0, 1 << 31), each
    assert "denied" in box.ask("ls /proc/1/root /proc/1/fd; cat /proc/1/mem /proc/1/environ")
    said = box.ask("cat /proc/1/fd/*; readlink /proc/1/fd/* /proc/1/root").splitlines()
    assert all("denied" in line for line in said), said
    tried = "nsenter -t 1 -m true; mount --bind /tmp /mnt; umount ~/.aws; umount -l ~/.aws"
    assert "old" not in box.ask(f"{tried}; ls ~/.aws").splitlines()


def test_the_agent_does_not_end_the_guard(boxed: Boxes) -> None:
    box = boxed()
    box.ask("trap '' HUP INT QUIT TERM; for s in $(seq 1 64); do kill -$s 1; done; kill -STOP 1")
    assert box.ask("echo here") == "here\n"


def test_a_guard_without_descriptors_ends_all(here: Ground, boxed: Boxes) -> None:
    """Whose limits the agent can set, as it is the same user."""
    box = boxed()
    box.ask("prlimit --pid 1 --nofile=3:3")
    outside(here, "echo NEW > t; mv t ../home/.netrc")
    code, complaints = box.end()
    assert (code, complaints.startswith(mounts.ENDED)) == (1, True)


def test_what_has_mounts_apart_is_ended_when_it_would_see_what_is_new(
    here: Ground, boxed: Boxes
) -> None:
    box, name = boxed(), tag()
    box.ask(f"unshare -Urm sleep {name} & {' '.join(NESTED)} sleep {name}1 & true")
    box.ask(f"until pgrep -f {name}1; do :; done; until pgrep -fx 'sleep {name}'; do :; done")
    outside(here, "echo NEW > t; mv t .git/config")
    said = box.ask(UNTIL.format(f"pgrep -fx 'sleep {name}' >/dev/null") + f"pgrep -fa {name}")
    assert said.split()[1:] == ["sleep", f"{name}1"]


def test_a_secret_where_nobody_gets_is_none(here: Ground, boxed: Boxes) -> None:
    (here.root / "home/deep").mkdir()
    (here.root / "home/deep").chmod(0)
    box = boxed()
    outside(here, "echo NEW > t; mv t .git/config")
    assert "NEW" in box.ask(UNTIL.format("test -w .git/config") + "cat .git/config")


@pytest.mark.parametrize(("line", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("kill $$", 143)])
def test_the_end_is_that_of_the_agent(here: Ground, line: str, code: int) -> None:
    argv = sandbox.masked(["/bin/sh", "-c", f"(setsid sleep 60 &); {line}"], here.state)
    assert process.output(argv)[0] == code


def test_orphans_are_taken_note_of(boxed: Boxes) -> None:
    box = boxed()
    box.ask("for n in 1 2 3; do (setsid sh -c 'sleep 0.01' &); done")
    zombies = "grep -ls '^State:.Z' /proc/[0-9]*/status"
    assert (
        box.ask(
            UNTIL.format("pgrep sleep >/dev/null") + UNTIL.format(f"{zombies} >/dev/null") + zombies
        )
        == ""
    )
