"""Classifies a result by what the run did. Pure."""

from __future__ import annotations

import re

from mimikit.protocol.json import Json
from mimikit.protocol.models import EndStatus, Task
from mimikit.protocol.results import ResultType, TaskDiff

MOST_ITEMS = 20
MOST_FILES = 100
_MOST_CHARACTERS = 500
_ITEM = re.compile(r"\s{0,8}(?:[-*+•]|\d{1,3}[.)、])\s+(?:\[[ xX]\]\s+)?(\S.*)")
_HEADING = re.compile(r"#{1,6}\s+(.{1,80}?)\s*#*|\*\*(.{1,80}?)\*\*\s*[:：]?|(\S.{0,60}?)[:：]")
_SECTIONS = {
    "recommendations": re.compile(
        r"recommend|suggest|next step|to do|建议|推荐|下一步", re.IGNORECASE
    ),
    "references": re.compile(r"reference|source|link|see also|参考|来源|出处|链接", re.IGNORECASE),
}


def typed_result(
    task: Task, status: EndStatus, text: str, diff: TaskDiff | None, *, looked: bool
) -> tuple[ResultType, dict[str, Json]]:
    """Type and extra fields: changed files make a code change, tool use an analysis."""
    if diff is not None:
        listed: list[Json] = [
            {"path": file.path, "action": file.action, "summary": file.summary}
            for file in diff.files[:MOST_FILES]
        ]
        told: dict[str, Json] = {"files": listed}
        if more := len(diff.files) - len(listed) + diff.more_files:
            told["moreFiles"] = more
        return "code_change", told
    if status != "done" or not text.strip():
        return "text", {}
    sections = _items(text)
    if task.covers is not None:
        points = [item for items in sections.values() for item in items]
        return "summary", {"summary": _cut(text.strip()), "keyPoints": [*points[:MOST_ITEMS]]}
    if not looked:
        return "text", {}
    findings = sections.pop("findings", None) or [_cut(_first_paragraph(text))]
    parts = {"findings": findings, **sections}
    return "analysis", {name: [*items[:MOST_ITEMS]] for name, items in parts.items()}


def _items(text: str) -> dict[str, list[str]]:
    """List items in a text, by the kind their headings say."""
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
            said = next(filter(None, heading.groups()))
            names = (name for name, words in _SECTIONS.items() if words.search(said))
            section = next(names, "findings")
    return found


def _first_paragraph(text: str) -> str:
    return text.strip().partition("\n\n")[0]


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
