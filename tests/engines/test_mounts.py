"""What is mounted where, as the kernel tells it, and where the same files are seen again."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimikit.engines import mounts

MOUNTS = mounts.parsed_mounts("""\
22 1 0:20 / / rw - ext4 /dev/sda rw
30 22 0:30 / /home rw - nfs4 server:/home rw
31 30 0:31 / /home/my\\040disk rw shared:1 master:2 - 9p share rw
32 22 0:32 / /scratch rw - tmpfs tmpfs rw
broken line
""")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/etc/x", "ext4"),
        ("/home/me/.mimikit", "nfs4"),
        ("/home/my disk/x", "9p"),
        ("/homes", "ext4"),
        ("/scratch/x", "tmpfs"),
    ],
)
def test_the_nearest_mount_holds_a_path(path: str, kind: str) -> None:
    mount = mounts.mount_holding(Path(path), MOUNTS)
    assert mount is not None
    assert mount.kind == kind


def test_of_two_mounts_at_one_point_the_later_is_seen() -> None:
    both = mounts.parsed_mounts("1 0 0:1 / / rw - rootfs x rw\n2 1 0:2 / / rw - overlay x rw")
    mount = mounts.mount_holding(Path("/x"), both)
    assert mount is not None
    assert mount.kind == "overlay"


STATE = "/home/me/work/.mimikit"


@pytest.mark.parametrize(
    ("mounted", "places"),
    [
        ([], []),
        # The folder around it, all of the disk, the state itself, parts of it.
        (["8:1 /me/work /again"], ["/again/.mimikit"]),
        (["8:1 / /mnt/a\\040disk"], ["/mnt/a disk/me/work/.mimikit"]),
        (["8:1 /me/work/.mimikit /state"], ["/state"]),
        (["8:1 /me/work/.mimikit/inbox /drop", "8:1 /me/work /w"], ["/drop", "/w/.mimikit"]),
        # Mounted over itself, beside it, by a like name, on another disk.
        (["8:1 /me/work /home/me/work"], []),
        (["8:1 /me/other /again", "8:1 /me/work/.mimikit2 /b", "8:2 /me/work /c"], []),
        # The state is one that comes from elsewhere, or a part of it is.
        (["8:2 /data /home/me/work/.mimikit", "8:2 / /disk"], ["/disk/data"]),
        (["8:2 /in /home/me/work/.mimikit/inbox", "8:2 / /disk"], ["/disk/in"]),
        # Nothing around the state is masked: it would take the rest with it.
        (["8:1 / /home/me/work/.mimikit/loop"], []),
    ],
)
def test_each_place_of_the_same_files_is_found(mounted: list[str], places: list[str]) -> None:
    lines = ["8:0 / /", "8:1 / /home", *mounted]
    text = "\n".join(f"1 1 {line} rw,noatime - ext4 /dev/sda rw" for line in lines)
    found = mounts.other_places(Path(STATE), mounts.parsed_mounts(text))
    assert sorted(found) == sorted(map(Path, places))


def test_this_machine_tells_its_mounts() -> None:
    assert mounts.mount_holding(Path("/"), mounts.mounts_here()) is not None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], []),
        # What stands there anyway, and what a sandbox makes.
        (["8:1 /me/work/it /home/me/work/it ext4", "8:0 /etc /etc ext4"], []),
        (["0:9 / /proc proc", "0:9 /sys /proc/sys proc"], []),
        (["8:1 /me/work/a\\040b /home/me/work/a\\040b ext4"], []),
        (["0:5 /null /home/me/keys devtmpfs"], []),
        (["8:1 /me/work/.mimikit/cache/x /home/me/work/.mimikit/cache/x ext4"], []),
        # Something else at a name; the state elsewhere, in its place, over its mask.
        (["8:1 /me/work/.mimikit/secrets /home/me/work/it ext4"], ["/home/me/work/it shows"]),
        (["8:0 /etc /home/me/work/it ext4"], ["/home/me/work/it shows /etc"]),
        (["8:1 /me/work/x//deleted /home/me/work/x ext4"], ["/home/me/work/x shows"]),
        (["8:2 / /home/me/work/it tmpfs"], ["/home/me/work/it shows /"]),
        (["8:1 /me/work/.mimikit/in /home/me/work/.mimikit/in ext4"], [".mimikit/in shows"]),
        (["8:1 /me/work/.mimikit /home/me/work/.mimikit ext4"], [".mimikit shows", "not masked"]),
        (["0:9 /1/root /home/me/work/it proc"], ["/home/me/work/it shows /1/root"]),
    ],
)  # fmt: skip
def test_what_a_sandbox_shows_that_it_must_not_is_told(more: list[str], said: list[str]) -> None:
    def table(lines: list[str]) -> list[mounts.Mount]:
        words = (line.rsplit(" ", 1) for line in lines)
        return mounts.parsed_mounts("\n".join(f"1 1 {at} rw - {kind} x rw" for at, kind in words))

    outside = ["8:0 / / ext4", "8:1 / /home ext4"]
    masks = ["0:7 / /home/me/work/.mimikit tmpfs", "0:5 /null /home/me/keys devtmpfs"]
    masked = [Path(STATE), Path("/home/me/keys")]
    shown = [Path(STATE, "cache/x")]
    found = mounts.strange_mounts(table(outside + masks + more), table(outside), masked, shown)
    assert len(found) == len(said)
    assert all(one in told for one, told in zip(said, found, strict=True)), found
    without = mounts.strange_mounts(table(outside), table(outside), masked, shown)
    assert without == [f"{path} is not masked" for path in masked]
