"""The sentences that the assistant without a model understands, in English and Chinese. Pure.

A message is one such sentence as a whole, or it is `Plain`: nothing is picked out of its middle, so
"I run every day" asks for nothing. How a command is told from talk stands in `command_lines`. A
later ability adds rows to `ROWS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mimikit.engines.command_lines import (
    ASKED_AT_END,
    BARE_LIMIT,
    COURTESY_AT_END,
    QUOTES,
    IsProgram,
    View,
    read_bare,
    read_command,
    read_marked,
    without_end,
)
from mimikit.engines.intervals import (
    MAX_INTERVAL_S,
    MIN_INTERVAL_S,
    Language,
    interval_words,
    period_at,
)


@dataclass(frozen=True, slots=True)
class Run:
    """Run a command now."""

    command: str


@dataclass(frozen=True, slots=True)
class Every:
    """Run a command again and again. Units: seconds."""

    seconds: float
    command: str


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep something in memory."""

    content: str


@dataclass(frozen=True, slots=True)
class Recall:
    """Say what memory holds about something."""

    about: str


@dataclass(frozen=True, slots=True)
class Tasks:
    """Show what runs, waits and has ended."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a task or trigger; the reference as the user wrote it, possibly empty."""

    reference: str


@dataclass(frozen=True, slots=True)
class Status:
    """Show how the assistant is."""


@dataclass(frozen=True, slots=True)
class Help:
    """Show what can be said."""


BadReason = Literal["too_often", "too_rare", "command_or_interval", "several"]


@dataclass(frozen=True, slots=True)
class BadSentence:
    """Understood, but not to be done as it stands."""

    reason: BadReason
    text: str


@dataclass(frozen=True, slots=True)
class Plain:
    """Anything else."""

    text: str


Intent = Run | Every | Remember | Recall | Tasks | Cancel | Status | Help | BadSentence | Plain


def no_program(word: str) -> bool:
    """Know no program: then no bare command is taken for one."""
    del word
    return False


def parse(text: str, is_program: IsProgram = no_program) -> Intent:
    """What the message asks for.

    Args:
        text: the whole message.
        is_program: whether a word can be started by name; decides on bare commands.
    """
    view = _unwrapped(View.of(text))
    for opening, build in ROWS:
        match = opening.match(view.plain)
        intent = build(match, view, is_program) if match else None
        if intent is not None:
            return intent
    return Plain(text.strip())


def render(intent: Intent, language: Language = "en") -> str:
    """The sentence for an intent: parsing it gives the same intent again."""
    forms = _forms(intent, language)
    return next((form for form in forms if parse(form) == intent), forms[-1])


# What reads each kind of sentence: given the opening that matched and the whole view.


def _run(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    rest = view.cut(match.end())
    if rest.plain in {"", ":"}:
        return Help()
    command = read_command(rest, is_program, asked=match["asked"] is not None)
    if isinstance(command, str):
        return BadSentence(command, view.raw)
    if command is None:
        return None
    if command.seconds is None:
        return Run(command.text)
    return _every_or_bad(command.seconds, command.text, view)


def _every(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    period = period_at(view.plain, match.end())
    if period is None:
        return None
    rest = view.cut(period.end).after(",")
    body = rest.after(":")
    verb = _VERB_LATER.match(body.plain)
    if verb:
        command = read_command(body.cut(verb.end()), is_program, asked=match["asked"] is not None)
    elif body.raw and (body is not rest or body.raw.startswith("`")):
        command = read_marked(body) or read_bare(body, is_program)
    else:
        return None
    if isinstance(command, str):
        return BadSentence(command, view.raw)
    if command is None or command.seconds is not None:
        return None
    return _every_or_bad(period.seconds, command.text, view)


def _every_or_bad(seconds: float, command: str, view: View) -> Intent:
    if seconds < MIN_INTERVAL_S:
        return BadSentence("too_often", view.raw)
    if seconds > MAX_INTERVAL_S:
        return BadSentence("too_rare", view.raw)
    return Every(seconds, command)


def _remember(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    del is_program
    rest = view.cut(match.end())
    if rest.plain in {"", ":"}:
        return Help()
    if rest.plain.startswith(":"):
        return Remember(rest.after(":").raw)
    rest = rest.after(",")
    if rest.plain.endswith(("?", "吗")) or _NOT_TO_KEEP.match(rest.plain):
        return None
    content = without_end(rest, _THANKS_AFTER_COMMA).raw
    return Remember(content) if content else None


def _recall(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    del is_program
    inside = "about" in match.re.groupindex
    about = view.cut(*match.span("about")) if inside else view.cut(match.end())
    text = _unmarked(about).raw
    return Recall(text) if text and len(text) <= BARE_LIMIT else None


def _cancel(match: re.Match[str], view: View, is_program: IsProgram) -> Intent | None:
    del is_program
    rest = view.cut(match.end())
    if match["asked"]:
        rest = without_end(rest, ASKED_AT_END)
    if "\n" in rest.raw or len(rest.raw) > 100 or _NOT_TO_CANCEL.search(rest.plain):
        return None
    while True:
        reference = without_end(_unmarked(rest), COURTESY_AT_END)
        named = _TASK_WORD.match(reference.plain)
        reference = reference.cut(named.end()) if named else reference
        if reference == rest:
            return Cancel(reference.raw)
        rest = reference


def _fixed(intent: Intent) -> Build:
    """Reads a sentence in which nothing varies."""
    return lambda _match, _view, _is_program: intent


def _unwrapped(view: View) -> View:
    """The view without the 「」 around all of it."""
    closing = {"「": "」", "『": "』"}.get(view.raw[:1])
    if closing and view.raw.find(closing) == len(view.raw) - 1:
        return view.cut(1, len(view.raw) - 1)
    return view


def _unmarked(view: View) -> View:
    """The view without the quotes around it and the signs at its ends."""
    while True:
        inner = view.raw.strip(_END_SIGNS)
        start = view.raw.find(inner)
        quoted = len(inner) > 1 and (QUOTES | {"`": "`"}).get(inner[0]) == inner[-1]
        trimmed = 1 if quoted else 0
        smaller = view.cut(start + trimmed, start + len(inner) - trimmed)
        if smaller == view:
            return view
        view = smaller


_END_SIGNS = " \t\r\n?？。!！,，:：、~～"

# Pieces of the openings. Repetitions are possessive: no text takes longer than one pass.

_POLITE = (
    r"(?>(?:(?:please|pls|kindly|hey|hi|ok|okay|now|just|mimikit)(?![A-Za-z])"
    r"|请你?|麻烦你?|帮我|帮忙|给我|现在|马上|立即|立刻)[\s,!]*+)*+"
)
_ASK = (
    r"(?:(?P<asked>(?:can|could|would|will)\s++you(?![A-Za-z])"
    r"|你?(?:能不能|可不可以|可以|能否|可否|能))[\s,]*+)?"
)
_PRE = _POLITE + _ASK + _POLITE
_AFTER_VERB = r"(?=[\s:`「『“]|\Z)"
_VERB = (
    rf"(?:(?:run|execute|exec){_AFTER_VERB}"
    rf"(?:\s++(?:(?:the|this|following|shell)\s++)*+(?:command|cmd){_AFTER_VERB}"
    r"|\s++(?:this|the\s++following)(?=\s*+[:`]))?"
    r"|(?:运行|执行|跑)(?:一下|一次|一遍|下(?![面列])|个)?(?:\s*+(?:下面|以下|下列|如下|这个|这条)的?)?"
    r"(?:\s*+(?:命令|指令))?)"
)
_VERB_LATER = re.compile(rf"(?:就|都|自动|再|,|\s)*+{_POLITE}{_VERB}", re.IGNORECASE)
_THANKS_AFTER_COMMA = re.compile(
    r",\s*+(?:please|thanks|thank\s++you|谢谢你?|多谢)[\s.!。]*+\Z", re.IGNORECASE
)
_NOT_TO_KEEP = re.compile(
    r"(?:when|that\s++time|the\s++time|how\s++we|me|us|him|her|them)(?![A-Za-z])|了", re.IGNORECASE
)
_NOT_TO_CANCEL = re.compile(
    r"\?|怎么|什么|为何|如何|吗"
    r"|\A(?:being|doing|talking|asking|saying|telling|repeating|worrying)(?![A-Za-z])",
    re.IGNORECASE,
)
_TASK_WORD = re.compile(
    r"(?:(?:the\s++)?(?:task|trigger|job)(?:\s*+#|\s++(?:number\s++|no\.\s*+)?)(?=\S)"
    r"|#(?=\d)|(?:定时任务|任务|触发器)(?:编号|号)?[\s:#]*+(?=\S))",
    re.IGNORECASE,
)

_KNOW = r"(?:都|还)?(?:知道|记得|了解)(?:些|一些)?"
_WHAT = r"(?:什么|啥|多少|哪些)"
_ABOUT = r"(?P<about>.{1,500}?)"


def _whole(*phrases: str) -> re.Pattern[str]:
    """Matches a text that is one of the phrases, courtesy and end signs aside."""
    either = "|".join(phrase.replace(" ", r"\s++") for phrase in phrases)
    return re.compile(rf"{_PRE}(?:{either})[\s?!.。~]*+\Z", re.IGNORECASE)


def _opening(*phrases: str) -> re.Pattern[str]:
    """Matches a text that begins with one of the phrases, courtesy aside."""
    either = "|".join(phrase.replace(" ", r"\s++") for phrase in phrases)
    return re.compile(rf"{_PRE}(?:{either})", re.IGNORECASE)


Build = Callable[[re.Match[str], View, IsProgram], Intent | None]
Row = tuple[re.Pattern[str], Build]

_HELP = _whole(
    "/?help(?: me)?",
    r"\?",
    "commands",
    "what can (?:you|i) (?:do|say)",
    "how do i use (?:you|this)",
    "(?:使用)?(?:帮助|说明)",
    "(?:你)?怎么用",
    "命令列表",
    "你?(?:都|还)?(?:能|会|可以)(?:做|干|说)?些?(?:什么|啥)",
)
_STATUS = _whole(
    "/?status",
    "(?:show|show me)(?: the| your)? status",
    "(?:system|your|current) status",
    "(?:查看|看看|看一下|显示)?(?:系统|运行|当前|你的)?状态",
)
_TASKS = _whole(
    "/?tasks?",
    "(?:list|show|show me)(?: all| the| my| your| current| running){0,3} tasks",
    "task list",
    "what are you (?:doing|working on|up to)(?: now| right now| at the moment)?",
    "what(?:'s|’s| is) (?:running|going on)(?: now| right now)?",
    "(?:which|what) tasks (?:are there|are running|do you have)",
    "(?:查看|列出|看看|看一下|显示)?(?:所有|全部|当前|我)?的?任务(?:列表|清单)?",
    "你?(?:现在|目前)?(?:都|还)?有(?:哪些|什么|啥)任务",
    "你?(?:现在|正)?在(?:做|干|忙)些?(?:什么|啥)",
)
_RECALL_EN = _opening(
    r"(?:tell me )?what (?:do )?you (?:know|remember|have)(?: in memory)? (?:about|on|of)(?=\s)",
    r"what (?:have i told you|did i tell you|did i say) about(?=\s)",
    r"do you (?:know|remember|have) anything (?:about|on)(?=\s)",
    r"do you (?:still )?remember(?=\s)",
    r"search (?:your |my |the )?memory for(?=\s)",
    r"(?:search memory|recall)(?=[\s:])",
)
_RECALL_ZH = (
    _whole(rf"关于{_ABOUT}[,\s]*+你?{_KNOW}{_WHAT}"),
    _whole(rf"(?:告诉我)?你{_KNOW}关于{_ABOUT}的?(?:{_WHAT}|事情?|信息|内容|东西)?吗?"),
    _whole(rf"你?对于?{_ABOUT}[,\s]*+你?{_KNOW}{_WHAT}"),
    _whole(rf"你?还?记得{_ABOUT}吗"),
)
_REMEMBER = _opening(
    r"remember(?: that)?(?=[\s:,]|\Z)",
    r"(?:note|keep in mind) that(?=[\s:,])",
    "note(?=:)",
    "记住",
    "记下来?",
    "记一下",
    "记录一下",
)
_CANCEL = _opening(
    r"(?:cancel|stop|abort)(?=[\s:#!.,]|\Z)",
    "取消",
    "停止",
    "停掉",
    "终止",
    "中止",
)
_EVERY = _opening(r"(?=once\s|every\s|each\s|hourly|daily|weekly|每)")
_RUN = _opening(_VERB)

ROWS: tuple[Row, ...] = (
    (_HELP, _fixed(Help())),
    (_STATUS, _fixed(Status())),
    (_TASKS, _fixed(Tasks())),
    (_EVERY, _every),
    (_RUN, _run),
    (_RECALL_EN, _recall),
    *((pattern, _recall) for pattern in _RECALL_ZH),
    (_REMEMBER, _remember),
    (_CANCEL, _cancel),
)
"""Every sentence: how it opens and what reads it. The first that reads one wins."""

# The way back.

_FIXED_FORMS: dict[type, tuple[str, str]] = {
    Tasks: ("tasks", "任务"),
    Status: ("status", "状态"),
    Help: ("help", "帮助"),
}


def _forms(intent: Intent, language: Language) -> list[str]:
    """Ways to write an intent, the simplest first."""
    zh = language == "zh"
    match intent:
        case Run(command):
            return _command_forms("运行：" if zh else "run: ", command)
        case Every(seconds, command):
            words = interval_words(seconds, language)
            return _command_forms(f"{words}运行：" if zh else f"{words}: run: ", command)
        case Remember(content):
            return [f"记住：{content}" if zh else f"remember: {content}"]
        case Recall(about):
            form = f"关于 {about} 你知道什么" if zh else f"what do you know about {about}"
            return [form, f"recall: {about}"]
        case Cancel(reference):
            return [f"取消 {reference}" if zh else f"cancel {reference}"]
        case Plain(text) | BadSentence(_, text):
            return [text]
        case _:
            return [_FIXED_FORMS[type(intent)][zh]]


def _command_forms(head: str, command: str) -> list[str]:
    longest = max((len(ticks) for ticks in re.findall("`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    return [head + command, f"{head.rstrip()}\n{fence}\n{command}\n{fence}"]
