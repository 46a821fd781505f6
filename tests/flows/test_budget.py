"""What is used is counted once and kept within the budget; what has no tokens waits for them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from mimikit.engines.base import Outcome, RunSpec, stop_outcome
from mimikit.protocol import paths
from mimikit.protocol.models import Usage
from mimikit.protocol.results import RunUsage, TaskResult, UsageMonth
from mimikit.tasks.usage import RunMeter, runs_of_day, sums_of
from tests.support.engine_world import World as EngineWorld
from tests.support.mind import USED
from tests.support.product import START
from tests.support.reading import record, results

DAY = "2026-12-01"
CAPS = {"daily_tokens": 150}


class World(EngineWorld):
    """An engine whose runs use 100 tokens each, within a budget."""

    def __init__(self, **caps: int) -> None:
        super().__init__(budget=caps)

    def used(self, day: str = DAY) -> list[RunUsage]:
        return list(runs_of_day(self.files, day).values())

    def tokens(self, day: str = DAY) -> int:
        return sum(run.usage.tokens for run in self.used(day))

    def to_the_next_day(self) -> None:
        self.clock.advance((START.replace(hour=0) + timedelta(days=1) - self.clock.now()).seconds)
        self.live_through(2)


def test_each_run_of_an_engine_is_counted_once_and_a_command_not_at_all() -> None:
    world = World()
    world.client.say("m1", "plan: one; flaky")
    world.client.submit("t1", "date", profile="command")
    world.live_through(5)
    assert [(run.role, run.usage) for run in world.used()].count(("worker", USED)) == 2
    runs = len(world.oracle.runs) - 1  # the command's
    assert (len(world.used()), world.tokens()) == (runs, 100 * runs)


def test_over_the_day_s_tokens_messages_and_tasks_wait_and_that_is_told_once() -> None:
    world = World(**CAPS)
    for number in range(3):
        world.client.submit(f"t{number}", "one")
    world.client.say("m1", "hello")
    world.live_through(90)
    assert world.tokens() == 200
    (said,) = world.told("tokens of today")
    assert [
        part for part in ("150", "Waiting: 1 task", "2026-12-02 00:00") if part not in said
    ] == []
    assert [run for run in world.oracle.runs if run[1] > 1] == []
    waiting = [task for task in world.product.queued("worker") if task.waits_for == "budget:day"]
    assert [(task.attempts, task.not_before) for task in waiting] == [
        (0, START.replace(hour=0) + timedelta(days=1))
    ] * len(waiting)
    world.to_the_next_day()
    assert world.tokens("2026-12-02") == 200


def test_while_the_day_s_tokens_are_used_up_commands_and_reminders_go_on() -> None:
    world = World(daily_tokens=100)
    world.client.say("m1", "hello")
    world.live_through(2)
    world.client.say("m2", "what now")
    world.client.say("m3", "status")
    world.client.submit("t1", "date", profile="command")
    world.client.submit("t2", "drink water", profile="reminder")
    world.live_through(3)
    assert set(results(world.files)) == {"t1", "t2"}
    assert len(world.told("tokens of today")) == 1
    said = world.product.store.conversation.messages
    assert [one.engine for one in said if "m3" in one.in_reply_to] == ["builtin"]
    assert [name for name in world.files.names(paths.INBOX) if name.startswith("m2")]


def test_a_higher_cap_in_the_settings_lets_everything_go_on_at_once() -> None:
    world = World(daily_tokens=100)
    for number in range(3):
        world.client.submit(f"t{number}", "one")
    world.live_through(3)
    assert len(results(world.files)) == 1
    world.files.write(paths.CONFIG, b"[budget]\ndaily_tokens = 1_000\n")
    world.live_through(3)
    assert len(results(world.files)) == 3
    world.files.write(paths.CONFIG, b"[budget]\ndaily_tokens = -1\n")
    world.live_through(1)
    assert world.product.context.usage.caps.daily_tokens == 1000
    assert world.product.log.errors[-1]["event"] == "settings_not_read"


def test_a_task_that_has_used_its_tokens_over_its_attempts_fails_with_plain_words() -> None:
    world = World(per_task_tokens=150)
    world.client.submit("t1", "bad", max_attempts=9)
    world.live_through(30)
    result = record(world.files, paths.result("worker", "t1"), TaskResult)
    assert (result.status, result.failure_reason, world.tokens()) == ("failed", "budget", 200)
    assert "150 tokens" in (result.error or "")


def test_a_run_that_passes_its_task_s_tokens_on_its_way_is_ended() -> None:
    world = World(per_task_tokens=150)

    def uses_much(request: RunSpec) -> Outcome:
        for tokens in (100, 200, 300):
            if request.cancel.reason is None:
                told = Usage(input_tokens=tokens)
                request.callbacks.on_event("usage", "", told.to_dict())
        return stop_outcome(request.cancel.reason or "nobody")

    world.mind.run = uses_much  # pyright: ignore[reportAttributeAccessIssue]
    world.client.submit("t1", "one", max_attempts=9)
    world.live_through(5)
    result = record(world.files, paths.result("worker", "t1"), TaskResult)
    assert (result.failure_reason, result.usage.input_tokens) == ("budget", 200)
    assert [(run.usage.tokens, run.estimated) for run in world.used()] == [(200, True)]


def test_a_trigger_that_has_used_its_tokens_waits_alone_and_that_is_told_once() -> None:
    world = World(per_trigger_daily_tokens=100)
    world.client.trigger("g1", 60, "tick")
    world.live_through(250)
    world.client.submit("t1", "one")
    world.live_through(2)
    assert sum(run.trigger_id == "g1" for run in world.used()) == 1
    assert "t1" in results(world.files)
    assert len(world.told("has used its 100 tokens")) == 1


def test_a_run_whose_engine_tells_no_usage_is_estimated_and_marked() -> None:
    world = World()
    run = world.mind.run

    def tells_nothing(request: RunSpec) -> Outcome:
        return replace(run(request), usage=Usage())

    world.mind.run = tells_nothing  # pyright: ignore[reportAttributeAccessIssue]
    world.client.say("m1", "hello")
    world.live_through(2)
    (used,) = world.used()
    assert used.estimated
    assert used.usage.input_tokens > 100
    assert used.usage.output_tokens > 0


def test_a_run_that_was_turned_away_used_nothing() -> None:
    world = World()
    world.mind.until_s = 30
    world.client.say("m1", "hello")
    world.live_through(40)
    world.mind.until_s = None
    world.live_through(40)
    assert world.tokens() == 100
    (total,) = sums_of(world.used())
    assert (total.runs, total.estimated) == (1, 0)


def test_a_run_that_dies_with_the_consumer_has_no_line_and_holds_nothing() -> None:
    world = World(daily_tokens=100)
    begun = world.product.context.usage.begin("t0", 1, "worker", "codex", "", None)
    assert isinstance(begun, RunMeter)
    world.start()
    assert world.used() == []
    world.client.submit("t1", "one")
    world.live_through(2)
    assert "t1" in results(world.files)


def test_the_days_that_are_over_are_summed_up_once_and_their_lines_may_go_then() -> None:
    world = World()
    world.client.say("m1", "plan: one; two")
    world.live_through(5)
    before = sums_of(world.used())
    world.to_the_next_day()
    month = record(world.files, paths.usage_month(DAY[:7]), UsageMonth)
    assert month.days == {DAY: before}
    world.clock.advance(40 * 86400)
    world.product.retention.ring()
    world.live_through(3)
    world.start()
    world.live_through(1)
    assert record(world.files, paths.usage_month(DAY[:7]), UsageMonth).days[DAY] == before
