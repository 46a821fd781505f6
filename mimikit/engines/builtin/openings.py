"""How the sentences without a model begin: patterns, in English and Chinese, for `grammar`.

Patterns expect the folded text of `shell_lines.View`. Repetitions are possessive or short: no
text takes longer than a few passes.
"""

from __future__ import annotations

import re
from typing import Literal

from mimikit.engines.builtin.shell_lines import MARKS, SENTENCES

BacklogAction = Literal["add", "done", "remove"]

_POLITE = (
    r"(?>(?:(?:please|pls|kindly|hey|hi|ok|okay|now|just|mimikit)(?![A-Za-z])"
    r"|请你?|麻烦你?|帮我|帮忙|给我|现在|马上|立即|立刻)[\s,!]*+){0,12}+"
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
VERB_LATER = re.compile(rf"(?:就|都|自动|再|,|\s)*+{_POLITE}{_VERB}", re.IGNORECASE)
MARKED_LATER = re.compile(rf"[\s,:]*+(?:`|(?:就|都|自动|再|,|\s)*+{_POLITE}{_VERB})", re.IGNORECASE)
THANKS_AFTER_COMMA = re.compile(
    r",\s*+(?:please|thanks|thank\s++you|谢谢你?|多谢)[\s.!。]*+\Z", re.IGNORECASE
)
NOT_TO_KEEP = re.compile(
    r"(?:when|that\s++time|the\s++time|how\s++we|me|us|him|her|them)(?![A-Za-z])|了", re.IGNORECASE
)
NOT_TO_CANCEL = re.compile(
    r"\?|怎么|什么|为何|如何|吗"
    r"|\A(?:being|doing|talking|asking|saying|telling|repeating|worrying)(?![A-Za-z])",
    re.IGNORECASE,
)
TASK_WORD = re.compile(
    r"(?:(?:the\s++)?(?:task|trigger|job)(?:\s*+#|\s++(?:number\s++|no\.\s*+)?)(?=\S)"
    r"|#(?=\d)|(?:定时任务|任务|触发器)(?:编号|号)?[\s:#]*+(?=\S))",
    re.IGNORECASE,
)

_QUOTED = "|".join(
    rf"{opening}[^{closing}\n\0]{{1,300}}+{closing}" for opening, closing in MARKS.items()
)
_WORD = r"[^\s\0,:`\"'「『“‘]"
_NAME = r"(?:[^\s\0:,`]|[^\S\n](?!\s)){1,200}?"
_TASK = rf"(?P<what>(?:(?:task|trigger|job)\s++|任务\s*+)?(?:{_QUOTED})|{_NAME})"
_IS_DONE_ZH = r"(?:已经?|全部|都|执行|运行|跑|做)*+(?:完成|完毕|结束|成功|完)"
LIKE_A_PATH = re.compile(r"[./*~]|\A[A-Z][A-Za-z]*file\Z|\A[A-Z_]{3,}\Z")

_KNOW = r"(?:都|还)?(?:知道|记得|了解)(?:些|一些)?"
_WHAT = r"(?:什么|啥|多少|哪些)"
_ABOUT = r"(?P<about>.{1,500}?)"


def _opening(*phrases: str, end: str = "") -> re.Pattern[str]:
    """Matches a text that begins with one of the phrases, courtesy aside."""
    either = "|".join(phrase.replace(" ", r"\s++") for phrase in phrases)
    return re.compile(rf"{_PRE}(?:{either}){end}", re.IGNORECASE)


def _whole(*phrases: str, courtesy: str = "") -> re.Pattern[str]:
    """Matches a text that is one of the phrases, courtesy and end signs aside."""
    return _opening(*phrases, end=rf"{courtesy}[\s?!.。~]*+\Z")


def _around(phrase: str) -> re.Pattern[str]:
    return _whole(phrase, courtesy=_GRANTED)


HELP = _whole(*SENTENCES["help"])
STATUS = _whole(*SENTENCES["status"])
TASKS = _whole(*SENTENCES["tasks"])
RECALL_EN = _opening(*SENTENCES["recall"])
RECALL_ZH = (
    _whole(rf"(?:有关于?|关于|对于){_ABOUT}[,\s]*+你?{_KNOW}{_WHAT}"),
    _whole(rf"(?:告诉我)?你{_KNOW}关于{_ABOUT}的?(?:{_WHAT}|事情?|信息|内容|东西)?吗?"),
    _whole(rf"你?对于?{_ABOUT}[,\s]*+你?{_KNOW}{_WHAT}"),
    _whole(rf"你?还?记得{_ABOUT}吗"),
    _whole(
        r"(?:搜索|查找|搜寻|查一?查|查一下|搜一?搜|搜一下)(?:你的|我的)?记忆"
        rf"(?:[里中]面?(?:有关|关于|的)?|有关|关于|(?=[:\s]))[:,\s]*+{_ABOUT}"
    ),
    _whole(
        rf"(?:你的)?记忆[里中](?:都|还)?有(?:{_WHAT}|没有)?关于{_ABOUT}"
        rf"的?(?:{_WHAT}|事情?|信息|内容|东西)?吗?"
    ),
)
REMEMBER = _opening(*SENTENCES["remember"])
CANCEL = _opening(*SENTENCES["cancel"])
_ITEM = r"(?P<item>\S.{0,499}?)"
_TODO = r"(?:backlog|to[-\s]?do\s++list|todos?)(?![A-Za-z])"
_ON_TODO = rf"(?:(?:the|my|our|your)\s++)?{_TODO}"
_DONE_EN = r"(?:done|finished|completed?)"
_TODO_ZH = r"(?:我的)?待办(?:事项)?(?:清单|列表)?"
_IN_TODO_ZH = rf"{_TODO_ZH}(?:里面?|中|上)?的?"
_OUT_ZH = r"(?:删除|移除|删掉|去掉|拿掉|划去)"
_TICKED_ZH = r"(?:勾掉|划掉|勾选|打勾|(?:标记?|设)(?:为|成)(?:已?(?:完成|做完)))"
_PUT_ZH = r"(?:(?:添加|加|加入|放|写|记|列)(?:到|进|入)?)"
_SEPARATED = r"(?=[\s:,`「『“‘\"'])"
_GRANTED = r"(?:[\s,]*+(?:please|pls|thanks|thank\s++you|谢谢你?|多谢|吧|了|(?:好|可以|行)?吗))*+"
BACKLOG = _whole(
    rf"/?(?:(?:list|show|show me|read|open) )?{_ON_TODO}(?: list)?",
    rf"what(?:'s|’s| is)(?: left| still)? (?:on|in) {_ON_TODO}",
    rf"(?:(?:查看|看看|看一下|显示|列出|打开)(?:一下)?)?{_TODO_ZH}",
    r"我?(?:现在|目前)?(?:都|还)?有(?:哪些|什么|啥)待办(?:事项)?",
    rf"{_IN_TODO_ZH}(?:现在|目前)?(?:都|还)?有(?:哪些|什么|啥)(?:事情?|东西)?",
)
BACKLOG_VERBS: dict[BacklogAction, tuple[re.Pattern[str], ...]] = {
    "add": (
        _opening(rf"{_TODO}\s*+[:,]?\s*+add(?=[\s:]|\Z)"),
        _opening(rf"(?:add|put|write) (?:to|on|onto|in|into) {_ON_TODO}(?=\s*+:)"),
        _opening(
            rf"(?:添加|新增|增加|加上?|记下?)(?:一?[条个项])?(?:新的?)?{_TODO_ZH}{_SEPARATED}"
        ),
        _opening(
            rf"{_IN_TODO_ZH}[\s:,]*+(?:添加|新增|增加|加入|加上?|记下?)(?:一?[条个项])?(?=[\s:])"
        ),
        _opening(rf"[在往]{_IN_TODO_ZH}(?:添加|新增|增加|加入|加上|加一?[条个项])(?:一?[条个项])?"),
    ),
    "done": (
        _opening(
            rf"{_TODO}\s*+[:,]?\s*+(?:done|finish(?:ed)?|completed?|tick(?: off)?|check(?: off)?)"
            r"(?=[\s:]|\Z)"
        ),
        _opening(rf"(?:完成|做完|勾掉|勾选|划掉)(?:一?[条个项])?{_TODO_ZH}{_SEPARATED}"),
        _opening(rf"{_IN_TODO_ZH}[\s:,]*+(?:完成|做完|办完|勾掉|划掉)了?(?=[\s:])"),
    ),
    "remove": (
        _opening(rf"{_TODO}\s*+[:,]?\s*+(?:remove|delete|drop)(?=[\s:]|\Z)"),
        _opening(rf"{_OUT_ZH}(?:一?[条个项])?{_TODO_ZH}{_SEPARATED}"),
        _opening(rf"{_IN_TODO_ZH}[\s:,]*+{_OUT_ZH}(?=[\s:])"),
    ),
}
"""What is to be done with the item that follows."""
BACKLOG_AROUND: dict[BacklogAction, tuple[re.Pattern[str], ...]] = {
    "add": (
        _around(rf"(?:add|put|write) {_ITEM} (?:to|on|onto|in|into) {_ON_TODO}"),
        _around(rf"[把将]{_ITEM}{_PUT_ZH}{_TODO_ZH}(?:里面?|中|上)?(?:去|来)?"),
    ),
    "done": (
        _around(rf"(?:mark|set) {_ITEM} (?:on|in) {_ON_TODO} (?:as )?{_DONE_EN}"),
        _around(rf"(?:mark|set) {_ITEM} (?:as )?{_DONE_EN} (?:on|in) {_ON_TODO}"),
        _around(rf"(?:tick|check|cross)(?: off)? {_ITEM} (?:off|on|in|from) {_ON_TODO}"),
        _around(rf"[把将]{_IN_TODO_ZH}[\s:,]*+{_ITEM}{_TICKED_ZH}"),
        _around(rf"[把将]{_ITEM}(?:从|在){_IN_TODO_ZH}{_TICKED_ZH}"),
    ),
    "remove": (
        _around(rf"(?:remove|delete|drop|take) {_ITEM} (?:from|off) {_ON_TODO}"),
        _around(rf"[把将]{_ITEM}从{_IN_TODO_ZH}{_OUT_ZH}"),
        _around(rf"从{_IN_TODO_ZH}{_OUT_ZH}[\s:,]*+{_ITEM}"),
        _around(rf"[把将]{_IN_TODO_ZH}[\s:,]*+{_ITEM}{_OUT_ZH}"),
    ),
}
"""What is to be done with the item inside the sentence."""
BACKLOG_NOTE = _opening(rf"(?:{_TODO}|{_TODO_ZH})(?=\s*+:)")
NO_ITEM = frozenset(SENTENCES["no_item"].split())
"""What only points at an item, or is a verb whose item is missing."""
ASKS = re.compile(r"(?<!吗)\?[\s.!]*+\Z|(?<![好以行])吗[\s?!.]*+\Z|怎么|为什么|如何|什么时候")
AT_TIME = _opening("")
WHEN_FILE = (
    _opening(
        r"(?:when(?:ever)?|once|if|as soon as|(?:each|every) time) (?:the |my |our )?"
        rf"(?P<file>(?:file|folder|directory) )?(?P<what>{_QUOTED}|{_WORD}{{1,300}}+)"
        r" (?:(?P<changed>(?:has |was |is |gets )?(?:changes|changed?|modified|updated|edited))"
        r"|exists?|appears?|shows up|(?:is|was|gets) created|is there)(?![A-Za-z])"
    ),
    _opening(
        r"(?P<when>当|在|如果|一旦|每当|每次|只要|等)?\s*+"
        r"(?P<file>(?:文件夹?|目录)(?=[\s\w*~/`\"'「『“‘])(?![\u3400-\u9fff])\s*+)?"
        rf"(?P<what>{_QUOTED}|{_WORD}{{1,300}}?)\s*+(?P<kind>文件夹?|目录)?\s*+"
        r"(?:一|被|有了?|发生了?)?"
        r"(?:(?P<changed>变化|改变|变动|更改|修改|更新|改动|变更|变)|出现|存在|生成|创建)了?"
        r"(?P<then>的?时候?|[之以]?后|就)?"
    ),
)
AFTER = (
    _opening(
        rf"(?:after|when(?:ever)?|once|as soon as) (?:the )?{_TASK} (?:(?:task|trigger|job) )?"
        r"(?:(?:is|has|was|are) (?:all )?(?:done|finished|completed|complete|over|ended)"
        r"|finishes|finished|completes|completed|ends|ended|succeeds|succeeded)(?![A-Za-z])"
    ),
    _opening(
        rf"after (?!(?:i|you|we|they|he|she) )(?:the )?{_TASK}(?=\s*+[:,`]|\s++{_POLITE}{_VERB})"
    ),
    _opening(
        rf"(?!从)(?P<at>等到|[在等当])?\s*+{_TASK}\s*+(?:任务)?(?:{_IS_DONE_ZH}了?(?:的?时候?|[之以]?后|就|(?=再))"
        r"|[之以]后|(?(at)后|(?!)))"
    ),
)
RUN = _opening(_VERB)
