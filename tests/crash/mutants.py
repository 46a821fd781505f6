"""Guards of the product, each found in its syntax tree and taken out, one at a time.

A guard is what keeps a crash, a power cut or another process from doing harm: a flush, a rename, a
creation that must be the first, a lock, a check whether it was done before, the order of two
changes. Whatever is left out, the harness is to notice.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import errno
import importlib
import inspect
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias

import mimikit
from mimikit.protocol.disk import Lock
from tests.crash.sites import CACHES, CHANGES, HOLDERS

Kind: TypeAlias = Literal["flush", "rename", "first", "lock", "check", "condition", "order"]

ROOT = Path(mimikit.__file__).parent
FLUSHES = frozenset({"fsync", "sync_dir", "sync_file", "_sync_folder"})
RENAMES = frozenset({"rename", "move"})
FIRSTS = frozenset({"create", "save_new"})
ASKS = frozenset(
    {"exists", "stat", "load", "read", "peek", "find", "names", "save_new", "create", "move",
     "remove", "lock", "writer_lives", "end_of", "held", "is_summed_up", "enqueue_due"}
)  # fmt: skip
"""What tells whether something is there, or was done before."""
_NO_REPLACE = "_RENAME_NOREPLACE"
_EDGES = ("app", "cli", "engines", "internet", "state", "web.api", "web.app", "web.serve")
"""Where what is asked before a change is what somebody typed or sent, not what is known already."""
_SEAM = "mimikit.protocol.files"
_HELPERS = "_left_out"
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Mutant(NamedTuple):
    """A guard that can be left out."""

    module: str
    function: str
    """Its qualified name in the module; the outermost one, where functions stand in functions."""
    line: int
    column: int
    kind: Kind
    source: str
    """The first line of what is left out."""
    number: int
    """Of those in this function that read alike."""

    def __str__(self) -> str:
        more = f" ({self.number})" if self.number > 1 else ""
        return f"{self.kind} in {self.module}:{self.function}: {self.source}{more}"


def mutants() -> list[Mutant]:
    """Every guard of the product."""
    paths = (path for path in sorted(ROOT.rglob("*.py")) if path.parent.name != "testing")
    return [mutant for path in paths for mutant in _of(path) if mutant.module not in CACHES]


def mutant_named(text: str) -> Mutant:
    """The one that is shown so."""
    module = text.partition(" in mimikit.")[2].partition(":")[0]
    path = ROOT.joinpath(*module.split("."))
    found = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return next(mutant for mutant in _of(found) if str(mutant) == text)


@contextlib.contextmanager
def left_out(mutant: Mutant) -> Generator[None]:
    """The product without this guard."""
    module = importlib.import_module(mutant.module)
    tree = ast.parse(inspect.getsource(module))
    owner = _Leaver(mutant).leave(tree)
    code = _code_of(compile(owner, module.__file__ or "", "exec", dont_inherit=True), mutant)
    function = _function_of(module, mutant.function)
    before = function.__code__
    function.__code__ = code
    setattr(module, _HELPERS, Helpers)
    try:
        yield
    finally:
        function.__code__ = before
        delattr(module, _HELPERS)


class Helpers:
    """What stands in for a guard."""

    @staticmethod
    def move(holder: Any, source: str, target: str) -> bool:
        """In two steps, of which the first may be the last."""
        disk = getattr(holder, "fs", holder)
        if disk.stat(source) is None:
            return False
        data = disk.read(source)
        disk.unlink(source)
        with contextlib.suppress(FileNotFoundError):
            disk.unlink(target)
        disk.write_new(target, data, sync=True)
        disk.sync_dir(target.rpartition("/")[0])
        return True

    @staticmethod
    def rename(holder: Any, source: str, target: str, **folders: Any) -> None:
        """In two steps, of which the first may be the last."""
        if holder is os:
            os.link(source, target, **folders)
            os.unlink(source, dir_fd=folders["src_dir_fd"])
        elif not Helpers.move(getattr(holder, "__self__", holder), source, target):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)

    @staticmethod
    def link(_os: Any, source: str, target: str, **how: Any) -> None:
        """Whatever stood there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target, dir_fd=how["dst_dir_fd"])
        os.link(source, target, **how)

    @staticmethod
    def create(files: Any, path: str, data: bytes) -> bool:
        """Whatever stood there."""
        files.write(path, data)
        return True

    @staticmethod
    def save_new(files: Any, path: str, record: Any) -> bool:
        """Whatever stood there."""
        files.save(path, record)
        return True

    @staticmethod
    def lock(*_args: Any) -> Lock:
        """For everybody."""
        return Lock(lambda: None, 0)

    @staticmethod
    def held(*_args: Any, **_more: Any) -> contextlib.AbstractContextManager[None]:
        """For everybody."""
        return contextlib.nullcontext()

    @staticmethod
    def flock(*_args: Any) -> None:
        """For everybody."""


# ---- finding -----------------------------------------------------------------------------


def _of(path: Path) -> Iterator[Mutant]:
    module = ".".join(["mimikit", *path.relative_to(ROOT).with_suffix("").parts])
    text = path.read_text()
    lines = text.splitlines()
    is_edge = any(f"{module}.".startswith(f"mimikit.{edge}.") for edge in _EDGES)
    for name, function in _functions(ast.parse(text)):
        alike: Counter[tuple[Kind, str]] = Counter()
        for node, kind in _guards(function, module):
            if is_edge and kind in ("check", "condition", "order"):
                continue
            source = lines[node.lineno - 1].strip()
            alike[kind, source] += 1
            place = node.lineno, node.col_offset
            yield Mutant(module, name, *place, kind, source, alike[kind, source])


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def _guards(function: ast.FunctionDef, module: str) -> Iterator[tuple[Any, Kind]]:
    is_seam, asked = module == _SEAM, _asked(function)
    for node in ast.walk(function):
        if kind := _kind_of(node, is_seam=is_seam):
            yield node, kind
        for body in _bodies(node):
            for number, statement in enumerate(body):
                rest = body[number + 1 :]
                if kind := _kind_of_if(statement, rest, asked, is_seam=is_seam):
                    yield statement, kind
                if rest and _may_swap(statement, rest[0], is_seam=is_seam):
                    yield statement, "order"


def _kind_of(node: ast.AST, *, is_seam: bool) -> Kind | None:
    if isinstance(node, ast.Attribute) and node.attr == "rename_exclusive":
        return "first"
    if isinstance(node, ast.Name) and node.id == _NO_REPLACE and _is_read(node):
        return "first"
    if not isinstance(node, ast.Call):
        return None
    name, is_of_files = _name(node), _is_of_files(node, is_seam=is_seam)
    if name in FLUSHES or (name == "settle" and is_of_files) or any(map(_flushes, node.keywords)):
        return "flush"
    is_pair = name in RENAMES and len(node.args) == len(("source", "target"))
    if is_pair and (is_of_files or name == "rename"):
        return "rename"
    is_link = name == "link" and isinstance(node.func, ast.Attribute)
    if is_link or (name in FIRSTS and is_of_files):
        return "first"
    is_lock = name == "flock" or (name == "lock" and node.args)
    return "lock" if is_lock or (name == "held" and isinstance(node.func, ast.Name)) else None


def _kind_of_if(
    statement: ast.stmt, rest: list[ast.stmt], asked: set[str], *, is_seam: bool
) -> Kind | None:
    if not isinstance(statement, ast.If) or statement.orelse or not _asks(statement.test, asked):
        return None
    if isinstance(statement.body[-1], _ENDS):
        return "check" if any(_changes(one, is_seam=is_seam) for one in rest) else None
    return "condition" if _changes(statement, is_seam=is_seam) else None


def _flushes(keyword: ast.keyword) -> bool:
    is_no = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
    return keyword.arg == "sync" and not is_no


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield body


def _is_of_files(call: ast.Call, *, is_seam: bool) -> bool:
    holder = getattr(call.func, "value", None)
    name = getattr(holder, "attr", getattr(holder, "id", ""))
    return name in HOLDERS | {"fs"} or (is_seam and name == "self")


def _changes(statement: ast.AST, *, is_seam: bool, flushes: bool = False) -> bool:
    """Whether files are changed in it."""
    names = CHANGES | {"rename", "rename_exclusive"} | (FLUSHES if flushes else set())
    return any(
        isinstance(node, ast.Call) and _name(node) in names and _is_of_files(node, is_seam=is_seam)
        for node in ast.walk(statement)
    )


def _asked(function: ast.FunctionDef) -> set[str]:
    """The names in a function that hold what it asked the files."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.NamedExpr) and _asks(node.value, set()):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {n.id for one in targets for n in ast.walk(one) if isinstance(n, ast.Name)}
    return found


def _asks(test: ast.AST, asked: set[str]) -> bool:
    """Whether it says what is there, or which one it is."""
    return any(
        (isinstance(node, ast.Call) and _name(node) in ASKS)
        or (isinstance(node, ast.Name) and node.id in asked)
        or (isinstance(node, ast.Attribute) and node.attr.rpartition("_")[2] in ("id", *ASKS))
        or (isinstance(node, ast.Compare) and _is_of_two(node))
        for node in ast.walk(test)
    )


def _is_of_two(test: ast.Compare) -> bool:
    """Whether two things are compared, and not one with what is written there."""
    is_same = isinstance(test.ops[0], ast.Eq | ast.NotEq)
    return is_same and not any(
        isinstance(side, ast.Constant | ast.Tuple | ast.Compare)
        for side in (test.left, *test.comparators)
    )


def _may_swap(one: ast.stmt, other: ast.stmt, *, is_seam: bool) -> bool:
    if isinstance(one, _ENDS) or isinstance(other, _ENDS):
        return False
    if not all(_changes(statement, is_seam=is_seam, flushes=True) for statement in (one, other)):
        return False
    names = {n.id for n in ast.walk(one) if isinstance(n, ast.Name) and not _is_read(n)}
    return not any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(other))


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


# ---- leaving out -------------------------------------------------------------------------


class _Leaver(ast.NodeTransformer):
    """Changes one place of a tree."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self.done = 0

    def leave(self, tree: ast.Module) -> ast.Module:
        """The tree without the guard."""
        changed: ast.Module = self.visit(copy.deepcopy(tree))
        assert self.done == 1, f"{self._mutant} was found {self.done} times"
        return ast.fix_missing_locations(changed)

    def visit(self, node: ast.AST) -> Any:
        """Where the guard stands, what is there without it."""
        if self._mutant.kind == "order":
            for body in _bodies(node):
                for number, statement in enumerate(body):
                    if self._is_it(statement) and not self.done:
                        self.done += 1
                        body[number : number + 2] = body[number + 1], body[number]
                        break
        elif self._is_it(node) and self._fits(node) and not self.done:
            self.done += 1
            return self._without(node)
        return self.generic_visit(node)

    def _is_it(self, node: ast.AST) -> bool:
        place = getattr(node, "lineno", 0), getattr(node, "col_offset", -1)
        return place == (self._mutant.line, self._mutant.column)

    def _fits(self, node: ast.AST) -> bool:
        if self._mutant.kind in ("check", "condition"):
            return isinstance(node, ast.If)
        return _kind_of(node, is_seam=self._mutant.module == _SEAM) == self._mutant.kind

    def _without(self, node: Any) -> Any:
        kind = self._mutant.kind
        if kind == "check":  # asked, as that may be a step itself, and not heeded
            return ast.Expr(node.test)
        if kind == "condition":
            return ast.If(
                ast.BoolOp(ast.Or(), [node.test, ast.Constant(value=True)]), node.body, []
            )
        if isinstance(node, ast.Name):
            return ast.Constant(value=0)
        if isinstance(node, ast.Attribute):
            return ast.Attribute(node.value, "rename", ast.Load())
        if kind == "flush":
            if _name(node) in FLUSHES | {"settle"}:
                return ast.Constant(value=None)
            for keyword in node.keywords:
                if keyword.arg == "sync":
                    keyword.value = ast.Constant(value=False)
            return node
        holder = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        helper = ast.Attribute(ast.Name(_HELPERS, ast.Load()), _name(node), ast.Load())
        return ast.Call(helper, [holder, *node.args], node.keywords)


def _code_of(module: CodeType, mutant: Mutant) -> CodeType:
    wanted = [module]
    for code in wanted:
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                if constant.co_qualname == mutant.function:
                    return constant
                wanted.append(constant)
    raise AssertionError(f"{mutant} has no code")


def _function_of(module: ModuleType, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        known: Callable[[str], Any] = lambda key, of=found: getattr(of, key, None)  # noqa: E731
        found = known("__wrapped__") or known("__func__") or known("fget") or known("callback")
        assert found is not None, f"{name} of {module.__name__} is no function"
    return found
