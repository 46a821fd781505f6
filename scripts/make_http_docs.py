"""Makes webui/openapi.json, docs/http.md and webui/js/core/types.d.ts from the routes.

Run by hand when a route or a model changed; a test says when a file is stale. Each example is
a real request to the app, over a made-up state with a clock that stands still.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from werkzeug.test import Client  # noqa: E402

from mimikit.config import Settings  # noqa: E402
from mimikit.conversation.history import HistoryStore  # noqa: E402
from mimikit.conversation.turn_prompts import ToolUse, TurnPrompt  # noqa: E402
from mimikit.engines.setup import EndpointTest, TrialReport  # noqa: E402
from mimikit.log import ChangeFeed, EventLog  # noqa: E402
from mimikit.memory.search import MemorySearch  # noqa: E402
from mimikit.protocol import paths  # noqa: E402
from mimikit.protocol.files import Files  # noqa: E402
from mimikit.protocol.models import (  # noqa: E402
    EngineStatus,
    Hit,
    LiveRun,
    Message,
    Question,
    Task,
    TurnRecord,
    Usage,
)
from mimikit.protocol.notify import NotificationState, SentNotice  # noqa: E402
from mimikit.protocol.results import (  # noqa: E402
    DiffHunk,
    FileDiff,
    TaskDiff,
    TaskResult,
)
from mimikit.protocol.runtime import Health, Improvement, SelfAwakeState  # noqa: E402
from mimikit.protocol.triggers import Schedule, Trigger  # noqa: E402
from mimikit.roles.worktree import BRANCHES, Worktrees  # noqa: E402
from mimikit.state import State  # noqa: E402
from mimikit.tasks.ledger import Ledger  # noqa: E402
from mimikit.web.api.routing import EXTENSION  # noqa: E402
from mimikit.web.app import AREAS, build_web  # noqa: E402
from scripts import openapi  # noqa: E402
from tests.support.memory_disk import MemoryDisk  # noqa: E402
from tests.support.twins import FakeClock  # noqa: E402

DOCS, TYPES = ROOT / "docs" / "http.md", ROOT / "webui" / "js" / "core" / "types.d.ts"
OPENAPI = ROOT / "webui" / "openapi.json"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TOKEN = "a-token-long-enough-for-an-operator"  # noqa: S105 - made up
MOST_LINES = 70
"""Of an example; what is below is left out."""

# What is asked in each example, where it is more than the address: query or body.
ASKED: dict[str, tuple[str, dict[str, Any] | None]] = {
    "POST /api/login": ("/api/login", {"token": TOKEN}),
    "POST /api/logout": ("/api/logout", None),
    "GET /api/messages": ("/api/messages?limit=1", None),
    "POST /api/input": ("/api/input", {"id": "msg-7", "text": "hi"}),
    "POST /api/files": ("/api/files?name=notes.txt", None),
    "POST /api/answer": (
        "/api/answer",
        {"id": "msg-8", "questionId": "q-1", "text": "the small one"},
    ),
    "GET /api/tasks": ("/api/tasks?state=done", None),
    "GET /api/jobs": ("/api/jobs?state=ended&limit=1", None),
    "POST /api/tasks": ("/api/tasks", {"id": "task-2", "prompt": "write a haiku"}),
    "GET /api/tasks/{task_id}/output": ("/api/tasks/task-1/output", None),
    "POST /api/tasks/{task_id}/cancel": ("/api/tasks/task-1/cancel", {"id": "cmd-1"}),
    "POST /api/tasks/{task_id}/retry": ("/api/tasks/task-1/retry", {"id": "cmd-2"}),
    "POST /api/engines": ("/api/engines", {"use": "deepseek codex", "id": "cmd-8"}),
    "POST /api/engines/trial": (
        "/api/engines/trial",
        {
            "name": "deepseek",
            "model": "deepseek-chat",
            "key": "sk-0",
            "baseUrl": "https://api.deepseek.com/v1",
        },
    ),
    "PUT /api/engines/{name}": (
        "/api/engines/deepseek",
        {
            "model": "deepseek-chat",
            "keyEnv": "DEEPSEEK_API_KEY",
            "id": "cmd-9",
            "baseUrl": "https://api.deepseek.com/v1",
        },
    ),
    "DELETE /api/engines/{name}": ("/api/engines/deepseek", {"id": "cmd-10"}),
    "POST /api/tasks/{task_id}/snooze": (
        "/api/tasks/task-3/snooze",
        {"id": "trig-3", "when": "in 20 minutes"},
    ),
    "POST /api/triggers": (
        "/api/triggers",
        {"id": "trig-2", "prompt": "check the backups", "when": "every day at 7:00"},
    ),
    "POST /api/triggers/preview": ("/api/triggers/preview", {"when": "every weekday at 9:00"}),
    "PATCH /api/triggers/{trigger_id}": (
        "/api/triggers/trig-1",
        {"id": "cmd-3", "title": "The news"},
    ),
    "POST /api/triggers/{trigger_id}/pause": ("/api/triggers/trig-1/pause", {"id": "cmd-4"}),
    "POST /api/triggers/{trigger_id}/resume": ("/api/triggers/trig-1/resume", {"id": "cmd-5"}),
    "POST /api/triggers/{trigger_id}/run": ("/api/triggers/trig-1/run", {"id": "cmd-6"}),
    "DELETE /api/triggers/{trigger_id}": ("/api/triggers/trig-1", {"id": "cmd-7"}),
    "GET /api/memory/{path}": ("/api/memory/memory.md", None),
    "PUT /api/memory/{path}": (
        "/api/memory/memory/2026-03-01-tea.md",
        {"text": "Green, 80 °C.\n", "hash": None},
    ),
    "POST /api/engines/try": ("/api/engines/try", {"id": "cmd-8"}),
    "POST /api/self-awake": ("/api/self-awake", {"action": "run", "id": "cmd-11"}),
    "GET /api/self-awake/diff": (f"/api/self-awake/diff?branch={BRANCHES}lint-1", None),
    "POST /api/notify": ("/api/notify", {"action": "remove", "name": "phone"}),
    "POST /api/settings": (
        "/api/settings",
        {"key": "notify.quiet", "value": "22:00-08:00", "id": "cmd-12"},
    ),
    "GET /api/turns/{turn_id}": ("/api/turns/turn-1", None),
    "GET /api/turns/{turn_id}/memory": ("/api/turns/turn-1/memory", None),
    "GET /api/search": ("/api/search?q=tea", None),
    "POST /api/backlog": ("/api/backlog", {"action": "add", "item": "sweep the yard"}),
    "GET /api/traces/{trace_id}": ("/api/traces/task-1", None),
    "GET /api/changes": ("/api/changes", None),
}
TRIED = TrialReport(
    models=["deepseek-chat", "deepseek-reasoner"],
    test=EndpointTest(api="chat", text="say", calls_tools=True, took_s=1.2),
)
ENDPOINT = """\
engine = ["deepseek", "auto"]

[engines.deepseek]
base_url = "https://api.deepseek.com/v1"
model = "deepseek-chat"
api_key_env = "DEEPSEEK_API_KEY"
"""
HEAD = """\
# The HTTP API

Made by `python scripts/make_http_docs.py` from the routes and models; do not edit. As OpenAPI 3.1:
`GET /api/openapi.json`.

```sh
curl -H "Authorization: Bearer $(mimikit token)" -H "Content-Type: application/json" \\
  -d '{"text": "hi"}' http://127.0.0.1:8787/api/input
```

- Every route but `POST /api/login` and `GET /healthz` needs the token as above, or the `key` that a
  login answered as the header `X-Mimikit-Session`.
- Times in words are in the zone that the header `X-Mimikit-Zone` names, such as `Asia/Shanghai`.
- Bodies are JSON with `Content-Type: application/json`; a key that is not known is an error. Only
  the body of `POST /api/files` is the file itself, as `application/octet-stream`.
- What goes wrong is answered as `{"error": {"code": …, "field": …, "params": …, "message": …}}`
  with a status of 4xx or 5xx. `code` says what kind of error it is ([ErrorDetail](#errordetail)
  lists them), `field` which value of the request is wrong, if one is, `params` what a sentence
  about it has to name (`max`, `min`, `allowed`, `seconds`), and `message` in English what was
  expected, what came, and what to do.
- Times are UTC, `2026-03-01T12:00:00.000Z`. Every key of an answer is always there.
- A command (cancel, retry, everything that changes a trigger) is answered with 200 and its outcome
  if that comes within two seconds, else with 202 and the command's id: it is kept and carried out.

Where a type is a link, its fields are below, under [Shapes](#shapes).
"""


# ---- the made-up state


class OneBranch(Worktrees):
    """A repository with one branch that is not merged."""

    def __init__(self) -> None: ...

    def branches(self, workspace: Path, name: str = "*") -> list[str]:
        return [f"{BRANCHES}lint-1"]

    def diff(self, workspace: Path, branch: str) -> str:
        return "diff --git a.py a.py\n--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x=1\n+x = 1\n"


def make_state(files: Files, clock: FakeClock) -> None:
    files.make_folders()
    made = NOW - timedelta(hours=1)
    task = Task(id="task-1", prompt="count the files", trace_id="task-1", created_at=made)
    times = {"started_at": made, "completed_at": made + timedelta(seconds=2)}
    result = TaskResult.model_validate(
        {"id": "task-1", "status": "done", "result": {"text": "**12** files"}, "engine": "builtin",
         "result_type": "code_change", "diff": paths.diff("task-1"), "trace_id": "task-1",
         "usage": Usage(input_tokens=90, output_tokens=12), **times}
    )  # fmt: skip
    files.save("worker/ended/task-1.json", task)
    files.save(paths.result("worker", "task-1"), result)
    tea = Task(
        id="task-3", prompt="the tea", profile="reminder", trace_id="task-3", created_at=made
    )
    files.save("worker/ended/task-3.json", tea)
    hunk = DiffHunk(old_start=1, old_lines=1, new_start=1, new_lines=1, lines=["-11", "+12"])
    count = FileDiff(
        path="count.txt", action="modified", added=1, removed=1, old_size=3, new_size=3,
        hunks=[hunk],
    )  # fmt: skip
    files.save(paths.diff("task-1"), TaskDiff(id="task-1", files=[count]))
    ledger = Ledger(files)
    ledger.load()
    ledger.write("queued", "task-1", made, traceId="task-1")
    ledger.write("ended", "task-1", made, status="done", traceId="task-1", seat="worker")
    event = {"at": "2026-03-01T11:00:01.000Z", "type": "output", "text": "12", "data": {}}
    files.append(paths.run_output("task-1"), {**event, "stream": "stdout"})
    files.save(
        paths.trigger("trig-1"),
        Trigger(id="trig-1", type="recurring", prompt="read the news", trace_id="trig-1",
                created_at=made, schedule=Schedule(cron="0 9 * * *", timezone="UTC")),
    )  # fmt: skip
    said = Message(id="msg-1", role="user", text="which tea?", created_at=made)
    reply = Message(
        id="msg-2", role="agent", text="*Green* tea.", created_at=made + timedelta(seconds=3),
        turn_id="turn-1", in_reply_to=["msg-1"], engine="builtin", duration_ms=900,
        usage=Usage(input_tokens=900, output_tokens=40),
    )  # fmt: skip
    HistoryStore(files).add([said, reply])
    hit = Hit(source="memory.md", text="The user likes green tea.", line=1)
    turn = TurnRecord(
        id="turn-1", author="teller", injected=[hit], started_at=made, completed_at=made
    )
    files.save(paths.turn_done("turn-1"), turn)
    files.save(
        paths.turn_prompt("turn-1"),
        TurnPrompt(
            id="turn-1", role="teller", engine="mine", model="qwen3", status="done", at=made,
            instructions="You talk with the user of this machine. …",
            prompt="You are the Mimikit runtime teller.\n…", tools=["reply", "remember"],
            calls=[ToolUse(name="remember", ok=True, arguments='{"content": "tea"}', reply="ok")],
            hits=[hit], requests=2, usage=Usage(input_tokens=1300, output_tokens=40),
        ),
    )  # fmt: skip
    files.write(paths.MEMORY, b"The user likes green tea.\n")
    files.write(paths.CONFIG, ENDPOINT.encode())
    files.write(paths.channel("phone"), b"ntfy://mimikit-7fq2k9\n")
    run = Improvement(
        id="lint-1", item="lint", started_at=made, plan="task-8", end="committed",
        branch=f"{BRANCHES}lint-1",
    )  # fmt: skip
    files.save(paths.SELF_AWAKE, SelfAwakeState(past=[run], taken={"lint": made}))
    notice = SentNotice(at=made, channel="phone", title="Failed: backup", outcome="sent")
    files.save(paths.NOTIFICATION_STATE, NotificationState(sent=[notice]))
    files.write(paths.BACKLOG, b"- [ ] water the plants\n")
    files.save(
        paths.PENDING_QUESTION,
        Question(question_id="q-1", question="Which disk?", created_at=made,
                 expires_at=NOW + timedelta(hours=1), options=["the small one"]),
    )  # fmt: skip
    ChangeFeed(files, clock).publish("message", id="msg-2")
    live = LiveRun(id="task-9", role="worker", started_at=NOW, headline="reads")
    health = Health(
        pid=1, version="0", started_at=made, beat_at=NOW, worker_seats=3, live=[live],
        engines={"standard": EngineStatus(engine="codex")},
    )  # fmt: skip
    files.save(paths.HEALTH, health)


def make_client() -> tuple[Client, Files]:
    disk, clock = MemoryDisk(), FakeClock(NOW)
    files = Files(disk)
    make_state(files, clock)
    settings = Settings(timezone="UTC")

    def search() -> MemorySearch:
        return MemorySearch(files, workspace=None, index=None, zone=settings.zone, clock=clock)

    nowhere = Path("/nowhere")
    app = build_web(
        State(nowhere, nowhere, files, settings, clock, EventLog(files, clock)),
        token=TOKEN, bound=("127.0.0.1", 8787), search=search,
        trial=lambda _request, _state: TRIED,
    )  # fmt: skip
    app.extensions[EXTENSION] = replace(app.extensions[EXTENSION], worktrees=OneBranch())
    return Client(app), files


def answered(method: str, path: str) -> tuple[str, int, Any]:
    """The address that was asked, the status and the answer, each time over a state of its own."""
    address, body = ASKED.get(f"{method} {path}", (_filled(path), None))
    client, files = make_client()
    if method in ("POST", "PATCH", "DELETE", "PUT") and (
        "task-1" in address
        or "trig-1" in address
        or "engines" in address
        or path in ("/api/self-awake", "/api/settings")
    ):
        files.remove(paths.HEALTH)  # nobody is there to carry out a command
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "127.0.0.1:8787"}
    sent: dict[str, Any] = {"json": body} if body is not None else {}
    if path == "/api/files":
        headers["Content-Type"], sent["data"] = "application/octet-stream", b"Milk, bread"
    elif method != "GET" and body is None:
        headers["Content-Type"] = "application/json"
    response = client.open(address, method=method, headers=headers, **sent)
    data = json.loads(response.get_data()) if response.mimetype == "application/json" else None
    return address, response.status_code, data


def _filled(path: str) -> str:
    ids = {
        "task_id": "task-1",
        "job_id": "task-1",
        "trigger_id": "trig-1",
        "trace_id": "task-1",
        "turn_id": "turn-1",
    }
    return path.format(**ids, path="memory.md", name="deepseek")


def openapi_json() -> str:
    """What `GET /api/openapi.json` answers."""
    routes = [route for area in AREAS for route in area.table]
    return json.dumps(openapi.document(routes), ensure_ascii=False, indent=1) + "\n"


# ---- the page of the docs


def http_md() -> str:
    routes = [route for area in AREAS for route in area.table]
    document = openapi.document(routes)
    schemas = document["components"]["schemas"]
    lines = [HEAD]
    for path, item in document["paths"].items():
        for method, operation in item.items():
            lines += _route(method.upper(), path, operation, schemas)
    lines.append("## Shapes\n")
    used = [name for name in schemas if name not in _bodies(document)]
    for name in used:
        lines += _shape(name, schemas[name])
    return "\n".join(lines).rstrip() + "\n"


def _route(method: str, path: str, operation: dict[str, Any], schemas: Any) -> Iterator[str]:
    yield f"## `{method} {path}`\n\n{operation['summary']}\n"
    asked = [p for p in operation["parameters"] if p["in"] == "query"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if asked:
        yield from _table("Query", ((p["name"], p["schema"], p["required"]) for p in asked))
    if body:
        model = schemas[_name(body["schema"]["$ref"])]
        if text := model.get("description"):
            yield f"{text}\n"
        required = model.get("required", [])
        fields = model.get("properties", {}).items()
        yield from _table("Body", ((name, schema, name in required) for name, schema in fields))
    for status, response in operation["responses"].items():
        schema = response.get("content", {}).get("application/json", {}).get("schema")
        if status != "default" and schema:
            yield f"Answer {status}: {_type(schema)}\n"
    if path not in ("/api/events", "/api/openapi.json", "/api/files/{file_id}"):
        yield from _example(method, path)


def _example(method: str, path: str) -> Iterator[str]:
    address, status, data = answered(method, path)
    body = ASKED.get(f"{method} {path}", ("", None))[1]
    if isinstance(data, dict) and "tookMs" in data:
        data["tookMs"] = 1.2
    if path == "/api/login":
        data["key"] = "0" * 64  # another one each time
    yield "```"
    yield f"{method} {address}" + (f" {_compact(body)}" if body is not None else "")
    yield f"→ {status}"
    # Of the feed's file the name is made by chance.
    text = re.sub(
        r"seg-[0-9a-z]{26}", "seg-" + "0" * 26, json.dumps(data, ensure_ascii=False, indent=2)
    )
    told = text.split("\n")
    yield from told[:MOST_LINES]
    if len(told) > MOST_LINES:
        yield f"… ({len(told) - MOST_LINES} more lines)"
    yield "```\n"


def _table(head: str, fields: Any) -> Iterator[str]:
    rows = [
        f"| `{name}`{'' if needed else ' ?'} | {_type(schema)} | {_text(schema)} |"
        for name, schema, needed in fields
    ]
    if rows:
        yield "\n".join([f"| {head} | Type | |", "| --- | --- | --- |", *rows]) + "\n"


def _shape(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    if text := schema.get("description"):
        yield f"{text}\n"
    fields = schema.get("properties", {}).items()
    yield from _table("Field", ((field, made, True) for field, made in fields))


def _text(schema: dict[str, Any]) -> str:
    default = schema.get("default")
    said = [schema.get("description", ""), f"default {_compact(default)}" if default else ""]
    return " ".join(part for part in said if part).replace("|", "\\|")


def _type(schema: dict[str, Any]) -> str:
    """A type in words, with links to shapes; bounds with it."""
    if "$ref" in schema:
        name = _name(schema["$ref"])
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{_compact(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{_compact(value)}`" for value in schema["enum"])
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(map(_type, options)))
    kind = schema.get("type", "any")
    if kind == "array":
        inner = schema.get("items") or {}
        pair = inner.get("prefixItems")
        return "list of pairs" if pair else f"list of {_type(inner)}"
    if kind == "object":
        value = schema.get("additionalProperties")
        return f"object of {_type(value)}" if isinstance(value, dict) and value else "object"
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum")
    bounds = f" {low}…{high}" if low is not None and high is not None else ""
    longest = schema.get("maxLength")
    return kind + bounds + (f" up to {longest}" if longest else "")


# ---- the types of the page


def types_ts() -> str:
    routes = [route for area in AREAS for route in area.table]
    lines = [
        "/**",
        " * Shapes of the server's JSON; docs/http.md explains the fields.",
        " * Made by scripts/make_http_docs.py; do not edit.",
        " */",
    ]
    document = openapi.document(routes)
    bodies = _bodies(document)
    for name, schema in document["components"]["schemas"].items():
        if name not in bodies:
            lines += _ts_type(name, schema)
    return "\n".join([*lines, "", 'type Change = ChangeList["events"][number];\n'])


def _ts_type(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"\ninterface {_ts_name(name)} {{"
    for field, made in schema.get("properties", {}).items():
        yield f"  {field}: {_ts(made)};"
    yield "}"


def _ts_name(name: str) -> str:
    if name == "ErrorView":
        return name  # `Error` is the language's own
    return re.sub(r"View$", "", name.removesuffix("-Output"))


def _ts(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _ts_name(_name(schema["$ref"]))
    if "const" in schema:
        return _compact(schema["const"])
    if "enum" in schema:
        return " | ".join(map(_compact, schema["enum"]))
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(map(_ts, options)))
    kind = schema.get("type", "any")
    if kind == "array":
        inner = schema.get("items") or {}
        if pair := inner.get("prefixItems"):
            return f"[{', '.join(map(_ts, pair))}][]"
        made = _ts(inner)
        return f"({made})[]" if " | " in made else f"{made}[]"
    if kind == "object":
        if schema.get("properties"):
            return _ts_fields(schema)
        value = schema.get("additionalProperties")
        inner = _ts(value) if isinstance(value, dict) and value else "any"
        return f"Record<string, {inner}>"
    return {"integer": "number"}.get(kind, kind)


def _ts_fields(schema: dict[str, Any]) -> str:
    fields = schema.get("properties", {})
    return "{" + ", ".join(f"{name}: {_ts(made)}" for name, made in fields.items()) + "}"


def _bodies(document: dict[str, Any]) -> set[str]:
    """Schemas of which there is nothing in an answer."""
    answered: set[str] = set()
    waiting = [
        response
        for item in document["paths"].values()
        for operation in item.values()
        for response in operation["responses"].values()
    ]
    schemas = document["components"]["schemas"]
    while waiting:
        for name in map(_name, re.findall(r'"\$ref": "([^"]+)"', json.dumps(waiting.pop()))):
            if name not in answered:
                answered.add(name)
                waiting.append(schemas[name])
    return set(schemas) - answered


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    OPENAPI.write_text(openapi_json())
    DOCS.write_text(http_md())
    TYPES.write_text(types_ts())
