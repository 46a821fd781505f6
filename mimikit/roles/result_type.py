"""Classifies a result: code change, analysis, summary or text. Pure."""

from __future__ import annotations

import re

from mimikit.protocol.json import Json
from mimikit.protocol.models import EndStatus, Task
from mimikit.protocol.results import ResultType, TaskDiff

MAX_ITEMS = 20
MAX_FILES = 100
_MAX_CHARACTERS = 500
_ITEM = re.compile(r"\s{0,8}(?:[-*+•]|\d{1,3}[.)、])\s+(?:\[[ xX]\]\s+)?(\S.*)")
_HEADING = re.compile(r"#{1,6}\s+(.{1,80}?)\s*#*|\*\*(.{1,80}?)\*\*\s*[:：]?|(\S.{0,60}?)[:：]")
_SECTIONS = {
    "recommendations": re.compile(
        r"recommend|suggest|next step|to do|建议|推荐|下一步", re.IGNORECASE
    ),
    "references": re.compile(r"reference|source|link|see also|参考|来源|出处|链接", re.IGNORECASE),
}


def typed_result(
    task: Task, status: EndStatus, text: str, diff: TaskDiff | None, *, used_tools: bool
) -> tuple[ResultType, dict[str, Json]]:
    if diff is not None:
        listed: list[Json] = [
            {"path": file.path, "action": file.action, "summary": file.summary}
            for file in diff.files[:MAX_FILES]
        ]
        fields: dict[str, Json] = {"files": listed}
        if more := len(diff.files) - len(listed) + diff.more_files:
            fields["moreFiles"] = more
        return "code_change", fields
    if status != "done" or not text.strip():
        return "text", {}
    sections = _items(text)
    if task.covers is not None:
        points = [item for items in sections.values() for item in items]
        return "summary", {"summary": _cut(text.strip()), "keyPoints": [*points[:MAX_ITEMS]]}
    if not used_tools:
        return "text", {}
    findings = sections.pop("findings", None) or [_cut(text.strip().partition("\n\n")[0])]
    parts = {"findings": findings, **sections}
    return "analysis", {name: [*items[:MAX_ITEMS]] for name, items in parts.items()}


def _items(text: str) -> dict[str, list[str]]:
    """The list items of a text, by the kind of their heading."""
    found: dict[str, list[str]] = {}
    section, is_code = "findings", False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif is_code:
            continue
        elif item := _ITEM.fullmatch(line):
            found.setdefault(section, []).append(_cut(item[1].strip()))
        elif heading := _HEADING.fullmatch(line.strip()):
            title = next(filter(None, heading.groups()))
            names = (name for name, words in _SECTIONS.items() if words.search(title))
            section = next(names, "findings")
    return found


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
