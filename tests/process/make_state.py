"""Makes a state folder as this version writes it: `python -m tests.process.make_state FILE.zip`.

Run once for each version that is released; the zip goes into tests/data and is never made anew:
every later version has to open it (test_backup.py). It holds a little of everything, a command that
was cut short by a kill, and a message that nobody has answered yet.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.process.world import World, until

ANSWERED = {
    "msg-hello": "hello",
    "msg-note": "remember: the spare key is under the blue pot",
    "msg-zh": "记住：我喜欢喝龙井茶",
    "msg-run": "run: echo it ran",
    "msg-every": "every 2 hours: run true, only tell me if it fails",
    "msg-remind": "remind me on 2199-01-02 at 9:00 to look at this again",
    "msg-todo": "todo: water the plants",
}
WAITING, CUT_SHORT = "msg-waiting", "task-cut-short"


def main(file: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="mimikit-state-") as folder:
        world = World(Path(folder), settings={"COMMAND__SANDBOX": "off"})
        try:
            consumer = world.start_consumer()
            for id_, text in ANSWERED.items():
                world.put(f"inbox/{id_}.json", {"text": text})
                until(lambda at=id_: world.replies(at), f"{id_} is answered", facts=world.facts)
            until(world.is_idle, "what was asked for is done", facts=world.facts)
            begun = world.root / "begun"
            world.drop(CUT_SHORT, {"prompt": f"touch {begun}; sleep 600", "profile": "command"})
            until(begun.exists, "the command runs", facts=world.facts)
            consumer.kill()
            consumer.wait()
            world.put(f"inbox/{WAITING}.json", {"text": "status"})
            exported = world.run("export", str(file.absolute()))
            sys.stdout.write(exported.stdout + exported.stderr)
        finally:
            world.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
