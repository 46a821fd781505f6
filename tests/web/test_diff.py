"""The diff of a task, over HTTP and as a patch."""

from __future__ import annotations

from typing import Any

from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.results import DiffHunk, FileDiff, TaskDiff
from mimikit.views import diffs
from tests.web.conftest import Web
from tests.web.test_shown import end, put

HUNK = DiffHunk(
    old_start=1,
    old_lines=1,
    new_start=1,
    new_lines=2,
    lines=["-old\r", "+new\u202e", "+last", "\\ No newline at end of file"],
)


def keep(web: Web, *files: FileDiff, **more: Any) -> TaskDiff:
    made = TaskDiff(id="t1", files=list(files), **more)
    web.files.save(paths.diff("t1"), made)
    return made


def changed(path: str = "a.txt", **facts: Any) -> FileDiff:
    return FileDiff.model_validate({"path": path, "action": "modified", **facts})


def test_invisible_characters_of_a_diff_are_escaped(web: Web) -> None:
    put(web, "t1")
    keep(web, changed("src/\u202ea", added=2, removed=1, hunks=[HUNK]), more_files=3)
    found = web.get("/api/tasks/t1/diff")
    assert found["moreFiles"] == 3
    (file,) = found["files"]
    assert file["path"] == "src/‹U+202E›a"
    assert file["hunks"][0]["lines"][:2] == ["-old␍", "+new‹U+202E›"]


def test_a_task_without_changes_has_no_diff(web: Web) -> None:
    put(web, "t1")
    answer = web.ask("GET", "/api/tasks/t1/diff")
    assert answer.status_code == 404
    assert "changed no file" in answer.get_data(as_text=True)
    assert "no task" in web.ask("GET", "/api/tasks/nobody/diff").get_data(as_text=True)


def test_a_result_has_its_type_and_whether_there_is_a_diff(web: Web) -> None:
    end(web, put(web, "t1"), result_type="code_change", diff=paths.diff("t1"))
    shown = web.get("/api/tasks/t1")["result"]
    assert (shown["resultType"], shown["hasDiff"]) == ("code_change", True)


def lines(web: Web) -> list[str]:
    found = diffs.of_task(ReadOnlyFiles(web.files), "t1")
    assert found is not None
    return [*diffs.unified(found)]


def test_a_diff_reads_as_patches_do(web: Web) -> None:
    keep(
        web,
        changed(action="renamed", from_path="b.txt", hunks=[HUNK]),
        changed("n", action="added"),
        changed("d", action="deleted"),
    )
    assert lines(web) == [
        "--- a/b.txt",
        "+++ b/a.txt",
        "@@ -1,1 +1,2 @@",
        "-old␍",
        "+new‹U+202E›",
        "+last",
        "\\ No newline at end of file",
        *("--- /dev/null", "+++ b/n"),
        *("--- a/d", "+++ /dev/null"),
    ]
