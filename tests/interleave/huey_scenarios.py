"""Who does what at once to what Huey keeps in files, and to what dead writers left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

from mimikit.hueyfiles.stores import FolderStorage
from mimikit.protocol import paths
from mimikit.protocol.files import TEMP_PREFIX
from mimikit.testing.twins import FakeClock
from tests.crash.dice import NO_PROCESS
from tests.crash.driver import Client
from tests.crash.images import Contents
from tests.crash.oracle import Expected
from tests.interleave.explorer import Scenario
from tests.interleave.scenarios import after, beside, nobody
from tests.interleave.world import Caller, Script, World
from tests.support.product import START

_VALUES, _COUNTERS = "huey-values", "huey-counters"
_CREATED, _APPENDED = f"{_VALUES}/x.json", f"{_VALUES}/x.jsonl"


def _huey(*kept: bytes) -> Callable[[], Contents]:
    """The folders of a Huey program, with a counter at 5, and with these results."""

    def lay_down(client: Client) -> None:
        client.files.make_folders((_VALUES, _COUNTERS))
        store = FolderStorage("apart", client.files, "huey-", FakeClock(START))
        store.incr("n", 5)
        for value in kept:
            store.put_data("k", value)

    return after(lay_down)


def left_behind() -> Contents:
    """A temp file whose writer is dead."""
    return {**after()(), paths.INBOX: {f"{TEMP_PREFIX}{NO_PROCESS}-sim-boot-1": b"half"}}


def _folders_in_the_way() -> Contents:
    return {**_huey()(), _CREATED: {}, _APPENDED: {}}


# ---- what the programs do


def put_value(value: bytes) -> Script:
    """Keep the result of a task."""

    def put(caller: Caller) -> None:
        _store(caller).put_data("k", value)
        caller.oracle.ack("put", value.decode())

    return put


def poll_value(caller: Caller) -> None:
    """Ask for the result until there is one, or nobody makes one any more."""
    while not _take(caller):
        if not caller.world.scheduler.wait_for_others("no result yet"):
            return


def take_value(caller: Caller) -> None:
    """Ask for the result once."""
    _take(caller)


def _take(caller: Caller) -> bool:
    found = _store(caller).pop_data("k")
    if isinstance(found, bytes):
        caller.oracle.ack("took", f"{caller.process.name} {found.decode()}")
    return isinstance(found, bytes)


def begin(caller: Caller) -> None:
    """What a program does as it begins: what dead ones were taking goes."""
    _store(caller).sweep_taken()


def count(caller: Caller) -> None:
    """Add to a counter."""
    caller.oracle.ack("counted", str(_store(caller).incr("n")))


def forget_counter(caller: Caller) -> None:
    """Have a counter begin anew."""
    _store(caller).delete_counter("n")


def sweep(caller: Caller) -> None:
    """Remove what dead writers left in a folder: as a start does, and `doctor --fix`."""
    caller.files.sweep_temps(paths.INBOX)


def put_there(name: str) -> Script:
    """Create a file and add a line to another, where by a slip of somebody's folders stand."""

    def put(caller: Caller) -> None:
        if caller.files.create(_CREATED, name.encode()):
            caller.oracle.ack("created", name)
        caller.files.append(_APPENDED, {"who": name})

    return put


def two_threads(world: World) -> None:
    """Both of one process, as only that sets aside what is in its way."""
    caller = world.caller("one", put_there("one"))
    world.scheduler.add("two", caller.process, lambda: put_there("two")(caller))


def _store(caller: Caller) -> FolderStorage:
    return FolderStorage("apart", caller.files, "huey-", caller.clock)


# ---- what has to be true


def taken_once(world: World) -> list[str]:
    """The result that was kept was taken by one, or is still there; and nothing half."""
    there = world.disk.kill_image().folders[_VALUES]
    took = [what.partition(" ")[2] for kind, what in world.oracle.acked if kind == "took"]
    found = Counter([*took, *(json.loads(data)["value"] for data in there.values())])
    return [] if found == {"old": 1} else [f"the result was lost or doubled: {dict(found)}"]


def counted_in_turn(world: World) -> list[str]:
    """The counter is what comes of one of them after the other."""
    there = world.disk.kill_image().folders[_COUNTERS]
    values = [json.loads(data)["value"] for data in there.values()]
    told = [what for kind, what in world.oracle.acked if kind == "counted"]
    return [] if (told, values) in ((["6"], []), (["1"], [1])) else [f"lost: {told}, {values}"]


def all_put(world: World) -> list[str]:
    """One has created the file, and both lines are there."""
    there = world.disk.kill_image().folders[_VALUES]
    created = [what for kind, what in world.oracle.acked if kind == "created"]
    lines = (there.get("x.jsonl") or b"").splitlines()
    found = [] if [there.get("x.json", b"").decode()] == created else [f"created: {created}"]
    return found if len(lines) == 2 else [*found, f"lost a line, of {lines}"]


def nothing_left(world: World) -> list[str]:
    """What the dead left is gone."""
    there = world.disk.kill_image().folders[paths.INBOX]
    return [f"{name} is left" for name in there if name.startswith(TEMP_PREFIX)]


HUEY_SCENARIOS = (
    Scenario(
        "a result is asked for as it is kept",
        beside(
            ("one", poll_value), ("two", poll_value), ("worker", put_value(b"old")), then=nobody
        ),
        base=_huey(),
        check=taken_once,
        every=8,
    ),
    Scenario(
        "a result is taken as other programs begin",
        beside(
            ("one", take_value),
            ("two", take_value),
            ("other", begin),
            then=lambda world: world.pass_time(hours=1),
        ),
        base=_huey(b"old"),
        check=taken_once,
    ),
    Scenario(
        "a counter is made anew as somebody counts",
        beside(("one", count), ("two", forget_counter), then=nobody),
        base=_huey(),
        check=counted_in_turn,
    ),
    Scenario(
        "folders stand where two threads write",
        two_threads,
        base=_folders_in_the_way,
        expected=Expected(quarantined=2),
        check=all_put,
        every=14,
    ),
    Scenario(
        "what dead writers left is swept by two",
        beside(("one", sweep), ("two", sweep), then=nobody),
        base=left_behind,
        check=nothing_left,
    ),
)
