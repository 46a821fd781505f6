"""Several threads on one real disk do not disturb each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mimikit.protocol.disk import RealDisk

FILES = 2000


def test_a_folder_listed_by_several_threads_at_once_is_whole_for_each(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(FILES):
        (tmp_path / "many" / f"{number}.json").touch()
    disk = RealDisk(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        listings = list(pool.map(lambda _: len(disk.list_dir("many")), range(40)))
    assert listings == [FILES] * 40


def test_a_closed_disk_says_so(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk.make_dir("a")
    disk.close()
    with pytest.raises(OSError, match="closed"):
        disk.write_new("a/b", b"", sync=False)
    with pytest.raises(OSError, match="closed"):
        disk.list_dir("")
