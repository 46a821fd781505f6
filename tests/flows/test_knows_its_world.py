"""When does it run next, did it work, what failed: one set of facts for input, tool, chat, page."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mimikit.config import BudgetSettings, Settings
from mimikit.engines.base import TaskLine, TurnInput
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import Task
from mimikit.roles.prompts import prompt_of
from mimikit.tasks import queue
from mimikit.tools.session import TellerSession, ToolCaller
from mimikit.tools.world import situation
from mimikit.views import triggers as views
from tests.crash.driver import Client
from tests.support.mind import Mind
from tests.support.product import NOWHERE, START
from tests.support.reading import transcript
from tests.support.state import start_client

SHANGHAI = {"timezone": "Asia/Shanghai"}
LAST = "last run on Wednesday, 2026-12-02 at 02:00 (Asia/Shanghai): failed"


class World:
    """A product without a model in Shanghai, with a shell that fails what is `bad`."""

    def __init__(self) -> None:
        shell = Mind([])
        shell.name = "command"
        self.client = start_client(
            engine=lambda _: BuiltinEngine(is_program=lambda word: word == "date"),
            settings=Settings.model_validate(SHANGHAI),
            more_engines=(shell,),
        )
        self.product, self.files = self.client.product, self.client.files
        self.clock = self.product.clock
        self.asked = 0

    def pass_hours(self, hours: float) -> None:
        self.clock.advance(hours * 3600)
        self.product.idle()

    def make(self, id_: str, prompt: str, **more: object) -> None:
        daily = {"cron": "0 2 * * *", "timezone": "Asia/Shanghai"}
        known: dict[str, object] = {"type": "recurring", "schedule": daily, "profile": "command"}
        self.client.make(id_, prompt, **{**known, **more})
        self.product.idle()

    def ask(self, text: str) -> str:
        self.asked += 1
        self.client.say(f"ask-{self.asked}", text)
        self.product.idle()
        return next(said for role, said in reversed(transcript(self.files)) if role == "agent")


@pytest.fixture
def world() -> World:
    """Daily at two, a backup that fails and a sweep that works; it is four hours later."""
    world = World()
    world.make("trig-backup", "bad backup", title="backup")
    world.make("trig-sweep", "sweep", title="扫除")
    world.pass_hours(9)
    world.pass_hours(4)
    return world


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("When does the backup run next?", "`backup`: next on Thursday, 2026-12-03 at 02:00"),
        ("when does trig-sweep run next", "`扫除`: next on Thursday, 2026-12-03 at 02:00"),
        ("扫除下次什么时候运行？", "`扫除` 的安排：下次2026-12-03（周四）02:00"),
        ("did the backup work?", f"`backup` did not work: {LAST}, it ended with an error: it"),
        ("backup 成功了吗", "`backup` 没有成功：上次2026-12-02（周三）02:00"),
        ("上次扫除成功了吗？", "`扫除` 成功了：上次2026-12-02（周三）02:00"),
        ("How did the backup go?", f"`backup` did not work: {LAST}"),
    ],
)
def test_what_is_asked_of_a_trigger_is_answered_by_its_facts(
    world: World, asked: str, said: str
) -> None:
    assert world.ask(asked).startswith(said)


@pytest.mark.parametrize(
    ("asked", "said"),
    [("when does it run next?", "`扫除`: next"), ("它下次什么时候运行", "`扫除` 的安排：下次")],
)
def test_it_is_what_was_mentioned_last(world: World, asked: str, said: str) -> None:
    world.ask("did the backup work?")
    world.ask("did 扫除 work?")
    assert world.ask(asked).startswith(said)


@pytest.mark.parametrize(
    ("asked", "head", "none"),
    [
        ("what failed today?", "This failed today:", "Nothing has failed today."),
        ("今天什么失败了", "今天失败的有：", "今天没有失败的。"),
    ],
)
def test_what_failed_today_is_told_by_the_users_day(
    world: World, asked: str, head: str, none: str
) -> None:
    first, _, rest = world.ask(asked).partition("\n\n")
    assert first == head
    assert "`backup`" in rest
    assert "it broke" in rest
    assert "扫除" not in rest
    world.client.order("o1", "trigger_pause", "trig-backup")
    world.pass_hours(24)
    assert world.ask(asked) == none
    yesterday = "昨天什么失败了" if "今" in asked else "what failed yesterday?"
    assert "`backup`" in world.ask(yesterday)


def lines(world: World) -> dict[str, TaskLine]:
    return {line.id: line for line in world.product.context.reader.tasks("all")}


def test_the_input_and_the_tool_say_the_same(world: World) -> None:
    found = lines(world)
    turn_input = TurnInput(START, inputs=(), tasks=tuple(found.values()))
    prompt = prompt_of("teller", turn_input, BudgetSettings(), NOWHERE)
    caller = ToolCaller("turn-1", "trace-1", START)
    session = TellerSession(caller, world.product.context.reader, world.product.settings)
    tool = session.call("list_tasks", {}).text
    expected = (
        "trig-backup [trigger] backup · every day at 02:00 (Asia/Shanghai) · next on Thursday, "
        f"2026-12-03 at 02:00 (Asia/Shanghai) · {LAST}, it ended with an error: it broke"
    )
    assert expected in prompt
    assert expected in tool


def test_page_and_terminal_have_them_from_the_same_place(world: World) -> None:
    files = ReadOnlyFiles(world.files)
    zone = world.product.settings.zone
    here = situation(files, now=world.clock.now(), zone=zone, paused=False)
    shown = views.find(files, "trig-backup", here)
    assert shown is not None
    assert shown.last == lines(world)["trig-backup"].last
    assert shown.last is not None
    assert shown.last["zh"].startswith("上次2026-12-02（周三）02:00（Asia/Shanghai）：失败")


def test_what_a_task_waits_for_is_told() -> None:
    world = World()
    world.client.order("o1", "pause")
    world.product.idle()
    later = START + timedelta(hours=3)
    for id_, more in (
        ("task-a", {}),
        ("task-b", {"not_before": later}),
        ("task-c", {"waits_for": "codex", "released": True}),
    ):
        task = Task(id=id_, prompt="paint", created_at=START, trace_id=id_, origin="cli")
        queue.submit(world.files, task.but(**more))
    told = {id_: line.waits and line.waits["en"] for id_, line in lines(world).items()}
    assert told == {
        "task-a": "waits until the queues go on (`mimikit resume`)",
        "task-b": "starts on Tuesday, 2026-12-01 at 20:00 (Asia/Shanghai)",
        "task-c": "waits for codex, which is unavailable",
    }
    world.client.order("o2", "resume")
    world.product.tick()
    assert (lines(world)["task-a"].waits or {})["zh"] == "在队列里等待"


def test_runs_of_a_schedule_are_no_lines_of_their_own(world: World) -> None:
    shown = world.ask("tasks").splitlines()[2:]
    assert [line.split(" — ")[0] for line in shown] == ["- `扫除`", "- `backup`"]


def test_a_plan_does_not_see_itself_among_the_tasks(client: Client) -> None:
    seen: list[tuple[str, set[str]]] = []
    client.product.mind.hook = lambda request: seen.append(
        (request.run_id, {line.id for line in request.input.tasks})
    )
    client.submit("task-other", "paint", not_before=START + timedelta(days=1))
    client.say("m1", "plan: one ~")
    client.product.idle()
    planner, tasks = seen[0]
    assert "task-other" in tasks
    assert planner not in tasks
