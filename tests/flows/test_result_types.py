"""What a run's result is, by what the run did; and what it changed, kept beside it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from mimikit.engines.base import Done, Failed, Outcome, RunSpec
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.results import TaskDiff, TaskResult
from tests.crash.driver import Client
from tests.support import reading
from tests.support.mind import Mind
from tests.support.state import start_client


class Worker(Mind):
    """Writes into the workspace as its prompt says: `write a.txt: text`, or looks, then tells."""

    def run(self, request: RunSpec) -> Outcome:
        task = request.input.task
        prompt = task.prompt if task else ""
        if prompt.startswith("write "):
            name, _, text = prompt.removeprefix("write ").partition(": ")
            (request.workspace / name).write_text(f"{text} {request.attempt}\n")
            if task is not None and request.attempt < task.max_attempts:
                return Failed("error", "again")
            return Done("written")
        if prompt.startswith("look: "):
            request.callbacks.on_event("command", "ls", {})
            return Done(prompt.removeprefix("look: "))
        return super().run(request)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def client(files: Files, workspace: Path) -> Client:
    return start_client(files, Worker, workspace=workspace)


def result(client: Client, task_id: str = "t1") -> TaskResult:
    client.product.idle()
    return reading.result(client.files, task_id)


def kept(client: Client, task_id: str = "t1") -> TaskDiff:
    return reading.record(client.files, paths.diff(task_id), TaskDiff)


def test_a_run_that_changed_files_is_a_code_change_with_its_diff(client: Client) -> None:
    client.submit("t1", "write a.txt: hello")
    ended = result(client)
    assert ended.result_type == "code_change"
    assert ended.result == {
        "text": "written",
        "files": [{"path": "a.txt", "action": "added", "summary": "+1 −0"}],
    }
    assert ended.diff == paths.diff("t1")
    assert kept(client).files[0].hunks[0].lines == ["+hello 1"]


def test_what_each_attempt_changed_stays_and_the_end_tells_all(
    client: Client, workspace: Path
) -> None:
    client.submit("t1", "write a.txt: hello", max_attempts=2)
    ended = result(client)
    found = [(file.attempt, file.action, file.hunks[0].lines) for file in kept(client).files]
    assert found == [(1, "added", ["+hello 1"]), (2, "modified", ["-hello 1", "+hello 2"])]
    assert ended.status == "done"


def test_a_run_that_looked_and_told_is_an_analysis(client: Client) -> None:
    said = "Two:\n\n- it is slow\n1. it is old\n\n## Recommendations\n- renew it\n\n参考：\n- a.py"
    client.submit("t1", f"look: {said}")
    ended = result(client)
    assert ended.result_type == "analysis"
    assert ended.result == {
        "text": said,
        "findings": ["it is slow", "it is old"],
        "recommendations": ["renew it"],
        "references": ["a.py"],
    }


def test_a_diff_goes_when_its_result_goes_and_no_earlier(client: Client) -> None:
    client.submit("t1", "write a.txt: hello", notify="none")
    result(client)
    days = client.product.settings.retention.days
    client.product.clock.advance(timedelta(days=days - 1).total_seconds())
    client.product.retention.ring()
    client.product.idle()
    assert client.files.exists(paths.diff("t1"))
    client.product.clock.advance(timedelta(days=2).total_seconds())
    client.product.retention.ring()
    client.product.idle()
    assert not client.files.exists(paths.result("worker", "t1"))
    assert not client.files.exists(paths.diff("t1"))


def test_a_diff_that_cannot_be_made_changes_nothing_of_the_result(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "input/output error")

    monkeypatch.setattr("mimikit.engines.changes.RunRecording.diff", fail)
    client.submit("t1", "write a.txt: hello")
    assert result(client).result == {"text": "written"}
    assert [line["event"] for line in client.product.log.errors] == ["changes_not_seen"]
