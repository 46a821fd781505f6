"""Makes docs/cli.md from the terminal's commands and docs/records.md from the models on disk.

Run by hand when a command or a record changed; a test says when either file is stale.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import click  # noqa: E402
from pydantic.fields import FieldInfo  # noqa: E402

from mimikit.__main__ import main as mimikit  # noqa: E402
from mimikit.protocol.models import Record  # noqa: E402

COMMANDS, RECORDS = ROOT / "docs" / "cli.md", ROOT / "docs" / "records.md"
MADE = "Made by `make docs` from the program itself; do not edit."
WIDTH = 100
MODULES = ("models", "results", "triggers", "runtime", "usage", "diffs", "records")
"""Those of `mimikit.protocol` that hold what lies on disk, in the order of the page."""


def cli_md() -> str:
    """The page of commands: each with what it takes, as `--help` says it."""
    parts = [
        "# Commands",
        f"{MADE} Every command says the same by `--help`.",
        "Exit codes: 0 done, 1 failed, 2 wrong usage. What only looks takes `--json`.",
    ]
    settings = {**mimikit.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    top = click.Context(mimikit, info_name="mimikit", **settings)
    for context in _contexts(top):
        said = click.unstyle(context.command.get_help(context)).rstrip()
        parts += [f"## `{context.command_path}`", f"```text\n{said}\n```"]
    return "\n\n".join(parts) + "\n"


def _contexts(context: click.Context) -> Iterator[click.Context]:
    """A command and all below it, in the order in which it lists them."""
    yield context
    command = context.command
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        below = command.get_command(context, name)
        if below is not None and not below.hidden:
            yield from _contexts(click.Context(below, parent=context, info_name=name))


def records_md() -> str:
    """The page of records: each model with its fields as they are called on disk."""
    parts = [
        "# Records",
        f"{MADE} What lies where is told by [the file protocol](protocol.md).",
        "A field without a default has to be there; unknown fields are kept.",
    ]
    for name in MODULES:
        module = importlib.import_module(f"mimikit.protocol.{name}")
        said = _said_of_fields(Path(inspect.getfile(module)))
        models = [
            each
            for each in vars(module).values()
            if inspect.isclass(each)
            and issubclass(each, Record)
            and each.__module__ == module.__name__
        ]
        for model in models:
            if model is not Record and model.model_fields:
                parts += _record(model, said)
    return "\n\n".join(parts) + "\n"


def _record(model: type[Record], said: dict[tuple[str, str], str]) -> list[str]:
    rows = ["| field | type | default | |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        words = next(
            (said[key] for base in model.__mro__ if (key := (base.__name__, name)) in said), ""
        )
        cells = [f"`{field.alias or name}`", f"`{_type(field.annotation)}`", _default(field), words]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    own = model.__doc__ or ""
    about = [" ".join(inspect.cleandoc(own).split())] if own else []
    return [f"## {model.__name__}", *about, "\n".join(rows)]


def _type(annotation: object) -> str:
    """A type as it stands in JSON's terms, as far as Python's do."""
    kind, of = get_origin(annotation), get_args(annotation)
    if kind is Annotated:
        return _type(of[0])
    if kind is Literal:
        return " | ".join(
            f'"{value}"' if isinstance(value, str) else str(value).lower() for value in of
        )
    if kind in (Union, UnionType):
        return " | ".join(dict.fromkeys(map(_type, of)))
    if kind is not None:
        return f"{kind.__name__}[{', '.join(map(_type, of))}]"
    if annotation is NoneType or annotation is None:
        return "null"
    return annotation.__name__ if inspect.isclass(annotation) else str(annotation)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "–"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "`null`"
    return f"`{str(value).lower() if isinstance(value, bool) else _shown(value)}`"


def _shown(value: object) -> str:
    if isinstance(value, Record):
        return "{…}"
    return '""' if value == "" else str(value)


def _said_of_fields(path: Path) -> dict[tuple[str, str], str]:
    """What stands below a field of a class, in one line, by class and field."""
    said: dict[tuple[str, str], str] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, after in zip(node.body, node.body[1:], strict=False):
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
                said[node.name, field.target.id] = " ".join(str(after.value.value).split())
    return said


def main() -> None:
    for path, made in ((COMMANDS, cli_md()), (RECORDS, records_md())):
        path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
