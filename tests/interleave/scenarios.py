"""Who does what at once: pairs and triples of processes, and of the threads of a consumer."""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from mimikit import app, config_file
from mimikit.cli.client import ConversationClient
from mimikit.config import FileSettings
from mimikit.conversation import attachments, deliveries
from mimikit.conversation.deliveries import ReceivedCall
from mimikit.errors import AlreadyRunning, Conflict
from mimikit.hook_settings import HookSettings
from mimikit.log import EventLog
from mimikit.memory import notes
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, InboxItem, Task
from mimikit.protocol.triggers import Trigger
from mimikit.state import State
from mimikit.tasks import queue
from mimikit.testing.twins import FakeClock
from mimikit.triggers import registry
from mimikit.web.api import conversation
from tests.crash.dice import DICE, dead_owner
from tests.crash.disk import WatchedDisk
from tests.crash.driver import START_NS, Client, warm_folder
from tests.crash.images import Contents, Image
from tests.crash.oracle import Expected, Oracle
from tests.interleave.explorer import Scenario
from tests.interleave.world import Caller, Consumer, Script, World
from tests.support.mind import Mind
from tests.support.product import START, Product

OLD = b"what was sent long ago"
OLD_ID = hashlib.sha256(OLD).hexdigest()


# ---- what lies there before


def after(*actions: Callable[[Client], object], works: bool = True) -> Callable[[], Contents]:
    """The folder once a client did this; without `works` no task of it is carried out."""

    @functools.cache
    def base() -> Contents:
        disk = WatchedDisk.of(Image("warm", warm_folder()), start_ns=START_NS)
        files = Files(disk)
        DICE.life(0)
        dead_owner(files, 0)
        product = Product(files, FakeClock(START), Mind([]))
        product.start()
        client = Client(product, Oracle())
        for action in actions:
            action(client)
            if works:
                product.idle()
            else:
                product.tick()
        return disk.kill_image().folders

    return base


# ---- what pages and terminals do


def say(id_: str, text: str, **more: object) -> Script:
    """Send a message by a page."""

    def send(caller: Caller) -> None:
        at = caller.oracle.note(f"time of {id_}", caller.now)
        item = InboxItem.model_validate({"id": id_, "text": text, "created_at": at, **more})
        conversation._accept(caller.site, item)
        caller.oracle.ack("message", id_)

    return send


def answer(id_: str, text: str) -> Script:
    """Answer the question that is open, by a page."""

    def send(caller: Caller) -> None:
        found = dict(caller.oracle.notes)["question"]
        say(id_, text, kind="answer", question_id=found)(caller)

    return send


def submit(id_: str, prompt: str, **more: Any) -> Script:
    """Put a task into its queue by a terminal."""

    def put(caller: Caller) -> None:
        at = caller.oracle.note(f"time of {id_}", caller.now)
        known: dict[str, Any] = {"trace_id": f"trace-{id_}", "origin": "cli", **more}
        queue.submit(caller.read_only, Task(id=id_, prompt=prompt, created_at=at, **known))
        caller.oracle.ack("task", id_)

    return put


def order(id_: str, action: Any, target: str = "", **args: Any) -> Script:
    """Give a command by a terminal, and look once what came of it."""

    def give(caller: Caller) -> None:
        at = caller.oracle.note(f"time of {id_}", caller.now)
        made = Command(id=id_, action=action, target=target, args=args, created_at=at)
        caller.oracle.note(f"runs at {id_}", len(caller.oracle.runs))
        over = queue.where(caller.read_only, "worker", target) == "ended" if target else False
        queue.give_and_wait(caller.read_only, made, is_served=False)
        caller.oracle.renote(f"runs at {id_}", len(caller.oracle.runs))
        caller.oracle.note(f"over at {id_}", over)
        caller.oracle.ack("order", id_)

    return give


def make(id_: str, prompt: str, **fields: Any) -> Script:
    """Store a trigger by a terminal."""

    def create(caller: Caller) -> None:
        at = caller.oracle.note(f"time of {id_}", caller.now)
        known = {"id": id_, "prompt": prompt, "createdAt": at, "traceId": f"trace-{id_}"}
        trigger = Trigger.model_validate({**known, "notify": "message", **fields}, strict=False)
        registry.create(caller.read_only, trigger)
        caller.oracle.ack("trigger", id_)

    return create


def edit(path: str, line: str) -> Script:
    """Add a line to a file of memory by a page, which replaces what it was shown."""

    def save(caller: Caller) -> None:
        note = notes.read(caller.files, path)
        text = note.text if note else ""
        if line not in text:
            notes.replace(caller.files, path, f"{text}{line}\n", note.hash if note else None)
        caller.oracle.ack("line", f"{path}: {line}")

    return save


def jot(item: str) -> Script:
    """Add an item to the backlog by a terminal."""

    def add(caller: Caller) -> None:
        notes.change_backlog(caller.files, "add", item)
        caller.oracle.ack("line", f"{paths.BACKLOG}: {item}")

    return add


def send_file(data: bytes, name: str = "a.txt") -> Script:
    """Send a file by a page."""

    def keep(caller: Caller) -> None:
        kept = attachments.keep(caller.read_only, data, name, caller.now, FileSettings())
        caller.oracle.ack("file", kept.id)

    return keep


def say_with(id_: str, file_id: str) -> Script:
    """Send a message by a page with a file that was sent before."""

    def send(caller: Caller) -> None:
        say(id_, "look", files=attachments.named(caller.read_only, [file_id], caller.now))(caller)

    return send


def call(name: str, body: bytes) -> Script:
    """Call a webhook until it is answered."""

    def deliver(caller: Caller) -> None:
        at = caller.oracle.note(f"time of {name}", caller.now)
        received = ReceivedCall("deploy", body, at, sent_id=name, signature=f"signed {name}")
        hook = HookSettings.model_validate({"secret_file": "x"})
        kept = deliveries.accept(caller.read_only, received, hook, FileSettings())
        caller.oracle.ack("delivery", kept.id)

    return deliver


def drop(number: int, *texts: str) -> Script:
    """Put an `inbox.json` there by a program, which waits until there is none."""

    def put(caller: Caller) -> None:
        if caller.oracle.note(f"dropped {number}", caller) is caller:
            while caller.files.exists(paths.DROPPED_INBOX):
                if not caller.world.scheduler.wait_for_others("inbox.json is there"):
                    return
            caller.files.write(paths.DROPPED_INBOX, f'["{texts[0]}"]'.encode())
            caller.oracle.renote(f"dropped {number}", True)

    return put


def stop_reply(item_id: str) -> Script:
    """Have the reply to a message stopped, as the terminal does it."""

    def stop(caller: Caller) -> None:
        state = SimpleNamespace(
            files=caller.read_only, clock=caller.clock, settings=SimpleNamespace(timezone="UTC")
        )
        ConversationClient(cast("Any", state)).stop_reply(item_id)

    return stop


def write_log(who: str) -> Script:
    """Write a line into the log, which is due to be begun anew."""

    def write(caller: Caller) -> None:
        EventLog(caller.files, caller.clock, rotate_bytes=10).write("audit", "met", who=who)
        caller.oracle.ack("log", who)

    return write


def set_up(what: str, change: Callable[[str], str]) -> Script:
    """Change the settings by a terminal; `what` stands in them then."""

    def write(caller: Caller) -> None:
        config_file.rewrite(caller.files, change)
        caller.oracle.ack("setting", what)

    return write


# ---- the processes


def _served(world: World) -> Consumer:
    """A consumer that has started, and works on one thread."""
    consumer = world.consumer()
    consumer.start()
    world.scheduler.add("consumer", consumer.process, consumer.serve)
    return consumer


def _threads(world: World, *seats: Any, teller: bool = False) -> Consumer:
    """A consumer that has started, and works on several threads."""
    consumer = world.consumer()
    consumer.start(apart=teller)
    world.scheduler.add("supervisor", consumer.process, consumer.supervise)
    for number, seat in enumerate(seats):
        world.scheduler.add(f"{seat}{number}", consumer.process, consumer.work(seat))
    if teller:
        world.scheduler.add("teller", consumer.process, consumer.tell)
    return consumer


def beside(*scripts: tuple[str, Script], then: Callable[[World], object] = _served) -> Any:
    """These callers beside a consumer."""

    def setup(world: World) -> None:
        for name, script in scripts:
            world.caller(name, script)
        then(world)

    return setup


def later_on(days: float = 0, seconds: float = 0) -> Callable[[World], Consumer]:
    """A consumer that has been up for so long."""

    def up(world: World) -> Consumer:
        consumer = _served(world)
        assert consumer.product is not None
        consumer.product.idle()
        world.pass_time(days=days, seconds=seconds)
        consumer.product.retention.ring()
        return consumer

    return up


def _rivals(world: World) -> None:
    """Two consumers that are started at once, and a page."""
    world.caller("page", say("msg-1", "hello"))
    for name in ("consumer", "rival"):
        rival = world.consumer(name)
        world.scheduler.add(name, rival.process, functools.partial(_compete, world, rival))


def _compete(world: World, rival: Consumer) -> None:
    state = SimpleNamespace(files=rival.files, clock=world.clock, path=Path("/nowhere"))
    try:
        app.take_consumer_lock(cast("State", state))
    except AlreadyRunning:
        return
    rival.start()
    rival.serve()


def _starting(*scripts: tuple[str, Script]) -> Any:
    """Callers beside a consumer that is only starting."""

    def setup(world: World) -> None:
        for name, script in scripts:
            world.caller(name, script)
        consumer = world.consumer()

        def live() -> None:
            consumer.start()
            consumer.serve()

        world.scheduler.add("consumer", consumer.process, live)

    return setup


def resumed(world: World) -> None:
    """Let what was paused go on."""
    caller = Caller(world, "resume", order("o2", "resume"))
    world.members[caller.process.number] = caller
    caller.draw()
    caller.act()


def answered_late(*names: str) -> Callable[[World], None]:
    """The open question is answered by these in the moment in which its time is over."""

    def setup(world: World) -> None:
        for number, name in enumerate(names, 1):
            world.caller(name, answer(f"msg-{number}", "blue"))
        consumer = _served(world)
        data = consumer.files.read(paths.PENDING_QUESTION) or b"{}"
        world.oracle.note("question", json.loads(data)["questionId"])
        world.pass_time(seconds=601)

    return setup


def nobody(_world: World) -> None:
    """No consumer runs: whoever starts then finds what they wrote."""


def settings_kept(world: World) -> list[str]:
    """What was set is set."""
    data = world.disk.kill_image().folders[""].get(paths.CONFIG, b"").decode()
    return [
        f"{what!r} is lost from the settings"
        for kind, what in world.oracle.acked
        if kind == "setting" and what not in data
    ]


def logged(world: World) -> list[str]:
    """Each line stands in one of the logs, once."""
    folder = world.disk.kill_image().folders[""]
    data = b"".join(text for name, text in folder.items() if name.startswith("log"))
    said = Counter(line["who"] for line in map(json.loads, data.splitlines()) if "who" in line)
    acked = [what for kind, what in world.oracle.acked if kind == "log"]
    return [f"{who} stands in the logs {said[who]} times" for who in acked if said[who] != 1]


def lines_kept(world: World) -> list[str]:
    """What was written into memory and backlog is there."""
    found: list[str] = []
    for kind, what in world.oracle.acked:
        path, _, line = what.partition(": ")
        folder, _, name = path.rpartition("/")
        if kind == "line" and line.encode() not in world.disk.kill_image().folders[folder].get(
            name, b""
        ):
            found.append(f"{line!r} is lost from {path}")
    return found


def files_kept(world: World) -> list[str]:
    """What was answered with yes is there, with its record."""
    there = world.disk.kill_image().folders[paths.FILES]
    return [
        f"the file {what} is lost"
        for kind, what in world.oracle.acked
        if kind == "file" and not {what, f"{what}.json"} <= there.keys()
    ]


_CAPS = set_up(
    "daily_tokens",
    lambda text: config_file.with_table(text, ("budget",), {"daily_tokens": 9_000_000}),
)
_CHANNEL = set_up("phone", lambda text: config_file.with_channel(text, "phone", "note-phone", None))
_HOOK = set_up(
    "deploy", lambda text: config_file.with_table(text, ("hooks", "deploy"), {"secret_file": "x"})
)

SCENARIOS = (
    Scenario(
        "a message", beside(("page", say("msg-1", "hello"))), kills=("page", "consumer"), every=10
    ),
    Scenario(
        "a message sent twice",
        beside(("page", say("msg-1", "hello")), ("other", say("msg-1", "hello"))),
        every=8,
    ),
    Scenario(
        "a message, and the Teller on its thread",
        beside(("page", say("msg-1", "hello")), then=functools.partial(_threads, teller=True)),
        every=500,
    ),
    Scenario(
        "a task",
        beside(("terminal", submit("t1", "one"))),
        kills=("terminal", "consumer"),
        every=14,
    ),
    Scenario(
        "a task is canceled",
        beside(("terminal", order("o1", "cancel", "t1")), then=lambda w: _threads(w, "worker")),
        base=after(lambda c: c.submit("t1", "one"), works=False),
        expected=Expected(faulty=True),  # it may have begun before anybody saw the order
        kills=("consumer",),
        every=400,
    ),
    Scenario(
        "two Workers, two tasks",
        beside(then=lambda w: _threads(w, "worker", "worker")),
        base=after(lambda c: (c.submit("t1", "one"), c.submit("t2", "two")), works=False),
        every=600,
    ),
    Scenario(
        "a plan is made while somebody talks",
        beside(("page", say("msg-2", "hello")), then=lambda w: _threads(w, "planner")),
        base=after(lambda c: c.say("m1", "plan: a; b"), works=False),
        every=1500,
    ),
    Scenario(
        "all is paused as a Worker begins",
        beside(
            ("terminal", order("o1", "pause")),
            then=lambda w: _threads(w, "worker"),
        ),
        base=after(lambda c: c.submit("t1", "one"), works=False),
        later=resumed,
        every=400,
    ),
    Scenario(
        "a question is answered as its time is over",
        answered_late("page"),
        base=after(lambda c: c.say("m1", "ask: colour? | default")),
        refuses=(Conflict,),
        kills=("consumer",),
        every=30,
    ),
    Scenario(
        "a trigger fires as it is edited",
        beside(
            ("terminal", order("o1", "trigger_edit", "g1", title="new")), then=later_on(seconds=61)
        ),
        base=after(lambda c: c.trigger("g1", 60, "tick")),
        kills=("consumer",),
        every=40,
    ),
    Scenario(
        "a trigger fires as it is removed",
        beside(("terminal", order("o1", "cancel", "g1")), then=later_on(seconds=61)),
        base=after(lambda c: c.trigger("g1", 60, "tick")),
        every=10,
    ),
    Scenario(
        "a trigger is made",
        beside(
            ("terminal", make("g1", "tick", type="recurring", schedule={"interval": 60})),
        ),
        kills=("terminal",),
        every=3,
    ),
    Scenario(
        "memory is edited by three",
        beside(
            ("page", edit(paths.MEMORY, "mine")),
            ("terminal", jot("sweep")),
        ),
        base=after(
            lambda c: c.say("m1", "remember the long way"),
            lambda c: c.jot("add", "dust"),
            lambda c: (c.say("m2", "remember tea for long"), c.say("m3", "backlog polish")),
            works=False,
        ),
        check=lines_kept,
        refuses=(Conflict,),
        kills=("page",),
        every=40,
    ),
    Scenario(
        "memory is edited by two pages",
        beside(
            ("page", edit(paths.MEMORY, "mine")),
            ("other", edit(paths.MEMORY, "yours")),
            ("terminal", jot("sweep")),
        ),
        check=lines_kept,
        refuses=(Conflict,),
        kills=("page", "other"),
        every=90,
    ),
    Scenario(
        "a file is sent again as it expires",
        beside(("page", send_file(OLD)), then=later_on(days=60)),
        base=after(lambda c: c.keep(OLD)),
        expected=Expected(forgets=True),
        check=files_kept,
        every=10,
    ),
    Scenario(
        "a message names a file as it expires",
        beside(("page", say_with("msg-1", OLD_ID)), then=later_on(days=60)),
        base=after(lambda c: c.keep(OLD)),
        expected=Expected(forgets=True),
        check=files_kept,
        refuses=(attachments.NotFound,),
        every=10,
    ),
    Scenario(
        "settings are changed by terminal and consumer",
        beside(("terminal", _CAPS), ("page", order("o1", "notify_set", "phone"))),
        check=settings_kept,
        kills=("terminal",),
        every=60,
    ),
    Scenario(
        "settings are changed by three terminals",
        beside(("one", _CAPS), ("two", _CHANNEL), ("three", _HOOK), then=nobody),
        check=settings_kept,
        kills=("one", "two", "three"),
        every=12,
    ),
    Scenario(
        "memory is edited by two pages and a terminal",
        beside(
            ("page", edit(paths.MEMORY, "mine")),
            ("other", edit(paths.MEMORY, "yours")),
            ("terminal", jot("sweep")),
            then=nobody,
        ),
        check=lines_kept,
        refuses=(Conflict,),
        kills=("page", "other"),
        every=9,
    ),
    Scenario(
        "the backlog is changed by three",
        beside(
            ("page", jot("sweep")), ("other", jot("dust")), ("terminal", jot("mop")), then=nobody
        ),
        check=lines_kept,
        kills=("page", "other", "terminal"),
        every=9,
    ),
    Scenario(
        "one file is sent by two pages, and named by a third",
        beside(
            ("page", send_file(OLD)),
            ("other", send_file(OLD, "b.txt")),
            ("third", say_with("msg-1", OLD_ID)),
            then=nobody,
        ),
        base=after(lambda c: c.keep(OLD)),
        check=files_kept,
        kills=("page", "other", "third"),
        every=9,
    ),
    Scenario(
        "messages are sent by three pages",
        beside(
            ("page", say("msg-1", "hello")),
            ("other", say("msg-1", "hello")),
            ("third", say("msg-2", "well")),
            then=nobody,
        ),
        kills=("page", "other", "third"),
        every=9,
    ),
    Scenario(
        "a webhook is called by three",
        beside(*((name, call("d1", b"one")) for name in ("page", "other", "third")), then=nobody),
        check=files_kept,
        kills=("page", "other", "third"),
        every=25,
    ),
    Scenario(
        "the log is begun anew as three write",
        beside(*((name, write_log(name)) for name in ("page", "terminal", "other")), then=nobody),
        base=after(lambda c: c.files.append(paths.LOG, {"timestamp": "2026-11-30T09:00:00.000Z"})),
        check=logged,
        every=9,
    ),
    Scenario("two consumers start", _rivals, kills=("consumer", "rival"), every=80),
    Scenario(
        "a consumer starts as pages write",
        _starting(("page", say("msg-2", "hello")), ("other", edit(paths.MEMORY, "mine"))),
        base=after(lambda c: c.say("m1", "hello"), works=False),
        check=lines_kept,
        kills=("page",),
        every=60,
    ),
    Scenario(
        "a consumer starts as a file is sent",
        _starting(("page", send_file(b"new")), ("terminal", submit("t1", "one"))),
        check=files_kept,
        kills=("page",),
        every=50,
    ),
    Scenario(
        "a webhook is called twice",
        beside(("page", call("d1", b"one")), ("other", call("d1", b"one"))),
        kills=("page",),
        every=70,
    ),
    Scenario(
        "an inbox.json is dropped, and another",
        beside(("program", drop(1, "one")), ("other", drop(2, "two"))),
        kills=("consumer",),
        every=160,
    ),
    Scenario(
        "a reply is stopped",
        beside(("terminal", stop_reply("msg-1")), then=functools.partial(_threads, teller=True)),
        base=after(lambda c: c.say("msg-1", "tell one two"), works=False),
        every=150,
    ),
)
