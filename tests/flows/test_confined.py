"""What a model made looks at nothing outside the workspace, and what it is asked writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimikit.engines.base import RunSpec
from mimikit.protocol.triggers import Trigger, TriggerState
from mimikit.supervisor.trigger_facts import FactReader
from mimikit.triggers.patterns import parse
from mimikit.triggers.workspace import FolderWorkspace
from tests.crash.driver import Client
from tests.support.reading import fired


def files(kind: str, path: str) -> dict[str, Any]:
    return {"type": kind, "params": {"path": path}}


@pytest.mark.parametrize("origin", ["teller", "planner", "self_awake", "cli"])
@pytest.mark.parametrize("path", ["/etc/x", "/etc/*"])
def test_only_an_owners_trigger_looks_outside_of_the_workspace(
    judged: Client, path: str, origin: str
) -> None:
    judged.when("changed", "go", files("file_changed", path), origin=origin)
    judged.when("exists", "go", files("file_exists", path), origin=origin)
    judged.when("inside", "go", files("file_exists", "x"), origin=origin)
    judged.product.idle()
    for name in ("/etc/x", "x"):
        judged.product.workspace.write(name, time=1)
    judged.product.idle()
    owners = int(origin == "cli")
    assert [fired(judged, one) for one in ("changed", "exists", "inside")] == [owners, owners, 1]


def test_links_lead_nobody_confined_out_of_the_workspace(client: Client, tmp_path: Path) -> None:
    root, outside = tmp_path / "ws", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
        (folder / "x").write_text("x")
    (root / "door").symlink_to(outside)
    (root / "link").symlink_to(outside / "x")
    workspace = FolderWorkspace(root, root / ".mimikit")
    product, now = client.product, client.now
    free, confined = (
        FactReader(
            product.store, workspace, product.workspace,
            Trigger(
                id="t1", type="conditional", prompt="x", created_at=now, trace_id="t1",
                origin=origin,
            ),
            TriggerState(), now, {},
        )
        for origin in ("cli", "planner")
    )  # fmt: skip
    for text in ("door/*", "door/x", "link", str(outside / "x"), f"{outside}/*"):
        assert free.exists(parse(text)) is True
        assert free.files(parse(text))
        assert confined.exists(parse(text)) is False
        assert confined.files(parse(text)) == {}
    for text in ("x", "*", str(root / "x")):
        assert confined.exists(parse(text)) is True
        assert confined.files(parse(text)) == free.files(parse(text)) != {}
    before = confined.files(parse("*"))
    (outside / "x").write_text("much longer than before")
    assert confined.files(parse("*")) == before


def test_a_run_that_asks_about_conditions_is_read_only_and_its_firing_is_not(
    judged: Client,
) -> None:
    seen: list[tuple[str, bool]] = []

    def hook(request: RunSpec) -> None:
        if request.role == "worker":
            task = request.input.task
            seen.append(("asked" if task and task.internal else "work", request.read_only))

    judged.product.mind.hook = hook
    judged.when("g1", "go ~", {"type": "llm_eval", "params": {"prompt": "yes ~"}})
    for seconds in (0, 10, 20):
        judged.at(seconds)
        judged.product.idle()
    assert sorted(seen) == [("asked", True), ("work", False)]
