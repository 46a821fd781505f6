"""The page's own unit tests, and rules for all of its files."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
WEBUI = REPO / "webui"
VENDOR, DIST = WEBUI / "vendor", WEBUI / "dist"
MODULE = re.compile(r"""\b(?:from|import)\s*["'](\.[^"']+)["']""")


def own_files(*suffixes: str) -> list[Path]:
    """The page's own files, without vendored and generated ones."""
    found = [
        path
        for path in sorted(WEBUI.rglob("*"))
        if path.suffix in suffixes and not {VENDOR, DIST} & set(path.parents)
    ]
    assert found
    return found


def lines_with(pattern: str, *suffixes: str) -> list[str]:
    return [
        f"{path.relative_to(REPO)}:{number}: {line.strip()}"
        for path in own_files(*suffixes)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(pattern, line)
    ]


@pytest.mark.real
@pytest.mark.needs_program("node")
def test_the_unit_tests_of_the_page_pass() -> None:
    tests = sorted((REPO / "tests/webui").glob("*.test.mjs"))
    result = subprocess.run(
        ["node", "--test", *tests], capture_output=True, text=True, check=False, timeout=100
    )
    assert tests
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_page_works_under_a_prefix() -> None:
    """A proxy may serve it below `/assistant/`: no address begins at the root."""
    assert lines_with(r"""["'`(=]/(api|assets|healthz)\b""", ".js", ".html", ".css") == []


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
    for pattern in (sinks, "createPolicy"):
        files = {line.partition(":")[0] for line in lines_with(pattern, ".js")}
        assert files == {"webui/js/core/html.js"}


def test_the_page_scrolls_its_containers_never_an_element_into_view() -> None:
    assert not lines_with(r"scrollIntoView", ".js")


def test_the_bundle_was_made_from_the_sources_as_they_are() -> None:
    """`make page` writes it; the index names the bundle and no file that is missing."""
    names = sorted(
        path.relative_to(WEBUI).as_posix()
        for folder in ("css", "js", "vendor")
        for suffix in ("*.css", "*.js")
        for path in (WEBUI / folder).rglob(suffix)
    )
    sums = "".join(
        f"{hashlib.sha256((WEBUI / name).read_bytes()).hexdigest()}  {name}\n" for name in names
    )
    made_from = (WEBUI / "dist/sources.sha256").read_text().strip()
    assert hashlib.sha256(sums.encode()).hexdigest() == made_from, "run `make page`"
    index = (WEBUI / "index.html").read_text()
    named = set(re.findall(r"\{\{assets\}\}/([^\"]+)", index))
    assert {"dist/main.js", "dist/page.css"} < named
    assert all((WEBUI / name).is_file() for name in named)


def test_every_module_is_reached_from_the_main_one() -> None:
    reached: set[Path] = set()
    waiting = [WEBUI / "js/main.js"]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += [
                path.parent.joinpath(m[1]).resolve() for m in MODULE.finditer(path.read_text())
            ]
    assert reached >= {p for p in (WEBUI / "js").rglob("*.js") if "\nexport " in p.read_text()}
