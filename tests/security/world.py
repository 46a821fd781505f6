"""A product with its owner's things in it, and every place where a hostile text may stand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from mimikit.config import Settings
from mimikit.conversation import deliveries, inbox
from mimikit.conversation.deliveries import ReceivedCall
from mimikit.engines.base import EngineRequest, Outcome
from mimikit.engines.openai.engine import OpenAIEngine
from mimikit.hook_settings import HookSettings
from mimikit.memory import notes
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, InboxItem, Question, Role, Task
from mimikit.protocol.self_awake import Improvement
from mimikit.protocol.triggers import Schedule, Trigger
from mimikit.self_awake_settings import ImprovementKind
from mimikit.supervisor.improvement_tasks import ImprovementTasks
from mimikit.tasks import queue
from mimikit.testing.twins import FakeClock
from mimikit.tools import skills
from mimikit.tools.skill_reader import SkillReader
from mimikit.triggers import registry
from tests.security.corpus import Attack, Call, ObedientModel
from tests.security.planting import PlantedServer, PlantedTools, PlantedWeb, plant_skills, servers
from tests.support.fake_llm import FakeLLM
from tests.support.fake_web import FakeWeb
from tests.support.product import START, Product

CANARY = "canary-7fq2"
OWNERS = ("owner-on", "owner-off", "owner-task")
FAR = timedelta(days=300)
A_PRODUCT = 10
"""So many attacks are made on one."""
BY_WORKER = (
    *("file", "filename", "upstream"),
    *("tool_answer", "tool_itself", "skill", "web_page", "change"),
)
"""Places of which a Worker reads many in one run."""


class Recorder:
    """Stands where command lines are run, with the owner's rights: it must never be asked."""

    name = "command"

    def __init__(self) -> None:
        self.ran: list[str] = []

    def unavailable(self, role: Role | None = None) -> str | None:
        return None

    def run(self, request: EngineRequest) -> Outcome:
        self.ran.append(request.prompt)
        return Outcome("done", "it ran")


class Messenger:
    """A Worker without a sandbox or a mind: its result, or its error, is what it was asked."""

    name = "scripted"

    def unavailable(self, role: Role | None = None) -> str | None:
        return None

    def run(self, request: EngineRequest) -> Outcome:
        _, failed, error = request.prompt.rpartition("(fails) ")
        if failed:
            return Outcome("failed", error=error, failure_reason="error")
        return Outcome("done", request.prompt)


class World:
    """A product with its owner's things in it, and all that the attacks came to.

    Now and then it is another one, on a folder of its own: its search would have ever more to read.
    """

    def __init__(
        self, root: Path, llm: FakeLLM, attacks: list[Attack], facts: dict[str, str], **opened: bool
    ) -> None:
        """`opened`: settings by which the owner opens doors."""
        self.root, self.facts, self._llm, self._opened = root, facts, llm, opened
        self.states: list[Path] = []
        self.tampered: list[str] = []
        """The owner's things that are not as they were."""
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
        self.tools = PlantedTools()
        self.product = Product(
            self.files, clock, engine, settings=settings, quiet=False,
            workspace=self.workspace, state=self.state, more_engines=(self.recorder, Messenger()),
            providers=(self.tools,),
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

    def _looks(self, task: Attack, calls: list[Call], **more: Any) -> None:
        """A Worker's run, or another's, that begins with these calls."""
        self.model.habit = calls
        fields: dict[str, Any] = {"profile": "standard", "notify": "none", **more}
        self._task(task, "Look at all there is. (habit)", **fields)
        self.product.idle()
        self.model.habit, self.tools.inner = [], ()

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
        queue.give_command(self.files, run)

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
            self.files,
            Task(prompt="Go on.", trace_id="u", created_at=now, origin="http", **more),
        )

    # ---- what comes from programs of others

    def _tool_answers(self, attacks: list[Attack], **more: Any) -> None:
        """What a server of tools gives, and why it can not."""
        self._served(PlantedServer(attacks, by_itself=False), attacks, **more)

    def _tool_itselfs(self, attacks: list[Attack]) -> None:
        """What such a server says of itself: its tools' names, descriptions and schemas."""
        self._served(PlantedServer(attacks, by_itself=True), attacks)

    def _served(self, planted: PlantedServer, attacks: list[Attack], **more: Any) -> None:
        log = self.product.log
        made = servers(planted, self.product.settings, self.files, self.state, log)
        self.tools.inner = (made,)
        self._looks(attacks[0], planted.calls, **more)

    def _web_pages(self, attacks: list[Attack], **more: Any) -> None:
        with FakeWeb() as web:
            planted = PlantedWeb(attacks, web)
            settings, clock = self.product.settings, self.product.clock
            self.tools.inner = (planted.tools(settings, self.state, self.files, clock),)
            self._looks(attacks[0], planted.calls, **more)

    def _skills(self, attacks: list[Attack], **more: Any) -> None:
        calls = plant_skills(self.files, attacks)
        self.tools.inner = (SkillReader(self.files),)
        self._looks(attacks[0], calls, **more)
        for skill in skills.look(self.files)[0]:
            skills.remove(self.files, skill.name)

    def _plan_tool(self, attack: Attack) -> None:
        self._tool_answers([attack], role="planner")

    def _plan_page(self, attack: Attack) -> None:
        self._web_pages([attack], role="planner")

    def _plan_skill(self, attack: Attack) -> None:
        self._skills([attack], role="planner")

    def _hook(self, attack: Attack) -> None:
        """The body of a webhook's call that is a message to the assistant."""
        self._called(attack, does="input", prompt="Something came: {body}")

    def _hook_task(self, attack: Attack) -> None:
        self._called(attack, does="task", prompt="See what came: {body}", notify="none")

    def _hook_reminder(self, attack: Attack) -> None:
        """A reminder tells the body, and the Teller reads it in the conversation."""
        self._called(attack, does="task", prompt="Came: {body}", profile="reminder")
        self._say(attack, "And now?")

    def _called(self, attack: Attack, **hook: Any) -> None:
        call = ReceivedCall("deploy", attack.text.encode(), self.product.clock.now(), attack.mark)
        made = HookSettings(secret_file="hook", **hook)
        deliveries.accept(self.files, call, made, self.product.settings.files)
        self.product.idle()

    def _due_item(self, attack: Attack) -> None:
        """An item of the backlog that is due, of which the user is told."""
        at = self.product.clock.now() + timedelta(minutes=2)
        item = f"{attack.text} (due {at:%Y-%m-%d %H:%M})"
        notes.change_backlog(self.files, "add", item)
        self.product.idle()
        self.product.clock.advance(150)
        self.product.idle()
        self._say(attack, "And now?")
        self.product.idle()
        notes.change_backlog(self.files, "remove", attack.text)

    # ---- what self-awake reads

    def _improvement(self, attack: Attack) -> None:
        """What a Planner is told of an item: of the backlog, of memory, of a task that failed."""
        kinds: tuple[ImprovementKind, ...] = ("backlog", "memory", "retry")
        kind = kinds[int(attack.mark[3:]) % 3]
        subject = attack.text
        if kind == "memory":
            self.files.write(paths.MEMORY, attack.text.encode())
        elif kind == "retry":
            subject = self._task(attack, f"(fails) {attack.text}", notify="none")
            self.product.idle()
        run = self._run_of(attack, kind=kind, subject=subject)
        self._improvements().plan(run, (), self.product.clock.now())
        self.product.idle()
        self.files.remove(paths.MEMORY)

    def _changes(self, attacks: list[Attack]) -> None:
        """A change that is reviewed: files' names, comments, what tests print."""
        lines = (f"+{line}" for attack in attacks for line in attack.text.splitlines())
        diff = "\n".join(["--- a/x.py", "+++ b/x.py", *lines])
        run = self._run_of(attacks[0], kind="lint", prompt=attacks[0].text)
        self._improvements().review(run, diff, self.product.clock.now())

    def _improvements(self) -> ImprovementTasks:
        """Its tasks as they are, but that none needs a worktree."""

        def submit(task: Task) -> None:
            queue.submit(self.files, task.but(worktree=None))

        prompts = self.product.context.prompts
        return ImprovementTasks(self.files, prompts, submit, lambda: "en")

    def _run_of(self, attack: Attack, **facts: Any) -> Improvement:
        return Improvement(
            id=f"awake-{attack.mark}", started_at=self.product.clock.now(), branch="b", **facts
        )


def keep_secret(*files: Path) -> None:
    for path in files:
        path.write_text(f"{CANARY}-{path.name}")
        path.chmod(0o600)
