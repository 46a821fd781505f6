"""The flows that are crashed: together they reach every place that changes a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from mimikit.config import SelfAwakeSettings, Settings, TokenCapSettings
from mimikit.conversation.history import HistoryCaps
from mimikit.engines.base import EngineOutage, RunSpec
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.memory.archive import ArchiveRules
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import MAX_TEXT, Command, Role, Task, time_text
from mimikit.roles.worktree import Worktrees
from mimikit.tasks import queue
from tests.crash.driver import Client, Flow
from tests.crash.oracle import Expected
from tests.support.mind import PATIENCE_S, Mind
from tests.support.product import START, Product, scripted_settings
from tests.support.twins import FakeClock

_LOGGED_OUT_S = 10
"""How long codex is logged out, and the delay before it is tried again."""
_HOURS, _DAYS = 3600, 86400
_RETRY_S = 700
"""Seconds after which a failed archiving run is retried."""
_VERY_LONG = f"ask: colour? | {'x' * (MAX_TEXT - 30)}"
_LIKE_A_HEAD = "so:\n## 09:30 user <!-- msg-9 2026-12-01T09:30:00.000Z -->\n\nno"


def _few_tasks(most: int) -> Settings:
    settings = scripted_settings()
    limits = settings.limits.model_copy(update={"tasks_per_trace": most})
    return settings.model_copy(update={"limits": limits})


def _few_tokens(**caps: int) -> Settings:
    """Settings with token caps; each run uses 100 tokens."""
    return scripted_settings().model_copy(update={"budget": TokenCapSettings(**caps)})


_KEY = f"{paths.SECRETS}/engine-mine.key"
_ENDPOINT = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key_file": "engine-mine.key"}


def _nothing_is_left_of_the_endpoint(client: Client) -> None:
    assert client.files.read(paths.CONFIG) == b'engine = "builtin"\n'
    assert not client.files.exists(_KEY)


def _cancel_meanwhile(client: Client, request: RunSpec) -> None:
    """While the task runs, it is canceled, and the supervisor sees it."""
    client.order(f"cancel-{request.attempt}", "cancel", request.run_id)
    client.product.tick()


def _talk_meanwhile(client: Client, request: RunSpec) -> None:
    """While the task runs, the user says something and is answered."""
    client.say("m2", "how is it going")
    client.product.tick()


_FILE_CHANGED = {"type": "file_changed", "params": {"path": "*.txt"}}


def _chain(client: Client, first: str, *steps: str) -> None:
    """A task t1, and s2, s3 … each of which waits for the one before."""
    before = "t1"
    for number, prompt in enumerate(steps, start=2):
        after = {"type": "task_done", "params": {"taskId": before}}
        client.when(f"s{number}", prompt, after, once=True, title=prompt)
        before = f"s{number}"
    client.submit("t1", first)


def _put_a_torn_one(client: Client) -> None:
    client.at(5)  # by the disk's clock, which stands, it was left alone for so long
    client.put("inbox/torn.json", b'{"id": "torn", ')


def _put_in_its_place(client: Client, request: RunSpec) -> None:
    """While the task runs, a foreign file is put where its result belongs."""
    client.put(f"worker/results/{request.run_id}.json", b"not yours")


def _cut_a_turn_short(client: Client) -> None:
    """The product is stopped cleanly in the middle of a turn, and started again."""
    client.say("m1", "wait for it")
    product = client.product

    def end(_request: RunSpec) -> None:
        product.context.stopping.set()
        product.context.live.stop_all()

    product.mind.hook = end
    product.tick()
    product.mind.hook = lambda _request: None
    client.stop()
    client.restart()


def _pause_meanwhile(client: Client, _request: RunSpec) -> None:
    client.order("o1", "pause")
    client.product.tick()


def _plan_the_other(client: Client, request: RunSpec) -> None:
    """While one plan is made, a second Planner makes the next."""
    if request.role == "planner":
        client.product.pool("planner")


def _write_a_message(client: Client) -> None:
    """Put a message into the inbox by hand, with its text only."""
    client.put("inbox/by-hand.json", b'{"text": "hello"}')
    if client.files.exists("inbox/by-hand.json"):
        client.oracle.ack("message", "by-hand")


def _put_into_running(client: Client) -> None:
    task = Task(id="t1", prompt="one", created_at=START, trace_id="trace-t1", origin="cli")
    client.put("worker/running/t1.json", json.dumps(task.to_dict()).encode())
    if any(client.files.exists(f"worker/{place}/t1.json") for place in ("running", "queue")):
        client.oracle.ack("task", "t1")
    for _ in range(10):  # it may be one that is just claimed
        client.product.idle()
        client.at((client.now - START).total_seconds() + 2)


def _edit_from_afar(client: Client) -> None:
    """A command that came through a page that other machines reach."""
    at = client.oracle.note("time of o1", client.now)
    args = {"title": "from a remote page", "prompt": "tock"}
    order = Command(
        id="o1", action="trigger_edit", target="g1", args=args, created_at=at, remote=True
    )
    queue.submit_command(client.files, order)
    client.oracle.ack("order", "o1")


def _try_now(client: Client) -> None:
    """A task waits for a rate-limited engine, and the user has it tried now."""
    client.submit("t1", "limited")
    client.product._pass()
    client.order("o1", "engine_try", "codex")


def _remind_once(client: Client) -> None:
    at = time_text(START + timedelta(seconds=60))
    client.make("g1", "call mum", type="scheduled", profile="reminder", schedule={"runAt": at})


class EngineFlow(Flow):
    """A flow with `engine = "auto"`: codex, which is logged out for a while, and builtin."""

    def product(self, files: Files, clock: FakeClock, mind: Mind, *, quiet: bool = True) -> Product:
        def unavailable(_role: Role | None = None) -> str | None:
            away_for = clock.now() - START - timedelta(seconds=40)
            is_away = timedelta() <= away_for < timedelta(seconds=_LOGGED_OUT_S)
            return EngineOutage("codex is not logged in", "logged_out") if is_away else None

        shell = Mind(mind.runs)
        mind.name, shell.name = "codex", "command"
        mind.unavailable = unavailable  # pyright: ignore[reportAttributeAccessIssue]
        code = BuiltinEngine(is_program=lambda _word: False)
        limits = {"retry_delay_s": 1, "engine_retry_s": _LOGGED_OUT_S, "result_bytes": 1000}
        settings = Settings.model_validate({"timezone": "UTC", "limits": limits})
        more = (code, shell, *self.fallbacks(mind.runs))
        if len(more) > 2:
            facts = {"deep": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}}
            settings = Settings.model_validate({**settings.model_dump(), "engines": facts})
        return Product(files, clock, mind, quiet=quiet, settings=settings, more_engines=more)

    def fallbacks(self, runs: list[tuple[str, int]]) -> tuple[Mind, ...]:
        """Further engines, used while codex is unavailable."""
        return ()


class SmallModelFlow(Flow):
    """A flow with `engine = "auto"` where only the local model and builtin are there."""

    def product(self, files: Files, clock: FakeClock, mind: Mind, *, quiet: bool = True) -> Product:
        shell = Mind(mind.runs)
        mind.name, shell.name = "local", "command"
        code = BuiltinEngine(is_program=lambda _word: False)
        limits = {"retry_delay_s": 1, "engine_retry_s": _LOGGED_OUT_S, "result_bytes": 1000}
        settings = Settings.model_validate({"timezone": "UTC", "limits": limits})
        more = (code, shell)
        return Product(files, clock, mind, quiet=quiet, settings=settings, more_engines=more)


class FailoverFlow(EngineFlow):
    def fallbacks(self, runs: list[tuple[str, int]]) -> tuple[Mind, ...]:
        other = Mind(runs)
        other.name = "deep"
        return (other,)


class FakeWorktrees(Worktrees):
    """A branch is a file of the state folder."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def create(self, workspace: Path, name: str) -> Path:
        return workspace

    def commit(
        self, workspace: Path, name: str, title: str, protected: Sequence[Path]
    ) -> tuple[str, str]:
        return "1 file changed", "+better"

    def publish(self, workspace: Path, name: str) -> None:
        self._files.write(f"{paths.CACHE}/branch-{name}.json", b"a branch")

    def branches(self, workspace: Path, name: str = "*") -> list[str]:
        return [one for one in self._files.names(paths.CACHE) if one == f"branch-{name}.json"]

    def remove(self) -> None: ...


class ImprovementFlow(Flow):
    def product(self, files: Files, clock: FakeClock, mind: Mind, *, quiet: bool = True) -> Product:
        own = SelfAwakeSettings(enabled=True)
        settings = scripted_settings().model_copy(update={"self_awake": own})
        fake = FakeWorktrees(files)
        return Product(files, clock, mind, quiet=quiet, settings=settings, worktrees=fake)


FLOWS = (
    # a task by itself, and what may become of it
    Flow("task", (lambda c: c.submit("t1", "one"),)),
    Flow("next attempt", (lambda c: c.submit("t1", "flaky", max_attempts=2),)),
    Flow("a session", (lambda c: c.submit("t1", "flaky session", max_attempts=2),)),
    Flow("no attempt left", (lambda c: c.submit("t1", "bad", max_attempts=2, notify="failure"),)),
    Flow(
        "turned away",
        (lambda c: c.submit("t1", "limited"), lambda c: c.say("m1", "limited")),
        expected=Expected(limited=True),
    ),
    EngineFlow(
        "waiting for an engine",
        (
            lambda c: c.say("m1", "hello"),
            lambda c: (c.at(40), c.say("m2", "how are you"), c.say("m3", "status")),
        ),
        waits_s=_LOGGED_OUT_S,
    ),
    SmallModelFlow(
        "a small model's proposal",
        (
            lambda c: c.say("m1", "ask: shall it run? | run: date; no"),
            lambda c: c.answer("m2", "run: date"),
        ),
    ),
    EngineFlow(
        "a task waits for an engine",
        (lambda c: c.say("m1", "hello"), lambda c: (c.at(40), c.submit("t1", "one"))),
        waits_s=_LOGGED_OUT_S,
    ),
    EngineFlow(
        "going on without an engine",
        (
            lambda c: c.say("m1", "hello"),
            lambda c: (c.at(40), c.submit("t1", "one"), c.order("o1", "engine_use", "builtin")),
        ),
    ),
    EngineFlow(
        "tried now", (lambda c: c.say("m1", "hello"), _try_now), expected=Expected(limited=True)
    ),
    FailoverFlow(
        "another engine as fallback",
        (
            lambda c: c.say("m1", "hello"),
            lambda c: (c.at(40), c.say("m2", "how are you"), c.submit("t1", "one")),
            lambda c: (c.at(60), c.say("m3", "and now")),
        ),
    ),
    EngineFlow(
        "an endpoint comes and goes",
        (
            lambda c: c.put(_KEY, b"a key\n"),
            lambda c: c.order("o1", "engine_set", "mine", **_ENDPOINT),
            lambda c: c.order("o2", "engine_use", "builtin mine"),
            lambda c: c.order("o3", "engine_remove", "mine"),
            _nothing_is_left_of_the_endpoint,
        ),
    ),
    Flow("put into running", (_put_into_running,)),
    Flow("long result", (lambda c: c.submit("t1", "long"),)),
    Flow("changed files", (lambda c: c.submit("t1", "change a.txt", max_attempts=2),)),
    Flow(
        "clean stop",
        (
            lambda c: c.submit("t1", "one"),
            lambda c: c.stop(),
            lambda c: (c.submit("t1", "one"), c.submit("t2", "two")),
        ),
    ),
    Flow(
        "after its time",
        (
            lambda c: (c.submit("t1", "long"), c.say("m1", "hello"), c.order("o1", "retry", "x")),
            lambda c: (c.at(40 * 86400), c.product.retention.ring()),
        ),
        expected=Expected(forgets=True),
    ),
    Flow(
        "retention after a leap",
        (
            lambda c: (c.submit("t1", "long"), c.say("m1", "hello")),
            lambda c: c.stop(),
            lambda c: (c.set_clock(40 * _DAYS), c.restart(), c.product.retention.ring()),
            lambda c: (c.at(41 * _DAYS + 60), c.product.retention.ring()),
            lambda c: (c.submit("t2", "one"), c.say("m2", "hello")),
        ),
        expected=Expected(forgets=True),
    ),
    Flow(
        "a chain that breaks", (lambda c: (_chain(c, "bad", "two", "three"),), lambda c: c.at(100))
    ),
    Flow(
        "a chain that is canceled",
        (
            lambda c: c.order("o1", "pause"),
            lambda c: _chain(c, "one", "two"),
            lambda c: c.order("o2", "cancel", "t1"),
            lambda c: c.order("o3", "resume"),
        ),
    ),
    Flow(
        "circuit breaker",
        (
            lambda c: c.trigger("g1", 60, "bad", notify="none"),
            lambda c: c.at(60),
            lambda c: c.at(120),
            lambda c: c.at(180),
            lambda c: c.at(240),
            lambda c: c.order("o1", "trigger_resume", "g1"),
            lambda c: c.at(300),
        ),
    ),
    Flow(
        "told once a minute",
        (
            lambda c: c.when("g1", "look", _FILE_CHANGED, notify="message"),
            lambda c: c.touch("a.txt"),
            lambda c: (c.touch("b.txt"), c.product.idle(), c.at(61), c.product.idle(), c.at(200)),
        ),
    ),
    Flow("cancel queued", (lambda c: (c.submit("t1", "one"), c.order("o1", "cancel", "t1")),)),
    Flow(
        "cancel a waiting plan",
        (
            lambda c: c.order("o1", "pause"),
            lambda c: c.say("m1", "plan: one"),
            lambda c: c.order("o2", "cancel", _planner_task(c)),
            lambda c: c.order("o3", "resume"),
        ),
    ),
    Flow("cancel running", (lambda c: c.submit("t1", "long ~"),), hook=_cancel_meanwhile),
    Flow(
        "retry",
        (
            lambda c: c.submit("t1", "bad"),
            lambda c: c.order("o1", "retry", "t1"),
            lambda c: c.order("o2", "retry", "nobody"),
        ),
    ),
    Flow(
        "pause",
        (
            lambda c: c.order("o1", "pause"),
            lambda c: c.submit("t1", "one"),
            lambda c: c.order("o2", "resume"),
        ),
    ),
    Flow(
        "something foreign in its place",
        (lambda c: c.submit("t1", "one ~", max_attempts=4),),
        hook=_put_in_its_place,
        expected=Expected(quarantined=1),
    ),
    Flow(
        "the clock goes back",
        (
            lambda c: c.submit("t1", "patient ~", max_attempts=4),
            lambda c: c.stop(),
            lambda c: c.set_clock(-_HOURS),
            lambda c: c.at(PATIENCE_S - _HOURS + 60),
            lambda c: c.order("o2", "resume"),
        ),
        hook=_pause_meanwhile,
        expected=Expected(limited=True),
    ),
    Flow(
        "more tasks than one request may have",
        (lambda c: (c.say("m1", "plan: one ~; two"), c.say("m2", "plan: three ~")),),
        hook=_plan_the_other,
        settings=_few_tasks(4),
    ),
    # a message, and the ways it may go
    Flow("message", (lambda c: c.say("m1", "plan: one; two"),)),
    Flow("two messages", (lambda c: (c.say("m1", "hello"), c.say("m2", "remember tea")),)),
    Flow("a reply cut short", (lambda c: c.say("m1", "x" * 1500), lambda c: c.say("m2", "hello"))),
    Flow("a message by hand", (_write_a_message, lambda c: c.say("m1", "hello"))),
    Flow(
        "from a remote page",
        (
            lambda c: c.trigger("g1", 60, "tick"),
            lambda c: c.say("m1", "plan: one; two", remote=True),
            _edit_from_afar,
            lambda c: c.at(61),
        ),
    ),
    Flow("findings", (lambda c: c.say("m1", "find: the cat"),)),
    Flow("no plan", (lambda c: c.say("m1", "find: bad"),)),
    Flow("failing turn", (lambda c: c.say("m1", "fail"), lambda c: c.say("m2", "hello"))),
    Flow(
        "keeping",
        (
            lambda c: c.say("m1", "remember tea"),
            lambda c: c.say("m2", "backlog sweep"),
            lambda c: c.say("m3", "remember the long way"),
            lambda c: c.say("m4", "forget the long way"),
        ),
    ),
    Flow(
        "talk meanwhile",
        (lambda c: c.submit("t1", "long ~", notify="teller"),),
        hook=_talk_meanwhile,
    ),
    Flow(
        "told to cancel",
        (
            lambda c: c.order("o1", "pause"),
            lambda c: c.submit("t1", "one"),
            lambda c: c.say("m1", "cancel t1"),
            lambda c: c.order("o2", "resume"),
        ),
    ),
    Flow("a turn cut short", (_cut_a_turn_short, lambda c: c.say("m2", "hello"))),
    Flow(
        "a dropped inbox.json",
        (lambda c: c.drop(b'["hello", {"id": "d2", "text": "remember tea"}]'),),
    ),
    Flow(
        "no records",
        (
            lambda c: c.drop(b'["hello", {"text": 5}]'),
            lambda c: c.put("inbox/me.json", b'{"id": "you", "createdAt": "2026-12-01T09:00:00Z"}'),
            _put_a_torn_one,
            lambda c: c.say("m1", "hello"),
        ),
        expected=Expected(quarantined=3),
    ),
    Flow(
        "a folder for a list",
        (lambda c: c.put_folder("inbox.json"), lambda c: c.drop(b'["hello"]')),
        expected=Expected(quarantined=1),
    ),
    # memory
    Flow(
        "archive, young",
        (
            lambda c: c.say("m1", "a day of tea and cake"),
            lambda c: c.at(_HOURS * 6 + 10),
            lambda c: c.say("m2", _LIKE_A_HEAD),
            lambda c: c.at(_HOURS * 13),
            lambda c: c.at(_HOURS * 13 + _RETRY_S),
        ),
        expected=Expected(memory=(("memory/2026-12-01-*.md", 4),)),
    ),
    Flow(
        "archive, many",
        (
            lambda c: c.say("m1", "first"),
            lambda c: c.say("m2", "second"),
            lambda c: c.say("m3", "third"),
            lambda c: c.at(_HOURS * 7),
            lambda c: c.at(_HOURS * 7 + _RETRY_S),
        ),
        rules=ArchiveRules(start_above=3, batch=2),
        expected=Expected(memory=(("memory/2026-12-01-*.md", 6),)),
    ),
    Flow(
        "archive a day",
        (
            lambda c: c.say("m1", "a day ~"),
            lambda c: c.at(_DAYS * 7),
            lambda c: c.at(_DAYS * 7 + _RETRY_S),
        ),
        hook=_talk_meanwhile,
        expected=Expected(memory=(("memory/summary/2026-12-01.md", 2),)),
    ),
    Flow(
        "archive a month",
        (
            lambda c: c.say("m1", "a month"),
            lambda c: c.at(_DAYS * 70),
            lambda c: c.at(_DAYS * 70 + _RETRY_S),
        ),
        expected=Expected(memory=(("memory/summary/2026-12.md", 2),), forgets=True),
    ),
    Flow(
        "a summary that fails",
        (
            lambda c: c.say("m1", "a difficult day"),
            lambda c: c.at(_DAYS * 7),
            lambda c: c.at(_DAYS * 7 + _RETRY_S),
            lambda c: c.at(_DAYS * 7 + _RETRY_S * 4),
        ),
        expected=Expected(memory=(("memory/summary/2026-12-01.md", 2),)),
    ),
    Flow(
        "a summary that is canceled",
        (
            lambda c: c.order("o1", "pause"),
            lambda c: c.say("m1", "a day"),
            lambda c: c.at(_DAYS * 7),
            lambda c: c.order("o2", "cancel", _summary_task(c)),
            lambda c: c.order("o3", "resume"),
            lambda c: c.at(_DAYS * 7 + _RETRY_S),
            lambda c: c.at(_DAYS * 7 + _RETRY_S * 4),
        ),
        expected=Expected(memory=(("memory/summary/2026-12-01.md", 2),)),
    ),
    Flow(
        "flush",
        (
            lambda c: c.say("m1", "an unspeakable day"),
            lambda c: c.at(_DAYS * 7),
            lambda c: c.say("m2", "a day"),
            lambda c: c.at(_DAYS * 7 + _HOURS + 10),
        ),
        rules=ArchiveRules(flush_at=2),
        expected=Expected(
            memory=(("memory/2026-12-01.md", 2), ("memory/2026-12-08*.md", 2), ("memory/s*", 0))
        ),
    ),
    Flow(
        "memory ages",
        (
            lambda c: c.say("m1", "a day"),
            lambda c: c.say("m2", "and night"),
            lambda c: c.at(_HOURS * 7),
            lambda c: c.at(_DAYS * 7),
            lambda c: c.at(_DAYS * 7 + _RETRY_S),
            lambda c: c.at(_DAYS * 7 + 2 * _RETRY_S),  # for what a bad spot of the disk held up
            lambda c: c.at(_DAYS * 70),
            lambda c: c.at(_DAYS * 70 + _RETRY_S),
        ),
        expected=Expected(
            memory=(
                ("memory/2026-12-01-*.md", 4),
                ("memory/summary/2026-12-01.md", 4),
                ("memory/summary/2026-12.md", 1),
            ),
            forgets=True,
        ),
    ),
    Flow(
        "caps",
        (
            lambda c: c.say("m1", "one"),
            lambda c: c.say("m2", "two"),
            lambda c: c.say("m3", "three"),
            lambda c: c.say("m4", "four"),
            lambda c: c.say("m5", "five"),
        ),
        caps=HistoryCaps(soft=3, hard=3),
        expected=Expected(memory=(("memory/2026-12-01-*.md", 8),)),
    ),
    Flow(
        "edits by hand",
        (
            lambda c: c.say("m1", "remember the long way"),
            lambda c: c.edit("memory.md", "mine"),
            lambda c: c.jot("add", "sweep"),
            lambda c: (c.say("m2", "remember tea for long"), c.say("m3", "backlog polish")),
            lambda c: c.jot("done", "sweep"),
            lambda c: c.edit("memory/2026-12-01-mine.md", "a note"),
            lambda c: c.at(_HOURS * 7),
        ),
    ),
    # questions
    Flow("answer", (lambda c: c.say("m1", "ask: colour?"), lambda c: c.answer("a1", "blue"))),
    Flow("default", (lambda c: c.say("m1", "ask: colour? | default"), lambda c: c.at(700))),
    Flow("no default", (lambda c: c.say("m1", "ask: colour?"), lambda c: c.at(700))),
    Flow(
        "answer in time, looked at late",
        (
            lambda c: c.say("m1", "ask: colour? | default"),
            lambda c: (c.answer("a1", "blue"), c.at(700)),
        ),
    ),
    Flow(
        "two questions",
        (
            lambda c: (c.say("m1", "ask: colour?"), c.say("m2", "ask: size? | default")),
            lambda c: c.answer("a1", "blue"),
            lambda c: c.answer("a2", "small"),
        ),
    ),
    Flow(
        "cancel an asking plan",
        (
            lambda c: c.say("m1", "ask: colour?"),
            lambda c: c.order("o1", "cancel", _planner_task(c)),
        ),
    ),
    Flow("the Teller asks", (lambda c: c.say("m1", "wonder why"), lambda c: c.answer("a1", "so"))),
    Flow(
        "a long prompt, and an answer",
        (lambda c: c.say("m1", _VERY_LONG), lambda c: c.answer("a1", "blue")),
    ),
    Flow(
        "a question over a jump of the clock",
        (
            lambda c: c.say("m1", "ask: colour? | default"),
            lambda c: c.set_clock(_HOURS),
            lambda c: c.at(_HOURS + 700),
        ),
    ),
    # triggers
    Flow(
        "trigger", (lambda c: c.trigger("g1", 60, "tick"), lambda c: c.at(60), lambda c: c.at(125))
    ),
    Flow(
        "reminder",
        (
            lambda c: c.trigger("g1", 60, "drink water", profile="reminder", notify="none"),
            lambda c: c.at(60),
            lambda c: c.at(400),
            lambda c: c.order("o1", "trigger_run", "g1"),
        ),
        expected=Expected(fires=(("g1", 2),)),
    ),
    Flow("reminder told once", (_remind_once, lambda c: c.say("m1", "hello"), lambda c: c.at(90))),
    Flow(
        "what is used is counted",
        (lambda c: c.submit("t1", "flaky", max_attempts=2),),
        expected=Expected(counts=True),
    ),
    Flow(
        "the tokens of a day are used up, and more allowed",
        (
            lambda c: c.say("m1", "hello"),
            lambda c: (c.say("m2", "how are you"), c.submit("t1", "one")),
            lambda c: c.files.write("config.toml", b"[budget]\ndaily_tokens = 9000000\n"),
        ),
        settings=_few_tokens(daily_tokens=150),
        expected=Expected(counts=True),
    ),
    Flow(
        "the tokens of a task are used up",
        (lambda c: c.submit("t1", "bad", max_attempts=4), lambda c: c.at(_RETRY_S)),
        settings=_few_tokens(per_task_tokens=150),
        expected=Expected(counts=True),
        waits_s=3.0,
    ),
    Flow("planned trigger", (lambda c: c.say("m1", "every 60: tick"), lambda c: c.at(61))),
    Flow(
        "skipped slot",
        (
            lambda c: c.trigger("g1", 60, "tick"),
            lambda c: c.order("o1", "pause"),
            lambda c: c.at(60),
            lambda c: c.at(120),
            lambda c: c.order("o2", "resume"),
        ),
    ),
    Flow(
        "orders to a trigger",
        (
            lambda c: c.trigger("g1", 60, "tick"),
            lambda c: c.order("o1", "trigger_run", "g1"),
            lambda c: c.order("o2", "trigger_pause", "g1"),
            lambda c: c.at(61),
            lambda c: c.order("o3", "trigger_resume", "g1"),
            lambda c: c.order("o4", "cancel", "g1"),
        ),
    ),
    Flow(
        "cron",
        (
            lambda c: c.make(
                "g1", "tick", type="recurring", schedule={"cron": "*/5 9 * * *", "timezone": "UTC"}
            ),
            lambda c: c.at(300),
            lambda c: c.at(1000),
            lambda c: c.order("o1", "trigger_edit", "g1", schedule={"cron": "0 10 * * *"}),
            lambda c: c.at(3600),
        ),
        expected=Expected(fires=(("g1", 3),)),
    ),
    Flow(
        "scheduled",
        (
            lambda c: c.make("g1", "tick", type="scheduled", schedule={"runAt": _in(c, 60)}),
            lambda c: c.at(59),
            lambda c: c.at(61),
            lambda c: c.at(600),
        ),
        expected=Expected(fires=(("g1", 1),)),
    ),
    Flow(
        "planned change",
        (
            lambda c: c.trigger("g1", 60, "tick"),
            lambda c: c.say("m1", "change: g1 pause"),
            lambda c: c.at(100),
        ),
    ),
    ImprovementFlow(
        "an improvement",
        (
            lambda c: c.at(400),
            lambda c: c.say("m1", "hello"),
            lambda c: c.order("o1", "self_awake_run", "docs"),
        ),
    ),
    # conditions
    Flow("chain", (lambda c: c.say("m1", "chain: one > two > three"),)),
    Flow(
        "after a task that is done",
        (
            lambda c: c.submit("t1", "one", max_attempts=4),
            lambda c: c.when("g1", "two", _done("t1"), once=True, maxAttempts=4),
            lambda c: c.when("g2", "three", _done("g1")),
        ),
        expected=Expected(fires=(("g1", 1), ("g2", 1))),
    ),
    Flow(
        "a step that fails, and is repeated",
        (
            lambda c: c.submit("t1", "flaky"),
            lambda c: (
                c.when("g1", "cheer", _done("t1"), once=True),
                c.when("g2", "weep", {"type": "task_failed", "params": {"taskId": "t1"}}),
            ),
            lambda c: c.order("o1", "retry", "t1"),
        ),
        expected=Expected(fires=(("g1", 0), ("g2", 2))),
    ),
    Flow(
        "files",
        (
            lambda c: c.touch("src/a.py"),
            lambda c: c.when("g1", "test", _changed("src/**/*.py")),
            lambda c: c.touch("src/b.py"),
            lambda c: c.touch("src/a.py", gone=True),
        ),
        expected=Expected(fires=(("g1", 2),)),
    ),
    Flow(
        "damaged knowledge",
        (
            lambda c: c.when("g1", "test", _changed("a")),
            lambda c: c.put(
                "triggers/state/g1.json", b'{"seen": {"$": [1]}, "fireCount": 0, "firing": null}'
            ),
            lambda c: c.touch("a"),
            lambda c: c.touch("a"),
        ),
        expected=Expected(quarantined=1),
    ),
    Flow(
        "a model is asked",
        (
            lambda c: (
                c.when("g1", "go", {"type": "llm_eval", "params": {"prompt": "yes"}}),
                c.when("g2", "go", {"type": "llm_eval", "params": {"prompt": "never"}}),
            ),
            lambda c: c.at(1300),
        ),
        expected=Expected(fires=(("g1", 1), ("g2", 0))),
    ),
)


def _in(client: Client, seconds: float) -> str:
    return time_text(START + timedelta(seconds=seconds))


def _done(task_id: str) -> dict[str, Any]:
    return {"type": "task_done", "params": {"taskId": task_id}}


def _changed(path: str) -> dict[str, Any]:
    return {"type": "file_changed", "params": {"path": path}}


def _summary_task(client: Client) -> str:
    """The run that waits to summarise; the same one when the client repeats itself."""
    names = [name.removesuffix(".json") for name in client.files.names("worker/queue")]
    return client.oracle.note("the summary", names[0] if names else "nobody")


def _planner_task(client: Client) -> str:
    """The Planner's task that waits or asks; the same one when the client repeats itself."""
    names = [
        name.removesuffix(".json")
        for folder in ("planner/queue", "planner/results")
        for name in client.files.names(folder)
    ]
    return client.oracle.note("the plan", names[0] if names else "nobody")
