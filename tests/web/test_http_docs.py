"""docs/http.md and the types of the page match the API."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

REPO = Path(__file__).parents[2]
PAGE = REPO / "webui" / "js"
NAMED = re.compile(r'import\("[./]*((?:state-)?types)\.js"\)\.(\w+)')
STALE = "it is stale: run `python scripts/make_http_docs.py`"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs", REPO / "scripts" / "make_http_docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_docs_are_those_of_the_api(script: ModuleType) -> None:
    made = script.http_md()
    assert made == script.DOCS.read_text(), STALE
    assert made.count("\n→ 2") == made.count("\n→ "), "an example that fails shows nothing"


def test_the_types_of_the_page_are_those_of_the_api(script: ModuleType) -> None:
    assert script.types_js() == script.TYPES.read_text(), STALE


def test_every_type_the_page_names_exists() -> None:
    named = {pair for path in PAGE.rglob("*.js") for pair in NAMED.findall(path.read_text())}
    assert len(named) > 30
    for file, name in sorted(named):
        text = (PAGE / f"{file}.js").read_text()
        assert re.search(rf"@typedef [^@]*?\}}(?:\n \*)? *{name}\b", text), f"{file}.js: {name}"
