"""Every place of the product's core that changes a file, found in its syntax tree."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

import mimikit

ROOMS = ("conversation", "tasks", "memory", "supervisor", "roles", "triggers")
CHANGES = frozenset(
    {"write", "create", "save", "save_new", "move", "remove", "append", "quarantine", "settle",
     "sweep_temps", "make_folders"}
)  # fmt: skip
CACHES = frozenset({"mimikit.memory.tantivy_index"})
"""Modules that write caches only."""
HOLDERS = frozenset({"files", "_files"})
SHARED = frozenset({"amend", "replace"})
"""The ways to change a file that its user may change too: `notes.amend(…)`."""


class Place(NamedTuple):
    module: str
    function: str
    first: int
    last: int
    change: str

    def __str__(self) -> str:
        return f"{self.module}:{self.function} line {self.first} ({self.change})"


def places() -> list[Place]:
    """All calls that change a file in the rooms that flows crash."""
    root = Path(mimikit.__file__).parent
    found: list[Place] = []
    for room in ROOMS:
        for path in sorted((root / room).glob("*.py")):
            module = f"mimikit.{room}.{path.stem}"
            if module not in CACHES:
                found += _of(module, ast.parse(path.read_text()))
    return found


def _of(module: str, tree: ast.Module) -> list[Place]:
    found: list[Place] = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and (change := _change(call)):
                last = call.end_lineno or call.lineno
                found.append(Place(module, function.name, call.lineno, last, change))
    return found


def _change(call: ast.Call) -> str | None:
    """The name of the method, if this is a change by way of a Files, or of what is shared."""
    method = call.func
    if isinstance(method, ast.Name):  # in the module itself
        return method.id if method.id == "amend" else None
    if not isinstance(method, ast.Attribute):
        return None
    holder = method.value
    name = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
    if name == "notes" and method.attr in SHARED:
        return method.attr
    if method.attr not in CHANGES:
        return None
    return method.attr if name in HOLDERS else None
