"""Recognizes whom to notify, beside a command: "only tell me if it changes". Pure."""

from __future__ import annotations

import re
from typing import cast

from mimikit.engines.builtin.shell_lines import SENTENCES, FoldedText, compiled
from mimikit.protocol.models import Notify

_TAIL = 160
"""Characters at the end that are searched."""
_FORMS: list[tuple[Notify, re.Pattern[str], re.Pattern[str]]] = [
    (
        wish,
        compiled(f"{{wish_apart}}(?:{words}){{wish_end}}"),
        compiled(rf"(?:please |请你?)?(?:{words})\s*+[,;:]\s*+"),
    )
    for wish, words in cast("dict[Notify, str]", SENTENCES["notify"]).items()
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
