"""What a Worker of every engine can do with its shell, and what it is kept from."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.engines.conformance.drivers import EngineDriver
from tests.support.runs import alive, tag

PORT = "PORT"
LINES = {
    "works": "echo hi > made; cat made; echo oh >&2; pwd; exit 3",
    "edits": "printf 'x = 1\\n' > a.py; sed -i s/1/2/ a.py; cat a.py",
    "much": "seq 1 100000",
    "secrets": "cat .mimikit/secret; ls .mimikit; cat ~/.ssh/id; env; cat /proc/*/environ",
    "ways": "umount .mimikit; ln -s .mimikit deep; cat deep/secret; echo tried",
    "forges": "mkdir -p .mimikit/worker/queue; echo x > .mimikit/forged; echo x > ../outside; "
    "echo x > ~/made; echo x > /tmp/mimikit-made; echo x > $TMPDIR/made && echo tried",
    "network": f"(exec 3<>/dev/tcp/127.0.0.1/{PORT}) && echo reached; echo tried",
    "unicode": "echo 你好 🐟; printf '\\377\\000end'",
}


@pytest.mark.put_to(by_server=True, roles=("worker",))
def test_a_worker_works_in_its_workspace_and_comes_not_out_of_it(driver: EngineDriver) -> None:
    """One run: what each line came to, as the model was told."""
    mark, here = tag(), driver.here
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = str(server.getsockname()[1])
        leaves = f"setsid nohup sleep {mark} >/dev/null 2>&1 & echo left"
        lines = [*(line.replace(PORT, port) for line in LINES.values()), leaves]
        steps = [{"shell": line} for line in lines]
        played = driver.play(*steps, {"text": "it is done"}, role="worker", timeout_s=90.0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert (played.outcome.status, played.outcome.text) == ("done", "it is done")
    assert played.outcome.usage.input_tokens == 100 * len(played.requests)
    told = dict(zip([*LINES, "leaves"], played.told, strict=True))
    assert all(word in told["works"] for word in ("hi", "oh", str(here.workspace), "3"))
    assert (here.workspace / "made").read_text() == "hi\n"
    assert "x = 2" in told["edits"]
    assert "\n2\n3\n" in told["much"]
    assert "\n99999\n100000" in told["much"]
    assert len(told["much"]) < 60_000
    for name in ("ways", "forges", "network"):
        assert "tried" in told[name], name
    assert "reached" not in told["network"]
    assert "你好 🐟" in told["unicode"]
    assert "canary" not in str([played.requests, played.desk.events, played.outcome])
    home = Path.home()
    made = [here.state / "forged", here.root / "outside", home / "made", Path("/tmp/mimikit-made")]  # noqa: S108
    for path in made:
        assert not path.exists()
    commands = [data for kind, _, data in played.desk.events if kind == "command"]
    codes = [data["exitCode"] for data in commands if data.get("exitCode") is not None]
    assert codes[0] == 3
    assert alive(mark) == []


@pytest.mark.put_to(by_server=True, roles=("worker",))
def test_a_run_that_may_only_look_changes_nothing(driver: EngineDriver) -> None:
    (driver.here.workspace / "kept").write_text("as it was")
    line = "cat kept; echo x > kept; echo x > new; echo tried"
    played = driver.play({"shell": line}, {"text": "seen"}, role="worker", read_only=True)
    assert played.outcome.text == "seen"
    assert "as it was" in played.told[0]
    assert "tried" in played.told[0]
    assert (driver.here.workspace / "kept").read_text() == "as it was"
    assert not (driver.here.workspace / "new").exists()


@pytest.mark.put_to(by_server=True, roles=("worker",))
def test_a_worker_that_says_nothing_has_failed(driver: EngineDriver) -> None:
    outcome = driver.play({"shell": "true"}, {"text": ""}, role="worker").outcome
    assert (outcome.status, outcome.reason) == ("failed", "error")
