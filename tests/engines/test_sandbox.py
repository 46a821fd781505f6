"""Inside the outer sandbox the state folder can be neither read nor written, whatever is tried."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mimikit.engines import process, sandbox
from mimikit.engines.sandbox import SandboxAnswer
from tests.support.runs import Ground, ground, open_files

pytestmark = [
    pytest.mark.needs_platform("linux"),
    pytest.mark.needs_program("bwrap"),
]


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    made = ground(tmp_path)
    (made.state / "secret").write_text("SECRET")
    return made


def inside(here: Ground, line: str, **options: Any) -> str:
    argv = sandbox.masked(["/bin/sh", "-c", line], here.state, **options)
    _, said, complaints = process.output(argv, cwd=here.workspace)
    return said + complaints


def test_the_canary_finds_the_mask_closed_and_leaves_nothing(here: Ground) -> None:
    assert sandbox.ask() == SandboxAnswer("works")
    before = open_files()
    assert sandbox.canary(here.state, here.workspace) is None
    assert not open_files() - before
    assert sorted(path.name for path in here.workspace.iterdir()) == [".mimikit"]
    assert list((here.state / "cache").iterdir()) == []


def test_the_canary_finds_an_open_mask(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(argv: Sequence[str], *_: Any, **__: Any) -> list[str]:
        return list(argv)

    monkeypatch.setattr(sandbox, "masked", bare)
    said = sandbox.canary(here.state, here.workspace)
    assert said == f"a masked shell could write below {here.state}"
    assert list((here.state / "cache").iterdir()) == []


def test_the_canary_finds_a_mask_that_can_be_read_through(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(argv: Sequence[str], *_: Any, **__: Any) -> list[str]:
        own = ["--cap-drop", "ALL", "--unshare-pid", "--proc", "/proc"]
        return ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", *own, *argv]

    monkeypatch.setattr(sandbox, "masked", read_only)
    said = sandbox.canary(here.state, here.workspace)
    assert said == f"a masked shell could read below {here.state}"


def test_the_canary_does_not_take_a_sandbox_that_fails_for_a_closed_one(here: Ground) -> None:
    said = sandbox.canary(here.state, here.workspace, inner=["false"])
    assert said == "the check of the sandbox did not run: no output"


@pytest.mark.fault(56)
def test_nothing_of_the_state_is_seen_and_nothing_written_stays(here: Ground) -> None:
    said = inside(here, "ls -A .mimikit; cat .mimikit/secret; echo x > .mimikit/made; echo end")
    assert "SECRET" not in said
    assert "Read-only file system" in said
    assert "end" in said
    assert not (here.state / "made").exists()


def test_the_workspace_is_as_it_is(here: Ground) -> None:
    inside(here, "echo hi > made")
    assert (here.workspace / "made").read_text() == "hi\n"


@pytest.mark.parametrize("confined", [False, True])
def test_a_workspace_that_is_the_whole_machine_is_read_only_too(
    here: Ground, confined: bool
) -> None:
    line = "(echo > made) 2>/dev/null; echo > /dev/null && echo end; ls -d /proc/[0-9]* | wc -l"
    said = inside(here, line, frozen=Path("/"), confined=confined)
    assert not (here.workspace / "made").exists()
    assert "end" in said
    assert int(said.split()[-1]) < 10  # the processes are its own


def test_not_even_root_takes_the_mask_away(here: Ground) -> None:
    line = "umount .mimikit; umount -l .mimikit; cat .mimikit/secret; grep CapEff /proc/self/status"
    said = inside(here, line)
    assert "SECRET" not in said
    capabilities = int(said.split("CapEff:")[1].split()[0], 16)
    assert capabilities in (0, 1 << 31)  # none, or CAP_SETFCAP alone


def test_processes_outside_are_not_seen(here: Ground) -> None:
    said = inside(here, "ls -d /proc/[0-9]* | wc -l")
    assert int(said) < 10


def test_what_a_run_needs_of_the_state_stays_visible(here: Ground) -> None:
    scratch = here.state / "cache" / "scratch"
    (scratch / "upstream").mkdir(parents=True)
    (scratch / "upstream" / "result.md").write_text("UPSTREAM\n")
    line = (
        f"cat {scratch}/upstream/result.md; echo x > {scratch}/made; "
        f"echo x > {scratch}/upstream/forged; cat .mimikit/secret; ls {here.state}"
    )
    said = inside(here, line, writable=[scratch], shown=[scratch / "upstream"])
    assert "UPSTREAM" in said
    assert "SECRET" not in said
    assert (scratch / "made").exists()
    assert not (scratch / "upstream" / "forged").exists()


@pytest.mark.parametrize("option", ["read_only", "reopened", "pinned"])
@pytest.mark.parametrize("path", [".mimikit", ".mimikit/inner", "link", "keys/inner", "keys"])
def test_nothing_that_a_worker_named_shows_what_is_masked(
    here: Ground, option: str, path: str
) -> None:
    for folder in (here.state / "inner", here.workspace / "keys" / "inner"):
        folder.mkdir(parents=True)
        (folder / "secret").write_text("SECRET")
    (here.workspace / "link").symlink_to(".mimikit/inner")
    given: dict[str, Any] = {option: [here.workspace / path]}
    line = "cat .mimikit/inner/secret keys/inner/secret link/secret; echo end"
    said = inside(here, line, hidden=[here.workspace / "keys"], **given)
    assert "end" in said
    assert "SECRET" not in said


@pytest.mark.parametrize("option", ["read_only", "reopened", "pinned"])
@pytest.mark.parametrize("other", [".mimikit/inner", ".mimikit", "other"])
def test_what_is_exchanged_while_it_is_mounted_is_noticed(
    here: Ground, option: str, other: str
) -> None:
    """A name is looked up twice, for what is mounted and for where: it may lead elsewhere once."""
    for folder in (here.state / "inner", here.workspace / "other", here.workspace / "it"):
        folder.mkdir()
        (folder / "secret").write_text("SECRET")
    path = here.workspace / "it"
    frozen = here.workspace if option == "reopened" else None
    given: dict[str, Any] = {option: [path], "frozen": frozen}
    argv = sandbox.masked(["/bin/sh", "-c", "cat it/secret; echo end"], here.state, **given)
    code, said, _ = process.output(argv, cwd=here.workspace)
    assert (code, said) == (0, "SECRETend\n")
    argv[argv.index(str(path))] = str(here.workspace / other)
    code, said, complaints = process.output(argv, cwd=here.workspace)
    assert (code, said) == (1, "")
    assert complaints.startswith(f"bwrap: exchanged meanwhile: {path} shows ")


def test_a_state_folder_behind_a_link_is_masked_too(here: Ground, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(here.state)
    argv = sandbox.masked(["/bin/sh", "-c", f"cat {here.state}/secret {link}/secret"], link)
    _, said, complaints = process.output(argv)
    assert "No such file" in complaints
    assert "SECRET" not in said


TWICE = """
import subprocess, sys
from pathlib import Path
from mimikit.engines import sandbox
state, line, as_owner = sys.argv[1:]
told = {"hidden": [Path(state).parent / "keys"], "as_owner": as_owner == "True"}
subprocess.run(sandbox.masked(["/bin/sh", "-c", line], Path(state), **told), check=False)
"""


@pytest.mark.parametrize("named", ["as it is", "where it is mounted"])
@pytest.mark.parametrize("as_owner", [False, True])
def test_the_state_and_secrets_are_masked_wherever_they_are_mounted(
    here: Ground, as_owner: bool, named: str
) -> None:
    """The workspace is seen at a second place, and a part of the state alone at a third one."""
    (here.workspace / "keys").write_text("KEYS")
    (here.state / "inbox").mkdir()
    second, part = here.root / "second place", here.root / "part"
    second.mkdir()
    part.mkdir()
    line = (
        f"cd {here.root}; for it in {here.workspace} '{second}'; do cat \"$it/.mimikit/secret\" "
        f'"$it/keys"; echo x > "$it/.mimikit/made"; done; echo x > {part}/made; '
        f"mv {here.workspace} away; echo end"
    )
    rights = ["--cap-add", "ALL"] if os.geteuid() == 0 else []
    mounting = [sandbox.find_bwrap() or "", *rights, "--dev-bind", "/", "/", "--proc", "/proc"]
    mounting += ["--bind", str(here.workspace), str(second)]
    mounting += ["--bind", str(here.state / "inbox"), str(part)]
    state = here.state if named == "as it is" else second / ".mimikit"
    asked = [sys.executable, "-c", TWICE, str(state), line, str(as_owner)]
    _, said, complaints = process.output([*mounting, *asked], cwd=Path.cwd(), timeout_s=60)
    assert said == "end\n", complaints
    assert complaints.count("Read-only file system") == 3
    assert complaints.count("Device or resource busy") == 1
    assert sorted(path.name for path in here.state.rglob("*")) == ["inbox", "secret"]


def test_a_missing_program_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "find_bwrap", lambda: None)
    answer = sandbox.ask()
    assert (answer.can, "install its package" in answer.reason) == ("not here", True)


def test_a_bubblewrap_that_may_not_is_said_with_its_own_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'No permissions to create a new namespace' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sandbox, "find_bwrap", lambda: str(broken))
    answer = sandbox.ask()
    assert answer.can == "not here"
    assert "No permissions to create a new namespace; allow user namespaces" in answer.reason


USED_UP = """
import os, subprocess, sys, time
from pathlib import Path
from mimikit.engines import sandbox
limit = Path("/proc/sys/user/max_pid_namespaces")
limit.write_text(sys.argv[1])
argv = ["unshare", "-pf", "--kill-child", "sh", "-c", "echo; sleep 60"]
holder = subprocess.Popen(argv, stdout=subprocess.PIPE)
holder.stdout.readline()
print(sandbox.ask().can)
limit.write_text("100")
print(sandbox.ask().can)
holder.kill()
"""


@pytest.mark.parametrize(("most", "can"), [(1, "not now"), (0, "not here"), (100, "works")])
def test_namespaces_that_others_use_up_are_no_sign_that_there_are_none(most: int, can: str) -> None:
    """As by a Worker while a command line begins, or by whoever else makes a sandbox."""
    inside = ["unshare", "--user", "--map-root-user", sys.executable, "-c", USED_UP, str(most)]
    _, said, complaints = process.output(inside, cwd=Path.cwd(), timeout_s=60)
    assert said.splitlines() == [can, "works"], complaints


def test_a_machine_that_forbids_namespaces_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same kernel, asked by a process that may not: the answer is the kernel's own."""
    line = "import json; from mimikit.engines import sandbox; print(sandbox.ask().can)"
    may_not = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    if os.geteuid() != 0:
        pytest.skip("an ordinary user makes user namespaces")
    _, said, complaints = process.output([*may_not, sys.executable, "-c", line], cwd=Path.cwd())
    assert said == "not here\n", complaints


def test_another_system_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    said = "expected Linux for the sandbox, got darwin"
    assert sandbox.ask() == SandboxAnswer("not here", said)


@pytest.mark.parametrize("as_owner", [False, True])
def test_root_reaches_the_state_neither_by_disk_nor_by_the_kernel(
    here: Ground, as_owner: bool
) -> None:
    """What belongs to root can be opened without any capability; a disk holds the state too."""
    disks = [path for path in Path("/dev").iterdir() if path.is_block_device()]
    line = (
        f"for disk in {' '.join(map(str, disks))}; do head -c 4096 $disk; done; "
        "for file in /sys/kernel/uevent_helper /sys/kernel/mm/ksm/run /proc/sysrq-trigger "
        "/proc/sys/kernel/core_pattern; do test -w $file && echo can-write $file; done; echo end"
    )
    assert inside(here, line, as_owner=as_owner) == "end\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_every_way_to_a_disk_is_found(tmp_path: Path) -> None:
    """By its block device wherever that lies, or by a character device that passes commands on."""
    for name in ("deep/disk", "sg0", "sg12", "bsg/0:0:0:0", "ng0n1", "nvme0", "tty", "null"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        kind = stat.S_IFBLK if name == "deep/disk" else stat.S_IFCHR
        os.mknod(tmp_path / name, kind | 0o600, os.makedev(240, 9))
    (tmp_path / "link").symlink_to("sg0")
    found = {str(path.relative_to(tmp_path)) for path in sandbox._raw_disks(tmp_path)}
    assert found == {"deep/disk", "sg0", "sg12", "bsg/0:0:0:0", "ng0n1", "nvme0"}


LISTEN = """
import socket
try:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)).bind(("lo", 0))
    print("listens")
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else listens anyway")
def test_not_even_roots_lines_listen_to_what_others_send_over_loopback(here: Ground) -> None:
    (here.workspace / "listen.py").write_text(LISTEN)
    line = f"{sys.executable} listen.py"
    _, said, _ = process.output(["/bin/sh", "-c", line], cwd=here.workspace)
    assert said == "listens\n"
    assert inside(here, line, as_owner=True) == "Operation not permitted\n"


@pytest.mark.parametrize("as_owner", [False, True])
def test_no_state_is_made_in_place_of_one_that_was_moved_away(
    tmp_path: Path, as_owner: bool
) -> None:
    """Neither by moving it nor by moving one of the folders around it."""
    state = tmp_path / "work" / "a" / "b" / ".mimikit"
    state.mkdir(parents=True)
    (state / "secret").write_text("SECRET")
    tried = (tmp_path / "work", state.parents[1], state.parent, state)
    line = "\n".join(
        f"mv {path} {path}-away && mkdir -p {state} && echo forged > {state}/config.toml; "
        f"cat {path}-away/.mimikit/secret {path}-away/b/.mimikit/secret"
        for path in tried
    )
    argv = ["/bin/sh", "-c", f"{line}\necho hi > {state.parent}/made; echo end"]
    argv = sandbox.masked(argv, state, writable=[tmp_path / "work"], as_owner=as_owner)
    _, said, complaints = process.output(argv, cwd=tmp_path)
    assert said == "end\n"
    assert complaints.count("Device or resource busy") == len(tried)
    assert sorted(path.name for path in state.iterdir()) == ["secret"]
    assert (state.parent / "made").exists()


def test_what_is_pinned_in_a_closed_folder_does_not_open_it(here: Ground) -> None:
    inner = here.workspace / "closed" / "in"
    (inner / "open").mkdir(parents=True)
    said = inside(
        here,
        "echo x > closed/in/made; echo x > closed/in/open/made; echo end",
        read_only=[here.workspace / "closed"],
        pinned=[inner],
        writable=[inner / "open"],
    )
    assert "end" in said
    assert not (inner / "made").exists()
    assert (inner / "open" / "made").exists()


def test_sockets_of_other_programs_are_hidden(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent of ssh, a terminal's server, a container's: each does what it is asked, outside."""
    beside = here.root / "beside"
    doors = [beside / "tmp/tmux-1000/default", beside / "run/docker.sock", here.root / "agent"]
    with contextlib.ExitStack() as stack:
        for path in doors:
            path.parent.mkdir(parents=True, exist_ok=True)
            bound = stack.enter_context(socket.socket(socket.AF_UNIX))
            monkeypatch.chdir(path.parent)
            bound.bind(path.name)  # its whole path may be longer than that of a socket can be
            bound.listen()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(doors[2]))
        line = "for it in " + " ".join(map(str, doors)) + "; do test -S $it && echo there; done"
        assert inside(here, line).count("there") == 3
        assert "there" not in inside(here, line, hidden=sandbox.doors(beside))


@pytest.mark.parametrize("as_owner", [False, True])
def test_a_worker_has_nobody_wait_for_its_files(here: Ground, as_owner: bool) -> None:
    """By a lease on a file of the owner's it would: on each of the program's, one after another."""
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("this machine's numbers are not known")
    (here.workspace / "file").touch()
    line = (
        "import fcntl; file = open('file')\n"
        "print(fcntl.fcntl(file, fcntl.F_GETFD))\n"
        "fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)\n"
        "fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK); print('leased')\n"
    )
    argv = sandbox.masked([sys.executable, "-c", line], here.state, as_owner=as_owner)
    _, said, complaints = process.output(argv, cwd=here.workspace)
    assert said.split() == (["1", "leased"] if as_owner else ["1"])
    assert ("Permission denied" in complaints) == (not as_owner)


@pytest.mark.parametrize("as_owner", [False, True])
def test_a_worker_finds_no_keys_in_the_kernel(here: Ground, as_owner: bool) -> None:
    """Tickets and keys of disks of whoever started this; an owner's command has them."""
    first = {"x86_64": 248, "aarch64": 217}.get(platform.machine())
    if first is None:
        pytest.skip("this machine's numbers are not known")
    line = (
        "import ctypes, errno; kernel = ctypes.CDLL(None, use_errno=True)\n"
        f"def call(*given): print(kernel.syscall(*given), ctypes.get_errno() == errno.ENOSYS)\n"
        f"call({first + 2}, 0, -3, 0)\n"
    )
    if not as_owner:
        line += (
            f"call({first}, b'user', b'x', b'y', 1, -3)\n"
            f"call({first + 1}, b'user', b'x', None, 0)\n"
            "print(kernel.getppid() >= 0)"
        )
    argv = sandbox.masked([sys.executable, "-c", line], here.state, as_owner=as_owner)
    _, said, _ = process.output(argv)
    if as_owner:
        assert said.strip() != "-1 True" or not Path("/proc/keys").exists()
    else:
        assert said.splitlines() == [*["-1 True"] * 3, "True"]
