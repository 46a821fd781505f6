"""The builtin engine: what it does and replies for each sentence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.engines.base import CancelToken, Done, Outcome, TaskLine, ToolReply, TurnInput
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.engines.builtin.references import resolve, resolve_upstream
from mimikit.language.phrases import ResultNotice
from mimikit.protocol.models import Hit, Message, Question, Usage
from tests.support.engine_requests import NOW, Desk, inputs, make_request, task

ENGINE = BuiltinEngine({"ls", "date", "echo", "sleep"}.__contains__)

TASKS = (
    TaskLine("task-aaaa1111", "ls -la", "running"),
    TaskLine("task-aabb2222", "backup the photos", "queued"),
    TaskLine("task-dead3333", "backup the mails", "done"),
    TaskLine("trig-cccc4444", "备份数据库", "trigger", "trigger"),
)
BACKUPS = (
    TaskLine("task-old11111", "backup", "done", created_at=NOW - timedelta(hours=2)),
    TaskLine("task-new22222", "backup", "failed", created_at=NOW - timedelta(hours=1)),
    TaskLine("task-plan3333", "after backup: date", "running", "planner", NOW),
)


def tell(*texts: str, desk: Desk | None = None, **fields: Any) -> tuple[str, Desk]:
    desk = desk or Desk()
    turn_input = TurnInput(now=NOW, inputs=inputs(*texts), **fields)
    outcome = ENGINE.run(make_request("teller", turn_input, desk))
    assert outcome.status == "done"
    assert outcome.text
    return outcome.text, desk


def plan(prompt: str, desk: Desk | None = None, **fields: Any) -> tuple[Outcome, Desk]:
    desk = desk or Desk()
    turn_input = TurnInput(now=NOW, task=task(prompt, role="planner", **fields))
    return ENGINE.run(make_request("planner", turn_input, desk)), desk


def planned(prompt: str, *tasks: TaskLine) -> Any:
    """The only tool call of a plan, without the command's arguments, or its text."""
    desk, now, own = Desk(), NOW + timedelta(hours=3), task(prompt, role="planner")
    turn_input = TurnInput(now=now, timezone="America/New_York", tasks=tasks, task=own)
    outcome = ENGINE.run(make_request("planner", turn_input, desk))
    assert outcome.status == "done"
    if not desk.calls:
        assert outcome.text
        return outcome.text
    [(tool, arguments)] = desk.calls
    command = {key: arguments.pop(key) for key in ("prompt", "title", "profile")}
    assert command == {"prompt": "date", "title": "date", "profile": "command"}
    return tool, arguments


def question(**fields: Any) -> Question:
    return Question(
        question_id="q-1",
        question="Which one?",
        created_at=NOW,
        expires_at=NOW + timedelta(hours=1),
        planner_task_id="task-plan",
        **fields,
    )


def refusing(reason: str) -> Desk:
    return Desk(lambda _name, _arguments: ToolReply(False, reason))


# ---- Teller: commands


def test_a_command_is_delegated_verbatim_and_shown() -> None:
    text, desk = tell("run: ls -la | head -3")
    assert desk.calls == [
        ("delegate", {"prompt": "run: ls -la | head -3", "title": "ls -la | head -3"})
    ]
    assert "```sh\nls -la | head -3\n```" in text
    assert "running this now" in text


def test_a_schedule_is_delegated_verbatim_and_described() -> None:
    text, desk = tell("每 10 秒执行 date")
    assert desk.calls == [("delegate", {"prompt": "每 10 秒执行 date", "title": "每 10 秒: date"})]
    assert "每 10 秒运行一次" in text
    assert "```sh\ndate\n```" in text


def test_the_reply_is_in_the_language_of_the_sentence_not_of_the_command() -> None:
    assert "运行" in tell("运行：ls -la some english words here")[0]
    assert "running" in tell("run: echo 你好，世界，这是中文")[0]


def test_a_refused_delegation_is_reported_with_its_reason() -> None:
    text, _ = tell("run: ls", desk=refusing("at most 3 delegations a turn"))
    assert text == "I could not do `run: ls`: at most 3 delegations a turn"


def test_several_inputs_are_answered_in_order() -> None:
    text, desk = tell("run: ls", "remember: tea", "run: date")
    assert [name for name, _ in desk.calls] == ["delegate", "remember", "delegate"]
    assert text.index("ls") < text.index("tea") < text.index("date")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("every 0.1 seconds: run ls", "at least one second"),
        ("every 999 days: run ls", "366 days"),
        ("run: ls every 10 minutes", "backticks"),
        ("run: ls\nrun: date", "more than one request"),
        ("run:", "Run what? Say the command as well: `run: date`"),
        ("every day at 9 run", "`every day at 9: run: date`"),
        ("每天9点运行", "`每天9点 运行：date`"),
        ("every 10 decades run date", "`every 10 decades` means as a time"),
        ("every day at 9: coffee", "- `remind me every day at 9: coffee`"),
        ("every day at 9 run foo", "- `every day at 9 run: foo`"),
        ("每天9点到周五拉伸", "- `每天9点到周五提醒我：拉伸`"),
    ],
)
def test_an_impossible_sentence_starts_nothing_and_is_explained(text: str, word: str) -> None:
    reply, desk = tell(text)
    assert word in reply
    assert desk.calls == []


# ---- Teller: the backlog


@pytest.mark.parametrize(
    ("sentence", "action", "item", "said"),
    [
        ("add milk to my backlog", "add", "milk", "I'm putting it on the backlog: milk"),
        ("backlog done: milk", "done", "milk", "I'm ticking it off on the backlog: milk"),
        ("remove milk from my to-do list", "remove", "milk", "I'm taking it off the backlog: milk"),
        ("添加待办：买牛奶", "add", "买牛奶", "已记到待办清单：买牛奶"),
        ("完成待辦「買牛奶」", "done", "買牛奶", "已在待办清单里勾掉：買牛奶"),
        ("把买牛奶从待办里删掉", "remove", "买牛奶", "已从待办清单里删除：买牛奶"),
    ],
)
def test_the_backlog_is_changed_as_the_sentence_says(
    sentence: str, action: str, item: str, said: str
) -> None:
    text, desk = tell(sentence)
    assert desk.calls == [("update_backlog", {"action": action, "item": item})]
    assert text == said


@pytest.mark.parametrize(
    ("sentence", "head"), [("backlog", "This is on"), ("待辦", "待办清单里有")]
)
def test_the_backlog_is_listed(sentence: str, head: str) -> None:
    desk = Desk(lambda _name, _arguments: ToolReply(True, "- [ ] milk\n- [x] bread"))
    text, _ = tell(sentence, desk=desk)
    assert desk.calls == [("update_backlog", {"action": "list"})]
    assert text.startswith(head)
    assert text.endswith("\n\n- [ ] milk\n- [x] bread")
    nothing = Desk(lambda _name, _arguments: ToolReply(True, "nothing"))
    assert "`backlog add: …`" in tell("backlog", desk=nothing)[0]


# ---- Teller: times, files, chains


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("in 5 minutes: run date", "run on Saturday, 2026-11-21 at 17:35 (Asia/Shanghai):"),
        ("tomorrow at 9: run date", "run on Sunday, 2026-11-22 at 09:00 (Asia/Shanghai):"),
        ("run date at 2026-12-01T00:00Z", "run on Tuesday, 2026-12-01 at 08:00 (Asia/Shanghai):"),
        ("every weekday at 9: run date", "run every weekday at 09:00 (Asia/Shanghai):"),
        ("every 10 minutes: run date", "run every 10 minutes:"),
        ("when notes.txt changes: run date", "run whenever `notes.txt` changes:"),
        ("when `out put.csv` exists: run date", "run as soon as `out put.csv` exists:"),
        ("after photos: run date", "run after `backup the photos` is done:"),
        ("after task-zzzz9: run date", "run after `task-zzzz9` is done:"),
        ("5 分钟后运行 date", "2026-11-21（周六）17:35（Asia/Shanghai）运行一次："),
        ("每周一和周四 18:30 运行 date", "每周一和周四 18:30（Asia/Shanghai）运行一次："),
        ("当 notes.txt 变化时运行 date", "每当 `notes.txt` 变化时运行一次："),
        ("当 out.csv 出现时运行 date", "`out.csv` 一出现就运行一次："),
        ("备份 完成后运行：date", "`备份数据库` 完成后运行一次："),
    ],
)
def test_a_later_run_is_delegated_verbatim_with_its_time(sentence: str, words: str) -> None:
    text, desk = tell(sentence, tasks=TASKS, timezone="Asia/Shanghai")
    assert words in text
    assert "```sh\ndate\n```" in text
    [(tool, arguments)] = desk.calls
    assert tool == "delegate"
    assert arguments["prompt"] == sentence
    assert arguments["title"].endswith(": date")


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("2020-01-01 9:00: run date", "has passed (on Wednesday, 2020-01-01 at 09:00 (UTC))"),
        ("today at 9:00: run date", "still to come: `tomorrow at 9:00: run date`"),
        ("今天 9 点运行 date", "已经过去了（2026-11-21（周六）09:00（UTC））"),
        ("after mails or so: run date", "no task that fits “mails or so”"),
        ("after it: run date", "no task that fits “it”"),
        ("午饭之后运行：date", "没有找到与「午饭」相符的任务"),
        ("when data changes: run date", "not sure which file"),
        ("run date tomorrow", "Say the time first"),
    ],
)
def test_an_invalid_later_run_is_explained_and_starts_nothing(sentence: str, words: str) -> None:
    text, desk = tell(sentence, tasks=TASKS)
    assert words in text
    assert desk.calls == []


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("backup", "task-new22222"),
        ("Backup", "task-new22222"),
        ("task-old11111", "task-old11111"),
        ("task-old", "task-old11111"),
        ("nothing", None),
        ("", None),
        ("after", None),
    ],
)
def test_a_title_refers_to_the_newest_ended_task(reference: str, expected: str | None) -> None:
    found = [line.id for line in resolve_upstream(reference, BACKUPS)]
    assert found == ([expected] if expected else [])


def test_a_live_task_wins_over_ended_ones_and_titles_that_differ_are_all_shown() -> None:
    live = TaskLine("task-live4444", "backup", "queued", created_at=NOW - timedelta(hours=3))
    assert resolve_upstream("backup", (*BACKUPS, live)) == [live]
    other = TaskLine("task-mail5555", "backup mails", "done", created_at=NOW)
    assert resolve_upstream("backup", (*BACKUPS, other)) == [BACKUPS[1]]
    photos = TaskLine("task-phot6666", "mails and backup", "done", created_at=NOW)
    assert resolve_upstream("mails", (other, photos)) == [other, photos]


# ---- Teller: memory


def test_recall_lists_hits_with_their_source() -> None:
    hits = (
        Hit(source="memory.md", text="The user\n| a | torn\nlikes tea."),
        Hit(source="memory/2026-01-28.md", text="Tea again."),
    )
    text, desk = tell("what do you know about tea?", memory=hits)
    assert "- The user likes tea. — `memory.md`" in text
    assert "- Tea again. — `memory/2026-01-28.md`" in text
    assert "no language model is connected" in text
    assert desk.calls == []


@pytest.mark.parametrize(
    ("message", "note", "more"),
    [
        ("what is the weather in Paris?", "Paris is home.", "Your notes have this on it:"),
        ("what is the weather in Paris?", "What is the best time?", None),
        ("巴黎的天气怎么样", "我住在巴黎", "你的笔记里有这些相关内容："),
        ("巴黎的天气怎么样", "怎么样都行", None),
        ("taks", "", "The nearest sentence I know: `tasks`"),
        ("remnid me of the cat", "", "The nearest sentence I know: `remind me tomorrow at 9 to"),
        ("tell me a story", "", None),
    ],
)
def test_what_is_not_understood_says_so_in_two_lines_and_quotes_only_notes_about_it(
    message: str, note: str, more: str | None
) -> None:
    docs = Hit(source="docs/setup.md", text=f"| {message} |", kind="docs")
    said = Hit(source="memory/2026-01-28.md", text=message, role="user")
    text, desk = tell(message, memory=(docs, said, Hit(source="memory.md", text=note)))
    first, second, *rest = filter(None, text.split("\n"))
    assert "no language model is connected" in first or "没有连接语言模型" in first
    assert "codex login" in second
    assert "mimikit engine add" in second
    assert bool(rest) == (more is not None)
    assert not rest or rest[0].startswith(more or "")
    assert rest[1:] == ([f"- {note} — `memory.md`"] if note and rest else [])
    assert desk.calls == []


# ---- Teller: tasks


def test_tasks_are_listed_from_the_brief() -> None:
    text, desk = tell("tasks", tasks=TASKS)
    assert desk.calls == [("list_tasks", {"scope": "all"})]
    assert "- `ls -la` — running\n" in text
    assert "- `备份数据库` — scheduled" in text
    assert "- `backup #old111` — done" in tell("tasks", tasks=BACKUPS)[0]
    assert tell("任务")[0] == "没有正在运行、等待或定时的任务。"


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("task-aaaa1111", "task-aaaa1111"),
        ("task-dead3333", "task-dead3333"),
        ("task-aaaa", "task-aaaa1111"),
        ("aabb", "task-aabb2222"),
        ("the backup", "task-aabb2222"),
        ("LS -la", "task-aaaa1111"),
        ("photos", "task-aabb2222"),
        ("备份", "trig-cccc4444"),
        ("数据库任务", None),
        ("task-", None),
        ("aa", None),
        ("mails", None),
        ("up", None),
        ("", None),
        ("it", None),
    ],
)
def test_a_reference_is_resolved_by_id_start_of_id_or_title(
    reference: str, expected: str | None
) -> None:
    found = resolve(reference, TASKS)
    assert [task.id for task in found] == [expected] if expected else len(found) != 1


def test_a_task_is_canceled_by_the_words_of_its_title() -> None:
    text, desk = tell("remove the photos backup, please", tasks=TASKS)
    assert desk.calls == [("cancel_task", {"id": "task-aabb2222"})]
    assert text == "I'm canceling `backup the photos`."


TWINS = (*TASKS[:2], TaskLine("task-bbbb5555", "backup the photos", "queued"))
CHOICES = ["cancel ls -la", "cancel backup the photos #aabb22", "cancel backup the photos #bbbb55"]


@pytest.mark.parametrize(
    ("sentence", "options"),
    [
        ("cancel", [*CHOICES, "cancel all", "No, leave it"]),
        ("stop it", [*CHOICES, "cancel all", "No, leave it"]),
        ("delete", [*CHOICES, "cancel all", "No, leave it"]),
        ("cancel everything please", [*CHOICES, "cancel all", "No, leave it"]),
        ("cancel everything nobody knows", [*CHOICES, "No, leave it"]),
        ("delete the photos", [*CHOICES[1:], "No, leave it"]),
        ("全部删除", [*(c.replace("cancel", "取消") for c in CHOICES), "取消全部", "不用了"]),
    ],
)
def test_without_a_name_that_fits_one_task_the_titles_are_a_choice(
    sentence: str, options: list[str]
) -> None:
    text, desk = tell(sentence, tasks=(*TWINS, TASKS[2]))
    [(tool, asked)] = desk.calls
    assert (tool, asked["options"], asked["default"]) == ("ask_user", options, options[-1])
    assert asked["question"] in text
    listed, _ = tell(sentence, tasks=TWINS, desk=refusing("a question is open already"))
    assert "- `backup the photos #aabb22` — " in listed


def test_schedules_of_one_title_are_told_apart_by_their_times() -> None:
    words = [{"en": f"every {n} hours", "zh": f"每 {n} 小时"} for n in (2, 3)]
    twins = tuple(
        TaskLine(f"trig-{n}ab", "date", "trigger", "trigger", words=when)
        for n, when in enumerate(words)
    )
    options = tell("stop date", tasks=twins)[1].calls[0][1]["options"]
    assert options[:2] == ["cancel date (every 2 hours)", "cancel date (every 3 hours)"]
    asked = question(options=options).but(planner_task_id=None)
    _, desk = tell(options[1], question=asked, tasks=twins)
    assert desk.calls[1] == ("cancel_task", {"id": "trig-1ab"})


@pytest.mark.parametrize(
    ("answer", "canceled"),
    [
        ("2", ["task-aabb2222"]),
        ("cancel 1", ["task-aaaa1111"]),
        ("ls -la", ["task-aaaa1111"]),
        ("cancel backup the photos #bbbb55", ["task-bbbb5555"]),
        ("all", ["task-aaaa1111", "task-aabb2222", "task-bbbb5555"]),
        ("5", []),
    ],
)
def test_the_choice_is_answered_by_number_title_or_sentence(
    answer: str, canceled: list[str]
) -> None:
    options = [*CHOICES, "cancel all", "No, leave it"]
    asked = question(options=options).but(planner_task_id=None)
    text, desk = tell(answer, question=asked, tasks=TWINS)
    assert [arguments["id"] for _, arguments in desk.calls[1:]] == canceled
    assert desk.calls[0][0] == "answer_question"
    assert ("canceling" in text) == bool(canceled)
    assert tell("what is up?", question=asked, tasks=TWINS)[1].calls == []


# ---- Teller: itself, questions, results


def test_status_shows_the_facts() -> None:
    facts = ({"en": "codex serves all", "zh": "codex 负责全部"}, {"en": "none", "zh": "没有"})
    assert "- codex serves all\n- none" in tell("status", facts=facts)[0]
    assert "- codex 负责全部\n- 没有" in tell("状态", facts=facts)[0]


def test_a_plain_answer_goes_to_the_pending_question() -> None:
    text, desk = tell("the blue one", "and why?", question=question())
    assert desk.calls == [("answer_question", {"questionId": "q-1", "text": "the blue one"})]
    assert "passed your answer on" in text
    assert "no language model is connected" in text


def test_a_command_is_no_answer_unless_it_is_an_option() -> None:
    assert tell("tasks", question=question())[1].calls == [("list_tasks", {"scope": "all"})]
    _, desk = tell("Cancel", question=question(options=["Go on", "cancel"]))
    assert desk.calls == [("answer_question", {"questionId": "q-1", "text": "cancel"})]


def test_results_are_reported_together_in_the_users_language() -> None:
    results = (
        ResultNotice("date", "date", "worker", "done", "Sat Nov 21", None, None, "task-1"),
        ResultNotice("ls", "ls", "worker", "failed", "", "exit code 2", "error", "task-2"),
    )
    said = Message(id="msg-0", role="user", text="运行：date", created_at=NOW)
    desk = Desk()
    turn_input = TurnInput(now=NOW, results=results, conversation=(said,))
    text = ENGINE.run(make_request("teller", turn_input, desk)).text
    assert "`date` 完成了。\n\n```text\nSat Nov 21\n```" in text
    assert "`ls` 失败了：退出码 2。" in text
    assert desk.calls == []


def test_a_turn_always_has_a_reply() -> None:
    assert ENGINE.run(make_request("teller", TurnInput(now=NOW))).text
    assert tell("")[0]


# ---- Planner


def test_a_command_is_planned_as_a_command_task() -> None:
    outcome, desk = plan("run: ls -la | head -3")
    assert outcome == Done()
    command = {"prompt": "ls -la | head -3", "title": "ls -la | head -3", "profile": "command"}
    assert desk.calls == [("delegate", command | {"type": "oneshot"})]


def at(run_at: str) -> dict[str, Any]:
    return {"type": "scheduled", "runAt": run_at}


def cron(line: str) -> dict[str, Any]:
    return {"type": "recurring", "cron": line, "timezone": "America/New_York"}


def of_file(kind: str, path: str) -> dict[str, Any]:
    return {"type": "conditional", "condition": {"type": kind, "params": {"path": path}}}


@pytest.mark.parametrize(
    ("prompt", "arguments"),
    [
        ("每隔两小时执行 date", {"type": "recurring", "interval": 7200}),
        # A relative time counts from the creation of the task.
        ("in 5 minutes: run date", at("2026-11-21T09:35:00.000Z")),
        ("run date tomorrow at 9:00", at("2026-11-22T14:00:00.000Z")),
        ("at 2026-12-01T09:00:00Z: run date", at("2026-12-01T09:00:00.000Z")),
        ("at 18:00: run date", at("2026-11-21T23:00:00.000Z")),
        ("every day at 9:00: run date", cron("0 9 * * *")),
        ("run date every weekday at 9", cron("0 9 * * 1-5")),
        ("每月 1 号 9 点运行 date", cron("0 9 1 * *")),
        ("when notes.txt changes: run date", of_file("file_changed", "notes.txt")),
        ("当「我的 笔记.md」变化时运行：date", of_file("file_changed", "我的 笔记.md")),
        ("when out.csv exists: run date", of_file("file_exists", "out.csv")),
    ],
)
def test_a_time_or_file_is_planned_as_a_schedule(prompt: str, arguments: dict[str, Any]) -> None:
    assert planned(prompt) == ("schedule", arguments)


@pytest.mark.parametrize(
    ("prompt", "upstream"),
    [
        ("after backup: run date", "task-new22222"),
        ("backup 完成后运行：date", "task-new22222"),
        ("在 task-old11111 之后运行：date", "task-old11111"),
        ("after task-01unseen: run date", "task-01unseen"),
    ],
)
def test_a_chain_is_planned_as_a_task_that_waits(prompt: str, upstream: str) -> None:
    arguments = {"type": "oneshot", "after": [upstream]}
    assert planned(prompt, *BACKUPS) == ("delegate", arguments)


@pytest.mark.parametrize("prompt", ["write me a poem", "run away with me", "tasks", "remember: x"])
def test_an_unplannable_request_is_explained_and_plans_nothing(prompt: str) -> None:
    outcome, desk = plan(prompt)
    assert outcome.status == "done"
    assert "no language model is connected" in outcome.text
    assert desk.calls == []


def test_a_plan_that_is_refused_fails_with_the_reason() -> None:
    outcome, _ = plan("run: ls", refusing("at most 20 tasks a plan"))
    assert outcome.status == "failed"
    assert outcome.reason == "refused"
    assert outcome.error
    assert "at most 20 tasks a plan" in outcome.error


def test_a_request_continued_from_anothers_question_is_never_run_as_a_command() -> None:
    prompt = "run: ls\n\nYou asked: Which?\nThe user answered: rm -rf ."
    outcome, desk = plan(prompt, parent_task_id="task-asker")
    assert desk.calls == []
    assert "no language model is connected" in outcome.text


# ---- Worker


def test_a_task_that_needs_a_model_fails_as_unavailable() -> None:
    turn_input = TurnInput(now=NOW, task=task("重构登录模块"))
    outcome = ENGINE.run(make_request("worker", turn_input))
    assert outcome.status == "failed"
    assert outcome.reason == "engine_unavailable"
    assert outcome.error
    assert "codex login" in outcome.error
    assert "智能体" in outcome.error


# ---- all roles


def test_a_cancel_between_two_inputs_stops_before_the_second() -> None:
    cancel = CancelToken()

    def answer(_name: str, _arguments: dict[str, Any]) -> ToolReply:
        cancel.cancel("canceled")
        return ToolReply(True, "ok")

    desk = Desk(answer)
    turn_input = TurnInput(now=NOW, inputs=inputs("run: ls", "run: date"))
    outcome = ENGINE.run(make_request("teller", turn_input, desk, cancel=cancel))
    assert outcome.status == "canceled"
    assert len(desk.calls) == 1


def test_it_is_always_available_costs_nothing_and_reports_on_the_way() -> None:
    desk = Desk()
    turn_input = TurnInput(now=NOW, inputs=inputs("run: ls"))
    outcome = ENGINE.run(make_request("teller", turn_input, desk))
    assert ENGINE.name == "builtin"
    assert ENGINE.unavailable() is None
    assert outcome.usage == Usage()
    assert [kind for kind, _, _ in desk.events] == ["note", "tool"]


@given(st.lists(st.text(max_size=200), max_size=4))
def test_any_input_is_answered_and_the_same_way_each_time(texts: list[str]) -> None:
    turn_input = TurnInput(now=NOW, inputs=inputs(*texts), tasks=TASKS)
    first, second = Desk(), Desk()
    outcomes = [ENGINE.run(make_request("teller", turn_input, desk)) for desk in (first, second)]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].text
    assert first.calls == second.calls


def test_programs_are_looked_up_on_path_by_default(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "frobnicate"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    desk = Desk()
    turn_input = TurnInput(now=NOW, inputs=inputs("run frobnicate", "run ls"))
    BuiltinEngine().run(make_request("teller", turn_input, desk))
    assert [arguments["prompt"] for _, arguments in desk.calls] == ["run frobnicate"]
