"""Which files a run changed, whatever lies in the workspace and however many runs use it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.engines import changes
from mimikit.engines.changes import ChangeRecorder, RunRecording
from mimikit.protocol.results import DiffHunk, FileDiff, TaskDiff


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    (path / ".mimikit").mkdir(parents=True)
    (path / "notes.txt").write_text("".join(f"line {n}\n" for n in range(1, 31)))
    (path / "src").mkdir()
    (path / "src/main.py").write_text("print('a')\n")
    return path


@pytest.fixture
def recorder() -> ChangeRecorder:
    return ChangeRecorder()


@pytest.fixture
def run(recorder: ChangeRecorder, workspace: Path) -> Iterator[RunRecording]:
    """A run that has just begun."""
    with recorder.recording(workspace, [workspace / ".mimikit"], with_diff=True) as recording:
        yield recording


def told(run: RunRecording) -> TaskDiff:
    found = run.diff("t1", 1)
    assert found is not None
    return found


def files(run: RunRecording) -> dict[str, FileDiff]:
    return {file.path: file for file in told(run).files}


def lines(file: FileDiff) -> list[str]:
    return [line for hunk in file.hunks for line in hunk.lines if line[0] != " "]


def test_nothing_changed_is_no_diff(run: RunRecording, workspace: Path) -> None:
    (workspace / "notes.txt").touch()
    assert run.diff("t1", 1) is None


def test_modified_added_and_deleted_files_have_their_lines(
    run: RunRecording, workspace: Path
) -> None:
    text = (workspace / "notes.txt").read_text()
    (workspace / "notes.txt").write_text(text.replace("line 9\n", "nine\n"))
    (workspace / "new.md").write_text("# New\n")
    (workspace / "src/main.py").unlink()
    found = files(run)
    assert {path: (f.action, f.added, f.removed) for path, f in found.items()} == {
        "notes.txt": ("modified", 1, 1),
        "new.md": ("added", 1, 0),
        "src/main.py": ("deleted", 0, 1),
    }
    assert lines(found["notes.txt"]) == ["-line 9", "+nine"]
    assert lines(found["new.md"]) == ["+# New"]
    assert lines(found["src/main.py"]) == ["-print('a')"]
    assert not any(file.shared for file in found.values())


def test_a_file_written_again_at_once_with_as_many_bytes_is_seen(
    recorder: ChangeRecorder, workspace: Path
) -> None:
    path = workspace / "racy.txt"
    path.write_text("a")
    was = path.stat()
    with recorder.recording(workspace, [], with_diff=True) as run:
        with path.open("r+") as file:
            file.write("b")
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
        assert lines(files(run)["racy.txt"])[0] == "-a"


@pytest.mark.nightly
def test_git_joins_a_renamed_file_also_where_it_changed_a_little(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    with ChangeRecorder(git).recording(workspace, [], with_diff=True) as run:
        text = (workspace / "notes.txt").read_text()
        (workspace / "notes.txt").unlink()
        (workspace / "old").mkdir()
        (workspace / "old/notes.md").write_text(text.replace("line 3\n", "three\n"))
        (workspace / "a.png").write_bytes(b"\x89PNG\0")
        (workspace / ".gitattributes").write_text("* diff=evil\n")
        (workspace / "src/main.py").write_text("--- a/0\n+++ b")
        found = files(run)
    moved = found["old/notes.md"]
    assert (moved.from_path, moved.action) == ("notes.txt", "renamed")
    assert lines(moved) == ["-line 3", "+three"]
    assert found["a.png"].unshown == "binary"
    assert lines(found["src/main.py"]) == [
        *("-print('a')", "+--- a/0", "++++ b"),
        "\\ No newline at end of file",
    ]
    assert found.keys() == {"old/notes.md", "a.png", ".gitattributes", "src/main.py"}


def test_binary_and_large_files_have_sizes_only(run: RunRecording, workspace: Path) -> None:
    (workspace / "a.png").write_bytes(b"\x89PNG\0" * 10)
    (workspace / "big.txt").write_text("x\n" * changes.MAX_FILE_BYTES)
    found = files(run)
    assert (found["a.png"].unshown, found["a.png"].new_size) == ("binary", 50)
    assert (found["big.txt"].unshown, found["big.txt"].new_size) == ("big", 2 * 2**20)
    assert found["a.png"].old_size is None


def test_permissions_and_links_are_recorded(run: RunRecording, workspace: Path) -> None:
    (workspace / "src/main.py").chmod(0o755)
    (workspace / "link").symlink_to("/etc/hostname")
    found = files(run)
    assert (found["src/main.py"].new_mode, found["src/main.py"].hunks) == ("755", [])
    assert lines(found["link"])[0] == "+/etc/hostname"


def test_git_state_and_generated_folders_are_ignored(run: RunRecording, workspace: Path) -> None:
    for folder in (".git", ".mimikit", "node_modules/x", "venv", "src/.git", "__pycache__"):
        (workspace / folder).mkdir(parents=True, exist_ok=True)
        (workspace / folder / "file").write_text("x")
    (workspace / "venv/pyvenv.cfg").touch()
    (workspace / "seen").touch()
    found = told(run)
    assert [file.path for file in found.files] == ["seen"]
    assert found.unseen == ["node_modules", "venv"]


def test_pipes_and_folders_instead_of_files_are_handled(run: RunRecording, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "src/main.py").unlink()
    (workspace / "src/main.py").mkdir()
    assert [(f.path, f.action) for f in told(run).files] == [("src/main.py", "deleted")]


def test_a_folder_exchanged_for_a_link_is_not_followed(
    run: RunRecording, workspace: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "main.py").write_text("password\n")
    (workspace / "src/main.py").unlink()
    (workspace / "src").rmdir()
    (workspace / "src").symlink_to(secret)
    assert "password" not in told(run).to_json().decode()
    assert {f.path: f.action for f in told(run).files} == {"src": "added", "src/main.py": "deleted"}


def test_a_too_large_workspace_is_reported(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, recorder: ChangeRecorder
) -> None:
    monkeypatch.setattr(changes, "MAX_WORKSPACE_FILES", 1)
    with recorder.recording(workspace, [], with_diff=True) as run:
        run.event("file", str(workspace / "src/main.py"), {"kind": "update"})
        (workspace / "src/main.py").write_text("print('b')\n")
        found = told(run)
    assert [(f.path, f.unshown) for f in found.files] == [("src/main.py", "unknown")]
    assert found.unseen[0] == "."


def test_more_files_than_are_listed_are_counted(
    run: RunRecording, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_FILES", 2)
    for name in "abc":
        (workspace / name).write_text(name)
    run.event("file", str(workspace / "c"), {"kind": "add"})
    found = told(run)
    assert [file.path for file in found.files] == ["c", "a"]
    assert found.more_files == 1


def test_a_file_reported_by_another_run_belongs_to_that_run(
    run: RunRecording, recorder: ChangeRecorder, workspace: Path
) -> None:
    def wrote(by: RunRecording, name: str) -> None:
        (workspace / name).write_text(f"{name}\n")
        by.event("file", str(workspace / name), {"kind": "add"})

    with recorder.recording(workspace, [], with_diff=True) as other:
        wrote(run, "mine")
        wrote(other, "theirs")
        (workspace / "anybody's").touch()
        assert {p: f.shared for p, f in files(run).items()} == {"mine": False, "anybody's": True}
        theirs = files(other)
    assert {p: f.shared for p, f in theirs.items()} == {"theirs": False, "anybody's": True}
    (workspace / "later").touch()
    assert files(run)["later"].shared, "the other one worked meanwhile, and nobody saw when"


def test_names_that_are_no_text_can_be_written_down(run: RunRecording, workspace: Path) -> None:
    Path(os.fsdecode(os.fsencode(workspace) + b"/\xff")).touch()
    assert list(files(run)) == ["\\xff"]


# ---- the lines that differ, without git


def hunks(old: bytes, new: bytes) -> list[DiffHunk]:
    return [hunk for one in changes.compare([(old, new)], None) for hunk in one.hunks]


def patched(old: bytes, parts: list[DiffHunk]) -> bytes:
    """Apply hunks like `patch`, independently of the product."""
    *lines, last = old.split(b"\n")
    lines = [line + b"\n" for line in lines] + ([last] if last else [])
    made, at = list[bytes](), 0
    for hunk in parts:
        start = hunk.old_start - (hunk.old_lines > 0)
        made += lines[at:start]
        at = start
        for number, line in enumerate(hunk.lines):
            has_end = hunk.lines[number + 1 : number + 2] != ["\\ No newline at end of file"]
            text = line[1:].encode() + b"\n" * has_end
            if line[0] in "- ":
                assert lines[at] == text
                at += 1
            if line[0] in "+ ":
                made.append(text)
    return b"".join(made + lines[at:])


TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "d  ", "ü", "中文"]), max_size=40)


@given(TEXTS, TEXTS, st.booleans(), st.booleans())
def test_a_diff_makes_the_new_text_of_the_old(
    old: list[str], new: list[str], old_ends: bool, new_ends: bool
) -> None:
    before = "\n".join(old).encode() + b"\n" * old_ends
    after = "\n".join(new).encode() + b"\n" * new_ends
    assert patched(before, hunks(before, after)) == after


def test_texts_too_long_for_difflib_have_no_lines() -> None:
    old = b"".join(b"%d\n" % n for n in range(1001))
    (found,) = changes.compare([(old, old[::-1])], None)
    assert (found.unshown, found.hunks) == ("big", [])


def test_the_output_of_git_is_parsed() -> None:
    head = [b"index 1..2", b"--- a/1", b"+++ b/1", b"@@ -1 +1,2 @@ def f"]
    (hunk,) = changes.hunks_of([*head, b"-a", b"+-- b\r", b"+c", b"\\ No newline at end of file"])
    assert (hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines) == (1, 1, 1, 2)
    assert hunk.lines == ["-a", "+-- b\r", "+c", "\\ No newline at end of file"]


def test_too_many_lines_are_cut_and_counted() -> None:
    (hunk,) = hunks(b"", b"".join(b"%d\n" % n for n in range(5000)))
    kept, cut = changes.cut([hunk], changes.MAX_CHARACTERS)
    assert [len(one.lines) for one in kept] == [changes.MAX_LINES]
    assert cut == 5000 - changes.MAX_LINES
    (hunk,) = hunks(b"", b"x" * 5000)
    assert len(hunk.lines[0]) < changes.MAX_LINE_CHARACTERS + 60
    assert "3000 more characters" in hunk.lines[0]
