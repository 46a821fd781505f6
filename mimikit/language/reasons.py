"""Reasons that code has given in English, said in each language: why a run failed, or waits.

A reason is written down as it was said, in one sentence or several between semicolons; whoever
shows it reads the known ones back (`reasons.toml`). The words of others stay as they are. Pure.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeAlias

Words: TypeAlias = dict[str, str]
"""The same in each language: `{"en": …, "zh": …}`."""

_OF = re.compile(r"(?P<whose>[A-Za-z][\w.-]*|\(the record\)): (?P<why>.+)")
"""Why an engine was passed over, or what is wrong with a field: it keeps its name."""
_GOT = re.compile(r"(?P<why>(?:Extra|Input|List|String) .+), got (?P<value>.+)")
"""What the check of a field says, and what stood there."""
_NAME = re.compile(r"\\\{(\w+)\\\}")
_MOST, _DEEPEST = 400, 5
"""Characters of a line that is read, and reasons within one another: else it is somebody else's."""


def _pattern(sentence: str) -> re.Pattern[str]:
    """A placeholder stands for words without a semicolon, `why` for several sentences, too.

    `value` is what somebody wrote: it may hold anything.
    """

    def any_words(name: re.Match[str]) -> str:
        return f"(?P<{name[1]}>{'.' if name[1] in ('why', 'value') else '[^;]'}+?)"

    return re.compile(_NAME.sub(any_words, re.escape(sentence)))


def _literal(sentence: str) -> list[str]:
    """What stands in it between placeholders."""
    return re.split(r"\{\w+\}", sentence)


@cache
def _known() -> list[tuple[str, re.Pattern[str], str]]:
    """The longest words of each sentence, the whole, and the same in Chinese.

    What says most itself is tried first, and only where its longest words stand: that is quick.

    Read when the first is asked for: most commands of a terminal need none of them.
    """
    catalogue = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    known = sorted(catalogue.items(), key=lambda it: len("".join(_literal(it[0]))), reverse=True)
    return [(max(_literal(en), key=len), _pattern(en), zh) for en, zh in known]


def reason_words(text: str | None) -> Words | None:
    """A reason in each language; None where none of it is known."""
    if not text or (said := _in_chinese(text)) is None:
        return None
    return {"en": text, "zh": said}


def reason_in(language: str, text: str) -> str:
    """A reason in one language, as far as it is known."""
    words = reason_words(text) if language == "zh" else None
    return words["zh"] if words else text


def _in_chinese(text: str) -> str | None:
    """The first line in Chinese; what stands below it is the end of what a program complained."""
    line, *below = text.split("\n", 1)
    said = _line(line) if len(line) <= _MOST else None
    return None if said is None else "\n".join([said, *below])


@lru_cache(maxsize=512)
def _line(line: str, depth: int = 1) -> str | None:
    """One sentence, or several, of which at least one is known."""
    if depth > _DEEPEST:
        return None
    if (said := _sentence(line, depth)) is not None:
        return said
    parts = line.split("; ")
    known = [_sentence(part, depth) for part in parts]
    if not any(known):
        return None
    return "；".join(zh or part for zh, part in zip(known, parts, strict=True))


def _sentence(sentence: str, depth: int) -> str | None:
    if said := _part_of(_GOT, "{why}，实际是 {value}", sentence, depth):
        return said
    for words, pattern, zh in _known():
        if words in sentence and (match := pattern.fullmatch(sentence)):
            given = match.groupdict()
            if why := given.get("why"):
                given["why"] = _line(why, depth + 1) or why
            return zh.format(**given)
    return _part_of(_OF, "{whose}：{why}", sentence, depth)


def _part_of(pattern: re.Pattern[str], zh: str, sentence: str, depth: int) -> str | None:
    """A sentence around another; None where that is not known: then it is somebody else's."""
    match = pattern.fullmatch(sentence)
    why = _line(match["why"], depth + 1) if match else None
    return zh.format(**match.groupdict() | {"why": why}) if match and why else None
