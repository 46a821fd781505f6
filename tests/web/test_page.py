"""The page and its files: kept for ever by browsers, never stale, nothing else reachable."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import brotli
import pytest

from mimikit.config import asset_folder
from mimikit.errors import NotFound
from mimikit.web.assets import TYPES, Assets, without_comments

REPO = Path(__file__).parents[2]


def script_address(web) -> str:
    page = web.ask("GET", "/", login=False).get_data(as_text=True)
    found = re.search(r'src="([^"]+)"', page)
    assert found is not None
    return found[1]


def test_the_page_names_its_files_by_their_content(web) -> None:
    address = script_address(web)
    assert re.fullmatch(r"/assets/[0-9a-f]{16}/js/main\.js", address)
    response = web.ask("GET", address, login=False)
    assert b"\n1;\n" in response.get_data()
    assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert "immutable" in response.headers["Cache-Control"]
    assert web.ask("GET", "/", login=False).headers["Cache-Control"] == "no-cache"


def test_a_changed_file_has_another_address(web, tmp_path: Path) -> None:
    before = script_address(web)
    (tmp_path / "page" / "js" / "main.js").write_text("22;\n")
    after = script_address(web)
    assert after != before
    assert web.ask("GET", after, login=False).get_data().count(b"\n22;\n") == 1
    assert web.ask("GET", before, login=False).status_code == 404


@pytest.mark.parametrize(
    "name",
    [
        *("../secret.js", "js/../../secret.js", "%2e%2e/secret.js", "link.js", ".hidden.js"),
        *("x.py", "js", "js/", "", "js//main.js", "JS/main.js", "index.html/x", "\x00"),
    ],
)
def test_only_the_pages_own_files_are_served(web, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.js").write_text("the hidden words")
    page = tmp_path / "page"
    (page / "link.js").symlink_to(tmp_path / "secret.js")
    (page / ".hidden.js").write_text("the hidden words")
    (page / "x.py").write_text("the hidden words")
    base = script_address(web).removesuffix("js/main.js")
    response = web.ask("GET", base + name, login=False)
    assert response.status_code == 404
    assert b"the hidden words" not in response.get_data()


def test_the_repositorys_page_is_whole() -> None:
    assets = Assets(asset_folder("webui"))
    page = assets.index().decode()
    assert "{{" not in page
    prefix = f"/assets/{assets.tree_hash()}/"
    named = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assert named
    for address in named:
        assert address.startswith(prefix)
        assets.read(assets.tree_hash(), address.removeprefix(prefix))


def test_all_styles_are_one(tmp_path: Path) -> None:
    (tmp_path / "css").mkdir()
    for name in ("zoo", "apes", "base", "tokens"):
        (tmp_path / "css" / f"{name}.css").write_text(f"/* why */\n{name}{{}}\n")
    assets = Assets(tmp_path)
    styles, kind = assets.read(assets.tree_hash(), "css/all.css")
    assert styles.split() == [b"tokens{}", b"base{}", b"apes{}", b"zoo{}"]
    assert kind.startswith("text/css")


@pytest.mark.parametrize(
    ("accepts", "coding"),
    [
        ("gzip, br", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip", "gzip"),
        ("identity", None),
        ("", None),
    ],
)
def test_texts_go_over_the_wire_packed_as_their_reader_takes_them(
    web, tmp_path: Path, accepts: str, coding: str | None
) -> None:
    text = "export const said = 'a long module';\n" * 200
    (tmp_path / "page" / "js" / "main.js").write_text(text)
    unpack = {"br": brotli.decompress, "gzip": gzip.decompress, None: bytes}[coding]
    headers = {"Accept-Encoding": accepts}
    for address, login in ((script_address(web), False), ("/api/openapi.json", True)):
        response = web.ask("GET", address, login=login, headers=headers)
        plain = web.ask("GET", address, login=login, headers={"Accept-Encoding": "identity"})
        assert response.headers.get("Content-Encoding") == coding
        assert "Accept-Encoding" in response.headers["Vary"]
        assert unpack(response.get_data()) == plain.get_data()
        assert (len(response.get_data()) < len(plain.get_data()) / 4) == (coding is not None)


def test_comments_stay_at_home_and_every_line_keeps_its_number() -> None:
    source = (
        b"/** What it is.\n *\n * @typedef {x} y * / **\n */\n"
        b"import { a } from './a.js'; // why\n\n  // alone\nconst b = `/* kept */`;\n"
        b"  /* one line */  \ncall(/* inside */ b); /* two\n lines */ call();\n"
    )
    lean = without_comments(source)
    assert lean.split(b"\n") == [
        *(b"", b"", b"", b""),
        *(b"import { a } from './a.js'; // why", b"", b"", b"const b = `/* kept */`;"),
        *(b"", b"call(/* inside */ b); /* two", b" lines */ call();", b""),
    ]


@pytest.mark.needs_program("node")
def test_what_is_left_of_each_module_is_one(tmp_path: Path) -> None:
    assets = Assets(asset_folder("webui"))
    own = list(asset_folder("webui").glob("js/**/*.js"))
    assert len(own) > 60
    for number, path in enumerate(own):
        name = path.relative_to(asset_folder("webui")).as_posix()
        lean, _ = assets.read(assets.tree_hash(), name)
        if name != "js/main.js":
            assert lean.count(b"\n") == path.read_bytes().count(b"\n")
        (tmp_path / f"{number}.mjs").write_bytes(lean)
    script = (
        "import vm from 'node:vm'; import fs from 'node:fs';"
        "for (const name of process.argv.slice(1)) "
        "new vm.SourceTextModule(fs.readFileSync(name, 'utf8'), {identifier: name});"
    )
    command = ["node", "--experimental-vm-modules", "--input-type=module", "-e", script, "--"]
    checked = subprocess.run(
        [*command, *sorted(tmp_path.iterdir())], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


def test_what_is_packed_anew_after_a_change_is_the_change(web, tmp_path: Path) -> None:
    page, headers = tmp_path / "page" / "js" / "main.js", {"Accept-Encoding": "br"}
    for letter in "ab":
        page.write_text(f"{letter} " * 1000)
        response = web.ask("GET", script_address(web), login=False, headers=headers)
        assert page.read_bytes() in brotli.decompress(response.get_data())


def test_every_file_of_the_page_has_a_type_it_is_served_with() -> None:
    folder = asset_folder("webui")
    left_out = {
        path.suffix
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in TYPES and "vendor" not in path.parts
    }
    assert left_out <= {"", ".md", ".map"}


def test_assets_are_found_beside_the_package() -> None:
    assert asset_folder("webui") == REPO / "webui"


def test_a_missing_folder_is_told_with_its_places() -> None:
    with pytest.raises(NotFound, match="install mimikit again"):
        asset_folder("no-such-folder")
