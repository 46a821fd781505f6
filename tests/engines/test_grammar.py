"""The grammar of the builtin engine: a corpus, and properties of every text."""

from __future__ import annotations

import time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.engines.builtin.grammar import parse
from mimikit.engines.builtin.intents import (
    AskIntent,
    BadReason,
    BadSentence,
    FailedIntent,
    Intent,
    RemindIntent,
)
from mimikit.language.phrases import interval_words
from mimikit.language.times import parse_when
from tests.support.engine_requests import NOW
from tests.support.sentences import (
    After,
    At,
    Cancel,
    ChangeBacklog,
    Every,
    Forget,
    Plain,
    Recall,
    Remember,
    Run,
    Show,
    WhenFile,
    render,
)

# What a usual machine has; many of these are everyday words as well, which is what makes traps.
PROGRAM_NAMES = """
    as at awk bash cal cat cp cron curl cut date df docker du echo env factor false find free git
    grep head host htop id install jobs join kill last less ls look mail make man more mv nice node
    npm open paste patch pip play printf ps python python3 rm script sed seq sh size sleep sort
    source split stat strings tail tar tee test time top touch tree true type uname uptime users
    vim watch wc which who write yes 7z
"""
PROGRAMS = frozenset(PROGRAM_NAMES.split())

ASKED: dict[BadReason, list[str]] = {
    "run_what": [
        "run", "run:", "运行", "every day at 9 run", "every hour: run:", "每天9点运行",
    ],
    "remember_what": [
        "remember:", "记住",
    ],
    "item_what": [
        "backlog add", "backlog: done", "添加待办：",
    ],
    "time_unknown": [
        "every 10 decades run date", "run date every blue moon", "every tuesday-ish run date",
        "每十个甲子运行 date", "运行 date 每十个甲子", "周末早上10点提醒我跑步", "国庆节提醒我休息",
        "下班的时候提醒我买菜", "remind me every 45 minutes during work hours to stand",
    ],
    "reminding_none": ["remind me tomorrow to", "remind me to", "remind me at 9 about"],
    "remind_or_run": [
        "every day at 9: coffee", "at 9:00: a new beginning", "tomorrow run the tests",
        "Monday: run through the items", "every day run 5 km", "every 10 minutes run the report",
        "every minute run uptime and tell me", "10 分钟后跑五公里", "每天早上9点喝水",
        "每天9点到周五拉伸", "每两小时喝水",
    ],
}  # fmt: skip
UNDERSTOOD: list[tuple[str, Intent]] = [
    # A command after a colon stays as it is.
    ("run: ls -la | head -3", Run("ls -la | head -3")),
    ("run: echo 你好，世界。", Run("echo 你好，世界。")),
    ("run: `which python` --version", Run("`which python` --version")),
    ("run:\nset -e\nls\ndate", Run("set -e\nls\ndate")),
    ("请帮我运行：cat 笔记.md", Run("cat 笔记.md")),
    # A command in marks.
    ("please run `ls`", Run("ls")),
    ('run "ls -la" please', Run("ls -la")),
    ("run this:\n```\necho one\necho two\n```", Run("echo one\necho two")),
    ("『运行：ls』", Run("ls")),
    # A bare command that looks like one.
    ("run ls", Run("ls")),
    ("run the ls command", Run("ls")),
    ('run git commit -m "fix the bug and tell me"', Run('git commit -m "fix the bug and tell me"')),
    ("run ./build.sh --fast", Run("./build.sh --fast")),
    ("运行一下 git status 吧", Run("git status")),
    # Intervals.
    ("every 10 seconds run date", Every(10, "date")),
    ("every 10 minutes: run: echo every day", BadSentence("command_or_time", "")),
    ("run date every 10 minutes", Every(600, "date")),
    ("every 10 seconds run:\n```\ndate\n```", Every(10, "date")),
    ("每１０秒運行一次 date", Every(10, "date")),
    ("每一个半小时执行 date", Every(5400, "date")),
    # A time before the command.
    ("In 5 minutes, please run `rm old.txt`.", At("In 5 minutes", "rm old.txt")),
    ("tomorrow at 9: run date", At("tomorrow at 9", "date")),
    ("tomorrow at 9:00 run:\n```sh\nset -e\ndate\n```", At("tomorrow at 9:00", "set -e\ndate")),
    ("every day at 9:00: run date", At("every day at 9:00", "date")),
    ("every hour at :15: run date", At("every hour at :15", "date")),
    ("每天早上 9 点运行：date", At("每天早上 9 点", "date")),
    ("请在后天下午三点半帮我运行 `ls -la`", At("在后天下午三点半", "ls -la")),
    # A time behind the command.
    ("run date in 5 minutes", At("in 5 minutes", "date")),
    ("run ls -la tomorrow at 9:00", At("tomorrow at 9:00", "ls -la")),
    ("执行 date，明天早上 9 点", At("明天早上 9 点", "date")),
    ("run: date -d tomorrow", Run("date -d tomorrow")),
    ("run ls tomorrow", BadSentence("command_or_time", "")),
    ("run: date in 5 minutes", BadSentence("command_or_time", "")),
    # Files.
    ("when notes.txt changes: run date", WhenFile("notes.txt", "changed", "date")),
    ("whenever src/**/*.py changes run make test", WhenFile("src/**/*.py", "changed", "make test")),
    ("if the file `data` changes: run date", WhenFile("data", "changed", "date")),
    ("when log? changes: run date", BadSentence("file_or_word", "")),
    ("when out.csv exists: run date", WhenFile("out.csv", "exists", "date")),
    ("当 notes.txt 变化时运行：date", WhenFile("notes.txt", "changed", "date")),
    ("每当「我的 笔记」变化，运行：date", WhenFile("我的 笔记", "changed", "date")),
    ("当天气变化时运行：date", BadSentence("file_or_word", "")),
    ("when notes.txt changes: run date tomorrow at 9", BadSentence("command_or_time", "")),
    # Chains.
    ("after backup: run date", After("backup", "date")),
    ("after `npm test; echo: ok` run date", After("npm test; echo: ok", "date")),
    ("等「备份 照片」完成之后，运行：date", After("备份 照片", "date")),
    ("after backup: run date every day at 9", BadSentence("command_or_time", "")),
    # Understood, but not to be done so.
    ("every 0.2 seconds: run date", BadSentence("too_often", "")),
    ("every 367 days: run date", BadSentence("too_rare", "")),
    ("run: date every 10 minutes", BadSentence("command_or_time", "")),
    ("every 2 weeks on Monday: run date", At("every 2 weeks on Monday", "date")),
    ("每小时的第一分钟执行 date", BadSentence("time_unknown", "")),
    ("run: ls\nrun: date", BadSentence("several", "")),
    # Not understood whole: asked about, never half done.
    *[(text, BadSentence(reason, "")) for reason, texts in ASKED.items() for text in texts],
    # A time "to" do something is a reminder.
    (
        "every day at 9 until Friday to stretch",
        RemindIntent("every day at 9 until Friday", "stretch"),
    ),
    ("every 2 hours to drink water", RemindIntent("every 2 hours", "drink water")),
    ("at 9 to call mum", RemindIntent("at 9", "call mum")),
    # Memory.
    ("Remember: the deploy key is in the drawer?", Remember("the deploy key is in the drawer?")),
    ("记住我喜欢喝茶，谢谢", Remember("我喜欢喝茶")),
    ("what do you know about tea?", Recall("tea")),
    ("forget that I live in Rome", Forget("I live in Rome")),
    ("forget everything you know about Rome", Forget("Rome", True)),
    ("remove my address from your memory", Forget("my address")),
    ("把我住在罗马这件事忘掉", Forget("我住在罗马")),
    ("你知道关于 X 的什么", Recall("X")),
    ("你还记得我的生日吗？", Recall("我的生日")),
    ("search your memory: pnpm", Recall("pnpm")),
    # The backlog.
    ("backlog", Show("backlog")),
    ("what's on my to-do list?", Show("backlog")),
    ("backlog add: water the plants", ChangeBacklog("add", "water the plants")),
    ("add milk to my backlog", ChangeBacklog("add", "milk")),
    ("add to my backlog: is it really so?", ChangeBacklog("add", "is it really so?")),
    ("backlog done milk!", ChangeBacklog("done", "milk")),
    ("mark milk as done on my backlog", ChangeBacklog("done", "milk")),
    ("添加待办：买牛奶", ChangeBacklog("add", "买牛奶")),
    ("请把「买牛奶」放进我的待办清单里", ChangeBacklog("add", "买牛奶")),
    ("把买牛奶从待办里划掉", ChangeBacklog("done", "买牛奶")),
    ("把买牛奶从待办清单里删掉", ChangeBacklog("remove", "买牛奶")),
    # Tasks.
    ("what's running right now?", Show("tasks")),
    ("任务", Show("tasks")),
    # What is asked of tasks and triggers.
    *[
        (text, AskIntent("next", ref))
        for text, ref in {
            "When does it run next?": "it",
            "when's the next run?": "",
            "when is the next run of backup?": "backup",
            "下次什么时候运行": "",
            "它下次几点执行？": "它",
        }.items()
    ],
    *[
        (text, AskIntent("outcome", ref))
        for text, ref in {
            "did the backup work?": "backup",
            "Did it work": "it",
            "成功了吗": "",
            "备份跑完了没有": "备份",
        }.items()
    ],
    ("what failed today?", FailedIntent("today")),
    ("did anything fail yesterday?", FailedIntent("yesterday")),
    ("今天什么失败了", FailedIntent("today")),
    ("cancel the task “backup”", Cancel("backup")),
    ("删除任务 uptime", Cancel("uptime")),
    ("remove the backup", Cancel("the backup")),
    ("delete everything", Cancel("everything")),
    ("删掉 uptime", Cancel("uptime")),
    ("把备份停掉", Cancel("备份")),
    ("全部取消", Cancel("全部")),
    ("stop trig-9", Cancel("trig-9")),
    ("cancel #3", Cancel("3")),
    ("stop!", Cancel("")),
    ("停止备份任务", Cancel("备份任务")),
    # Itself.
    ("status", Show("status")),
    ("help", Show("help")),
    ("?", Show("help")),
]

TALK = [
    "did you sleep well?", "备份成功了", "", "hello", "I run every day", "run away with me",
    "run, Forrest, run!", "run find out who did it", "run ls and tell me what you see",
    "run rm -rf build and then rebuild the app", "run `ls` and then `date`", "run `unclosed",
    "in time: run date", "when notes.txt changes",
    "when notes.txt changes: tell me", "when the weather changes run inside",
    "when backup is done: run the tests", "if notes.txt changes, what happens when I run ls?",
    "don't run ls", "never run `rm -rf /`",
    "运行时错误怎么办", "怎么运行 ls", "然后运行：date",
    "当 notes.txt 变化时告诉我", "备份完成后告诉我", "forget to buy milk",
    "don't forget to buy milk", "忘记密码怎么办",
    "把 notes.txt 删除", "记住了吗", "cancellation policy", "取消订单怎么弄",
    "how do I add milk to the backlog?", "add milk to the backlog?",
    "add a task to the backlog for each failing test", "remove everything from the backlog",
    "backlog add: one\ntwo", "添加待办功能怎么实现？", "待办：有什么要做的吗？",
    "把买牛奶加到待办吗？", "搜索记忆功能怎么用", "知道关于部署的事情",
    "run: a\0b", "every second counts", "every day drink water", "midnight in Paris",
    "at 9 what happens?", "每天跑步", "delete notes.txt", "remove the file a",
]  # fmt: skip


def understood(text: str) -> Intent:
    return parse(text, PROGRAMS.__contains__)


@pytest.mark.parametrize(("text", "intent"), UNDERSTOOD, ids=[text for text, _ in UNDERSTOOD])
def test_a_sentence_is_understood(text: str, intent: Intent) -> None:
    got = understood(text)
    if isinstance(intent, BadSentence):
        assert isinstance(got, BadSentence)
        assert got.reason == intent.reason
        assert got.text
    else:
        assert got == intent


@pytest.mark.parametrize("intent", [intent for _, intent in UNDERSTOOD if isinstance(intent, At)])
def test_the_time_of_a_sentence_can_be_read_by_itself(intent: At) -> None:
    assert parse_when(intent.when, now=NOW, zone=ZoneInfo("Asia/Shanghai")) is not None


@pytest.mark.parametrize("text", TALK)
def test_talk_has_no_intent(text: str) -> None:
    assert understood(text) == Plain(text.strip())


def test_a_bare_command_needs_a_known_program() -> None:
    assert parse("run ls") == Plain("run ls")
    assert parse("run: ls") == Run("ls")


def test_a_command_after_a_colon_is_verbatim() -> None:
    command = "printf '%s\\n'  \"$HOME\"\t— “quotes”；＃ ；；  # 註解"
    assert parse(f"运行：{command}") == Run(command)
    assert parse(f"每 10 秒运行：{command}") == Every(10, command)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "text",
    [
        "please " * 30_000,
        "run `" + "`" * 200_000,
        "run: " + "ls\n" * 60_000,
        "every " + "1 hour and " * 20_000,
        "every " + "9" * 200_000 + " s: run date",
        "run:\n```\n" + "``\n" * 60_000,
        "at 9:00 and " * 16_000,
        "after " + " " * 200_000 + ":",
        "把a从待办" * 40_000,
    ],
    ids=lambda text: text[:20],
)
def test_a_hostile_text_is_parsed_quickly(text: str) -> None:
    def cost() -> float:
        started = time.process_time()
        understood(text)
        return time.process_time() - started

    # Of two, since the first may pay for the machine's other work.
    assert min(cost(), cost()) < 0.1


PIECES = """
    run execute every each hourly daily once please can you : ： ` ``` " ' 「 」 “ ” , ，。 ? 10 0.5
    two seconds s minutes half other and ls date echo find -la | ; the remember that what do know
    about tasks cancel task stop status help 运行 执行 跑 一下 每 隔 两 十 半 个 小时 秒 分钟 天
    记住 关于 知道 什么 任务 取消 请 谢谢 吗 吧 命令 你 的
    at in on tomorrow today monday day weekday 9 9:00 noon when whenever after notes.txt src/*.py
    changes exists is done backup task-01 明天 每天 早上 点 后 分 周 一 当 变化 存在 时 完成 之后
    在 等 再 过 文件 noon in half an hour
    backlog todo add remove mark as to from my list off 待办 添加 删除 把 加到 从 里 标记为 记忆
"""
WORDS = st.sampled_from([*PIECES.split(), "\n", "\t", "　"])
SENTENCES = st.lists(WORDS, max_size=12).map(" ".join) | st.lists(WORDS, max_size=12).map("".join)


@pytest.mark.parametrize(("letter", "odd"), [("s", "ſ"), ("i", "ı"), ("I", "İ"), ("k", "\u212a")])
def test_lookalike_letters_do_not_break_the_parser(letter: str, odd: str) -> None:
    for text, intent in UNDERSTOOD:
        assert isinstance(understood(text.replace(letter, odd)), Intent), intent


@given(st.text() | SENTENCES, st.sampled_from(["en", "zh"]))
def test_a_rendered_intent_parses_to_the_same_intent(text: str, language) -> None:
    intent = understood(text)
    if not isinstance(intent, Plain | BadSentence):
        assert parse(render(intent, language)) == intent


@pytest.mark.parametrize(
    ("seconds", "en", "zh"),
    [
        (10, "every 10 seconds", "每 10 秒"),
        (5400, "every 90 minutes", "每 90 分钟"),
        (1209600, "every 2 weeks", "每 2 周"),
        (1.5, "every 1.5 seconds", "每 1.5 秒"),
    ],
)
def test_an_interval_is_described_in_its_largest_whole_unit(
    seconds: float, en: str, zh: str
) -> None:
    assert interval_words(seconds, "en") == en
    assert interval_words(seconds, "zh") == zh
