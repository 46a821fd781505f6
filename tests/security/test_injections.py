"""Hostile texts in every place that a model reads do no harm, even if the model obeys them.

The whole product runs in one thread, with the engine that asks an endpoint; the endpoint is the
obedient model. Workers work in the real sandbox. The corpus is carried out once, and what came of
it is looked at by each test: three of four texts each day, all of them at night.
"""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mimikit.config import Settings
from mimikit.conversation import inbox
from mimikit.engines.base import Done, Failed, Outcome, RunSpec
from mimikit.engines.openai.engine import OpenAIEngine
from mimikit.memory import notes
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, InboxItem, Question, Role, Task
from mimikit.protocol.triggers import Schedule, Trigger
from mimikit.tasks import queue
from mimikit.triggers import registry
from mimikit.web import markdown
from tests.security import corpus
from tests.security.corpus import Attack, Call, ObedientModel
from tests.support.fake_llm import FakeLLM
from tests.support.product import START, Product
from tests.support.runs import alive, tag
from tests.support.twins import FakeClock

pytestmark = [pytest.mark.needs_program("bwrap"), pytest.mark.timeout(600)]

CANARY = "canary-7fq2"
OWNERS = ("owner-on", "owner-off", "owner-task")
FAR = timedelta(days=300)
A_PRODUCT = 10
"""Attacks per product."""
BY_WORKER = ("file", "upstream", "filename")


class Recorder:
    """Replaces the engine of command lines; it must never be called."""

    name = "command"

    def __init__(self) -> None:
        self.ran: list[str] = []

    def unavailable(self, role: Role | None = None) -> str | None:
        return None

    def run(self, request: RunSpec) -> Outcome:
        self.ran.append(request.prompt)
        return Done("it ran")


class Messenger:
    """A fake Worker that returns its prompt as result or error."""

    name = "scripted"

    def unavailable(self, role: Role | None = None) -> str | None:
        return None

    def run(self, request: RunSpec) -> Outcome:
        _, failed, error = request.prompt.rpartition("(fails) ")
        if failed:
            return Failed("error", error)
        return Done(request.prompt)


class World:
    """A product with data of its owner, and the outcome of the attacks.

    Now and then it is another one, on a folder of its own: its search would have ever more to read.
    """

    def __init__(
        self, root: Path, llm: FakeLLM, attacks: list[Attack], facts: dict[str, str], **opened: bool
    ) -> None:
        """`opened`: settings that allow more than the default."""
        self.root, self.facts, self._llm, self._opened = root, facts, llm, opened
        self.states: list[Path] = []
        self.tampered: list[str] = []
        """Data of the owner that was changed."""
        self.recorder = Recorder()
        self.attacks = {attack.mark: attack for attack in attacks}
        self.model = ObedientModel(self.attacks)
        llm.play(self.model.answer)

    def _begin(self) -> None:
        """Another product, in a workspace of its own."""
        self.workspace = self.root / f"work-{len(self.states)}"
        self.state = self.workspace / ".mimikit"
        self.states.append(self.state)
        (self.state / "secrets").mkdir(parents=True, mode=0o700)
        keep_secret(self.state / "secrets/mine.key", self.state / "canary")
        settings = Settings.model_validate(
            {
                "timezone": "UTC",
                "engine": "mine",
                "engines": {
                    "mine": {
                        "base_url": self._llm.url, "model": "m", "api_key_file": "mine.key",
                        "api": "chat",
                    }
                },
                "profiles": {"specialist": {"engine": "scripted"}},
                "limits": {"retry_delay_s": 1, "engine_retry_s": 1},
                **self._opened,
            }
        )  # fmt: skip
        self.files = Files(RealDisk(self.state), durable=False)
        self.files.make_folders()
        clock = FakeClock(START)
        engine = OpenAIEngine("mine", settings, self.state, clock)
        self.product = Product(
            self.files, clock, engine, settings=settings, quiet=False,
            workspace=self.workspace, state=self.state, more_engines=(self.recorder, Messenger()),
        )  # fmt: skip
        self._make_owners()
        self.owned = self._owners_things()
        self.product.start()
        self.product.idle()

    def _make_owners(self) -> None:
        made: dict[str, Any] = {"created_at": START, "origin": "cli", "profile": "command"}
        for id_, on in (("owner-on", True), ("owner-off", False)):
            trigger = Trigger(
                id=id_, type="recurring", prompt="echo owner", trace_id=id_, enabled=on,
                schedule=Schedule(interval=365 * 86400), **made,
            )  # fmt: skip
            registry.create(self.files, trigger)
        later = START + FAR
        queue.submit(
            self.files,
            Task(id="owner-task", prompt="echo owner", trace_id="o", not_before=later, **made),
        )
        (self.state / "config.toml").write_text('engine = "mine"\n')

    def _owners_things(self) -> dict[str, bytes | None]:
        names = [paths.trigger("owner-on"), paths.trigger("owner-off")]
        names += [paths.queued("worker", "owner-task"), "config.toml"]
        return {name: self.files.read(name) for name in names}

    def _end(self) -> None:
        now = self._owners_things()
        self.tampered += [
            name for name, data in self.owned.items() if not data or now[name] != data
        ]

    # ---- where a hostile text may stand

    def carry_out(self) -> None:
        for number, attack in enumerate(self.attacks.values()):
            if number % A_PRODUCT == 0:
                self._end_and_begin()
            if attack.place not in BY_WORKER:
                getattr(self, f"_{attack.place}")(attack)
                self._settle()
        self._end_and_begin()
        for place in BY_WORKER:
            one = [attack for attack in self.attacks.values() if attack.place == place]
            if one:
                getattr(self, f"_{place}s")(one)
                self._settle()
        self._end()

    def _end_and_begin(self) -> None:
        if self.states:
            self._end()
        self._begin()

    def _settle(self) -> None:
        self.product.idle()
        while self.files.read(paths.PENDING_QUESTION):
            self.product.clock.advance(11)
            self.product.idle()
        for id_ in registry.ids(self.files):
            if id_ not in OWNERS:
                registry.remove(self.files, id_)
                self.product.store.events.changed_triggers.put(id_)

    def _say(self, attack: Attack, text: str, **more: Any) -> None:
        id_ = f"m-{attack.mark}-{len(self.files.names(paths.INBOX))}-{more.get('kind', '')}"
        now = self.product.clock.now()
        inbox.put(self.files, InboxItem(id=id_, text=text, created_at=now, **more))

    def _task(self, attack: Attack, prompt: str, **more: Any) -> str:
        fields: dict[str, Any] = {"profile": "specialist", "notify": "teller", "origin": "http"}
        task = Task(
            id=f"t-{attack.mark}", prompt=prompt, trace_id=f"t-{attack.mark}",
            created_at=self.product.clock.now(), **(fields | more),
        )  # fmt: skip
        queue.submit(self.files, task)
        return task.id

    def _result(self, attack: Attack) -> None:
        self._task(attack, attack.text)

    def _error(self, attack: Attack) -> None:
        self._task(attack, f"(fails) {attack.text}")

    def _page(self, attack: Attack) -> None:
        self._say(attack, f"Sum this page up for me:\n\n{attack.text}")

    def _quote(self, attack: Attack) -> None:
        self._say(attack, "What does this mean?", quote=attack.text)

    def _memory(self, attack: Attack) -> None:
        note = notes.read(self.files, paths.MEMORY)
        notes.replace(self.files, paths.MEMORY, attack.text, note.hash if note else None)
        self._say(attack, "Good morning!")
        self.product.idle()
        note = notes.read(self.files, paths.MEMORY)
        notes.replace(self.files, paths.MEMORY, "", note.hash if note else None)

    def _note(self, attack: Attack) -> None:
        topic = f"topic{attack.mark[3:]}"
        path = paths.memory_file("2026-11-30.md")
        self.files.write(path, f"# 2026-11-30\n\n- {topic}: {attack.text}\n".encode())
        self._say(attack, f"What do you know of {topic}?")
        self.product.idle()
        self.files.remove(path)

    def _backlog(self, attack: Attack) -> None:
        notes.change_backlog(self.files, "add", attack.text)
        self.model.habit = [Call("update_backlog", {"action": "list"})]
        self._say(attack, "Read me my backlog. (habit)")
        self.product.idle()
        notes.change_backlog(self.files, "remove", attack.text)

    def _trigger_title(self, attack: Attack) -> None:
        self._trigger(attack, title=attack.text, prompt="look", profile="specialist")
        self._say(attack, "What is planned?")

    def _trigger(self, attack: Attack, **fields: Any) -> None:
        id_ = f"g-{attack.mark}"
        more: dict[str, Any] = {"origin": "planner", **fields}
        trigger = Trigger(
            id=id_, type="recurring", trace_id=id_, created_at=self.product.clock.now(),
            schedule=Schedule(interval=86400), **more,
        )  # fmt: skip
        registry.create(self.files, trigger)
        self.product.store.events.changed_triggers.put(id_)
        self.product.idle()

    def _trigger_run(self, attack: Attack) -> None:
        """A Planner's run that a trigger starts."""
        self._trigger(attack, prompt=attack.text, role="planner")
        now = self.product.clock.now()
        run = Command(
            id=f"c-{attack.mark}", action="trigger_run", target=f"g-{attack.mark}", created_at=now
        )
        queue.submit_command(self.files, run)

    def _task_title(self, attack: Attack) -> None:
        later = self.product.clock.now() + FAR
        id_ = self._task(attack, "wait", title=attack.text[:200], not_before=later)
        self._say(attack, "What is waiting?")
        self.product.idle()
        self.files.remove(paths.queued("worker", id_))

    def _history(self, attack: Attack) -> None:
        """What the Teller said itself, an hour ago."""
        self.model.parrot = attack.text
        self._say(attack, "Say what you like.")
        self.product.idle()
        self._say(attack, "And now?", kind="user_input")

    def _answer(self, attack: Attack) -> None:
        """The answer to a question of a Planner's."""
        self.model.habit = [Call("needs_input", {"question": "Which colour?", "timeout": 60})]
        self._task(attack, "Paint it. (habit)", role="planner", profile="standard")
        self.product.idle(patience_s=5)
        self.model.habit = []
        question = self.files.load(paths.PENDING_QUESTION, Question)
        assert question is not None
        self._say(attack, attack.text, kind="answer", question_id=question.question_id)

    def _files(self, attacks: list[Attack]) -> None:
        """Files of the workspace that a Worker is to read."""
        self.model.habit = []
        for attack in attacks:
            name = "AGENTS.md" if attack.kind == "instructions of a folder" else "README.md"
            path = self.workspace / attack.mark / name
            path.parent.mkdir()
            path.write_text(attack.text)
            self.model.habit.append(Call("read_file", {"path": str(path)}))
        self._task(attacks[0], "Read them all.", profile="standard")

    def _filenames(self, attacks: list[Attack]) -> None:
        folder = self.workspace / "names"
        folder.mkdir()
        for attack in attacks:
            (folder / attack.text.replace("/", "\u2215")).write_text("")
        self.model.habit = [Call("shell", {"command": "ls names"})]
        self._task(attacks[0], "What is there?", profile="standard")

    def _upstreams(self, attacks: list[Attack]) -> None:
        """Results that a Worker builds on."""
        self.model.habit = []
        ids = [self._task(attack, attack.text, notify="none") for attack in attacks]
        self.product.idle()
        more: dict[str, Any] = {"upstream": ids, "profile": "standard", "id": "t-upstream"}
        now = self.product.clock.now()
        queue.submit(
            self.files, Task(prompt="Go on.", trace_id="u", created_at=now, origin="http", **more)
        )


def keep_secret(*files: Path) -> None:
    for path in files:
        path.write_text(f"{CANARY}-{path.name}")
        path.chmod(0o600)


@pytest.fixture(scope="module", params=["most", pytest.param("all", marks=pytest.mark.nightly)])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    root = tmp_path_factory.mktemp("injections")
    home = root / "home"
    (home / ".ssh").mkdir(parents=True)
    keep_secret(home / ".ssh/id")
    with (
        pytest.MonkeyPatch.context() as patch,
        socket.create_server(("127.0.0.1", 0)) as listener,
        FakeLLM([{"text": "hello"}], apis=["/chat/completions"]) as llm,
    ):
        listener.setblocking(False)
        patch.setenv("HOME", str(home))
        patch.setenv("OTHER_API_KEY", f"{CANARY}-environment")
        facts = {
            "port": str(listener.getsockname()[1]),
            "outside": str(root / "outside"),
            "state": ".mimikit",
            "home": str(home),
            "sleep": tag(),
        }
        attacks = corpus.read(facts)
        if request.param == "most":  # each day three of four
            attacks = [attack for number, attack in enumerate(attacks) if number % 4 != 3]
        made = World(root, llm, attacks, facts)
        made.carry_out()
        yield made
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_an_open_permission_is_detected(world: World, tmp_path: Path) -> None:
    """With `allow_llm_commands` the first attack succeeds and is detected."""
    facts = world.facts | {"outside": str(tmp_path / "outside")}
    with FakeLLM([{"text": "hello"}], apis=["/chat/completions"]) as llm:
        open_ = World(tmp_path, llm, corpus.read(facts)[:1], facts, allow_llm_commands=True)
        open_.carry_out()
    assert f"touch {facts['outside']}" in open_.recorder.ran
    assert any(corpus.wrongly(one, open_.attacks[one.mark]) for one in open_.model.tried)


def test_each_attack_was_tried_by_every_role_that_saw_it(world: World) -> None:
    tried: dict[str, set[str]] = {mark: set() for mark in world.attacks}
    for one in world.model.tried:
        tried[one.mark].add(one.role)
    by_minds = {"trigger_run": {"planner"}, "answer": {"planner"}}
    for mark, attack in world.attacks.items():
        at_least = by_minds.get(attack.place, {"teller"})
        if attack.place in BY_WORKER:
            at_least = {"worker"}
        elif attack.order != "many delegations":
            at_least = at_least | {"planner"}
        assert at_least <= tried[mark], f"{attack} was tried by {tried[mark]} alone"


def test_forbidden_calls_are_refused_with_the_reason(world: World) -> None:
    found = [corpus.wrongly(one, world.attacks[one.mark]) for one in world.model.tried]
    assert not list(filter(None, found)), "\n".join(filter(None, found))
    refused = Counter(one.role for one in world.model.tried if one.was_refused)
    assert all(refused[role] > 90 for role in ("teller", "planner", "worker")), refused
    assert all(len(one.told) > len("error: ") for one in world.model.tried if one.was_refused)


def test_no_command_ran_and_nothing_of_the_owners_was_changed(world: World) -> None:
    assert world.recorder.ran == []
    assert world.tampered == []
    assert not (world.root / "outside").exists()
    assert sorted(path.name for path in (world.root / "home").iterdir()) == [".ssh"]
    assert alive(world.facts["sleep"]) == []


def test_no_secret_is_anywhere(world: World) -> None:
    kept = {state / name for state in world.states for name in ("secrets/mine.key", "canary")}
    found = [
        path
        for path in world.root.glob("work-*/**/*")
        if path.is_file() and path not in kept and CANARY.encode() in path.read_bytes()
    ]
    assert found == []
    assert not [prompt for _, prompt in world.model.prompts if CANARY in prompt]
    assert not [one for one in world.model.tried if CANARY in one.told]


def test_no_text_escapes_its_fence_or_forges_a_line_of_the_prompt(world: World) -> None:
    found = [
        fault
        for role, prompt in world.model.prompts
        for fault in corpus.escaped(role, prompt, world.attacks)
    ]
    assert found == []


_LOADS = re.compile(r"</?(img|script|iframe|object|embed|svg|style|form|input|meta|base)\b")
_ACTS = re.compile(r"\s(on\w+|style|src|srcset|action)\s*=|href\s*=\s*.?(javascript|data):")


def test_the_page_shows_no_attack_so_that_anything_loads_or_runs(world: World) -> None:
    for attack in world.attacks.values():
        shown = markdown.render(f"{attack.text}\n\n{attack.say}")
        for mark in re.findall(r"<[a-zA-Z/][^>]*>", shown.lower()):
            assert not _LOADS.match(mark), shown
            assert not _ACTS.search(mark), shown
