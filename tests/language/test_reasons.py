"""Reasons that code gives are read back and said in Chinese; none of the source is left out."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import mimikit
from mimikit.errors import BadRecord
from mimikit.language import phrases
from mimikit.language.phrases import ToldResult, has_han
from mimikit.language.reasons import reason_in, reason_words
from mimikit.triggers import registry

SOURCE = Path(mimikit.__file__).parent
ROOMS = (
    "app.py", "engines", "permission.py", "protocol", "roles", "runner", "state.py", "supervisor",
    "tasks", "tools", "triggers", "web",
)  # fmt: skip
GIVEN = {
    "Outcome": (2, "error"), "turned_away": (1, "said"), "cls": (2, "error"),
    "_failed": (0, "error"), "EngineAbsence": (0, "reason"), "EngineError": (0, ""),
    "EndpointError": (1, "said"),
    "ProgramLost": (0, ""), "SandboxAnswer": (1, "reason"),
    "result_of": (None, "error"), "end_without_engine": (None, "error"), "end_step": (4, "said"),
    "late_outcome": (None, ""), "RequestDenied": (None, "reason"), "rest": (1, ""),
    "_drop": (1, ""), "ReviewAnswer": (None, "why"), "_unbegun": (1, ""),
}  # fmt: skip
"""What makes a reason: the place and the name of the argument that says it."""
RAISED = {
    "engines/worktrees.py": {"BadInput"},
    "protocol/disk.py": {"UnsafeFile"},
    "protocol/ids.py": {"BadInput"},
    "protocol/json.py": {"BadRecord", "ValueError"},
    "protocol/models.py": {"ValueError"},
    "protocol/writer_lock.py": {"StorageError"},
    "triggers/conditions.py": {"BadInput"},
    "triggers/patterns.py": {"BadInput"},
    "triggers/registry.py": {"BadInput", "BadRecord", "Conflict"},
    "triggers/schedule.py": {"BadInput"},
}
"""Errors whose words are shown as the reason of something else: of a broken file, of a halt."""
SAYING = {
    "few_files", "few_processes", "held_words", "not_begun", "unavailable", "_advice", "_session",
    "_short", "_no_mind", "_refusal", "_why_stop", "_why_to_end", "command_refusal", "fallen",
    "misplaced", "why_to_end",
}  # fmt: skip
"""Functions whose texts are reasons."""
LISTED = {"_REMEDY": "{}: {}", "REASONS": "{}", "_COMPLAINTS": "{}", "_HELD_BY": "{}"}
"""Tables of reasons, and how each is said."""
OF_OTHERS = {
    "- (nothing of note)",  # a result
    "{}: {}; mend it",  # a file, and what is wrong with it in the words of what reads it
    "{}; {}",  # a reason and its cure, each of which stands for itself
    "waits for tokens{}",  # put together: see `SPOKEN`
    "{}; got {}", "{}; got {}{}", "expected {}, got {}", "{}.params.path: {}",  # see `WRONG`
}  # fmt: skip
SPOKEN = {
    "exit code 2\ncp: no space left": "退出码 2\ncp: no space left",
    "ended: silent for 30 s": "已结束：30 秒没有输出",
    "the engine failed: no program can be started: [Errno 24] Too many open files":
        "引擎出错：无法启动程序：[Errno 24] Too many open files",
    "codex is not logged in: no /home/a/auth.json; run `codex login`":
        "codex 没有登录：没有 /home/a/auth.json；请运行 `codex login`",
    "codex: expected codex, got no such program; install it with pip":
        "codex：需要 codex，没有找到这个程序；install it with pip",
    "http://127.0.0.1:9/v1 answered 404: no model named x; name one it has: "
    "`mimikit engine test glm` lists them":
        "http://127.0.0.1:9/v1 返回 404：no model named x；请选它有的模型："
        "`mimikit engine test glm` 会列出",
    "waits for tokens; runs under way have reserved what it needs":
        "等待 token；它需要的 token 已被正在执行的任务预留",
    "line 3: schedule.interval: Input should be greater than or equal to 1, got 0":
        "第 3 行：schedule.interval：应不小于 1，实际是 0",
    "line 2: cron: expected minute hour day month weekday, such as `0 9 * * 1-5`; got 'x; y'":
        "第 2 行：cron：应为“分 时 日 月 星期”，例如 `0 9 * * 1-5`，实际是 'x; y'",
    "fire: triggers/a.json: the disk is read-only; make it writable, nothing was changed":
        "触发：triggers/a.json：磁盘是只读的；请改为可写，没有改动任何东西",
    "nothing new is begun: 9 of 10 files are open; close some or raise the limit (`ulimit -n`)":
        "不再开始新的工作：已打开 9 个文件，上限 10；请关闭一些，或提高上限（`ulimit -n`）",
    "the check `make test` failed: exit code 2": "检查 `make test` 没有通过：退出码 2",
    "no login": "没有登录",
    "the 100 tokens of today are used up (`daily_tokens`)":
        "今天的 100 个 token 已用完（`daily_tokens`）",
}  # fmt: skip


TRIGGER = {
    "id": "t", "prompt": "date", "type": "recurring", "schedule": {"interval": 60},
    "title": "a", "profile": "standard", "priority": 5, "enabled": True, "cooldown": 1,
    "once": False, "overlap": "skip", "notify": "message", "timeout": 5, "maxAttempts": 1,
    "role": "worker", "createdAt": "2026-01-28T09:00:00.000Z", "traceId": "trace-1",
    "origin": "file",
}  # fmt: skip
ODD = (None, "", "x" * 40_000, "a/../b", 0, 10**9, 1.5, True, [1], {"a": 1})
SCHEDULES = (
    {}, {"cron": "x"}, {"cron": "0 0 31 2 *"}, {"cron": "0 9 * * *; rm"},
    {"interval": 60, "cron": "a"}, {"runAt": "x"}, {"runAt": "2300-01-01T00:00:00Z"},
    {"runAt": "2026-01-01T00:00:00"},
    {"interval": "x"}, {"interval": 60, "timezone": "Mars/Olympus"}, {"interval": 0}, {"every": 5},
)  # fmt: skip
CONDITIONS = (
    {}, {"type": "x", "params": {}}, {"type": "file_changed"},
    *({"type": "file_changed", "params": {"path": path}} for path in
      ("", "../a", ".mimikit/x", "a**b", "*a*b*c*d*e*", 1)),
    {"type": "file_exists", "params": {"path": "a", "odd": 1}},
    {"type": "task_done", "params": {"taskId": "-"}},
    {"type": "webhook", "params": {"name": "A b"}},
    {"type": "llm_eval", "params": {"prompt": "x" * 3000}},
    {"type": "and", "params": {"conditions": []}},
    {"type": "not", "params": {"condition": {"type": "task_done", "params": {"taskId": "t"}}}},
)  # fmt: skip
WRONG = [
    b"", b"{", b'{"a" 1}', b'{"a": 1', b'{"a": 1,}', b"{} {}", b'{"a": "b', b'{"a": "\n"}',
    b"{'a': 1}",
    b"[]", b"1", b'"x"', b"null", b"true", b'{"a": NaN}', b'{"a": 1e999}', b'{"a": 1, "a": 2}',
    b"\xff",
    b'{"a": "\\ud800"}', b'{"a": "\\x"}', b"[" * 10_000, b'{"id": "u"}', b" " * 10**7,
    *(json.dumps(TRIGGER | {field: odd}).encode() for field in TRIGGER for odd in ODD),
    *(json.dumps(TRIGGER | {"schedule": one, "type": None}).encode() for one in SCHEDULES),
    *(json.dumps(TRIGGER | {"schedule": None, "condition": one, "type": None}).encode()
      for one in CONDITIONS),
]  # fmt: skip
"""What a hand may have written where a trigger is expected; some of it is one."""


def spelled(node: ast.AST) -> list[str]:
    """The texts that stand so in the source, `{}` for what is put into them."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.FormattedValue):
        either = node.value
        both = [either.body, either.orelse] if isinstance(either, ast.IfExp) else []
        return [text for one in both for text in spelled(one)] or ["{}"]
    if isinstance(node, ast.JoinedStr):
        return ["".join(parts) for parts in itertools.product(*map(spelled, node.values))]
    return []


def texts(node: ast.expr, around: ast.AST, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The texts an expression can come to, through the names that a function gives them."""
    if found := spelled(node):
        yield from found
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body, around, seen)
        yield from texts(node.orelse, around, seen)
    elif isinstance(node, ast.Tuple):
        for value in node.elts:
            yield from texts(value, around, seen)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from texts(value, around, seen)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "self.clean":
        yield from texts(node.args[0], around, seen)
    elif isinstance(node, ast.Name) and node.id not in seen:
        for one in ast.walk(around):
            named = [it.id for it in getattr(one, "targets", []) if isinstance(it, ast.Name)]
            if isinstance(one, ast.Assign) and node.id in named:
                yield from texts(one.value, around, seen | {node.id})


def reasons() -> dict[str, str]:
    """Every reason in the source, and a place that gives it."""
    found: dict[str, str] = {}
    rooms = [SOURCE / room for room in ROOMS]
    for path in sorted(
        it for room in rooms for it in ([room] if room.suffix else room.rglob("*.py"))
    ):
        place = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            said: Iterable[str] = ()
            if isinstance(node, ast.FunctionDef):
                said = given_in(node, RAISED.get(place, set()))
            elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
                said = listed_in(node, node.value)
            for text in said:
                if re.sub(r"[{}\W]", "", text):
                    found.setdefault(text, place)
    return found


def listed_in(node: ast.Assign | ast.AnnAssign, table: ast.Dict) -> Iterator[str]:
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    how = LISTED.get(target.id) if isinstance(target, ast.Name) else None
    if how is not None:
        for value in table.values:
            for text in spelled(value):
                yield how.removesuffix("{}") + text


def given_in(function: ast.FunctionDef, raised: set[str]) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value and function.name in SAYING:
            yield from texts(node.value, function)
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name not in GIVEN and name not in raised:
            continue
        place, keyword = GIVEN.get(name, (0, ""))
        said = [it.value for it in node.keywords if keyword and it.arg == keyword]
        said += node.args[place : place + 1] if place is not None else []
        for one in said:
            yield from texts(one, function)


REASONS = reasons()


def operations() -> list[str]:
    """What the supervisor does in each pass, as it names it where that fails."""
    tree = ast.parse((SOURCE / "supervisor/loop.py").read_text(encoding="utf-8"))
    pairs = [it.elts for it in ast.walk(tree) if isinstance(it, ast.Tuple) and len(it.elts) == 2]
    tried = [it.args for it in ast.walk(tree) if isinstance(it, ast.Call) and len(it.args) == 3]
    firsts = [(one[0], one[1]) for one in (*pairs, *tried)]
    return [
        name.value
        for name, does in firsts
        if isinstance(name, ast.Constant)
        and isinstance(name.value, str)
        and isinstance(does, ast.Attribute | ast.Lambda)
    ]


def test_the_source_gives_reasons() -> None:
    assert len(REASONS) > 80
    for known in ("exit code {}", "ended: not done in time", "canceled"):
        assert known in REASONS


@pytest.mark.parametrize("text", sorted(REASONS.keys() - OF_OTHERS))
def test_each_reason_of_the_source_is_said_in_chinese(text: str) -> None:
    words = reason_words(text.replace("{}", "X7"))
    assert words is not None, f"reasons.toml lacks what {REASONS[text]} says"
    assert words["en"] == text.replace("{}", "X7")
    assert has_han(words["zh"])
    assert words["zh"].count("X7") == text.count("{}")


def test_whatever_is_wrong_with_a_trigger_s_file_is_said_in_chinese() -> None:
    said: set[str] = set()
    for data in WRONG:
        try:
            registry.parse("t", data, datetime(2026, 1, 28, tzinfo=UTC))
        except BadRecord as error:
            said.add(str(error))
    assert len(said) > 80
    # Whoever wrote it wrote `got`; the rest of each is ours.
    left = {text for text in said if not has_han(reason_in("zh", text))}
    half = {text for text in said if re.search("expected|should|[Ii]nput", reason_in("zh", text))}
    assert (left, half) == (set(), set())


@pytest.mark.parametrize("name", operations())
def test_what_keeps_the_supervisor_from_going_on_is_said_in_chinese(name: str) -> None:
    for why in (
        "a.json: the disk is full, or can hold no more files; free some space",
        "[Errno 5] x",
    ):
        said = reason_in("zh", f"{name}: {why}")
        assert name not in said
        assert has_han(said)
        assert "disk" not in said


@pytest.mark.parametrize("said", SPOKEN)
def test_sentences_that_belong_together_are_said_together(said: str) -> None:
    assert reason_in("zh", said) == SPOKEN[said]
    assert reason_in("en", said) == said


def test_the_words_of_others_stay_as_they_are() -> None:
    for text in ("Traceback (most recent call last):", "没有这个文件", "x" * 5000, "", "a\n\nb"):
        assert reason_words(text) is None
        assert reason_in("zh", text) == text
    assert reason_words(None) is None


def test_a_reason_that_holds_braces_or_a_long_line_of_signs_is_read_at_once() -> None:
    assert reason_in("zh", "exit code {0}") == "退出码 {0}"
    assert reason_in("zh", " of ".join("7" * 140)) == " of ".join("7" * 140)


def test_a_failure_that_is_told_in_chinese_has_its_reason_in_chinese() -> None:
    told = ToldResult(
        title="备份", prompt="x", seat="worker", status="failed", text="", failure_reason="error",
        error="exit code 2\ncp: no space left", task_id="task-1",
    )  # fmt: skip
    assert "退出码 2\ncp: no space left" in phrases.results([told], "zh")
    assert "exit code 2\ncp: no space left" in phrases.results([told], "en")
