"""An export for which the disk has no room: it says so, and the old one stays."""

from __future__ import annotations

from tests.process.test_full_disk import fill, pytestmark, small
from tests.process.world import World

__all__ = ["pytestmark", "small"]


def test_an_export_without_room_leaves_the_old_one_and_nothing_else(small: World) -> None:
    assert small.run("init").returncode == 0
    for number in range(20):
        small.put(f"inbox/msg-{number}.json", {"text": "hello"})
    target = small.state.parent / "export.zip"
    target.write_bytes(b"the old one")
    ballast = fill(small)
    for _ in range(2):
        failed = small.run("export", str(target))
        assert failed.returncode == 1, failed.stdout
        assert "disk is full" in failed.stderr
        assert "Traceback" not in failed.stderr
    assert target.read_bytes() == b"the old one"
    there = {path.name for path in small.state.parent.iterdir()}
    assert there == {"state", "ballast", "export.zip"}
    assert not list((small.state / "cache").glob("snapshot-*"))
    ballast.unlink()
    assert small.run("export", str(target)).returncode == 0
    assert target.read_bytes().startswith(b"PK")
