"""While nobody needs anything one improvement is made, judged, and kept on its branch or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mimikit.config import Settings
from mimikit.engines.base import EngineRequest
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.results import CommandResult
from mimikit.protocol.self_awake import PastImprovement, SelfAwakeState
from mimikit.supervisor.background_jobs import JobOutcome, JobsInPlace
from mimikit.tasks import queue
from mimikit.tasks.retry import TaskEnd
from mimikit.testing.fake_worktrees import HEAD, FakeWorktrees
from mimikit.testing.twins import FakeClock
from tests.crash.disk import WatchedDisk
from tests.crash.driver import Client
from tests.crash.oracle import Oracle, judge
from tests.support.improving import IDLE_S, ImprovingMind, awake_settings
from tests.support.product import START, Product
from tests.support.reading import transcript

Make = Callable[..., Client]


@pytest.fixture
def make(files: Files, disk: WatchedDisk) -> Iterator[Make]:
    """Makes a client of a product that improves itself; in the end all is judged."""
    made: list[Client] = []

    def make(**more: Any) -> Client:
        oracle = Oracle()
        mind = ImprovingMind(oracle.runs)
        product = Product(files, FakeClock(START), mind, settings=awake_settings(**more))
        product.start()
        product.idle()
        made.append(Client(product, oracle))
        return made[-1]

    yield make
    for client in made:
        client.product.idle()
        assert judge(disk.kill_image().folders, client.oracle) == []


_CONFIG = """\
# mine
engine = "scripted"
profiles.command.engine = "scripted"
[self_awake]
enabled = true
items = ["lint"]
"""


def past(client: Client) -> list[PastImprovement]:
    return state(client).past


def state(client: Client) -> SelfAwakeState:
    return client.files.load(paths.SELF_AWAKE, SelfAwakeState) or SelfAwakeState()


def git(client: Client) -> FakeWorktrees:
    worktrees = client.product.worktrees
    assert isinstance(worktrees, FakeWorktrees)
    return worktrees


def go_on(client: Client, seconds: float = IDLE_S) -> None:
    client.product.clock.advance(seconds)
    client.product.idle()


def test_a_change_that_passes_is_committed_on_its_branch_and_told_once(make: Make) -> None:
    client = make()
    go_on(client)
    [done] = past(client)
    assert (done.end, done.title, done.files) == ("committed", "neater", 1)
    assert git(client).refs == {done.branch: done.commit}
    assert git(client).folders == {}, "the worktree is gone"
    told = [text for _, text in transcript(client.files) if "neater" in text]
    assert len(told) == 1
    assert told[0].startswith("While nothing was to be done I made an improvement: `neater`.")
    assert "(1 file)" in told[0]
    assert done.branch in told[0]
    assert client.product.store.runtime.last_self_awake_at is not None
    go_on(client, 3600)
    assert len(past(client)) == 1, "lint is looked for once a day"
    go_on(client, 86400)
    assert len(past(client)) == 2


class JobsUnderWay:
    """Of each job it says at first that it is not done yet."""

    def __init__(self) -> None:
        self._begun = set[str]()

    def ask(self, key: str, do: Callable[[], Any]) -> JobOutcome[Any] | None:
        if key not in self._begun:
            self._begun.add(key)
            return None
        self._begun.discard(key)
        return JobsInPlace().ask(key, do)


def test_a_job_that_takes_its_time_is_waited_for(make: Make) -> None:
    client = make()
    client.product.self_awake._jobs = JobsUnderWay()
    go_on(client)
    for _ in range(20):
        go_on(client, 1)
    assert client.product.log.errors == []
    assert [done.end for done in past(client)] == ["committed"]


def test_off_it_does_nothing_at_all(make: Make) -> None:
    client = make(enabled=False)
    go_on(client, 86400)
    assert client.oracle.runs == []
    assert not client.files.exists(paths.SELF_AWAKE)


def test_what_the_user_says_and_what_runs_ends_the_idleness(make: Make) -> None:
    client = make()
    go_on(client, 280)
    client.say("m1", "hello")
    client.product.idle()
    go_on(client, 280)
    client.submit("t1", "one")
    client.product.idle()
    go_on(client, 280)
    assert past(client) == []
    go_on(client, 30)
    assert len(past(client)) == 1


def test_a_message_meanwhile_is_answered_and_the_run_goes_on(make: Make) -> None:
    client = make()

    def talk(_request: EngineRequest) -> None:
        client.say("m1", "hello")
        client.product.tick()

    client.product.mind.hook = talk
    go_on(client)
    assert [done.end for done in past(client)] == ["committed"]
    assert any(text == "heard hello" for _, text in transcript(client.files))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"verdict": '{"ok": false, "reason": "too much"}'}, "the review says no: too much"),
        ({"verdict": "I like it"}, "the review says no: the review gave no answer"),
        ({"checks": False}, "the check `check it` failed: exit code 1"),
        ({"works": False}, "it broke"),
    ],
)
def test_what_does_not_pass_is_removed_without_a_trace(
    make: Make, change: dict[str, Any], why: str
) -> None:
    client = make()
    vars(client.product.mind).update(change)
    go_on(client)
    [done] = past(client)
    assert done.end == "dropped"
    assert done.why.startswith(why)
    assert (git(client).refs, git(client).folders) == ({}, {})
    assert transcript(client.files) == []


@pytest.mark.parametrize(
    "path", [".mimikit/config.toml", "a/.MIMIKIT/x", "sub/.git/hooks/post-checkout"]
)
def test_what_it_may_never_touch_is_not_even_judged(make: Make, path: str) -> None:
    client = make()
    git(client).files = {"a.py": "x", path: "y"}
    go_on(client)
    [done] = past(client)
    assert done.end == "dropped"
    assert path in done.why
    assert len(client.oracle.runs) == 2, "neither checks nor review"
    assert git(client).refs == {}


def test_files_that_change_after_they_were_judged_are_not_committed(make: Make) -> None:
    client = make()

    def sneak(request: EngineRequest) -> None:
        if request.input.task and request.input.task.title == "self-awake-review":
            git(client).files = {"a.py": "x", "b.py": "evil"}

    client.product.mind.hook = sneak
    go_on(client)
    [done] = past(client)
    assert done.why == "the files were changed after they had been judged"
    assert done.left == f"/worktrees/{done.id}"
    assert [commit for commit in git(client).refs.values() if commit != HEAD] == []
    assert [text.split(",")[0] for _, text in transcript(client.files)] == [
        f"There is work in `{done.left}`"
    ]


def test_what_the_checks_leave_behind_is_no_part_of_the_change(make: Make) -> None:
    client = make()

    def litter(request: EngineRequest) -> None:
        if request.input.task and request.input.task.profile == "command":
            git(client).litter = {"__pycache__/a.pyc": "made"}

    client.product.mind.hook = litter
    go_on(client)
    [done] = past(client)
    assert (done.end, done.files, done.left) == ("committed", 1, "")


def test_what_waits_on_a_branch_already_is_told_to_the_planner_and_not_kept_twice(
    make: Make,
) -> None:
    client = make(hours={"lint": 1})
    git(client).compares = True
    go_on(client)
    go_on(client, 3700)
    one, two = past(client)
    assert (one.end, two.end) == ("committed", "nothing")
    assert two.why == f"{one.branch} holds the same already"
    assert git(client).refs == {one.branch: one.commit}
    planned = [text for name, text in prompts_of(client) if name == "self-awake"]
    assert "- neater" not in planned[0]
    assert "waiting on branches to be merged:\n- neater" in planned[1]


def prompts_of(client: Client) -> list[tuple[str, str]]:
    views = [queue.show(client.files, id_) for id_ in asked_ids(client)]
    return [(view.task.title, view.task.prompt) for view in views if view]


def asked_ids(client: Client) -> list[str]:
    return [id_ for id_, _ in client.oracle.runs]


def test_a_worktree_that_somebody_works_in_stays_and_is_told_once(make: Make) -> None:
    client = make()
    trees = git(client)

    def take(request: EngineRequest) -> None:
        trees.taken = set(trees.folders)

    client.product.mind.hook = take
    go_on(client)
    [done] = past(client)
    assert (done.end, done.left) == ("committed", f"/worktrees/{done.id}")
    for _ in range(2):  # it is found by the next start
        client.product.self_awake._is_swept = False
        client.product.idle()
        assert [*trees.folders] == [done.id]
        told = [text for _, text in transcript(client.files) if "There is work in" in text]
        assert len(told) == 1
        assert state(client).left == [done.left]
    trees.taken = set()
    client.product.self_awake._is_swept = False
    client.product.idle()
    assert (state(client).left, trees.folders) == ([], {})


def test_where_nothing_is_changed_or_planned_nothing_is_left_or_told(make: Make) -> None:
    client = make()
    git(client).files = {}
    go_on(client)
    client.product.mind.plans = False
    go_on(client, 86401)
    assert [done.end for done in past(client)] == ["nothing", "nothing"]
    assert (git(client).refs, transcript(client.files)) == ({}, [])


def test_what_is_kept_of_the_user_is_only_looked_at(make: Make) -> None:
    client = make(items=["memory"])
    client.files.write(paths.MEMORY, b"- tea\n" * 500)
    client.product.mind.plans = False
    go_on(client)
    [done] = past(client)
    assert (done.end, done.why) == ("proposed", "nothing fits")
    assert any("nothing fits" in text for _, text in transcript(client.files))


def test_without_a_repository_no_mind_is_asked_and_it_is_looked_again_in_an_hour(
    make: Make,
) -> None:
    client = make()
    git(client).refusal = "no repository here"
    go_on(client)
    go_on(client, 1800)
    assert (client.oracle.runs, past(client)) == ([], [])
    assert state(client).blocked == "no repository here"
    git(client).refusal = ""
    go_on(client, 1900)
    assert len(past(client)) == 1


def test_with_too_many_branches_of_its_own_it_rests(make: Make) -> None:
    client = make(most_branches=2)
    for number in range(4):
        go_on(client, 86401)
        go_on(client, 3700)
        assert len(past(client)) == min(number + 1, 2)
    assert "branches" in state(client).blocked


def test_paused_or_without_tokens_nothing_begins(make: Make) -> None:
    client = make()
    client.order("o1", "pause")
    go_on(client, 86400)
    assert past(client) == []
    client.order("o2", "resume")
    go_on(client, 700)
    assert len(past(client)) == 1


def test_without_a_mind_nothing_begins(files: Files) -> None:
    settings = Settings.model_validate({"self_awake": {"enabled": True}, "timezone": "UTC"})
    product = Product(files, FakeClock(START), BuiltinEngine(), settings=settings)
    product.start()
    product.clock.advance(86400)
    product.idle()
    assert not files.exists(paths.SELF_AWAKE)


def test_one_is_made_at_once_when_somebody_asks_for_it_even_when_off(make: Make) -> None:
    client = make(enabled=False, items=["lint", "docs"])
    client.order("o1", "self_awake_run", "docs")
    client.product.idle()
    assert [done.kind for done in past(client)] == ["docs"]
    client.order("o2", "self_awake_run", "nonsense")
    client.product.idle()
    result = client.files.read(paths.command_done("o2")) or b""
    assert b"expected one of retry, lint" in result


def test_why_none_begins_that_somebody_asks_for_is_kept_for_whoever_shows_it(make: Make) -> None:
    client = make(enabled=False, items=["lint"])
    client.order("o1", "pause")
    client.order("o2", "self_awake_run", "lint")
    client.product.idle()
    result = client.files.load(paths.command_done("o2"), CommandResult)
    assert result is not None
    assert (result.ok, result.code) == (False, "no_improvement")
    assert result.params == {"why": "the queues are paused"}


@pytest.mark.parametrize("is_over", [False, True])
def test_asked_for_again_after_a_kill_it_is_the_one_that_was_begun(
    make: Make, *, is_over: bool
) -> None:
    client = make(enabled=False, items=["lint", "docs"])
    client.order("o1", "self_awake_run", "docs")
    client.product.idle() if is_over else client.product.tick()
    first = client.files.read(paths.command_done("o1"))
    assert (state(client).run is None) == is_over
    client.files.remove(paths.command_done("o1"))  # as where a kill came before it was written
    client.order("o1", "self_awake_run", "docs")
    client.product.clock.advance(1)
    client.product.idle()
    result = client.files.load(paths.command_done("o1"), CommandResult)
    assert first is not None
    assert result is not None
    assert (result.ok, result.message) == (True, "began an improvement: docs")
    assert [(done.kind, done.end) for done in past(client)] == [("docs", "committed")]


def test_switched_off_the_one_in_progress_ends_and_nothing_of_it_is_left(make: Make) -> None:
    client = make()
    client.files.write(paths.CONFIG, _CONFIG.encode())

    def off(_request: EngineRequest) -> None:
        client.order("o1", "self_awake_off")
        client.product.tick()

    client.product.mind.hook = off
    go_on(client)
    text = (client.files.read(paths.CONFIG) or b"").decode()
    assert text.startswith("# mine")
    assert "enabled = false" in text
    [done] = past(client)
    assert (done.end, done.why) == ("dropped", "self-awake was switched off")
    assert git(client).refs == {}
    client.order("o2", "self_awake_on")
    client.product.idle()
    client.product.mind.hook = lambda _request: None
    go_on(client, 86401)
    assert past(client)[-1].end == "dropped", "there `make check` is what has to succeed"
    assert "make check" in past(client)[-1].why


def test_canceled_by_its_user_it_is_dropped(make: Make) -> None:
    client = make()

    def cancel(request: EngineRequest) -> None:
        client.order("o1", "cancel", request.run_id)
        client.product.tick()

    client.product.mind.hook = cancel
    go_on(client)
    assert [done.end for done in past(client)] == ["dropped"]
    assert git(client).refs == {}


def test_a_task_that_failed_for_a_passing_cause_is_taken_up_once(make: Make) -> None:
    client = make(items=["retry"])
    client.submit("t1", "bad")  # that is no passing cause
    client.submit("t2", "one ~")
    task = queue.read(client.files, "worker", paths.queued("worker", "t2"))
    assert task is not None
    end = TaskEnd("failed", "timeout", 1)
    client.files.move(paths.queued("worker", "t2"), paths.running("worker", "t2"))
    client.product.applier.end_without_engine(task, end, client.now, error="too slow")
    client.oracle.runs.append(("t2", 1))
    client.product.idle()
    for _ in range(3):
        go_on(client, 7200)
    assert [done.kind for done in past(client)] == ["retry"]
    assert state(client).retried == ["t2"]


def test_the_worker_s_task_is_shown_and_the_rest_of_the_run_is_not(make: Make) -> None:
    client = make()
    go_on(client)
    [done] = past(client)
    assert done.task_id is not None
    runs = [run for run, _ in client.oracle.runs]
    assert len(runs) == 4
    assert done.task_id in runs
