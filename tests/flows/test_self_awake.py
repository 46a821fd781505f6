"""Self-awake: what it begins and when, and that the user's repository stays as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mimikit.config import SelfAwakeSettings
from mimikit.engines.base import RunSpec
from mimikit.errors import BadInput, BadSettings
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import Command, Task
from mimikit.protocol.runtime import Improvement, SelfAwakeState
from mimikit.roles.prompts import CheckListItem, Prompts, next_item
from mimikit.roles.worktree import BRANCHES, Worktrees
from mimikit.supervisor.self_awake import LONGEST, why_not_now
from mimikit.tasks import queue
from tests.support.memory_disk import MemoryDisk
from tests.support.product import START, Product, scripted_settings
from tests.support.reading import transcript
from tests.support.twins import FakeClock, ScriptedEngine, Step

GIT = shutil.which("git") or "git"
NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
NEVER = {"type": "file_exists", "params": {"path": "never"}}

# ---- repositories


ENV = {"PATH": os.environ["PATH"], "HOME": "/nowhere"} | {
    f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
ONE = (
    "git init -qb main; echo .mimikit/ > .gitignore; echo a > main.py; git add .; git commit -qm 1"
)
IN_WORK = f"mkdir work; cd work; {ONE}"
REPOSITORIES = {
    "clean": IN_WORK,
    "dirty": f"{IN_WORK}; echo s > main.py; git stash -q; echo s > staged.py; git add staged.py; "
    "echo b > main.py; echo n > new.py",
    "detached": f"{IN_WORK}; git checkout -q --detach; git commit -q --allow-empty -m 2",
    "submodule": f"mkdir other; cd other; {ONE}; cd ..; {IN_WORK}; "
    "git -c protocol.file.allow=always submodule --quiet add ../other lib; git commit -qm lib",
    "linked": f"{IN_WORK}; mv ../work ../main; cd ../main; git worktree add -qb side ../work",
    "no commit": "git init -q work",
    "no git": "mkdir work",
    "bare": "git init -q --bare work",
}
BRANCHLESS = ("no commit", "no git", "bare")


def git(folder: Path, *words: str) -> str:
    return subprocess.check_output([GIT, *words], cwd=folder, env=ENV, text=True)


def seen(top: Path) -> dict[str, object]:
    """Every file with its time, but objects and our own branches: tree, index, refs, stash."""
    found: dict[str, object] = {}
    for path in sorted(top.rglob("*")):
        name = path.relative_to(top).as_posix()
        is_ours = "/objects/" in name or "refs/heads/mimikit" in name or ".mimikit" in name
        if not is_ours and path.is_file():
            found[name] = (path.read_bytes(), path.stat().st_mtime_ns)
    return found


# ---- a product in such a repository


class Killed(BaseException): ...


class KilledWorktrees(Worktrees):
    """Ends the process at a step of git; what is dead cleans up nothing."""

    left = -1

    def _run(self, cwd: Path, words: Sequence[str], env: Any, timeout_s: float = 60) -> str:
        self.left -= 1
        if self.left == 0:
            raise Killed
        return super()._run(cwd, words, env, timeout_s)

    def remove(self) -> None:
        if self.left != 0:
            super().remove()


def delegate(**more: object) -> Step:
    return {"call": "delegate", "args": {"prompt": "Mend it.", "title": "Mend it", **more}}


def improve(request: RunSpec) -> list[Step]:
    if request.role == "planner":
        return [delegate()]
    if request.read_only:
        return [{"say": "yes: it is right"}]
    (request.workspace / "main.py").write_text("better\n")
    return [{"say": "I mended it."}]


class World:
    def __init__(
        self, top: Path, kind: str = "clean", script: Any = improve, **settings: Any
    ) -> None:
        subprocess.run(["sh", "-ec", REPOSITORIES[kind]], cwd=top, env=ENV, check=True)
        self.top, self.work, self.can_branch = top, top / "work", kind not in BRANCHLESS
        self.state, self.script = self.work / ".mimikit", script
        self.state.mkdir()
        self.files = Files(RealDisk(self.state), durable=False)
        self.files.make_folders()
        self.clock = FakeClock(START)
        own = SelfAwakeSettings.model_validate({"enabled": True, **settings})
        self.settings = scripted_settings().model_copy(update={"self_awake": own})
        self._add_hooks()
        self.before = seen(top)
        self.product = self.start()

    def _add_hooks(self) -> None:
        if (self.work / ".git").exists():  # each tells that it ran, which it must not
            hooks = self.work / git(self.work, "rev-parse", "--git-common-dir").strip() / "hooks"
            hooks.mkdir(exist_ok=True)
            for name in ("post-checkout", "reference-transaction", "pre-commit", "post-commit"):
                (hooks / name).write_text(f"#!/bin/sh\ntouch {self.top}/hook-ran\n")
                (hooks / name).chmod(0o755)

    def start(self, kill_at: int = -1) -> Product:
        worktrees = KilledWorktrees(self.state, GIT)
        worktrees.left = kill_at
        self.product = Product(
            self.files,
            self.clock,
            ScriptedEngine(self.script),
            settings=self.settings,
            workspace=self.work,
            state=self.state,
            worktrees=worktrees,
        )
        self.product.start()
        return self.product

    def rest(self, seconds: float = 301) -> None:
        self.product.idle()
        self.clock.advance(seconds)
        self.product.idle()

    def ask(self, item: str) -> None:
        now, action = self.clock.now(), "self_awake_run"
        command = Command(id=new_id("cmd", now), action=action, target=item, created_at=now)
        queue.submit_command(self.files, command)

    @property
    def past(self) -> list[Improvement]:
        return (self.files.load(paths.SELF_AWAKE, SelfAwakeState) or SelfAwakeState()).past

    @property
    def branches(self) -> list[str]:
        return git(self.work, "branch", "--list", f"{BRANCHES}*").split()

    @property
    def said(self) -> str:
        return "\n".join(text for _, text in transcript(self.files))

    def changed(self) -> list[str]:
        """What is not as it was."""
        now = seen(self.top) | {"copy": (self.state / paths.IMPROVEMENTS).exists()}
        before = self.before | {"copy": False}
        return [name for name in now.keys() | before.keys() if now.get(name) != before.get(name)]


def live_through_kills(world: World, steps: Sequence[int]) -> int:
    """One improvement for each step that it is killed at; gives where there was none left."""
    end = "committed" if world.can_branch else "proposed"
    for step in steps:
        world.start(kill_at=step)
        world.ask("lint")
        try:
            world.product.idle()
        except Killed:
            world.start()
            world.product.idle()
        else:
            return step
        assert world.changed() == [], step
        assert world.past[-1].end == end, step
        assert world.branches == ([BRANCHES + world.past[-1].id] if end == "committed" else [])
        for branch in world.branches:
            git(world.work, *NO_HOOKS, "update-ref", "-d", f"refs/heads/{branch}")
    return steps[-1]


@pytest.mark.real
@pytest.mark.parametrize(("number", "kind"), [*enumerate([*REPOSITORIES][:6])])
def test_wherever_it_is_killed_the_repository_of_the_user_stays_as_it_was(
    number: int, kind: str, tmp_path: Path
) -> None:
    every = 1 if kind in BRANCHLESS else 4  # each step: nightly
    assert 3 < live_through_kills(World(tmp_path, kind), range(1 + number % every, 60, every)) < 40


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [*REPOSITORIES][:6])
def test_any_step_in_many_repositories_may_be_the_last(
    kind: str, tmp_path: Path, size: int
) -> None:
    for number in range(10 * size):
        (top := tmp_path / str(number)).mkdir()
        assert 3 < live_through_kills(World(top, kind), range(1 + number % 2, 60, 2)) < 40


# ---- what comes of one


def writes(**files: str) -> Callable[[RunSpec], list[Step]]:
    """A Worker that writes these files, by their names with `__` for `/`."""

    def script(request: RunSpec) -> list[Step]:
        if request.role == "worker" and not request.read_only:
            for name, text in files.items():
                path = request.workspace / name.replace("__", "/").replace("DOT", ".")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(text) if name == "link" else path.write_text(text)
            return [{"say": "done"}]
        return improve(request)

    return script


def plans(*steps: Step) -> Callable[[RunSpec], list[Step]]:
    return lambda request: list(steps) if request.role == "planner" else improve(request)


def reviews(text: str) -> Callable[[RunSpec], list[Step]]:
    return lambda request: [{"say": text}] if request.read_only else improve(request)


@pytest.mark.real
@pytest.mark.parametrize(
    ("script", "item", "end", "reason"),
    [
        (improve, "lint", "committed", ""),
        (improve, "memory", "proposed", ""),
        (reviews("Yes, it is right."), "docs", "committed", ""),
        (reviews("No: it is too much."), "lint", "dropped", "it is too much"),
        (reviews("I would say yes."), "lint", "dropped", "the review did not agree"),
        (writes(), "lint", "dropped", "nothing was changed"),
        (writes(link="/etc/passwd"), "lint", "dropped", "a symbolic link"),
        (writes(sub__DOTgit__config="[core]"), "lint", "dropped", "a repository of its own"),
        (writes(DOTmimikit__config="x", ok="x"), "lint", "committed", ""),  # git ignores it
        (writes(DOTgitignore="", DOTmimikit__config="x"), "lint", "dropped", "not to be changed"),
        (writes(big="x" * 300_000), "lint", "dropped", "too large"),
        (plans({"say": "there is no linter"}), "types", "nothing", "there is no linter"),
        (plans(delegate(), delegate()), "lint", "dropped", "at most one task"),
        (plans(delegate(type="conditional", condition=NEVER)), "lint", "dropped", "at most one"),
        (plans({"call": "needs_input", "args": {"question": "may I?"}}), "lint", "dropped", "one"),
        (plans({"fail": "error", "error": "broken"}), "lint", "dropped", "broken"),
    ],
)
def test_a_change_is_kept_on_a_branch_or_leaves_no_trace(
    script: Any, item: str, end: str, reason: str, tmp_path: Path
) -> None:
    world = World(tmp_path, "dirty", script, enabled=False)
    world.ask(item)
    world.product.idle()
    run = world.past[-1]
    assert (run.item, run.end) == (item, end)
    assert reason in run.reason
    assert world.changed() == []
    assert world.branches == ([run.branch] if end == "committed" else [])
    assert bool(world.said) == (end in ("committed", "proposed"))
    if end == "committed":
        assert git(world.work, "log", "-1", "--format=%an %s", str(run.branch)).startswith(
            "mimikit M"
        )
        assert f"mimikit self-awake merge {run.branch}" in world.said


@pytest.mark.real
@pytest.mark.parametrize("kind", BRANCHLESS)
def test_where_no_branch_can_be_made_it_proposes_in_words(kind: str, tmp_path: Path) -> None:
    world = World(tmp_path, kind)
    world.rest()
    assert [run.end for run in world.past] == ["proposed"]
    assert "Mend it" in world.said
    assert world.changed() == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("check", "end"),
    [("grep better main.py && git log -1", "committed"), ("touch ../repo.git/x", "dropped")],
)
def test_the_checks_of_the_owner_run_in_the_box(check: str, end: str, tmp_path: Path) -> None:
    world = World(tmp_path, checks=["true", check])
    world.rest()
    assert world.past[0].end == end, world.past
    assert world.changed() == []


@pytest.mark.real
def test_it_begins_when_it_is_on_and_idle_and_each_item_in_its_time(tmp_path: Path) -> None:
    world = World(tmp_path, "clean", plans({"say": "nothing"}))
    world.rest(200)
    assert world.past == []
    for _ in range(20):
        world.rest()
    tried = [run.item for run in world.past]
    assert tried == ["lint", "types", "docs", "memory", "quality", "dependencies", "clean-up"]
    assert world.said == ""
    world.rest(86_400)
    assert [run.item for run in world.past][7:] == ["lint"]


@pytest.mark.real
def test_the_work_of_the_user_goes_first(tmp_path: Path) -> None:
    world = World(tmp_path, "clean", enabled=False)

    def script(request: RunSpec) -> list[Step]:
        if request.prompt.startswith("hello"):
            return [{"say": "hi"}]
        if request.role == "worker":
            world.product.store.settings = world.settings.model_copy(update={"max_concurrency": 1})
            task = Task(id="t1", prompt="hello", created_at=START, trace_id="t", origin="cli")
            queue.submit(world.files, task)
            world.product.tick()  # sees it, then cancels
            world.product.tick()
            return [{"wait": 0.01}]
        return improve(request)

    world.script = script
    world.start()
    world.ask("")
    world.product.idle()
    assert [run.end for run in world.past] == ["dropped"]
    assert queue.where(world.files, "worker", "t1") == "ended"
    assert world.changed() == []


# ---- the commands of the owner


@pytest.mark.real
def test_the_owner_merges_or_discards_a_branch(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name in ("lint", "docs"):
        world.ask(name)
        world.product.idle()
    worktrees = world.product.context.worktrees
    (world.work / "main.py").write_text("mine\n")
    first, second = (str(run.branch) for run in world.past)
    with pytest.raises(BadInput, match="expected a clean working tree"):
        worktrees.merge(world.work, first)
    with pytest.raises(BadInput, match="expected a branch of self-awake"):
        worktrees.discard(world.work, "main")
    git(world.work, "commit", "-q", "-a", "-m", "mine")
    with pytest.raises(BadInput, match="it conflicts"):
        worktrees.merge(world.work, first)
    assert git(world.work, "status", "--porcelain") == ""
    git(world.work, "reset", "-q", "--hard", "HEAD~1")
    assert worktrees.merge(world.work, first) == f"merged {first}"
    assert (world.work / "main.py").read_text() == "better\n"
    assert worktrees.discard(world.work, second).startswith(f"deleted {second}")
    assert world.branches == []


# ---- when; pure

ITEMS = [
    CheckListItem("retry", timedelta(hours=1), "…"),
    CheckListItem("lint", timedelta(days=1), "…"),
    CheckListItem("backlog", timedelta(days=1), "…"),
]
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("on", "idle_s", "expected"),
    [
        (False, 400, "it is off"),
        (True, 0, "something happened a short time ago"),
        (True, -400, None),  # the clock was set back
        (True, 400, None),
    ],
)
def test_when_one_may_begin_by_itself(on: bool, idle_s: float, expected: str | None) -> None:
    idle_since = START - timedelta(seconds=idle_s)
    why = why_not_now(SelfAwakeSettings(enabled=on), idle_since, START)
    assert (why and why["en"]) == expected


@pytest.mark.parametrize(
    ("taken", "about", "asked", "expected"),
    [
        ({}, {"retry": ""}, None, "lint"),
        ({}, {"retry": "t1"}, None, "retry"),
        ({"lint": START}, {"retry": ""}, None, "backlog"),
        ({"lint": START - DAY}, {"retry": ""}, None, "lint"),
        ({"lint": START}, {"retry": "", "backlog": ""}, None, None),
        ({}, {"retry": ""}, "", "lint"),
        ({"lint": START}, {"retry": ""}, "lint", "lint"),
        ({}, {}, "other", None),
    ],
)
def test_which_item_is_taken(
    taken: dict[str, Any], about: dict[str, str], asked: str | None, expected: str | None
) -> None:
    item = next_item(ITEMS, taken, about, START, asked)
    assert (item and item.name) == expected


@pytest.mark.parametrize("kind", ["off", "asked", "late"])
def test_one_in_progress_is_canceled_when_it_is_turned_off_or_takes_too_long(kind: str) -> None:
    """The one that the owner asked for goes on while it is off."""
    files = Files(MemoryDisk())
    files.make_folders()
    queue.submit(files, Task(id="p1", role="planner", prompt="x", created_at=START, trace_id="t"))
    started = START - 1.1 * LONGEST if kind == "late" else START
    run = Improvement(
        id="lint-1", item="lint", started_at=started, plan="p1", asked=kind == "asked"
    )
    files.save(paths.SELF_AWAKE, SelfAwakeState(run=run))
    scheduler = Product(files, FakeClock(START), ScriptedEngine(improve)).consumer.self_awake
    assert scheduler.step(START) == (kind == "late")
    assert [one.target for one in queue.waiting_commands(files)] == ["p1"] * (kind != "asked")
    assert scheduler.why["zh"] == "正在进行一项改进"


def test_a_check_list_is_read_or_refused_at_the_start() -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    files.write("prompts/self-awake.md", b"Do this.\n\n## lint (every 2h)\nThe linter.\n")
    assert Prompts(files).check_list() == (
        "Do this.",
        [CheckListItem("lint", timedelta(hours=2), "The linter.")],
    )
    for text in (b"Do this.", b"## lint\nx", b"## lint (every day)\nx"):
        files.write("prompts/self-awake.md", text)
        with pytest.raises(BadSettings, match="such as `## lint"):
            Prompts(files)
