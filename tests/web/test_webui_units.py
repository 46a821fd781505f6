"""The page's files: its own unit tests, and what must hold for every file of it."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import subprocess
from pathlib import Path

import pytest

from mimikit.web.assets import Assets
from tests.support.pace import within

REPO = Path(__file__).parents[2]
WEBUI = REPO / "webui"
VENDOR = WEBUI / "vendor"
AT_ONCE = re.compile(r"""\b(?:from|import)\s*["'](\.[^"']+)["']""")
MODULE = re.compile(r"""\b(?:from\s*|import\s*\(?\s*)["'](\.[^"']+)["']""")
"""Those, and what is fetched later."""


def own_files(*suffixes: str) -> list[Path]:
    """The page's files that were written here."""
    found = [
        path
        for path in sorted(WEBUI.rglob("*"))
        if path.suffix in suffixes and VENDOR not in path.parents
    ]
    assert found
    return found


def lines_with(pattern: str, *suffixes: str) -> list[str]:
    """Where a pattern stands in the page's own files."""
    return [
        f"{path.relative_to(REPO)}:{number}: {line.strip()}"
        for path in own_files(*suffixes)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(pattern, line)
    ]


@pytest.mark.needs_program("node")
def test_the_unit_tests_of_the_page_pass() -> None:
    tests = sorted((REPO / "tests/webui").glob("*.test.mjs"))
    result = subprocess.run(
        ["node", "--test", *tests], capture_output=True, text=True, check=False, timeout=within(100)
    )
    assert tests
    assert result.returncode == 0, result.stdout + result.stderr


def test_vendored_files_are_those_of_the_manifest_and_no_others() -> None:
    manifest = json.loads((VENDOR / "manifest.json").read_text())
    listed = {
        name: digest
        for package in manifest["packages"]
        for name, digest in package["files"].items()
    }
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert found == listed
    for package in manifest["packages"]:
        assert package["name"]
        assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
        assert package["licence"]
        assert package["licenceFile"] in listed


def test_dictionaries_have_the_same_keys() -> None:
    english, chinese = (
        json.loads((WEBUI / f"i18n/{name}.json").read_text()) for name in ("en", "zh")
    )
    assert list(english) == list(chinese)
    assert len(english) > 100


def test_nothing_needs_more_than_the_content_policy_gives() -> None:
    assert not lines_with(r"\sstyle\s*=\s*[\"'$]", ".html", ".js", ".svg")
    assert not lines_with(r"<style\b", ".html", ".svg")
    assert not lines_with(r"\son[a-z]+\s*=\s*[\"']", ".html", ".js", ".svg")
    assert not lines_with(r"\beval\s*\(|new Function\b|setTimeout\(\s*[\"'`]", ".js")
    assert not lines_with(r"unsafe-?html", ".js")
    assert not lines_with(r"https?://(?!www\.w3\.org/)", ".js", ".css", ".html", ".svg")


def test_one_function_alone_makes_html_from_text() -> None:
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|setHTML|document\.write|DOMParser|srcdoc"
    assert {line.partition(":")[0] for line in lines_with(sinks, ".js")} == {"webui/js/html.js"}
    assert {line.partition(":")[0] for line in lines_with("createPolicy", ".js")} == {
        "webui/js/html.js"
    }


def test_the_page_scrolls_its_containers_never_an_element_into_view() -> None:
    assert not lines_with(r"scrollIntoView", ".js")


def test_each_module_is_reached_and_none_is_missing_and_the_first_ones_are_named_early() -> None:
    assets = Assets(WEBUI)
    page = assets.index().decode()
    named = set(re.findall(rf'/assets/{assets.tree_hash()}/([^"]+)"', page))
    assert all((WEBUI / name).is_file() for name in named - {"css/all.css"})
    early = {name for name in named if name.endswith(".js")} - {"js/early.js", "js/main.js"}
    at_once = reached_from(WEBUI / "js/main.js", AT_ONCE)
    assert early == {name for name in at_once if name.startswith("vendor/")}
    sources = json.loads(assets.read(assets.tree_hash(), "js/main.js.map")[0])["sources"]
    assert {posixpath.normpath(f"js/{name}") for name in sources} == at_once - early
    own = {path.relative_to(WEBUI).as_posix() for path in own_files(".js")}
    vendored = {name for name in own if name.startswith("vendor/")}
    types = {"js/types.js", "js/state-types.js"}
    all_of_them = reached_from(WEBUI / "js/main.js", MODULE)
    assert all((WEBUI / name).is_file() for name in all_of_them)
    assert own - vendored - types - {"js/early.js", "sw.js"} <= all_of_them


def reached_from(start: Path, imports: re.Pattern[str]) -> set[str]:
    """The modules that a module needs by such imports, itself among them."""
    found: set[Path] = set()
    waiting = [start.resolve()]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        waiting += [
            (path.parent / match[1]).resolve() for match in imports.finditer(path.read_text())
        ]
    return {path.relative_to(WEBUI).as_posix() for path in found}


CODE = re.compile(r'\bcode="([a-z_]+)"|\breason="([a-z ]+)"')
KIND = re.compile(r'^    kind = "([a-z_]+)"', re.MULTILINE)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_has_words_for_each_error_that_the_code_tells(language: str) -> None:
    words = json.loads((WEBUI / "i18n" / f"{language}.json").read_text())
    places = [*(REPO / "mimikit").rglob("*.py")]
    found = [match for path in places for match in CODE.findall(path.read_text())]
    codes = {"".join(match).replace(" ", "_") for match in found}
    codes |= {*KIND.findall((REPO / "mimikit/errors.py").read_text())}
    assert len(codes) > 50
    assert {code for code in codes if f"error.{code}" not in words} == set()


def test_what_the_log_tells_has_words_on_the_page() -> None:
    words = json.loads((WEBUI / "i18n" / "en.json").read_text())
    written: set[str] = set()
    for path in (REPO / "mimikit").rglob("*.py"):
        for match in re.finditer(
            r"""log\.write\(\s*"[a-z]+",\s*"([a-z_]+)"|self\._tell\(\s*"([a-z_]+)",""",
            path.read_text(),
        ):
            if match[1] or path.parts[-2:] == ("protocol", "files.py"):
                written.add(match[1] or match[2])
    assert {"web_failed", "quarantined", "operation_failed", "turn_applied"} <= written
    assert sorted(name for name in written if f"logs.event.{name}" not in words) == []
