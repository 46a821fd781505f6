"""Self-awake, notification channels and settings over HTTP; no URL of a channel is in an answer."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mimikit import notifications
from mimikit.errors import BadInput
from mimikit.notifications import DeliveryReport
from mimikit.protocol import paths
from mimikit.protocol.models import Command
from mimikit.protocol.notify import ChannelQueue, Notice, NotificationState, SentNotice
from mimikit.protocol.runtime import Improvement, SelfAwakeState
from mimikit.roles.worktree import BRANCHES, Worktrees
from mimikit.web.api.routing import EXTENSION
from tests.support.reading import record
from tests.web.conftest import START, MakeWeb, Web, error_of

SECRET = "tok3n-of-mine"
URL = f"ntfys://user:{SECRET}@ntfy.example.org/my-topic"
OPEN, CLOSED = f"{BRANCHES}lint-1", f"{BRANCHES}docs-1"
DIFF = """diff --git main.py main.py
index 1..2 100644
--- main.py
+++ main.py
@@ -1,2 +1,2 @@
-a
+b\u202e
 c
diff --git old name.py new.py
similarity index 100%
rename from old name.py
rename to new.py
diff --git x.png x.png
new file mode 100644
Binary files /dev/null and x.png differ
diff --git gone.py gone.py
deleted file mode 100644
--- gone.py
+++ /dev/null
@@ -1 +0,0 @@
-diff --git a b
"""


class FakeWorktrees(Worktrees):
    """A repository with one open branch."""

    def __init__(self) -> None:
        self.discarded: list[str] = []

    def branches(self, workspace: Path, name: str = "*") -> list[str]:
        return [OPEN]

    def diff(self, workspace: Path, branch: str) -> str:
        if branch != OPEN:
            raise BadInput(f"expected a branch of self-awake, got {branch!r}")
        return DIFF

    def discard(self, workspace: Path, branch: str) -> str:
        self.diff(workspace, branch)
        self.discarded.append(branch)
        return f"deleted {branch}"


@pytest.fixture
def web(make_web: MakeWeb, monkeypatch: pytest.MonkeyPatch) -> Web:
    """An app with a repository, whose sending process knows no `bad` URL."""

    def in_child(url: str, title: str = "", text: str = "") -> DeliveryReport:
        if "bad" in url or ("broken" in url and title):
            return DeliveryReport(outcome="failed", error="it was not accepted")
        return DeliveryReport(outcome="sent")

    monkeypatch.setattr(notifications, "_in_child", in_child)
    made = make_web()
    made.app.extensions[EXTENSION] = replace(made.site, worktrees=FakeWorktrees())
    return made


def command(web: Web) -> Command:
    return record(web.files, paths.command("cmd-1"), Command)


# ---- self-awake


def test_it_shows_what_self_awake_did_and_why_nothing_begins(web: Web) -> None:
    def run(name: str, **facts: Any) -> Improvement:
        item = name.partition("-")[0]
        return Improvement(id=name, item=item, started_at=START, plan=f"task-{name}", **facts)

    past = [
        run("docs-1", end="committed", branch=CLOSED),
        run("lint-1", end="committed", branch=OPEN),
        run("types-1", end="dropped", reason="the review did not agree"),
    ]
    taken = {"lint": START, "retry": START - timedelta(hours=2)}
    web.files.save(paths.SELF_AWAKE, SelfAwakeState(run=run("memory-1"), past=past, taken=taken))
    web.files.write(paths.CONFIG, b"[self_awake]\nenabled = true\n")
    shown = web.get("/api/self-awake")
    assert [(one["id"], one.get("end"), one.get("branch")) for one in shown["runs"]] == [
        ("memory-1", None, None),
        ("types-1", "dropped", None),
        ("lint-1", "committed", OPEN),
        ("docs-1", "committed", CLOSED),
    ]
    assert (shown["enabled"], shown["branches"], shown["why"]) == (True, [OPEN], None)
    assert (shown["next"], shown["nextAt"]) == ("types", None)
    web.beat(self_awake={"en": "it is off", "zh": "已关闭"})
    assert web.get("/api/self-awake")["why"]["zh"] == "已关闭"


def test_when_nothing_is_due_it_says_what_comes_next(web: Web) -> None:
    items = ("retry", "lint", "types", "docs", "memory", "quality", "dependencies", "clean-up")
    taken: dict[str, datetime] = dict.fromkeys(items, START)
    web.files.save(paths.SELF_AWAKE, SelfAwakeState(taken=taken))
    shown = web.get("/api/self-awake")
    assert (shown["next"], shown["nextAt"]) == ("lint", "2026-03-02T12:00:00.000Z")


@pytest.mark.parametrize(
    ("body", "action", "target", "args"),
    [
        ({"action": "on"}, "self_awake_set", "", {"enabled": True}),
        ({"action": "off"}, "self_awake_set", "", {"enabled": False}),
        ({"action": "run", "target": "docs"}, "self_awake_run", "docs", {}),
    ],
)
def test_it_is_changed_by_commands(
    web: Web, body: dict[str, str], action: str, target: str, args: dict[str, object]
) -> None:
    answer = web.ask("POST", "/api/self-awake", {**body, "id": "cmd-1"})
    assert answer.status_code == 202
    given = command(web)
    assert (given.action, given.target, given.args) == (action, target, args)


def test_a_branch_is_read_and_discarded_and_never_merged(web: Web) -> None:
    files = web.get("/api/self-awake/diff", branch=OPEN)["files"]
    assert [(one["path"], one["action"]) for one in files] == [
        ("main.py", "modified"),
        ("new.py", "renamed"),
        ("x.png", "added"),
        ("gone.py", "deleted"),
    ]
    assert files[0]["hunks"][0]["lines"] == ["-a", "+b‹U+202E›", " c"]
    assert (files[0]["added"], files[1]["fromPath"], files[2]["unshown"]) == (
        *(1, "old name.py"),
        "binary",
    )
    body = {"action": "discard", "target": OPEN}
    assert web.ask("POST", "/api/self-awake", body).get_json()["message"] == f"deleted {OPEN}"
    for odd in ("main", CLOSED, "--help"):
        assert web.ask("GET", "/api/self-awake/diff", query={"branch": odd}).status_code == 404
        body["target"] = odd
        assert web.ask("POST", "/api/self-awake", body).status_code == 422
    assert web.ask("POST", "/api/self-awake", body | {"action": "merge"}).status_code == 422


# ---- notifications


def post(web: Web, action: str, name: str = "phone", **more: str) -> Any:
    return web.ask("POST", "/api/notify", {"action": action, "name": name, **more})


def test_a_channel_is_added_tested_and_removed_without_showing_its_url(web: Web) -> None:
    answers = [post(web, "add", url=URL), post(web, "test")]
    notice = Notice(id="t1", kind="failed", at=START, title="Failed: backup")
    waits = ChannelQueue(waiting=[notice], error="no route")
    sent = SentNotice(at=START, channel="phone", title="Failed: x", outcome="sent", again=True)
    older = sent.but(title="Done: y", outcome="unknown", again=False)
    state = NotificationState(channels={"phone": waits}, sent=[older, sent])
    web.files.save(paths.NOTIFICATION_STATE, state)
    shown = web.get("/api/notify")
    assert shown["channels"] == [
        {
            "name": "phone",
            "address": "ntfys://•••ic",
            "waiting": 1,
            "error": "no route",
            "retryAt": None,
        }
    ]
    assert [(one["title"], one["outcome"], one.get("again")) for one in shown["sent"]] == [
        ("Failed: x", "sent", True),
        ("Done: y", "unknown", False),
    ]
    answers.append(post(web, "remove"))
    assert [one.get_json()["ok"] for one in answers] == [True] * 3
    texts = [json.dumps(shown), *(one.get_data(as_text=True) for one in answers)]
    assert not any(SECRET in text or "my-topic" in text for text in texts)
    everything = b"".join(web.disk.contents().values())
    assert SECRET.encode() not in everything
    assert web.get("/api/notify")["channels"] == []


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"action": "add", "name": "Phone!", "url": URL}, 422, "name"),
        ({"action": "add", "name": "phone", "url": f"bad://{SECRET}"}, 422, "url"),
        ({"action": "add", "name": "phone", "url": SECRET}, 422, "url"),
        ({"action": "add", "name": "phone", "url": f"ntfy://{SECRET * 900}"}, 422, "url"),
        ({"action": "add", "name": "phone", "url": [URL]}, 422, "url"),
        ({"action": "add", "url": URL}, 422, "name"),
        ({"action": "test", "name": "phone"}, 404, None),
        ({"action": "remove", "name": "../token"}, 404, None),
    ],
)
def test_a_refusal_names_the_field_and_not_the_url(
    web: Web, body: dict[str, Any], status: int, field: str | None
) -> None:
    answer = web.ask("POST", "/api/notify", body)
    assert (answer.status_code, error_of(answer)["field"]) == (status, field)
    assert SECRET not in answer.get_data(as_text=True)
    assert SECRET not in json.dumps(web.log_lines())


def test_a_test_that_fails_says_why(web: Web) -> None:
    post(web, "add", url=f"ntfy://broken-{SECRET}")
    answer = post(web, "test").get_json()
    assert (answer["ok"], answer["message"]) == (False, "it was not accepted")


# ---- settings


def test_settings_are_shown_and_changed_by_a_command(web: Web) -> None:
    web.files.write(paths.CONFIG, b"[budget]\ndaily_tokens = 5 # mine\n")
    assert web.get("/api/settings")["values"] == {
        "budget.daily_tokens": 5,
        "budget.per_task_tokens": None,
        "budget.per_trigger_daily_tokens": None,
        "retention.days": 30,
        "notify.quiet": "",
    }
    body = {"key": "notify.quiet", "value": "22:00-08:00", "id": "cmd-1"}
    assert web.ask("POST", "/api/settings", body).status_code == 202
    given = command(web)
    assert (given.action, given.args) == ("notify_set", {"quiet": "22:00-08:00"})
    for odd in ({"key": "self_awake.checks"}, {"key": "web.host"}, {"value": [1]}):
        assert web.ask("POST", "/api/settings", body | odd).status_code == 422
