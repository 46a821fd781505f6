"""What mimikit itself says, in English and Chinese: the words where no model speaks.

One table by message id; both languages hold the same ids and the same `{placeholders}`. Content
that came from elsewhere stands in a fence or a code span that it cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from mimikit.language.time_words import Language

MAX_OUTPUT = 2000
"""Characters of one result that are shown."""
MAX_OUTPUTS = 12_000
"""Characters of all results in one message."""

_EN = {
    "started": "I'm running this now and will tell you how it went:\n\n{command}",
    "scheduled": "I'm setting this up to run {when}:\n\n{command}\n\n"
    "`tasks` shows it, `cancel` with its name or id ends it.",
    "refused": "I could not do {what}: {reason}",
    "remembered": "I'll remember that: {content}",
    "backlog": "This is on the backlog:",
    "backlog_none": "The backlog is empty. Say `backlog add: …` to put something on it.",
    "backlog_add": "I'm putting it on the backlog: {item}",
    "backlog_done": "I'm ticking it off on the backlog: {item}",
    "backlog_remove": "I'm taking it off the backlog: {item}",
    "answered": "Thank you, I've passed your answer on.",
    "canceling": "I'm canceling {task}.",
    "cancel_none": "I found no running or waiting task that fits “{reference}”.",
    "cancel_empty": "There is nothing to cancel: nothing runs, waits or is scheduled.",
    "cancel_which": "Which one shall I cancel? Say `cancel` with the id:",
    "tasks": "Here is what I have:",
    "tasks_none": "Nothing is running, waiting or scheduled.",
    "status": "This is how things are:",
    "status_none": "All is quiet, and I have nothing to report.",
    "too_often": "An interval must be at least one second, so I did not set this up.",
    "too_rare": "An interval can be at most 366 days, so I did not set this up.",
    "command_or_time": "I'm not sure whether the time belongs to the command, so I did nothing. "
    "Say the time first: `every 10 minutes: run date`, `tomorrow at 9:00: run date`. To run the "
    "command just as it stands, put it in backticks.",
    "file_or_word": "I'm not sure which file you mean, so I did nothing. Put its path in "
    'quotes: `when "my notes" changes: run date`.',
    "time_passed": "That time has passed ({when}), so I did nothing. Say one that is still to "
    "come: `tomorrow at 9:00: run date`, or `in 5 minutes: run date`.",
    "time_unclear": "I can't tell when {words} is, so I did nothing. Say it like this: "
    "`2030-12-01 09:00: run date`, `tomorrow at 9:00: run date`, or `in 5 minutes: run date`.",
    "when_changed": "whenever {path} changes",
    "when_exists": "as soon as {path} exists",
    "when_done": "after {task} is done",
    "after_which": "Several fit “{reference}”, so I did nothing. Say it with the id of the one to "
    "wait for, as in `after ID: run date`:",
    "after_none": "I found no task that fits “{reference}”, so I did nothing. `tasks` shows what "
    "there is; say it with a name or an id from there: `after ID: run date`.",
    "several": "That looks like more than one request, so I did nothing. Send me one command a "
    "message, or put a script of several lines in a code fence.",
    "no_model": "I can't answer that in my own words: no language model is connected.",
    "connect": "To connect one, install the codex CLI and log in (`codex login`); "
    "`mimikit doctor` then tells you whether I can use it.",
    "hint": "Until then, say `help` to see what I understand, and write commands as "
    "`run: COMMAND`.",
    "memory_has": "This is what my memory has on it:",
    "memory_none": "My memory has nothing on it.",
    "recall_has": "This is what my memory has on “{about}”:",
    "recall_none": "My memory has nothing on “{about}”. Tell me: `remember: …`",
    "recall_by_search": "I only searched for words: no language model is connected that could read "
    "it for you (`mimikit doctor` says how to connect one).",
    "help": "No language model is connected, but I understand these sentences, in English and "
    "Chinese:\n\n"
    "- `run: ls -la`: run a command in your workspace\n"
    "- `every 10 minutes: run date`, `every weekday at 9:00: run date`: run it again and again\n"
    "- `in 5 minutes: run date`, `tomorrow at 9:00: run date`: run it later\n"
    "- `when notes.txt changes: run date`, `when out.csv exists: run date`: watch a file\n"
    "- `after backup: run date`: run it when a task is done\n"
    "- `tasks`: what runs, waits and has ended\n"
    "- `cancel backup`: end a task or a schedule, by name or id\n"
    "- `remember: I prefer tea`: keep it in memory\n"
    "- `what do you know about tea`: search memory\n"
    "- `backlog`, `backlog add: water the plants`, `backlog done: plants`, "
    "`backlog remove: plants`: your list of things to do\n"
    "- `status`: how I am\n\n"
    "{connect}",
    "result_done": "{title} is done.",
    "result_done_silent": "{title} is done. It printed nothing.",
    "result_failed": "{title} failed: {reason}.",
    "result_canceled": "{title} was canceled.",
    "result_other": "{title} ended: {status}.",
    "cut_end": "({hidden} more characters: `mimikit tasks show {id}` has them all.)",
    "cut_start": "(This is its end; {hidden} characters before it: `mimikit tasks show {id}` has "
    "them all.)",
    "reason_timeout": "it took longer than it may",
    "reason_error": "something went wrong in it",
    "reason_killed": "it was ended from outside before it was done",
    "reason_canceled": "it was canceled",
    "reason_engine_unavailable": "nothing that could carry it out is connected",
    "reason_rate_limited": "the model's usage limit is reached",
    "reason_budget": "the token budget is used up",
    "reason_refused": "a rule does not allow it",
    "reason_unknown": "it did not say why",
    "state_queued": "waiting",
    "state_running": "running",
    "state_trigger": "scheduled",
    "state_trigger_paused": "scheduled, paused",
    "state_done": "done",
    "state_failed": "failed",
    "state_canceled": "canceled",
    "plan_unknown": "I can't plan this: no language model is connected. Without one I plan only "
    "commands, such as `run: ls -la` or `tomorrow at 9:00: run date`. {connect}",
    "plan_refused": "the plan was refused: {reason}",
    "plan_no_task": "expected a request to plan, got none; send the message again",
    "worker_unavailable": "No agent is connected that could carry out this task. Install the codex "
    "CLI and log in (`codex login`), check with `mimikit doctor`, then retry the task; a shell "
    "command needs no agent: `run: COMMAND`.",
    "note_reading": "reading your message",
    "note_telling": "telling what has ended",
    "note_planning": "planning",
    "turn_failed": "I could not answer: {error}. Your message is kept; send it again to retry.",
    "turn_stopped": "Stopped. Your message is kept; send it again when you like.",
    "question_expired": "Nobody answered in time, and the question had no default, so I let the "
    "request go. Ask again whenever you like.",
    "question_default": "Nobody answered in time, so I go on with the default: {default}",
}

_ZH = {
    "started": "好，这就运行，有结果马上告诉你：\n\n{command}",
    "scheduled": "好，我来安排，{when}运行一次：\n\n{command}\n\n"
    "说「任务」可以查看，说「取消」加上名字或编号就会停掉。",
    "refused": "{what} 没办成：{reason}",
    "remembered": "记住了：{content}",
    "backlog": "待办清单里有这些：",
    "backlog_none": "待办清单是空的。说「添加待办：……」就能加上一条。",
    "backlog_add": "已记到待办清单：{item}",
    "backlog_done": "已在待办清单里勾掉：{item}",
    "backlog_remove": "已从待办清单里删除：{item}",
    "answered": "谢谢，你的回答已经转达。",
    "canceling": "正在取消 {task}。",
    "cancel_none": "没有找到与「{reference}」相符的任务。",
    "cancel_empty": "没有可以取消的：没有正在运行、等待或定时的任务。",
    "cancel_which": "要取消哪一个？请说「取消」加编号：",
    "tasks": "目前的任务：",
    "tasks_none": "没有正在运行、等待或定时的任务。",
    "status": "目前的状态：",
    "status_none": "一切安好，没有要报告的。",
    "too_often": "间隔至少要一秒，所以没有安排。",
    "too_rare": "间隔最多 366 天，所以没有安排。",
    "command_or_time": "我不确定后面的时间是不是命令的一部分，所以什么也没做。"
    "请把时间说在前面：「每 10 分钟运行：date」「明天 9:00 运行：date」；"
    "要原样运行，请把命令放进反引号里。",
    "file_or_word": "我不确定你说的是哪个文件，所以什么也没做。"
    '请把路径放进引号里：「当 "我的 笔记" 变化时运行：date」。',
    "time_passed": "这个时间已经过去了（{when}），所以什么也没做。"
    "请说一个还没到的时间：「明天 9:00 运行：date」或「5 分钟后运行：date」。",
    "time_unclear": "我看不出 {words} 是什么时候，所以什么也没做。可以这样说："
    "「2030-12-01 09:00 运行：date」「明天 9:00 运行：date」或「5 分钟后运行：date」。",
    "when_changed": "每当 {path} 变化时",
    "when_exists": "{path} 一出现就",
    "when_done": "{task} 完成后",
    "after_which": "与「{reference}」相符的不止一个，所以什么也没做。"
    "请用要等的那个的编号再说一次，例如「编号 完成后运行：date」：",
    "after_none": "没有找到与「{reference}」相符的任务，所以什么也没做。说「任务」可以查看，"
    "请用那里的名字或编号再说一次，例如「编号 完成后运行：date」。",
    "several": "这里好像不止一件事，所以什么也没做。请一条消息只发一个命令，"
    "多行脚本请放进代码块里。",
    "no_model": "这个我没法用自己的话回答：还没有连接语言模型。",
    "connect": "要连接语言模型，请安装 codex 命令行工具并登录（`codex login`），"
    "再用 `mimikit doctor` 看看我能不能用它。",
    "hint": "在那之前，说「帮助」可以看到我听得懂的话，命令请写成「运行：命令」。",
    "memory_has": "记忆里有这些相关内容：",
    "memory_none": "记忆里没有相关内容。",
    "recall_has": "关于「{about}」，记忆里有这些：",
    "recall_none": "关于「{about}」，记忆里什么也没有。可以告诉我：「记住：……」",
    "recall_by_search": "我只是按词语搜索：还没有连接能替你读懂它的语言模型"
    "（`mimikit doctor` 会说明怎么连接）。",
    "help": "还没有连接语言模型，不过下面这些话我听得懂，中文英文都可以：\n\n"
    "- `运行：ls -la`：在工作区里运行一条命令\n"
    "- `每 10 分钟运行：date`、`每个工作日 9:00 运行：date`：定时重复运行\n"
    "- `5 分钟后运行：date`、`明天 9:00 运行：date`：过一会儿再运行\n"
    "- `当 notes.txt 变化时运行：date`、`当 out.csv 出现时运行：date`：盯着一个文件\n"
    "- `备份 完成后运行：date`：等一个任务完成再运行\n"
    "- `任务`：看看哪些在运行、在等待、已结束\n"
    "- `取消 备份`：按名字或编号结束任务或定时\n"
    "- `记住：我喜欢喝茶`：存进记忆\n"
    "- `关于喝茶你知道什么`：搜索记忆\n"
    "- `待办`、`添加待办：浇花`、`完成待办：浇花`、`删除待办：浇花`：你的待办清单\n"
    "- `状态`：看看我的情况\n\n"
    "{connect}",
    "result_done": "{title} 完成了。",
    "result_done_silent": "{title} 完成了，没有输出。",
    "result_failed": "{title} 失败了：{reason}。",
    "result_canceled": "{title} 已取消。",
    "result_other": "{title} 已结束：{status}。",
    "cut_end": "（后面还有 {hidden} 个字符，`mimikit tasks show {id}` 可看全部。）",
    "cut_start": "（这是结尾，前面还有 {hidden} 个字符，`mimikit tasks show {id}` 可看全部。）",
    "reason_timeout": "超过了允许的时间",
    "reason_error": "运行中出了错",
    "reason_killed": "还没做完就被外部结束了",
    "reason_canceled": "被取消了",
    "reason_engine_unavailable": "没有连接能执行它的引擎",
    "reason_rate_limited": "模型的用量到了上限",
    "reason_budget": "令牌预算用完了",
    "reason_refused": "规则不允许",
    "reason_unknown": "没有说明原因",
    "state_queued": "等待中",
    "state_running": "运行中",
    "state_trigger": "定时",
    "state_trigger_paused": "定时，已暂停",
    "state_done": "完成",
    "state_failed": "失败",
    "state_canceled": "已取消",
    "plan_unknown": "这个我没法规划：还没有连接语言模型。现在我只会安排命令，"
    "例如「运行：ls -la」或「明天 9:00 运行：date」。{connect}",
    "plan_refused": "计划被拒绝了：{reason}",
    "plan_no_task": "应该有一个要规划的请求，却没有；请再发一次消息",
    "worker_unavailable": "没有连接能执行这个任务的智能体。请安装 codex 命令行工具并登录"
    "（`codex login`），用 `mimikit doctor` 检查，然后重试任务；"
    "单纯的命令不需要智能体：「运行：命令」。",
    "note_reading": "正在看你的消息",
    "note_telling": "正在告知已结束的任务",
    "note_planning": "正在规划",
    "turn_failed": "这次没能回答：{error}。你的消息已保留，再发一次就会重试。",
    "turn_stopped": "已停止。你的消息已保留，需要时再发一次。",
    "question_expired": "没有人及时回答，这个问题也没有默认选项，所以请求就此作罢。随时可以再提。",
    "question_default": "没有人及时回答，我就按默认选项继续：{default}",
}

TABLE: dict[Language, dict[str, str]] = {"en": _EN, "zh": _ZH}

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_WORD = re.compile(r"[A-Za-z]+")
_READ = 4000
"""Characters of a text that are enough to tell its language."""


def say(key: str, language: str, **values: object) -> str:
    """The message of that id in that language (English when the language is another)."""
    table = _ZH if language == "zh" else _EN
    return table[key].format(**values)


def language(text: str, locale: str = "en") -> Language:
    """The language to answer in: the text's, by its share of Chinese; in doubt the locale's."""
    by_locale: Language = "zh" if locale.lower().startswith("zh") else "en"
    read = text[:_READ]
    han, words = len(_HAN.findall(read)), len(_WORD.findall(read))
    if not han + words or _KANA_OR_HANGUL.search(read):
        return by_locale
    share = han / (han + words)
    if share >= 0.5:
        return "zh"
    return "en" if share <= 0.15 else by_locale


def fence(text: str, info: str = "text") -> str:
    """The text in a code fence longer than any run of backticks in it."""
    ticks = "`" * max(3, _longest_ticks(text) + 1)
    return f"{ticks}{info}\n{text}\n{ticks}"


def code(text: str) -> str:
    """The text as a code span in one line, whatever it holds."""
    line = " ".join(text.split())
    ticks = "`" * (_longest_ticks(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def paragraphs(*parts: str) -> str:
    """Parts as paragraphs, empty ones left out."""
    return "\n\n".join(part for part in parts if part)


def state(name: str, language: str) -> str:
    """A task's or trigger's state in words; one that has none as it is."""
    key = "state_" + name.replace(", ", "_")
    return say(key, language) if key in _EN else name


# ---- tasks that ended


class EndedTask(Protocol):
    """What is told of a task that ended."""

    @property
    def task_id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def seat(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def error(self) -> str | None: ...
    @property
    def failure_reason(self) -> str | None: ...


def results(told: Sequence[EndedTask], language: str) -> str:
    """Tasks that ended, in one message."""
    limit = min(MAX_OUTPUT, MAX_OUTPUTS // max(1, len(told)))
    return "\n\n".join(_result(result, language, limit) for result in told)


def _result(result: EndedTask, language: str, limit: int) -> str:
    title = code(result.title or result.task_id)
    text = result.text.strip("\n")
    if result.status == "done":
        key = "result_done" if text.strip() else "result_done_silent"
        head = say(key, language, title=title)
        if result.seat == "planner" and text.strip():
            return f"{head}\n\n{_cut(text, result.task_id, language, limit)}"
        return paragraphs(head, _fenced(text, result.task_id, language, limit))
    if result.status == "failed":
        why = say(f"reason_{result.failure_reason or 'unknown'}", language)
        head = say("result_failed", language, title=title, reason=why)
        error = (result.error or "").strip()
        output = "" if text.strip() == error else text
        return paragraphs(
            head,
            _fenced(error, result.task_id, language, limit),
            _fenced(output, result.task_id, language, limit, end=True),
        )
    if result.status == "canceled":
        return say("result_canceled", language, title=title)
    return say("result_other", language, title=title, status=result.status)


def _fenced(text: str, task_id: str, language: str, limit: int, *, end: bool = False) -> str:
    """Output in a fence; of a long one the start, or the end where errors stand."""
    if not text.strip():
        return ""
    hidden = len(text) - limit
    if hidden <= 0:
        return fence(text)
    note = say("cut_start" if end else "cut_end", language, hidden=f"{hidden:,}", id=task_id)
    return f"{fence(text[-limit:] if end else text[:limit])}\n\n{note}"


def _cut(text: str, task_id: str, language: str, limit: int) -> str:
    hidden = len(text) - limit
    if hidden <= 0:
        return text
    return f"{text[:limit]}…\n\n{say('cut_end', language, hidden=f'{hidden:,}', id=task_id)}"


def _longest_ticks(text: str) -> int:
    return max((len(ticks) for ticks in re.findall("`+", text)), default=0)
