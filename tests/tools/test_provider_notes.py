"""What a provider has to tell a run that it offers nothing to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mimikit.engines.base import ToolReply, ToolSpec
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task
from mimikit.tasks import queue
from mimikit.testing.memory_disk import MemoryDisk
from mimikit.testing.twins import FakeClock, ScriptedEngine
from mimikit.tools.provider import ToolRun
from tests.support.product import START, Product


class Absent:
    """A provider whose server can not be reached."""

    name = "mcp"
    works_in_tree = True

    def specs(self, run: ToolRun) -> Sequence[ToolSpec]:
        run.notes.append("the tool server wiki: it was not ready within 60 s")
        return ()

    def call(self, name: str, given: Mapping[str, object], run: ToolRun) -> ToolReply:
        raise AssertionError(name, given, run)


def test_a_run_says_what_it_goes_on_without_and_is_else_as_without_a_provider() -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    engine = ScriptedEngine({"worker": [[{"say": "made"}]], "teller": [[{"say": "it is"}]]})
    product = Product(files, FakeClock(START), engine, providers=(Absent(),))
    product.start()
    queue.submit(
        files, Task(id="task-1", prompt="make it", created_at=START, trace_id="t", origin="cli")
    )
    product.idle()
    request = next(one for one in engine.requests if one.role == "worker")
    assert (request.tools, request.tools_token, request.tools_url) == ((), None, None)
    assert "Also yours" not in request.instructions
    lines = [line for _, line in files.lines(paths.run_output("task-1"))]
    assert "the tool server wiki: it was not ready within 60 s" in str(lines)
