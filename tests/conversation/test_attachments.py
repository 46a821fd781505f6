"""Files that are sent: kept once and whole, and gone when nothing names them any more."""

from __future__ import annotations

import hashlib
import itertools
from datetime import UTC, datetime, timedelta

import pytest

from mimikit.config import FileSettings
from mimikit.conversation import attachments, inbox
from mimikit.conversation.attachments import PART, StoredFile
from mimikit.conversation.file_types import (
    MOST_PIXELS,
    harmless_name,
    media_type,
    picture_of,
    text_of,
)
from mimikit.conversation.history import HistoryStore
from mimikit.errors import BadInput, NoRoom, NotFound
from mimikit.memory import markdown
from mimikit.memory.tokens import middle_cut, middle_cut_tokens
from mimikit.protocol import paths
from mimikit.protocol.models import FileRef, InboxItem, Message, Task
from mimikit.tasks import queue
from tests.support.pictures import GIF, JPEG, WEBP, png

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LATE_NS = 10**19
"""After all that a test writes: the disk has a clock of its own, which shows the year 2100."""
LIMITS = FileSettings(file_mb=1, folder_mb=1)


def kept(files, data: bytes = b"hello", name: str = "a.txt") -> StoredFile:
    return attachments.keep(files, data, name, NOW, LIMITS)


# ---- keeping


def test_a_file_is_kept_under_its_hash_with_a_record_beside_it(files, disk) -> None:
    found = kept(files)
    assert found.id == hashlib.sha256(b"hello").hexdigest()
    assert attachments.find(files, found.id) == found
    assert attachments.read(files, found.id) == b"hello"
    assert {f"files/{found.id}", f"files/{found.id}.json"} <= disk.contents().keys()


def test_the_same_file_twice_is_one_under_its_last_name(files, disk) -> None:
    kept(files, name="a.txt")
    again = kept(files, name="b.txt")
    assert attachments.find(files, again.id) == again
    assert [name for name in disk.contents() if name.startswith("files/")] == [
        f"files/{again.id}",
        f"files/{again.id}.json",
    ]


def test_bytes_whose_record_was_never_written_are_no_file_until_they_are_sent_again(files) -> None:
    id_ = hashlib.sha256(b"hello").hexdigest()
    files.create(paths.file_bytes(id_), b"hello")
    assert attachments.find(files, id_) is None
    with pytest.raises(NotFound, match="send it again"):
        attachments.named(files, [id_], NOW)
    kept(files)
    assert attachments.find(files, id_) is not None


def test_bytes_that_are_no_longer_what_they_were_are_not_given_out(files) -> None:
    id_ = kept(files).id
    files.write(paths.file_bytes(id_), b"another")
    assert attachments.read(files, id_) is None


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (b"", BadInput, "an empty one"),
        (b"x" * (2**20 + 1), BadInput, "at most 1 MB, got 1.0 MB"),
    ],
)
def test_what_can_not_be_kept_is_refused_with_its_reason(files, data, error, said) -> None:
    with pytest.raises(error, match=said):
        kept(files, data)


def test_of_a_full_folder_no_more_is_taken_but_what_it_has(files) -> None:
    big = b"x" * (2**20 - 2000)
    kept(files, big)
    with pytest.raises(NoRoom, match="of 1 MB already"):
        kept(files, b"y" * 2000)
    kept(files, big, "again.txt")


# ---- naming in a message


def test_a_message_names_each_file_once_with_what_is_known_of_it(files) -> None:
    one, two = kept(files).id, kept(files, png(), "p.png").id
    first, second = attachments.named(files, [one, two, one], NOW)
    assert (first.name, first.media_type, first.size) == ("a.txt", "text/plain", 5)
    assert (second.media_type, second.width, second.height) == ("image/png", 3, 2)
    assert "createdAt" not in first.to_dict()


def test_a_message_names_no_more_files_than_it_may(files) -> None:
    ids = [kept(files, b"%d" % number).id for number in range(11)]
    with pytest.raises(BadInput, match="at most 10 files, got 11"):
        attachments.named(files, ids, NOW)


def test_a_file_that_is_used_again_stays_as_long_as_a_new_one(files, disk) -> None:
    found = kept(files)
    attachments.named(files, [found.id], NOW + timedelta(hours=1))
    assert attachments.find(files, found.id) == found
    attachments.named(files, [found.id], NOW + timedelta(days=3))
    assert attachments.find(files, found.id) == found.but(created_at=NOW + timedelta(days=3))


# ---- what goes


def going(files, limit_ns: int) -> list[str]:
    """What goes, each removed before the next is asked for."""
    return [
        path
        for id_ in filter(None, attachments.expired(files, limit_ns))
        for path in attachments.remove_expired(files, id_, limit_ns)
    ]


def test_what_nothing_names_goes_record_first(files) -> None:
    id_ = kept(files).id
    assert going(files, 0) == []
    assert going(files, LATE_NS) == [f"files/{id_}.json", f"files/{id_}"]
    assert going(files, LATE_NS) == []


def test_bytes_without_a_record_go_too(files) -> None:
    files.create(paths.file_bytes("0" * 64), b"x")
    assert going(files, LATE_NS) == [f"files/{'0' * 64}"]


def test_what_anything_at_hand_names_stays(files) -> None:
    refs = [
        FileRef(**kept(files, f"{n}".encode()).model_dump(include=set(FileRef.model_fields)))
        for n in range(4)
    ]
    said, waits, works, done = refs
    HistoryStore(files).add(
        [Message(id="msg-0", role="user", text="x", created_at=NOW, files=[said])]
    )
    inbox.put(files, InboxItem(id="msg-1", text="x", created_at=NOW, files=[waits]))
    queue.submit(files, Task(id="t", prompt="x", created_at=NOW, trace_id="t", files=[works]))
    assert going(files, LATE_NS) == [f"files/{done.id}.json", f"files/{done.id}"]


def test_of_many_records_each_is_looked_at_a_part_at_a_time(files) -> None:
    done, waits = kept(files, b"done"), kept(files, b"waits")
    for number in range(2 * PART):
        files.write(f"inbox/{number:05}.json", b"{}")
    files.write("inbox/99999.json", f'["{waits.id}"]'.encode())
    look = attachments.expired(files, LATE_NS)
    assert [next(look), next(look)] == [None, None]
    assert next(look) == done.id


@pytest.mark.parametrize("looked_at", [0, 1], ids=["parts", "the first"])
def test_what_is_used_while_others_are_looked_at_stays(files, looked_at: int) -> None:
    ids = sorted(kept(files, data).id for data in (b"one", b"two"))
    limit_ns = max(stat.mtime_ns for stat in files.stats("files", suffix="").values()) + 1
    for number in range(PART):
        files.write(f"inbox/{number:05}.json", b"{}")
    look = attachments.expired(files, limit_ns)
    assert next(look) is None
    for id_ in itertools.islice(look, looked_at):
        attachments.remove_expired(files, str(id_), limit_ns)
    used = ids[1:] if looked_at else ids
    said = attachments.named(files, used, NOW + timedelta(days=40))
    inbox.put(files, InboxItem(id="msg-1", text="x", created_at=NOW, files=said))
    for id_ in look:
        attachments.remove_expired(files, str(id_), limit_ns)
    assert [id_ for id_ in ids if attachments.find(files, id_)] == used


def test_bytes_stay_whose_record_came_back(files) -> None:
    id_ = kept(files).id
    limit_ns = max(stat.mtime_ns for stat in files.stats("files", suffix="").values()) + 1
    assert list(attachments.expired(files, limit_ns)) == [id_]
    files.remove(paths.file_record(id_))
    kept(files)
    assert attachments.remove_expired(files, id_, limit_ns) == []
    assert attachments.find(files, id_) is not None


def test_nothing_goes_while_somebody_writes_a_record(files) -> None:
    id_ = kept(files).id
    lock = files.lock(paths.FILES_LOCK)
    assert attachments.remove_expired(files, id_, LATE_NS) == []
    lock.release()
    assert len(attachments.remove_expired(files, id_, LATE_NS)) == 2


@pytest.mark.fault(25)
def test_records_of_an_earlier_version_have_no_files() -> None:
    old = {"id": "msg-0", "createdAt": "2026-03-01T12:00:00.000Z", "text": "x"}
    assert InboxItem.model_validate_json(str(old).replace("'", '"')).files == []
    assert Message.model_validate_json(str(old | {"role": "user"}).replace("'", '"')).files == []


def test_memory_keeps_what_the_files_of_a_message_were_called() -> None:
    ref = FileRef(id="a" * 64, name="a.txt", media_type="text/plain", size=1)
    said = Message(id="msg-0", role="user", text="", created_at=NOW, files=[ref])
    assert markdown.block(said, UTC).endswith("-->\n\n(with a.txt)\n")
    assert markdown.block(said.but(text="look"), UTC).endswith("look\n(with a.txt)\n")


# ---- names


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\a b.txt", "a b.txt"),
        ("..", "file"),
        ("", "file"),
        (" .hidden", "hidden"),
        ("-rf", "rf"),
        ("~/.ssh", "ssh"),
        ("a\x00b\nc.txt", "ab c.txt"),
        ("`rm -rf $HOME`.txt", "rm -rf HOME .txt"),
        ("\u202egnp.exe", "gnp.exe"),
        ("\ud800.txt", "txt"),
        ("照片 1.png", "照片 1.png"),
        ("café.txt", "café.txt"),
    ],
)
def test_a_name_is_made_harmless(given: str, name: str) -> None:
    assert harmless_name(given) == name


@pytest.mark.parametrize(
    "given",
    ["<img src=x onerror=alert(1)>.png", '"><script>alert(1)</script>', "a|b;c&&d", "x" * 5000],
)
def test_no_name_is_markup_a_path_or_too_long(given: str) -> None:
    name = harmless_name(given)
    assert 0 < len(name) <= 120
    assert not set(name) & set('<>/\\:"|`$*?\n\r\t\0')


def test_a_long_name_keeps_its_ending() -> None:
    assert harmless_name("x" * 300 + ".tar.gz").endswith("x.gz")


# ---- what a file is


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (png(800, 600)[:60], ("image/png", 800, 600)),
        (GIF, ("image/gif", 1, 1)),
        (JPEG, ("image/jpeg", 7, 9)),
        (WEBP, ("image/webp", 320, 240)),
        (b"RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00/\x03\x40\x00\x00", ("image/webp", 4, 2)),
        (b"RIFF____WEBPVP8 " + b"_" * 7 + b"\x9d\x01\x2a\x05\x00\x06\x00", ("image/webp", 5, 6)),
    ],
)
def test_a_picture_is_known_by_its_first_bytes(data: bytes, kind: tuple[str, int, int]) -> None:
    assert picture_of(data) == kind
    assert media_type(data) == kind[0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xe0\x00\x00\x00",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00",
        b"GIF89a",
        b"GIF89a<script>alert(1)</script>",
        b"RIFF____WEBP????",
        png(0, 5),
        png(3, 2).replace((3).to_bytes(4, "big") + (2).to_bytes(4, "big"), b"\xff" * 8),
        b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
    ],
)
def test_what_is_no_sound_picture_is_none(data: bytes) -> None:
    assert picture_of(data) is None


def test_a_picture_of_too_many_points_is_a_file_like_any_other() -> None:
    side = int(MOST_PIXELS**0.5) + 1
    bomb = png(1, 1).replace((1).to_bytes(4, "big") * 2, side.to_bytes(4, "big") * 2)
    assert media_type(bomb) == "application/octet-stream"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"plain", "text/plain"),
        (b"<!doctype html><script>alert(1)</script>", "text/plain"),
        (b"<svg onload=alert(1)>", "text/plain"),
        (b"%PDF-1.7 <script>alert(1)</script>", "application/pdf"),
        (b"PK\x03\x04\x00", "application/octet-stream"),
        (b"\x1f\x8b\x08\x00", "application/octet-stream"),
        (b"text\x00with a zero", "application/octet-stream"),
        ("héllo, wörld".encode("latin-1"), "application/octet-stream"),
    ],
)
def test_anything_else_is_text_a_pdf_or_just_bytes(data: bytes, kind: str) -> None:
    assert media_type(data) == kind


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gbk", "gb18030"])
def test_text_is_read_in_the_encodings_that_people_have(encoding: str) -> None:
    said = "你好，世界。\n第二行 second line\n"
    assert text_of(said.encode(encoding)) == said


# ---- cutting


def test_of_a_long_text_beginning_and_end_stay() -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    cut = middle_cut(text, 900)
    assert cut.startswith("line 0\nline 1\n")
    assert cut.endswith("line 999\n")
    assert "characters left out here" in cut
    assert len(cut) < 1000
    assert middle_cut("short", 900) == "short"


def test_a_text_is_cut_to_about_its_tokens() -> None:
    words = "several words of a text " * 5000
    cut = middle_cut_tokens(words, 500, lambda text: len(text) // 4)
    assert 300 < len(cut) // 4 <= 500
