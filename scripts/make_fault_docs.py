"""Makes the tables of faults in docs/reliability.md from tests/contract/faults.toml and the tests.

A test names the faults that it proves: `@pytest.mark.fault(14, "a", "openclaw#6460")`. Run by
hand when a fault or such a line changed; a test says when the page is stale.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS, CARRIER = ROOT / "tests", ROOT / "tests" / "contract" / "faults.toml"
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- made by `make docs`: faults -->", "<!-- end of what is made -->"
PREFIX = {"catalogue": "", "design": "", "rivals": "", "complaints": "complaint ",
          "upstream": "upstream "}  # fmt: skip
"""Section of the carrier → what stands before its names in a marker."""
NEVER_RUN = frozenset({"skip", "skipif", "xfail"})
HEADS = {
    "catalogue": "#### The catalogue",
    "design": "#### Faults of the first design",
    "rivals": "#### Failures of others of its kind",
    "complaints": "#### What users of others complain of",
    "upstream": "#### Faults of the program this one follows",
}


@dataclass(frozen=True)
class Fault:
    """One fault: its name in a marker, and what the carrier says of it."""

    name: str
    section: str
    fault: str
    then: str
    flows: tuple[str, ...] = ()
    unproven: str = ""
    beside: str = ""
    """The part of it that no test proves."""


@dataclass(frozen=True)
class FaultTest:
    """A test that says which faults it proves."""

    file: str
    """Below `tests/`."""
    function: str
    faults: tuple[str, ...]
    marks: frozenset[str]
    """Names of its other markers, those of its module among them."""


def faults() -> dict[str, Fault]:
    """Each fault of the carrier by its name, in the carrier's order."""
    carrier = tomllib.loads(CARRIER.read_text(encoding="utf-8"))
    found: dict[str, Fault] = {}
    for section, entries in carrier.items():
        for key, facts in entries.items():
            more = {("beside" if name == "except" else name): facts[name] for name in facts}
            more["flows"] = tuple(more.get("flows", ()))
            name = PREFIX[section] + key
            found[name] = Fault(name, section, **more)
    return found


def tests() -> list[FaultTest]:
    """Each test that names a fault, by file and place."""
    found: list[FaultTest] = []
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.fault(" in text:
            found += _of_module(path.relative_to(TESTS).as_posix(), ast.parse(text))
    return found


def _of_module(file: str, module: ast.Module) -> Iterator[FaultTest]:
    shared: set[str] = set()
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            shared = {name for one in ast.walk(node.value) if (name := _mark(one))}
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = {mark for one in node.decorator_list if (mark := _mark(one))}
            named = [
                str(ast.literal_eval(argument))
                for one in node.decorator_list
                if isinstance(one, ast.Call) and _mark(one) == "fault"
                for argument in one.args
            ]
            if named:
                yield FaultTest(file, node.name, tuple(named), frozenset(marks | shared))


def _mark(node: ast.AST) -> str:
    """The name of a marker: `slow` of `pytest.mark.slow`, with arguments or not."""
    if isinstance(node, ast.Call):
        node = node.func
    is_mark = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pytest.mark"
    return node.attr if is_mark and isinstance(node, ast.Attribute) else ""


def section() -> str:
    """What stands in the page between the two marks."""
    proved: dict[str, list[FaultTest]] = {}
    for test in tests():
        for name in test.faults:
            proved.setdefault(name, []).append(test)
    known = faults()
    parts = [BEGIN]
    for part, head in HEADS.items():
        rows = [_row(fault, proved.get(fault.name, ())) for fault in known.values()
                if fault.section == part]  # fmt: skip
        parts += [head, "| | what goes wrong | what happens then | proved by |\n|--|--|--|--|\n"
                  + "\n".join(rows)]  # fmt: skip
    return "\n\n".join([*parts, END])


def _row(fault: Fault, proved: list[FaultTest] | tuple[()]) -> str:
    if fault.section == "rivals":
        places = [f"`{test.file.removesuffix('.py')}::{test.function}`" for test in proved]
    else:
        places = list(dict.fromkeys(f"`{test.file.removesuffix('.py')}`" for test in proved))
    by = f"**not proved**: {fault.unproven}" if fault.unproven else ", ".join(places)
    by += f"; not: {fault.beside}" if fault.beside else ""
    name = fault.name.removeprefix(PREFIX[fault.section])
    return f"| {name} | {fault.fault} | {fault.then} | {by} |"


def page() -> str:
    """The whole page with its tables made anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + section() + after


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
