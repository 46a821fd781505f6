"""Recognizes whom to notify, beside a command: "only tell me if it changes". Pure."""

from __future__ import annotations

import re

from mimikit.engines.builtin.shell_lines import FoldedText
from mimikit.protocol.models import Notify

_TAIL = 160
"""Characters at the end that are searched."""
_ME = r"(?:(?:tell|notify|inform|ping|message|alert)\s++me|let\s++me\s++know)"
_IT = r"(?:(?:it|this|that|something|anything)|(?:the|its)\s++(?:output|result|text|command|task))"
_IF = r"(?:if|when(?:ever)?|once|in\s++case)"
_IS = r"(?:['’]s|\s++(?:has|is|was|gets))?"
_TELL_ME = r"(?:告诉|通知|提醒|汇报给?|报告给?)我(?:一声|一下)?"
_ONLY = r"(?>(?:只有?|仅|如果|要是|当|在|等)*)"
_SUBJECT = r"(?:它|命令|任务|输出|结果|内容)?的?(?:输出|结果|内容)?"
_THEN = r"(?:的?时候?|[之以]?后)?[\s,]*+(?>(?:才|再|就|要|请|你)*)"
_CHANGES = rf"{_IT}{_IS}\s++(?:changes?|changed|different|new)"
_FAILS = (
    rf"(?:{_IT}{_IS}\s++(?:fails?|failed|failing|broken|breaks?|goes\s++wrong)"
    rf"|{_IT}\s++(?:does\s++not|doesn['’]t)\s++work|there\s++is\s++an\s++error)"
)
_WORDS: dict[Notify, str] = {
    "change": rf"(?:only\s++)?{_ME}\s++(?:only\s++)?"
    rf"(?:{_IF}\s++{_CHANGES}|(?:on|about)\s++changes?)"
    rf"|only\s++{_IF}\s++{_CHANGES}"
    rf"|{_ONLY}{_SUBJECT}(?:有了?|发生了?)?(?:变化|改变|变动|变更|不同|变|更新)了?{_THEN}{_TELL_ME}",
    "failure": rf"(?:only\s++)?{_ME}\s++(?:only\s++)?(?:{_IF}\s++{_FAILS}"
    rf"|(?:on|about)\s++(?:failures?|errors?))|only\s++{_IF}\s++{_FAILS}"
    rf"|{_ONLY}{_SUBJECT}(?:失败|出了?错|报错|出了?问题|[没不]成功)了?{_THEN}{_TELL_ME}",
    "message": rf"(?:always\s++)?{_ME}\s++(?:each|every)\s++(?:time|run)|always\s++{_ME}"
    rf"|每次都?要?{_TELL_ME}",
    "none": rf"(?:don['’]t|do\s++not|never|no\s++need\s++to)\s++{_ME}"
    r"(?:\s++(?:about\s++)?(?:it|this|that|anything|how\s++it\s++(?:goes|went)))?"
    rf"|without\s++telling\s++me|(?:不用|不要|不必|别|无需|无须|不需要)(?:再)?{_TELL_ME}",
}
_APART = (
    r"(?:\s*+[,;.:!]\s*+|(?<=[`」』”\"'])\s*+|\s++(?=(?:and|but|only)\s|[\u3400-\u9fff]))"
    r"(?:(?:and|but|并且?|但是?|而且|然后)[\s,]*+)?(?:please\s++|请你?|麻烦你?)?"
)
_END = r"(?>(?:[\s,]*+(?:please|thanks|thank\s++you|谢谢你?|就行|就好|即可|哦|吧|了))*)[\s.!~]*+\Z"
_FORMS: list[tuple[Notify, re.Pattern[str], re.Pattern[str]]] = [
    (
        wish,
        re.compile(rf"{_APART}(?:{words}){_END}", re.IGNORECASE),
        re.compile(rf"(?:please\s++|请你?)?(?:{words})\s*+[,;:]\s*+", re.IGNORECASE),
    )
    for wish, words in _WORDS.items()
]


def split(text: str) -> tuple[str, Notify | None]:
    """The sentence without its notification wish, and the wish if any."""
    view = FoldedText.of(text)
    for wish, at_end, at_start in _FORMS:
        if after := at_end.search(view.plain, max(0, len(view.plain) - _TAIL)):
            rest = view.cut(0, after.start())
        elif before := at_start.match(view.plain):
            rest = view.cut(before.end())
        else:
            continue
        if rest.raw:
            return rest.raw, wish
    return text, None
