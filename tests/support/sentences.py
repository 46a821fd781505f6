"""Renders an intent as a sentence, for round-trip tests of the parser."""

from __future__ import annotations

import re

from mimikit.engines.builtin import intents
from mimikit.engines.builtin.grammar import parse
from mimikit.engines.builtin.intents import BadSentence, Intent
from mimikit.engines.builtin.shell_lines import MARKS
from mimikit.language.phrases import Language, interval_words

# Short names, for the tables of tests.
After = intents.AfterIntent
At = intents.AtIntent
Cancel = intents.CancelIntent
ChangeBacklog = intents.ChangeBacklogIntent
Every = intents.EveryIntent
Forget = intents.ForgetIntent
Recall = intents.RecallIntent
Remember = intents.RememberIntent
Run = intents.RunIntent
Show = intents.ShowIntent
WhenFile = intents.WhenFileIntent
Plain = intents.PlainSentence

_SHOWN_ZH = {"tasks": "任务", "status": "状态", "help": "帮助", "backlog": "待办"}
_BACKLOG_ZH = {"add": "添加待办", "done": "完成待办", "remove": "删除待办"}


def render(intent: Intent, language: Language = "en") -> str:
    """The sentence for an intent: parsing it gives the same intent again."""
    forms = _forms(intent, language)
    return next((form for form in forms if parse(form) == intent), forms[-1])


def _forms(intent: Intent, language: Language) -> list[str]:
    """Ways to write an intent, the simplest first."""
    zh = language == "zh"
    match intent:
        case Run(command):
            return _command_forms("运行：" if zh else "run: ", command)
        case Every(seconds, command):
            words = interval_words(seconds, language)
            return _command_forms(f"{words}运行：" if zh else f"{words}: run: ", command)
        case At(when, command):
            return _command_forms(f"{when} 运行：" if zh else f"{when}: run: ", command)
        case WhenFile(path, change, command):
            verb = {"changed": ("changes", "变化"), "exists": ("exists", "存在")}[change][zh]
            head = "当 {what} {verb}时运行：" if zh else "when {what} {verb}: run: "
            return _named_forms(head.replace("{verb}", verb), path, command)
        case After(reference, command):
            head = "在 {what} 之后运行：" if zh else "after {what}: run: "
            return _named_forms(head, reference, command)
        case Remember() | Forget() | Recall() | ChangeBacklog():
            return _keeping_forms(intent, zh=zh)
        case Cancel(reference):
            return [f"取消 {reference}" if zh else f"cancel {reference}"]
        case Plain(text) | BadSentence(_, text):
            return [text]
        case Show(what):
            return [_SHOWN_ZH[what] if zh else what]
        case _:
            raise NotImplementedError(intent)


def _keeping_forms(intent: Remember | Forget | Recall | ChangeBacklog, *, zh: bool) -> list[str]:
    match intent:
        case Remember(content):
            return [f"记住：{content}" if zh else f"remember: {content}"]
        case Forget(what, everything):
            about = " everything about" * everything
            return (
                [f"忘掉：{what}"]
                if zh and not everything
                else [f"forget{about}{' ' if everything else ': '}{what}"]
            )
        case Recall(about):
            form = f"关于 {about} 你知道什么" if zh else f"what do you know about {about}"
            return [form, f"recall: {about}"]
        case ChangeBacklog(action, item):
            return [f"{_BACKLOG_ZH[action]}：{item}" if zh else f"backlog {action}: {item}"]


def _named_forms(head: str, what: str, command: str) -> list[str]:
    """With the name as it is, then in each kind of quotes."""
    names = [what, *(f"{opening}{what}{closing}" for opening, closing in MARKS.items())]
    return [
        form for name in names for form in _command_forms(head.replace("{what}", name), command)
    ]


def _command_forms(head: str, command: str) -> list[str]:
    longest = max((len(ticks) for ticks in re.findall("`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    return [head + command, f"{head.rstrip()}\n{fence}\n{command}\n{fence}"]
