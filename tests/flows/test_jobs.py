"""Work as it is shown: whatever its records, one job for a request and one for a trigger."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mimikit.engines.base import EngineRequest
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import LiveRun
from mimikit.views.job_reader import JobFilter, JobReader
from mimikit.views.jobs import JobList, JobView
from tests.crash.driver import Client
from tests.support.product import START


class Shown:
    """The jobs as one reader sees them, which follows the ledger all the time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reader = JobReader(ReadOnlyFiles(client.files), client.product.settings.zone)

    def listed(self, **wanted: str) -> JobList:
        here = self._reader.scene(self._runs(), self._client.product.clock.now())
        return self._reader.listed(here, JobFilter(text=wanted.get("text", "")), "", 50)

    def firings(self, trigger_id: str, before: str = "", limit: int = 50) -> JobList:
        here = self._reader.scene(self._runs(), self._client.product.clock.now())
        return self._reader.firings(trigger_id, here, JobFilter(), before, limit)

    def one(self) -> JobView:
        (job,) = self.listed().jobs
        return job

    def _runs(self) -> dict[str, LiveRun]:
        return {run.id: run for run in self._client.product.context.live.list()}


@pytest.fixture
def shown(judged: Client) -> Shown:
    return Shown(judged)


def steps(job: JobView) -> list[tuple[str, str, str]]:
    return [(step.kind, step.title, step.state) for step in job.steps]


def at(client: Client, seconds: float) -> None:
    client.at(seconds)
    client.product.idle()


def test_a_plan_and_its_work_are_steps_of_one_job(judged: Client, shown: Shown) -> None:
    judged.say("m1", "plan: one; two")
    judged.product.idle()
    job = shown.one()
    assert (job.kind, job.state, job.total) == ("request", "done", 3)
    assert steps(job) == [
        ("plan", "plan: one; two", "done"), ("work", "one", "done"), ("work", "two", "done")
    ]  # fmt: skip
    assert (job.counts.done, job.failed_task_id, job.title) == (3, None, "plan: one; two")
    assert job.ended_at is not None


def test_the_steps_of_a_chain_wait_in_their_job_and_run_in_it(judged: Client, shown: Shown) -> None:
    seen: list[JobView] = []

    def look(request: EngineRequest) -> None:
        seen.append(shown.one())

    judged.product.mind.hook = look
    judged.say("m1", "chain: first ~ > second > third ~")
    judged.product.idle()
    planning, first, third = seen
    assert (planning.state, [state for *_, state in steps(planning)]) == ("planning", ["running"])
    assert [state for *_, state in steps(first)] == ["done", "running", "queued", "queued"]
    assert (first.state, first.task_id) == ("running", first.steps[1].id)
    assert [state for *_, state in steps(third)] == ["done", "done", "done", "running"]
    job = shown.one()
    assert (job.state, job.counts.done, job.id) == ("done", 4, planning.id)


def test_a_chain_that_breaks_fails_as_a_whole_and_says_where(judged: Client, shown: Shown) -> None:
    judged.say("m1", "chain: bad > second")
    judged.product.idle()
    job = shown.one()
    assert (job.state, job.error) == ("failed", "it broke")
    assert [state for _, _, state in steps(job)] == ["done", "failed", "canceled"]
    assert job.task_id == job.failed_task_id == job.steps[1].id


def test_what_is_tried_again_is_one_step_and_its_last_try_counts(
    judged: Client, shown: Shown
) -> None:
    judged.submit("t1", "bad")
    judged.product.idle()
    assert (shown.one().state, shown.one().failed_task_id) == ("failed", "t1")
    judged.product.mind.heals = True
    judged.order("o1", "retry", "t1")
    judged.product.idle()
    job = shown.one()
    assert (job.state, job.total, job.id, job.failed_task_id) == ("done", 1, "trace-t1", None)
    assert job.task_id == job.steps[0].id != "t1"
    judged.order("o2", "retry", job.task_id)
    judged.product.idle()
    assert shown.one().total == 1


def test_the_firings_of_a_trigger_are_one_job_with_the_counts_of_the_day(
    judged: Client, shown: Shown
) -> None:
    judged.trigger("g1", 60, "tick")
    for minute in range(1, 4):
        at(judged, 60 * minute)
    job = shown.one()
    assert (job.id, job.kind, job.state, job.steps) == ("g1", "trigger", "done", [])
    assert (job.total, job.counts.done, job.changed) == (3, 3, 0)
    assert job.last_at == START + timedelta(minutes=3)
    at(judged, 86400)
    job = shown.one()
    assert (job.total, job.counts.done) == (4, 1)


def test_a_firing_that_comes_out_otherwise_is_counted_as_a_change(
    judged: Client, shown: Shown
) -> None:
    judged.trigger("g1", 60, "bad")
    at(judged, 60)
    assert shown.one().failed_task_id == shown.one().task_id
    judged.product.mind.heals = True
    for minute in (2, 3):
        at(judged, 60 * minute)
    job = shown.one()
    assert (job.changed, job.counts.failed, job.counts.done) == (1, 1, 2)
    assert job.failed_task_id is None
    assert (job.state, job.error) == ("done", None)


def test_a_trigger_that_fires_once_is_a_step_of_the_request_it_came_of(
    judged: Client, shown: Shown
) -> None:
    run_at = "2026-12-01T09:01:00.000Z"
    judged.make("g1", "once", type="scheduled", schedule={"runAt": run_at})
    at(judged, 60)
    job = shown.one()
    assert (job.kind, job.id, steps(job)) == ("request", "trace-g1", [("work", "once", "done")])


def test_firings_can_be_asked_for_one_by_one_back_to_the_first(
    judged: Client, shown: Shown
) -> None:
    judged.trigger("g1", 60, "tick")
    judged.submit("t1", "other")
    for minute in range(1, 6):
        at(judged, 60 * minute)
    page = shown.firings("g1", limit=2)
    ends = [job.ended_at for job in page.jobs]
    assert page.total == 5
    while page.before:
        page = shown.firings("g1", page.before, limit=2)
        ends += [job.ended_at for job in page.jobs]
        assert {job.kind for job in page.jobs} == {"firing"}
    assert ends == [START + timedelta(minutes=minute) for minute in range(5, 0, -1)]


def test_a_plan_that_asks_makes_its_job_ask_and_goes_on_in_it(judged: Client, shown: Shown) -> None:
    judged.say("m1", "ask: colour?")
    judged.product.idle()
    job = shown.one()
    assert (job.state, [state for *_, state in steps(job)]) == ("asking", ["asking"])
    assert job.task_id == job.steps[0].id
    judged.answer("a1", "blue")
    judged.product.idle()
    after = shown.one()
    assert (after.id, after.state) == (job.id, "done")


def test_a_paused_queue_makes_jobs_wait_and_totals_count_them(judged: Client, shown: Shown) -> None:
    judged.order("o1", "pause")
    for number in range(3):
        judged.submit(f"t{number}", f"job {number}")
    judged.product.idle()
    found = shown.listed()
    assert (found.total, found.counts.waiting) == (3, 3)
    assert [job.state for job in found.jobs] == ["waiting"] * 3
    assert shown.listed(text="JOB 2").total == 1
    judged.order("o2", "resume")
    judged.product.idle()
    assert shown.listed().counts.done == 3


def test_what_is_done_for_memory_alone_is_no_work_of_the_user(client: Client) -> None:
    shown = Shown(client)
    client.submit("t1", "own", internal=True)
    assert shown.listed().total == 0
    client.product.idle()
    assert shown.listed().total == 0
    assert client.files.names("worker/ended") == ["t1.json"]


def test_a_request_after_another_is_a_job_of_its_own_the_newest_end_first(
    judged: Client, shown: Shown
) -> None:
    for id_, text in (("m1", "plan: one"), ("m2", "plan: two")):
        judged.say(id_, text)
        judged.product.idle()
        judged.product.clock.advance(1)
    assert [job.title for job in shown.listed().jobs] == ["plan: two", "plan: one"]


def test_a_reader_that_comes_later_sees_the_same(judged: Client, shown: Shown) -> None:
    judged.trigger("g1", 60, "tick")
    judged.say("m1", "chain: bad > second")
    at(judged, 60)
    judged.say("m2", "plan: one; two")
    at(judged, 125)
    before = shown.listed()
    assert len(before.jobs) == 3
    assert Shown(judged).listed() == before


def test_what_retention_has_removed_is_told_by_the_ledger(client: Client) -> None:
    shown = Shown(client)
    client.submit("t1", "bad")
    client.product.idle()
    client.files.remove("worker/ended/t1.json")
    client.files.remove("worker/results/t1.json")
    job = Shown(client).one()
    assert (job.title, job.state, job.task_id) == ("bad", "failed", "t1")
    assert shown.one().state == "failed"


def test_an_end_seen_before_its_record_is_put_away_is_told_whole_afterwards(client: Client) -> None:
    shown = Shown(client)
    client.submit("t1", "bad")
    client.product.idle()
    client.files.move("worker/ended/t1.json", "worker/running/t1.json")  # the ledger is first
    assert shown.one().state == "failed"
    client.files.move("worker/running/t1.json", "worker/ended/t1.json")
    (step,) = shown.one().steps
    assert (step.error, step.failure_reason) == ("it broke", "error")
    assert step.started_at is not None


def test_an_index_of_a_ledger_that_was_replaced_begins_anew(client: Client) -> None:
    shown = Shown(client)
    for number in range(3):
        client.submit(f"t{number}", f"job {number}")
    client.product.idle()
    assert shown.listed().total == 3
    (name,) = client.files.names("tasks", suffix=".jsonl")
    first = (client.files.read(f"tasks/{name}") or b"").splitlines(keepends=True)[0]
    client.product.idle()
    client.files.write(f"tasks/{name}", first)
    assert shown.listed().total == 1
