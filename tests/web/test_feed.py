"""Every change reaches every page once and in order, also after reconnects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder, run_wsgi_app

from mimikit import log
from mimikit.conversation import inbox
from mimikit.conversation.history import HistoryStore
from mimikit.errors import MimikitError
from mimikit.language.plain_text import utf16_length
from mimikit.protocol import paths
from mimikit.protocol.models import InboxItem, Message, Question, Task
from mimikit.tasks import queue
from mimikit.triggers import registry
from mimikit.web import feed as feed_module
from mimikit.web import tokens
from tests.web.conftest import HOST, START, TOKEN, live_run
from tests.web.test_shown import trigger


class Stream:
    """An open event stream, read frame by frame."""

    def __init__(self, web: Any, query: dict[str, str], headers: dict[str, str]) -> None:
        environ = EnvironBuilder(
            path="/api/events", query_string=query, headers=Headers(headers)
        ).get_environ()
        environ["HTTP_HOST"] = HOST
        chunks, status, self.headers = run_wsgi_app(web.app, environ)
        self.status = int(status.partition(" ")[0])
        self.chunks = iter(chunks)
        self.close = getattr(chunks, "close", lambda: None)
        self.last_id = ""
        self.frames = self._frames()

    def _frames(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for chunk in self.chunks:
            for frame in chunk.decode().split("\n\n"):
                fields = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line)
                if "id" in fields:
                    self.last_id = fields["id"]
                if "event" in fields:
                    yield fields["event"], json.loads(fields["data"])

    def take(self, count: int, *, status: bool = False) -> list[dict[str, Any]]:
        """The next changes, without the status at the start of each stream."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            name, data = next(self.frames)
            assert name in ("change", "reset")
            if data.get("kind") != "status" or status:
                found.append(data if name == "change" else {"reset": True})
        return found


def open_stream(
    web: Any, *, last: str | None = None, headers: dict[str, str] | None = None, **query: str
) -> Stream:
    sent = headers or {"Authorization": f"Bearer {TOKEN}"}
    return Stream(web, query, sent | ({"Last-Event-ID": last} if last else {}))


def cursor(web: Any) -> str:
    return web.get("/api/snapshot")["cursor"]


def texts(changes: list[dict[str, Any]]) -> list[str]:
    return [change["text"] for change in changes]


# ---- what a change carries ------------------------------------------------------------------


def changes_after(web: Any, since: str) -> list[dict[str, Any]]:
    found = web.get("/api/changes", since=since)["events"]
    return [event for event in found if event["kind"] != "status"]


def test_a_change_carries_the_fresh_thing(web) -> None:
    web.feed.publish("status")
    since = cursor(web)
    message = Message(id="msg-1", role="agent", text="**hi**", created_at=START)
    HistoryStore(web.files).add([message])
    web.feed.publish("message", id="msg-1")
    inbox.put(web.files, InboxItem(id="msg-2", text="x", created_at=START))
    web.feed.publish("inbox", id="msg-2")
    web.feed.publish("inbox", id="msg-3", gone=True)
    queue.submit(web.files, Task(id="task-1", prompt="x", created_at=START, trace_id="t"))
    web.feed.publish("task", id="task-1", seat="worker")
    registry.create(web.files, trigger())
    web.feed.publish("trigger", id="trig-1")
    web.feed.publish("trigger", id="trig-2")
    question = Question(question_id="q-1", question="?", created_at=START, expires_at=START)
    web.files.save(paths.PENDING_QUESTION, question)
    web.feed.publish("question")
    web.beat(live=[live_run("turn-1", "teller", headline="reads")])
    web.feed.publish("turn", state="started", turnId="turn-1", inputs=["msg-2"])
    web.feed.publish("delta", turnId="turn-1", text="he", offset=0)
    found = changes_after(web, since)
    assert [change["kind"] for change in found] == [
        *("message", "inbox", "inbox", "task", "trigger", "trigger", "question", "turn", "delta")
    ]
    assert found[0]["message"]["html"] == '<p dir="auto"><strong>hi</strong></p>\n'
    assert found[1]["item"]["state"] == "queued"
    assert found[2] == {"kind": "inbox", "id": "msg-3", "item": None, "gone": True}
    assert found[3]["task"]["state"] == "queued"
    assert found[4]["trigger"]["title"] == "Tick"
    assert found[5] == {"kind": "trigger", "id": "trig-2", "trigger": None}
    assert found[6]["question"]["questionId"] == "q-1"
    assert (found[7]["headline"], found[7]["inputs"]) == ("reads", ["msg-2"])
    assert found[8] == {
        "kind": "delta",
        "turnId": "turn-1",
        "text": "he",
        "offset": 0,
        "reset": False,
        "blocks": [],
    }


@pytest.mark.parametrize(
    "hint",
    [
        {"kind": "unknown"},
        {"kind": "message", "id": "msg-none"},
        {"kind": "task", "id": "../x"},
        {"kind": "inbox", "id": "res-task-1"},
        {"kind": "turn", "turnId": 5, "state": "started"},
        {"kind": "delta", "turnId": "t"},
    ],
    ids=str,
)
def test_an_invalid_event_is_skipped(web, hint: dict[str, Any]) -> None:
    web.feed.publish("status")
    since = cursor(web)
    web.files.append(paths.EVENTS, hint, sync=False)
    assert changes_after(web, since) == []


def test_repeated_changes_are_sent_once_and_deltas_are_merged(web) -> None:
    web.feed.publish("status")
    since = cursor(web)
    queue.submit(web.files, Task(id="task-1", prompt="x", created_at=START, trace_id="t"))
    for piece in ("a", "b"):
        web.feed.publish("task", id="task-1")
        web.feed.publish("delta", turnId="turn-1", text=piece)
    web.feed.publish("delta", turnId="turn-1", text="c")
    web.feed.publish("delta", turnId="turn-2", text="x")
    found = changes_after(web, since)
    assert [(c["kind"], c.get("turnId"), c.get("text")) for c in found] == [
        ("delta", "turn-1", "a"),
        ("task", None, None),
        ("delta", "turn-1", "bc"),
        ("delta", "turn-2", "x"),
    ]


@pytest.mark.parametrize("rotated", [False, True])
def test_a_page_that_comes_in_mid_stream_gets_each_word_once(
    web, rotated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rotated:
        monkeypatch.setattr(log, "SEGMENT_BYTES", 700)
    web.beat(live=[live_run("turn-1", "teller")])
    end = 0
    sent: list[tuple[str, int, bool]] = []
    for number in range(8):
        if number == 5:  # the engine tries again
            sent, end = [], 0
            web.feed.publish("delta", turnId="turn-1", text="", offset=0, reset=True)
        word = f"word{number} 😀 "
        web.feed.publish("delta", turnId="turn-1", text=word, offset=end)
        web.feed.publish("delta", turnId="turn-2", text="another's", offset=0)
        sent.append((word, end, False))
        end += utf16_length(word)
        web.clock.advance(1)
        draft = web.get("/api/snapshot")["draft"]
        whole = "".join(text for text, _, _ in sent)
        if rotated:
            assert whole.endswith(draft["text"])
            assert (draft["turnId"], draft["end"]) == ("turn-1", end)
        else:
            assert draft == {"turnId": "turn-1", "text": whole, "blocks": [], "end": end}
    web.feed.publish("turn", state="started", turnId="turn-1", inputs=[])
    nothing = {"turnId": "turn-1", "text": "", "blocks": [], "end": 0}
    assert web.get("/api/snapshot")["draft"] == nothing
    web.beat(live=[])
    assert web.get("/api/snapshot")["draft"] is None


# ---- cursors --------------------------------------------------------------------------------


@pytest.mark.parametrize("since", ["x", "seg-x:5", "seg-x:²", "a:b:c", ":", "seg:" + "9" * 99])
def test_an_unknown_cursor_resets_the_page(web, since: str) -> None:
    web.feed.publish("status")
    found = web.get("/api/changes", since=since)
    assert found["reset"] is True
    assert web.get("/api/changes", since=found["cursor"])["reset"] is False


def test_the_first_change_of_a_fresh_folder_is_not_missed(web) -> None:
    since = cursor(web)
    web.feed.publish("delta", turnId="t", text="first")
    assert texts(changes_after(web, since)) == ["first"]


def test_nothing_is_lost_or_doubled_when_the_event_log_rotates(
    web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 2000)
    web.feed.publish("status")
    since, got, sent = cursor(web), list[str](), list[str]()
    for number in range(120):
        web.clock.advance(1)
        web.feed.publish("delta", turnId=f"t-{number}", text=str(number))
        sent.append(str(number))
        if number % 9 == 0:
            found = web.get("/api/changes", since=since)
            assert not found["reset"]
            got += [e["text"] for e in found["events"] if e["kind"] == "delta"]
            since = found["cursor"]
    got += texts(changes_after(web, since))
    assert got == sent


def test_too_many_missed_events_reset_the_page(web) -> None:
    web.feed.publish("status")
    since = cursor(web)
    for number in range(feed_module.MAX_EVENTS + 1):
        web.feed.publish("delta", turnId=str(number), text="x")
    found = web.get("/api/changes", since=since)
    assert (found["reset"], len(found["events"])) == (True, 1)


# ---- streams --------------------------------------------------------------------------------


def test_a_stream_goes_on_from_the_snapshot(web) -> None:
    web.feed.publish("delta", turnId="t", text="before")
    since = cursor(web)
    web.feed.publish("delta", turnId="t", text="after")
    stream = open_stream(web, since=since)
    assert stream.headers["Content-Type"].startswith("text/event-stream")
    assert "no-store" in stream.headers["Cache-Control"]
    assert stream.headers["X-Accel-Buffering"] == "no"
    assert next(stream.chunks) == b"retry: 2000\n\n"
    assert texts(stream.take(1)) == ["after"]
    web.feed.publish("delta", turnId="t", text="live")
    assert texts(stream.take(1)) == ["live"]
    stream.close()


def test_a_stream_starts_with_the_status_and_reports_a_dead_consumer(web) -> None:
    web.beat()
    stream = open_stream(web)
    assert stream.take(1, status=True)[0]["status"]["consumer"] == "ok"
    web.clock.advance(16)
    assert stream.take(1, status=True)[0]["status"]["consumer"] == "down"
    stream.close()


@pytest.mark.timeout(20)
def test_a_change_wakes_a_stream_that_sleeps(web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "RECHECK_S", 3600)
    web.feed.publish("status")
    stream = open_stream(web, since=cursor(web))
    stream.take(1, status=True)
    for piece in ("a", "b", "c"):
        web.feed.publish("delta", turnId="t", text=piece)
        assert texts(stream.take(1)) == [piece]
    stream.close()


def test_the_seventeenth_stream_is_refused_until_another_closes(web) -> None:
    streams = [open_stream(web) for _ in range(16)]
    assert [stream.status for stream in streams] == [200] * 16
    response = web.ask("GET", "/api/events")
    assert response.status_code == 503
    assert "poll /api/changes" in response.get_json()["error"]["message"]
    streams[3].close()
    streams[3].close()
    again = open_stream(web)
    assert again.status == 200
    assert len(web.site.feed._slots) == 16
    for stream in [*streams, again]:
        stream.close()
    assert len(web.site.feed._slots) == 0


def test_a_reconnecting_tab_replaces_its_stream(web) -> None:
    old = open_stream(web, tab="tab-1")
    new = open_stream(web, tab="tab-1")
    other = open_stream(web, tab="tab-2")
    assert len(web.site.feed._slots) == 2
    assert b"".join(old.chunks).count(b"event:") == 0
    web.feed.publish("delta", turnId="t", text="x")
    assert new.take(1, status=True)[0]["kind"] == "status"
    for stream in (old, new, other):
        stream.close()


def test_a_stream_ends_after_ten_minutes(web) -> None:
    stream = open_stream(web)
    stream.take(1, status=True)
    web.clock.advance(600)
    assert list(stream.frames) == []
    stream.close()
    assert len(web.site.feed._slots) == 0


def test_an_idle_stream_sends_keepalives(web) -> None:
    stream = open_stream(web)
    stream.take(1, status=True)
    web.clock.advance(15)
    assert next(stream.chunks) == b": beat\n\n"
    stream.close()


def test_a_stream_ends_with_its_session(web) -> None:
    session = web.log_in()
    stream = open_stream(web, headers=session)
    stream.take(1, status=True)
    web.ask("POST", "/api/logout", {}, headers=session)
    assert list(stream.frames) == []
    stream.close()


def test_a_stream_ends_with_its_token(make_web) -> None:
    web = make_web()
    web.files.write(paths.TOKEN, TOKEN.encode())
    web = make_web(disk=web.disk)
    stream = open_stream(web)
    stream.take(1, status=True)
    tokens.renew_token(web.files)
    assert list(stream.frames) == []
    stream.close()


def test_stopping_ends_every_stream_and_refuses_new_ones(web) -> None:
    streams = [open_stream(web) for _ in range(3)]
    for stream in streams:
        stream.take(1, status=True)
    web.site.feed.stop()
    assert [list(stream.frames) for stream in streams] == [[], [], []]
    assert web.ask("GET", "/api/events").status_code == 503
    with pytest.raises(MimikitError, match="streams are open"):
        web.site.feed.enter(None, None)


def test_a_stream_survives_read_errors(make_web, monkeypatch) -> None:
    web = make_web()
    web.feed.publish("status")
    stream = open_stream(web, since=cursor(web))
    stream.take(1, status=True)
    web.feed.publish("delta", turnId="t", text="x")
    plain_read, failures = web.disk.read, list[str]()

    def failing(path: str, **where: Any) -> bytes:
        if len(failures) < 4:
            failures.append(path)
            raise OSError(5, "I/O error")
        return plain_read(path, **where)

    web.disk.read = failing
    assert texts(stream.take(1)) == ["x"]
    assert len(failures) == 4
    stream.close()
