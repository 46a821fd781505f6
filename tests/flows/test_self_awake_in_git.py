"""Self-awake on a real repository and a real disk, killed between any two passes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mimikit.engines.base import EngineRequest
from mimikit.engines.worktrees import GitWorktrees
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task
from mimikit.protocol.self_awake import SelfAwakeState
from mimikit.supervisor.self_awake import MOST_CUT
from mimikit.testing.twins import FakeClock
from tests.support.improving import IDLE_S, ImprovingMind, awake_settings
from tests.support.product import START, Product
from tests.support.repositories import STATES, git, own_refs, repository, users

pytestmark = pytest.mark.needs_program("git")
Open = Callable[[FakeClock], Product]


@contextmanager
def opened(
    tmp_path: Path, hook: Callable[[EngineRequest], None] = lambda _request: None
) -> Generator[Open]:
    """Opens products over one state folder, each as after a kill of the one before.

    `hook` hears of each run before it.
    """
    workspace, state = tmp_path / "repository", tmp_path / "state"
    state.mkdir(exist_ok=True)
    trees = tmp_path / "worktrees"
    seen = list[Path]()

    def work(request: EngineRequest) -> None:
        hook(request)
        task = request.input.task
        if task is not None and not task.internal:
            seen.append(request.workspace)
            (trees / request.workspace.name / "a.py").write_text("better\n")

    disks = list[RealDisk]()

    def open_(clock: FakeClock) -> Product:
        disks.append(RealDisk(state))
        files = Files(disks[-1], durable=False)
        files.make_folders()
        mind = ImprovingMind([])
        mind.hook = work
        settings = awake_settings(folder=str(tmp_path / "cache"))
        product = Product(
            files, clock, mind, settings=settings, workspace=workspace, state=state,
            worktrees=GitWorktrees(trees, state),
        )  # fmt: skip
        product.start()
        return product

    try:
        yield open_
    finally:
        for disk in disks:
            disk.close()
    assert all(path.is_relative_to(tmp_path / "cache") for path in seen), "never where the user is"


def test_a_change_of_a_dirty_repository_is_committed_beside_it(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repository")
    STATES["dirty"](folder)
    before = users(folder)
    with opened(tmp_path) as open_:
        product = open_(FakeClock(START))
        product.idle()
        product.clock.advance(IDLE_S)
        product.idle()
        [done] = product.self_awake.state.past
    assert (done.end, done.files) == ("committed", 1)
    assert users(folder) == before
    assert own_refs(folder) == {done.branch: done.commit}
    assert list((tmp_path / "worktrees").iterdir()) == []


def test_killed_after_any_pass_it_goes_on_and_nothing_of_the_user_s_is_changed(
    tmp_path: Path,
) -> None:
    folder = repository(tmp_path / "repository")
    STATES["stashed"](folder)
    STATES["dirty"](folder)
    before, clock, passes = users(folder), FakeClock(START), 0
    with opened(tmp_path) as open_:
        open_(clock).idle()
        for _ in range(60):
            product = open_(clock)  # the one before is dead: nobody closed anything
            clock.advance(IDLE_S)
            product._pass()
            passes += 1
            now = {key: it for key, it in users(folder).items() if ".git/worktrees" not in key}
            assert now == before
            state = product.files.load(paths.SELF_AWAKE, SelfAwakeState)
            if state is not None and state.past:
                break
        else:
            raise AssertionError("expected an end within 60 passes")
        [done] = state.past
    assert done.end == "committed"
    assert users(folder) == before
    assert own_refs(folder) == {done.branch: done.commit}
    assert passes > 1


class _Dead(BaseException):
    """The consumer dies in the midst of a run."""


@pytest.mark.parametrize("times", [1, MOST_CUT + 1])
@pytest.mark.parametrize("part", ["plan", "work", "check", "review"])
def test_killed_in_the_midst_of_a_part_it_begins_that_anew_but_not_for_ever(
    tmp_path: Path, part: str, times: int
) -> None:
    folder = repository(tmp_path / "repository")
    STATES["dirty"](folder)
    before, clock, left = users(folder), FakeClock(START), times

    def die(request: EngineRequest) -> None:
        nonlocal left
        task = request.input.task
        if left and task is not None and _part(task) == part:
            left -= 1
            if part in ("work", "check"):
                (tmp_path / "worktrees" / str(task.worktree) / "half.txt").write_text("half\n")
            raise _Dead

    with opened(tmp_path, die) as open_:
        product = open_(clock)
        clock.advance(IDLE_S)
        for _ in range(times + 1):
            try:
                product.idle()
            except _Dead:
                product = open_(clock)
        [done] = product.self_awake.state.past
    assert users(folder).keys() - before.keys() <= {".git/worktrees"}
    if times == 1:
        assert (done.end, done.files) == ("committed", 1)
        assert own_refs(folder) == {done.branch: done.commit}
    else:
        assert (done.end, own_refs(folder)) == ("dropped", {})
        assert "the consumer ended while this ran" in done.why


def _part(task: Task) -> str:
    if task.role == "planner":
        return "plan"
    return "check" if task.profile == "command" else "review" if task.internal else "work"


def test_a_state_that_is_lost_leaves_no_worktree_behind(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repository")
    before, clock = users(folder), FakeClock(START)
    with opened(tmp_path) as open_:
        product = open_(clock)
        place = GitWorktrees(tmp_path / "worktrees", tmp_path / "state").look(folder)
        trees = GitWorktrees(tmp_path / "worktrees", tmp_path / "state")
        trees.make(place, "awake-lost", "mimikit/self-awake-lost")
        product.files.write(paths.SELF_AWAKE, b"{}")
        product.idle()
    assert list((tmp_path / "worktrees").iterdir()) == []
    assert own_refs(folder) == {}
    assert set(users(folder)) - set(before) <= {".git/worktrees"}


def test_where_no_branch_or_worktree_can_be_made_no_mind_is_asked(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repository")
    git(folder, "branch", "mimikit")
    (tmp_path / "worktrees").write_text("a file in the way\n")
    clock, blocked = FakeClock(START), list[str]()
    with opened(tmp_path) as open_:
        product = open_(clock)
        for tidy in (lambda: git(folder, "branch", "-D", "mimikit"), lambda: None):
            clock.advance(3700)
            product.idle()
            state = product.self_awake.state
            blocked.append(state.blocked)
            assert (state.run, state.past) == (None, [])
            tidy()
    assert "got a branch mimikit" in blocked[0]
    assert "set self_awake.folder" in blocked[1]
