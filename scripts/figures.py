"""Sizes of modules, classes, functions, tests and the page, and what the layout forbids.

`python scripts/figures.py` prints one table and fails where a limit of limits.toml is exceeded;
`--list` adds each place behind what should be 0.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "mimikit"
LIMITS = Path(__file__).with_name("limits.toml")
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
UNTYPED = re.compile(r"\bdict\[str, (?:typing\.)?Any\]")


@dataclass
class Figures:
    """What was counted. Units: lines, unless the name says otherwise."""

    modules: dict[str, int] = field(default_factory=dict[str, int])
    functions: list[int] = field(default_factory=list[int])
    classes: list[int] = field(default_factory=list[int])
    public_classes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Name and module of each."""
    untyped: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Module and name of each public function whose signature holds `dict[str, Any]`."""


def measure(package: Path = ROOT / PACKAGE) -> Figures:
    """Count everything below a package; an `__init__` of nothing but its docstring is no module."""
    found = Figures()
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        if path.name == "__init__.py" and len(tree.body) < 2:
            continue
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        name = name.removesuffix(".__init__")
        found.modules[name] = len(text.splitlines())
        _look_into(tree, name, found)
    return found


def _look_into(tree: ast.Module, module: str, found: Figures) -> None:
    public: list[ast.stmt] = [n for n in tree.body if not getattr(n, "name", "_").startswith("_")]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions.append((node.end_lineno or 0) - node.lineno + 1)
        elif isinstance(node, ast.ClassDef):
            found.classes.append((node.end_lineno or 0) - node.lineno + 1)
    for node in public:
        if isinstance(node, ast.ClassDef):
            found.public_classes.append((node.name, module))
            members = [n for n in node.body if isinstance(n, ast.FunctionDef)]
            for member in members:
                if not member.name.startswith("_") or member.name == "__init__":
                    _look_at_signature(member, module, f"{node.name}.{member.name}", found)
        elif isinstance(node, ast.FunctionDef):
            _look_at_signature(node, module, node.name, found)


def _look_at_signature(node: ast.FunctionDef, module: str, name: str, found: Figures) -> None:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    written = [a.annotation for a in arguments] + [node.returns]
    if any(UNTYPED.search(ast.unparse(part)) for part in written if part is not None):
        found.untyped.append((module, name))


def room_of(module: str) -> str:
    """The folder of the package that a module lies in, or the module itself."""
    return ".".join(module.split(".")[:2])


def between_rooms(graph: grimp.ImportGraph) -> Iterator[tuple[str, str]]:
    """Importer and imported of each import that leaves its room."""
    for importer in sorted(graph.modules):
        for imported in sorted(graph.find_modules_directly_imported_by(importer)):
            if room_of(importer) != room_of(imported):
                yield importer, imported


def cycles(graph: grimp.ImportGraph) -> list[str]:
    """Modules that can be reached from themselves."""
    return sorted(
        module
        for module in graph.modules
        if any(
            graph.find_shortest_chain(imported, module)
            for imported in graph.find_modules_directly_imported_by(module)
        )
    )


def known_words(glossary: Path = ROOT / "docs/glossary.md") -> frozenset[str]:
    """Every word a class may be named by, in lower case: the table's and the field's."""
    text = glossary.read_text(encoding="utf-8")
    table = re.findall(r"^\| ([A-Z][A-Za-z ]*) \|", text, re.MULTILINE)
    field_words = text.partition("## Words of the field")[2]
    words = (word for entry in [*table, field_words] for word in re.findall(r"[A-Za-z]+", entry))
    return frozenset(word.lower() for word in words)


def unknown_names(classes: Iterable[tuple[str, str]], words: frozenset[str]) -> list[str]:
    """Public classes whose name holds no known word; a plural is its singular."""
    return [
        f"{module}.{name}"
        for name, module in classes
        if not any({w, w.removesuffix("s")} & words for w in map(str.lower, WORDS.findall(name)))
    ]


def share(values: Iterable[int], part: float) -> int:
    """The value that `part` of all do not exceed (0 to 1); 0 of nothing."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else 0


def lines_of(folder: str, *suffixes: str) -> int:
    """Lines of all files below a folder of the repository that end so."""
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def read_limits(text: str, *, with_allowances: bool = True) -> dict[str, int]:
    """The limits by the name of their figure, with what each capability may add."""
    tables = tomllib.loads(text)
    allowances = tables.get("allowances", {}).values() if with_allowances else ()
    total = Counter(tables["limits"])
    for allowance in allowances:
        total.update(allowance)
    return dict(total)


def figures() -> tuple[dict[str, int], dict[str, list[str]]]:
    """Each figure by name, and the places behind what should be 0."""
    found = measure()
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    crossing = list(between_rooms(graph))
    imported = {module for _, module in crossing}
    twice = Counter(name for name, _ in found.public_classes)
    places = {
        "modules in an import cycle": cycles(graph),
        "imports cli -> web": [
            f"{importer} -> {module}"
            for importer, module in crossing
            if (room_of(importer), room_of(module)) == (f"{PACKAGE}.cli", f"{PACKAGE}.web")
        ],
        "class names without a known word": unknown_names(found.public_classes, known_words()),
        "class names that stand twice": sorted(
            f"{module}.{name}" for name, module in found.public_classes if twice[name] > 1
        ),
        "dict[str, Any] between rooms": [
            f"{module}.{name}" for module, name in found.untyped if module in imported
        ],
    }
    sizes = found.modules.values()
    engines = f"{PACKAGE}.engines"
    counted = {
        "lines": sum(sizes),
        "lines of engines/": sum(
            n for name, n in found.modules.items() if name.startswith(engines)
        ),
        "modules": len(sizes),
        "module median": share(sizes, 0.5),
        "module p90": share(sizes, 0.9),
        "module largest": max(sizes),
        "functions": len(found.functions),
        "function median": share(found.functions, 0.5),
        "function p95": share(found.functions, 0.95),
        "function longest": max(found.functions),
        "public classes": len(found.public_classes),
        "lines of tests": lines_of("tests", ".py", ".mjs"),
        "lines of JavaScript": lines_of("webui", ".js"),
        "lines of CSS": lines_of("webui", ".css"),
    }
    return counted | {name: len(where) for name, where in places.items()}, places


def main() -> int:
    """Print the table; with `--list` the places, too. Gives 1 where a limit is exceeded."""
    counted, places = figures()
    limits = read_limits(LIMITS.read_text(encoding="utf-8"))
    failed = 0
    for name, value in counted.items():
        limit = limits.get(name)
        over = limit is not None and value > limit
        failed |= over
        shown = "" if limit is None else f"≤ {limit}"
        print(f"{name:34} {value:>7}  {shown:10}{'OVER' if over else ''}".rstrip())
    if "--list" in sys.argv[1:]:
        for name, where in places.items():
            print("", name, *(f"  {place}" for place in where), sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
