"""The page's first modules, sent as one: they do what they do one by one, and are found again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits

import pytest

from mimikit.web.modules import PageModules

FILES = {
    "js/main.js": """import { answer, bump as again } from "./a.js";
import {
  counted,
} from "./views/b.js";
export const said = () => [answer, again(), counted(), Second.name];
class Second {}
console.log(JSON.stringify(said()));
void import("./views/later.js").then(({ look }) => console.log(JSON.stringify(look())));
""",
    "js/a.js": """import { packed } from "../vendor/v.js";
let count = 0;
export const answer = packed + 1;
export function bump() {
  return ++count;
}
const alone = "a's own";
export { packed, alone };
""",
    "js/views/b.js": """import { bump, packed, alone } from "../a.js";
const answer = "b's own"; // a name that another has, too
export async function later() {
  return (await import("./later.js")).look();
}
export function counted() {
  return [bump(), packed, answer, alone];
}
""",
    "js/views/later.js": """import { bump } from "../a.js";
import { own } from "./own.js";
export const look = () => [bump(), own];
""",
    "js/views/own.js": """export const own = "later's own";
""",
    "vendor/v.js": 'import{x as y}from"./w.js";const a=y;export{a as packed};',
    "vendor/w.js": "export const x=40;",
}
FIRST = "js/main.js"


def modules(changed: dict[str, str] | None = None) -> PageModules:
    return PageModules(FIRST, (FILES | (changed or {})).__getitem__, "vendor/")


@pytest.mark.needs_program("node")
@pytest.mark.parametrize("bundled", [False, True])
def test_sent_as_one_they_do_what_they_do_one_by_one(tmp_path: Path, bundled: bool) -> None:
    together = modules()
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        is_own = bundled and name.startswith("js/")
        path.write_text(together.later(name) if is_own else text)
    if bundled:
        (tmp_path / FIRST).write_text(together.bundle())
        for name in ("js/a.js", "js/views/b.js"):
            (tmp_path / name).unlink()
    ran = subprocess.run(
        ["node", tmp_path / FIRST], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stderr == ""
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [
        [41, 1, [2, 40, "b's own", "a's own"], "Second"],
        [3, "later's own"],
    ]


def test_what_is_sent_as_it_is_is_named_with_all_it_needs() -> None:
    assert modules().others == ["vendor/w.js", "vendor/v.js"]


def test_a_debugger_finds_each_line_where_it_was_written() -> None:
    told = json.loads(modules().source_map())
    lines = modules().bundle().splitlines()
    assert lines[-1] == "//# sourceMappingURL=main.js.map"
    source = number = 0
    found: dict[str, list[str]] = {}
    for sent, mapping in zip(lines, told["mappings"].split(";"), strict=True):
        if mapping:
            _, to_source, to_number, _ = numbers_of(mapping)
            source, number = source + to_source, number + to_number
            name = "js/" + told["sources"][source].removeprefix("./")
            written = FILES[name].splitlines()[number]
            is_same = sent == written.replace('import("./later', 'import("./views/later')
            assert is_same or written.startswith(("import ", "export ", "} from"))
            found.setdefault(name, []).append(written)
    assert found == {name: FILES[name].splitlines() for name in ("js/a.js", "js/views/b.js", FIRST)}


def numbers_of(mapping: str) -> list[int]:
    """What the digits of a source map's entry stand for."""
    found, value, shift = [], 0, 0
    for letter in mapping:
        digit = f"{ascii_uppercase}{ascii_lowercase}{digits}+/".index(letter)
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            found.append(-(value >> 1) if value & 1 else value >> 1)
            value, shift = 0, 0
    return found


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("js/a.js", 'import { said } from "./main.js";\n', "import one another"),
        ("js/a.js", 'import all from "./x.js";\n', "expected a form that can be bundled"),
        ("js/a.js", "export let x = 1;\n", "expected a form that can be bundled"),
        ("js/a.js", "export default 1;\n", "expected a form that can be bundled"),
        ("js/a.js", 'export * from "./views/b.js";\n', "expected a form that can be bundled"),
        ("js/views/b.js", "export const x = import.meta.url;\n", "address of its own"),
    ],
)
def test_what_can_not_be_bundled_is_an_error_with_its_file(name: str, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as raised:
        modules({name: text}).bundle()
    assert "js/" in str(raised.value)


def test_lines_keep_their_numbers_in_what_comes_later() -> None:
    text = modules().later("js/views/later.js")
    assert text.splitlines()[0].startswith('import { $modules } from "../main.js"; const { bump }')
    assert text.splitlines()[1:] == FILES["js/views/later.js"].splitlines()[1:]
    assert modules().later("js/views/own.js") == FILES["js/views/own.js"]
