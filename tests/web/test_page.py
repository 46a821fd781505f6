"""The page and its assets: cached by content, and nothing else reachable."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from mimikit.config import asset_folder
from mimikit.errors import NotFound
from mimikit.web.assets import TYPES, Assets

REPO = Path(__file__).parents[2]


def script_address(web) -> str:
    page = web.ask("GET", "/", login=False).get_data(as_text=True)
    found = re.search(r'src="([^"]+)"', page)
    assert found is not None
    return found[1]


def test_the_page_names_its_files_by_their_content(web) -> None:
    address = script_address(web)
    assert re.fullmatch(r"assets/[0-9a-f]{16}/dist/main\.js", address)
    response = web.ask("GET", f"/{address}", login=False)
    assert response.get_data() == b"1;\n"
    assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert "immutable" in response.headers["Cache-Control"]
    assert web.ask("GET", "/", login=False).headers["Cache-Control"] == "no-cache"


def test_a_changed_file_has_another_address(web, tmp_path: Path) -> None:
    before = script_address(web)
    (tmp_path / "page" / "dist" / "main.js").write_text("22;\n")
    again = Assets(tmp_path / "page")
    prefix, _, name = before.removeprefix("assets/").partition("/")
    assert again.read(again.tree_hash, name)[0] == b"22;\n"
    with pytest.raises(NotFound, match="load it again"):
        again.read(prefix, name)


@pytest.mark.parametrize(
    "name",
    [
        *("../secret.js", "dist/../../secret.js", "%2e%2e/secret.js", "link.js", ".hidden.js"),
        *("x.py", "dist", "dist/", "", "dist//main.js", "DIST/main.js", "index.html/x", "\x00"),
        "js/source.js",
    ],
)
def test_only_the_pages_own_files_are_served(make_web, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.js").write_text("the hidden words")
    page = tmp_path / "page"
    (page / "link.js").symlink_to(tmp_path / "secret.js")
    (page / ".hidden.js").write_text("the hidden words")
    (page / "x.py").write_text("the hidden words")
    (page / "js").mkdir()
    (page / "js/source.js").write_text("the hidden words")
    web = make_web()
    base = script_address(web).removesuffix("dist/main.js")
    response = web.ask("GET", f"/{base}{name}", login=False)
    assert response.status_code == 404
    assert b"the hidden words" not in response.get_data()


def test_the_repositorys_page_is_whole() -> None:
    assets = Assets(asset_folder("webui"))
    page = assets.index.decode()
    assert "{{" not in page
    prefix = f"assets/{assets.tree_hash}/"
    named = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assert named
    for address in named:
        assert address.startswith(prefix)
        assets.read(assets.tree_hash, address.removeprefix(prefix))


def test_text_is_compressed_for_who_takes_it(make_web, tmp_path: Path) -> None:
    style = "page/dist/page.css"
    (tmp_path / style).write_text(".a { color: red; }\n" * 100)
    (tmp_path / "page/index.html").write_text(
        '<link href="{{assets}}/dist/page.css" /><script src="{{assets}}/dist/main.js"></script>'
    )
    web = make_web()
    index = web.ask("GET", "/", login=False).get_data(as_text=True)
    [sheet] = re.findall(r'href="([^"]+)"', index)
    for address in (f"/{sheet}", "/api/openapi.json"):
        plain, packed, refused = (
            web.ask("GET", address, headers={"Accept-Encoding": takes})
            for takes in ("", "br, gzip", "gzip;q=0")
        )
        assert packed.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed.get_data()) == plain.get_data() == refused.get_data()
        assert {r.headers["Vary"] for r in (plain, packed, refused)} == {"Accept-Encoding"}
        assert len(packed.get_data()) == int(packed.headers["Content-Length"])
    small = web.ask("GET", f"/{script_address(web)}", headers={"Accept-Encoding": "gzip"})
    assert small.get_data() == b"1;\n"


def test_every_file_of_the_page_has_a_type_it_is_served_with() -> None:
    folder = asset_folder("webui")
    left_out = {
        path.suffix
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in TYPES and "vendor" not in path.parts
    }
    assert left_out <= {"", ".sha256", ".ts"}
