"""Links on the way to the state folder: nobody leads it elsewhere by one of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mimikit.errors import BadInput
from mimikit.state import find_state, open_state
from tests.process.world import World

pytestmark = pytest.mark.needs_platform("linux", "darwin")


@pytest.mark.parametrize("outer", [False, True], ids=["named", "by another link"])
def test_no_state_is_reached_by_a_link_that_a_worker_could_replace(
    world: World, outer: bool
) -> None:
    kept, link = world.root / "kept", world.workspace / "sub" / "link"
    link.parent.mkdir()
    world.state = link / "deep" / ".mimikit"
    if outer:
        (world.root / "way").symlink_to(world.workspace / "sub")
        world.state = world.root / "way" / "link" / "deep" / ".mimikit"
    link.symlink_to(os.path.relpath(kept, link.parent))
    for _ in range(2):  # nothing is made, so the second time is as the first
        done = world.run("init")
        assert done.returncode == 2
        assert f"{link} is a link in the workspace" in done.stderr
        assert f"--state {kept}/deep/.mimikit" in done.stderr
        assert not (kept / "deep" / ".mimikit").exists()
        kept.mkdir(exist_ok=True)
    world.state = kept / "deep" / ".mimikit"
    assert world.run("init").returncode == 0


def test_a_link_elsewhere_is_followed_once(tmp_path: Path) -> None:
    """Who started it goes on with what it led to then, and so does what `up` starts again."""
    kept, way, workspace = tmp_path / "kept", tmp_path / "way", tmp_path / "workspace"
    kept.mkdir()
    workspace.mkdir()
    way.symlink_to(kept)
    state = open_state(*find_state(way / ".mimikit", workspace))
    assert state.path == kept / ".mimikit"
    way.unlink()
    (way / ".mimikit" / "inbox").mkdir(parents=True)
    assert state.files.fs.is_in_place()


def test_a_link_in_the_place_of_the_state_is_still_refused(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / ".mimikit").symlink_to(tmp_path / "kept")
    with pytest.raises(BadInput, match="not a link"):
        open_state(*find_state(None, tmp_path))
