"""After an engine was used once, builtin does not replace it: work waits, and goes on by itself."""

from __future__ import annotations

import pytest

from mimikit.conversation import inbox
from mimikit.engines.base import EngineOutage, Failed, Outcome, RunSpec, stop_outcome
from mimikit.protocol import paths
from mimikit.protocol.runtime import RuntimeState
from tests.support.engine_world import LOGGED_OUT, LimitedMind, World
from tests.support.reading import loaded, result, results


@pytest.fixture
def world() -> World:
    """One whose mind has answered, and is logged out now."""
    world = World()
    world.client.say("m0", "hello")
    world.live_through(2)
    assert world.said[-1] == ("agent", "heard hello")
    world.mind.waiting = LOGGED_OUT
    return world


def test_what_needs_an_engine_waits_for_it_and_goes_on_by_itself(world: World) -> None:
    world.client.say("m1", "what is the meaning of it?")
    world.client.submit("t1", "paint")
    world.live_through(120)
    assert [text for role, text in world.said if role == "agent"] == ["heard hello"]
    assert results(world.files) == {}
    waiting = loaded(world.files, paths.queued("worker", "t1"))
    assert (waiting["waitsFor"], waiting["attempts"]) == ("codex", 0)
    world.mind.waiting = None
    world.live_through(10)
    assert ("agent", "heard what is the meaning of it?") in world.said
    assert results(world.files) == {"t1": "done"}
    assert sorted(attempt for _, attempt in world.oracle.runs) == [1, 1, 1]


@pytest.mark.parametrize(
    ("asked", "why", "again"),
    [
        (
            "how are you, my friend?",
            "codex is logged out. Waiting for it: 1 message.",
            "is available again",
        ),
        ("你今天过得怎么样？", "codex 已退出登录，有 1 条消息在等它。", "又可以用了"),
    ],
)
def test_a_wait_is_told_once_and_so_is_its_end(
    world: World, asked: str, why: str, again: str
) -> None:
    world.live_through(60)
    assert not [role for role, _ in world.said if role == "system"], "nothing waits"
    world.client.say("m1", asked)
    world.live_through(30)
    world.start()
    world.live_through(30)
    (told,) = [text for role, text in world.said if role == "system"]
    assert told.startswith(why)
    assert "`codex login`" in told
    assert "`mimikit engine use none`" in told
    world.mind.waiting = None
    world.live_through(30)
    assert len(world.told(again)) == 1
    assert len([role for role, _ in world.said if role == "system"]) == 2


@pytest.mark.parametrize("text", ["status", "tasks", "help", "状态", "任务", "帮助", "cancel t1"])
def test_meanwhile_code_answers_what_is_exactly_a_command(world: World, text: str) -> None:
    world.client.submit("t1", "paint")
    world.client.say("m1", "how are you?")
    world.live_through(3)
    world.client.say("m2", text)
    world.live_through(3)
    assert [text for role, text in world.said if role == "user"] == ["hello", text]
    assert world.said[-1][0] in ("agent", "system")
    turn = world.files.names(paths.INBOX)
    assert turn == ["m1.json"]


def test_meanwhile_commands_run_and_their_result_is_told(world: World) -> None:
    world.client.say("m1", "how are you?")
    world.client.say("m2", "run: date")
    world.live_through(10)
    assert list(results(world.files).values()) == ["done"]
    assert world.said[-1][0] == "system"
    assert "did date" in world.said[-1][1]


@pytest.mark.parametrize(
    "text",
    ["remember tea", "every 5 minutes: run: date", "stop worrying me", "what do you know about tea",
     "cancel my dentist appointment", "what failed today?"],
)  # fmt: skip
def test_nothing_else_falls_through_to_code(world: World, text: str) -> None:
    world.client.submit("t1", "paint")
    world.client.say("m1", text)
    world.live_through(20)
    assert world.files.names(paths.INBOX) == ["m1.json"]
    assert [role for role, _ in world.said if role == "agent"] == ["agent"]


def test_that_an_engine_has_served_outlives_the_consumer(world: World) -> None:
    kept = world.files.load(paths.RUNTIME, RuntimeState)
    assert kept is not None
    assert list(kept.engines) == ["codex"]
    world.start()
    world.client.say("m1", "how are you?")
    world.live_through(20)
    assert world.files.names(paths.INBOX) == ["m1.json"]


def test_where_none_ever_served_code_answers() -> None:
    world = World()
    world.mind.waiting = EngineOutage("no such program", "missing")
    world.start()
    world.client.say("m1", "how are you?")
    world.live_through(3)
    assert "no language model is connected" in world.said[-1][1]


def test_commands_behind_a_thousand_messages_are_answered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "MOST_AT_ONCE", 7)
    world.start()
    for number in range(60):
        world.client.say(f"msg-{number:026}", f"talk {number}")
    world.live_through(3)
    world.client.say(f"msg-{99:026}", "status")
    world.live_through(3)
    assert ("user", "status") in world.said
    assert len(world.files.names(paths.INBOX)) == 60
    world.mind.waiting = None
    world.live_through(20)
    assert world.files.names(paths.INBOX) == []


def test_a_limit_is_told_once_with_its_end_also_over_a_restart(world: World) -> None:
    world.mind.waiting, world.mind.until_s = None, 3600
    world.client.submit("t1", "paint")
    world.client.say("m1", "how are you?")
    world.live_through(10)
    world.start()
    world.live_through(60)
    (told,) = [text for role, text in world.said if role == "system"]
    start = 'codex has reached its limit until 10:00 (it says: "usage limit"). Waiting for it: 1 '
    assert told.startswith(start)
    shown = world.product.teller.engines.shown["codex"]
    assert (shown.state, shown.messages, shown.tasks) == ("waiting", 1, 1)
    world.client.say("m2", "status")
    world.live_through(2)
    assert ("user", "status") in world.said
    world.clock.advance(3600)
    world.mind.until_s = None
    world.live_through(10)
    assert ("agent", "heard how are you?") in world.said
    assert len(world.told("is available again")) == 1
    assert results(world.files) == {"t1": "done"}


def test_what_is_canceled_is_waited_for_no_longer(world: World) -> None:
    world.mind.waiting, world.mind.until_s = None, 3600
    world.client.submit("t1", "paint")
    world.live_through(5)
    assert world.product.teller.engines.shown["codex"].tasks == 1
    world.client.order("o1", "cancel", "t1")
    world.live_through(5)
    shown = world.product.teller.engines.shown["codex"]
    assert (shown.state, shown.tasks) == ("ready", 0)
    assert world.told("is available again") == []


def test_a_stop_of_the_consumer_is_no_end_of_a_limit(world: World) -> None:
    world.mind.waiting, world.mind.until_s = None, 3600
    world.client.say("m1", "how are you?")
    world.live_through(5)
    world.product.context.engines.record_outcome("codex", "teller", "t", stop_outcome("killed"))
    world.live_through(5)
    assert world.told("is available again") == []


@pytest.mark.parametrize(
    ("waiting", "words"),
    [
        ("the network is down", 'codex is unavailable (it says: "the network is down")'),
        (EngineOutage("expected codex, got no such program", "missing"), "codex is not installed"),
    ],
)
def test_every_wait_is_reported_within_two_seconds(waiting: str, words: str) -> None:
    world = World(engine="codex")
    world.mind.waiting = waiting
    world.client.say("m1", "how are you?")
    world.live_through(2)
    (told,) = [text for role, text in world.said if role == "system"]
    assert told.startswith(words)
    assert "it goes on" in told


class CensoredMind(LimitedMind):
    """Its content filter refuses a word, wherever it stands."""

    def __init__(self, runs: list[tuple[str, int]], name: str) -> None:
        super().__init__(runs, name)
        self.prompts: list[str] = []

    def run(self, request: RunSpec) -> Outcome:
        self.prompts.append(request.prompt)
        if "tulip" in request.prompt:
            return Failed("error", "codex answered 400: Content Exists Risk.", refused=True)
        return super().run(request)


def test_a_refused_message_is_left_out_and_the_next_ones_work() -> None:
    world = World()
    mind = world.mind = CensoredMind(world.oracle.runs, "codex")
    world.start()
    for number, text in enumerate(["hello", "a tulip", "how are you?", "and you?"]):
        world.client.say(f"m{number}", text)
        world.live_through(3)
    (told,) = [text for role, text in world.said if role == "system"]
    assert "Content Exists Risk" in told
    assert [text for role, text in world.said if role == "agent"] == [
        "heard hello",
        "heard how are you?",
        "heard and you?",
    ]
    refused = [prompt for prompt in mind.prompts if "tulip" in prompt]
    assert len(refused) == 2, "with its context and without"


def test_an_old_message_that_a_filter_refuses_does_not_block_the_next() -> None:
    world = World()
    world.client.say("m0", "a tulip")
    world.live_through(3)
    world.mind = CensoredMind(world.oracle.runs, "codex")
    world.start()
    world.client.say("m1", "how are you?")
    world.live_through(3)
    assert world.said[-1] == ("agent", "heard how are you?")


def test_the_owner_may_go_on_without_it(world: World) -> None:
    world.mind.waiting, world.mind.until_s = None, 3600
    world.client.say("m1", "how are you?")
    world.client.submit("t1", "paint")
    world.live_through(10)
    world.files.write(paths.CONFIG, b'# mine\ntimezone = "UTC"\n\n[web]\nport = 9000\n')
    world.client.order("o1", "engine_use", "builtin")
    world.live_through(10)
    assert "no language model is connected" in world.said[-1][1] + world.said[-2][1]
    assert results(world.files) == {"t1": "failed"}
    assert world.files.read(paths.CONFIG) == (
        b'engine = "builtin"\n# mine\ntimezone = "UTC"\n\n[web]\nport = 9000\n'
    )
    assert world.told("is available again") == []
    world.client.order("o2", "engine_use", "auto")
    world.mind.until_s = None
    world.client.say("m2", "and now?")
    world.live_through(10)
    assert world.said[-1] == ("agent", "heard and now?")
    assert (world.files.read(paths.CONFIG) or b"").startswith(b'engine = "auto"\n# mine\n')


@pytest.mark.parametrize(
    ("config", "name", "said"),
    [
        (
            b"",
            "gemini",
            "engine: expected one of auto, codex, opencode, local, builtin; got 'gemini'",
        ),
        (b"x = [\n", "builtin", "expected settings that can be added to"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(
    world: World, config: bytes, name: str, said: str
) -> None:
    world.files.write(paths.CONFIG, config)
    world.client.order("o1", "engine_use", name)
    world.live_through(1)
    told = loaded(world.files, paths.command_done("o1"))
    assert not told["ok"]
    assert said in told["message"]
    assert world.files.read(paths.CONFIG) == config


def counting(world: World, role: str) -> list[str]:
    """The runs of a role that are begun from now on."""
    begun: list[str] = []
    run = world.mind.run

    def counted(request: RunSpec) -> Outcome:
        if request.role == role:
            begun.append(request.run_id)
        return run(request)

    world.mind.run = counted  # pyright: ignore[reportAttributeAccessIssue]
    return begun


def test_fifty_tasks_that_wait_try_it_one_at_a_time_and_all_go_on_at_its_end(world: World) -> None:
    world.mind.waiting, world.mind.until_s = None, -1
    begun = counting(world, "worker")
    for number in range(50):
        world.client.submit(f"t{number}", "paint")
    world.live_through(36)  # it is tried after 0, 5, 15 and 35 s
    assert len(begun) == 4
    assert world.product.teller.engines.shown["codex"].tasks == 50
    assert len(world.told("limit")) == 1
    world.mind.until_s = None
    world.live_through(80)
    assert set(results(world.files).values()) == {"done"}
    assert len(begun) == 54
    assert len(world.told("is available again")) == 1
    assert {attempt for _, attempt in world.oracle.runs} == {1}


@pytest.mark.parametrize("name", ["codex", ""])
def test_whoever_has_mended_it_has_it_tried_at_once(world: World, name: str) -> None:
    world.mind.waiting, world.mind.until_s = None, 3600
    world.client.submit("t1", "paint")
    world.live_through(5)
    world.mind.until_s = None
    world.live_through(5)
    assert results(world.files) == {}
    world.client.order("o1", "engine_try", name)
    world.live_through(2)
    done = loaded(world.files, paths.command_done("o1"))
    assert (done["ok"], done["message"]) == (True, "trying codex now")
    assert results(world.files) == {"t1": "done"}
    assert len(world.told("is available again")) == 1


def test_a_new_message_tries_it_at_once(world: World) -> None:
    world.mind.waiting, world.mind.until_s = None, 3600
    begun = counting(world, "teller")
    world.client.say("m1", "how are you?")
    world.live_through(30)
    assert len(begun) == 1
    world.client.say("m2", "and now?")
    world.live_through(30)
    assert len(begun) == 2
    world.mind.until_s = None
    world.client.say("m3", "at last?")
    world.live_through(2)
    heard = {text for role, text in world.said if role == "agent" and text != "heard hello"}
    assert heard == {"heard how are you?\nheard and now?\nheard at last?"}


def test_an_answer_halfway_lets_others_go_and_is_told_as_its_end_once_a_run_is_done(
    world: World,
) -> None:
    world.mind.waiting, world.mind.until_s = None, -1
    world.client.submit("t1", "paint ~")
    world.client.submit("t2", "paint")
    world.live_through(3)
    seen: list[tuple[str, bool]] = []

    def look(request: RunSpec) -> None:
        request.callbacks.on_event("message", "at it", {})
        world.product.tick()
        shown = world.product.teller.engines.shown["codex"]
        task = loaded(world.files, paths.queued("worker", "t2"))
        seen.append((shown.state, task.get("notBefore") is None))
        assert world.told("is available again") == []

    world.mind.hook, world.mind.until_s = look, None
    world.live_through(10)
    assert seen == [("ready", True)]
    assert len(world.told("is available again")) == 1
    assert set(results(world.files).values()) == {"done"}


@pytest.mark.parametrize(("kills", "status"), [(1, "done"), (2, "done"), (9, "failed")])
def test_a_killed_run_goes_on_in_its_session_but_not_for_ever(kills: int, status: str) -> None:
    world = World()
    world.mind.kills = kills
    world.client.submit("t1", "a long session")
    world.live_through(60)
    found = result(world.files, "t1")
    assert (found.status, found.attempts) == (status, 1)
    assert world.mind.resumed[:3] == [None, *["session-1"] * min(kills, 2)]
    assert status == "done" or "SIGKILL" in (found.error or "")
