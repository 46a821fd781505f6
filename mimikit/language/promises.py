"""Recognizes a promise of later work in a reply: "I'll remind you tomorrow", 「我会提醒你」. Pure.

`promises.toml` has the phrases.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
COMMON_TERMS = frozenset[str](_TABLE["common"])
_FLAGS = re.IGNORECASE | re.VERBOSE
_SENTENCE = re.compile(r"[^.!?。！？；;\n]+[.!?。！？；;\n]?")
_QUOTED, _OPEN = re.compile(_TABLE["quoted"]), re.compile(_TABLE["open"], _FLAGS)


def _pattern(text: str) -> str:
    for name, part in _TABLE["parts"].items():
        text = text.replace(f"{{{name}}}", part)
    return text


_PROMISE = re.compile("|".join(map(_pattern, _TABLE["promises"])), _FLAGS)


def has_promise(text: str) -> bool:
    """Whether a reply says that its author will do something later; quotes do not count."""
    sentences = (match[0] for match in _SENTENCE.finditer(_QUOTED.sub(" ", text)))
    return any(_PROMISE.search(one) and not _OPEN.search(one) for one in sentences)
