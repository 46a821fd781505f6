"""The backlog over HTTP: listing, and changing one item at a time."""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Response

from mimikit.protocol import paths
from tests.web.conftest import Web


def change(web: Web, action: Any, item: Any, **more: Any) -> Response:
    return web.ask("POST", "/api/backlog", {"action": action, "item": item} | more)


def listed(web: Web) -> list[tuple[str, bool]]:
    return [(item["text"], item["done"]) for item in web.get("/api/backlog")["items"]]


def test_an_empty_list_has_a_hash_to_begin_with(web: Web) -> None:
    empty = web.get("/api/backlog")
    assert empty["items"] == []
    made = change(web, "add", "扫地 <b>", hash=empty["hash"])
    assert made.status_code == 200
    assert made.get_json() == web.get("/api/backlog")
    assert listed(web) == [("扫地 <b>", False)]


def test_items_are_added_ticked_opened_and_removed(web: Web) -> None:
    web.files.write(paths.BACKLOG, b"# Mine\n\n* [x] cook\n\nkeep this\n")
    for action, item, expected in (
        ("add", "  sweep\nthe  floor ", [("cook", True), ("sweep the floor", False)]),
        ("add", "sweep the floor", [("cook", True), ("sweep the floor", False)]),
        ("done", "sweep the floor", [("cook", True), ("sweep the floor", True)]),
        ("undone", "cook", [("cook", False), ("sweep the floor", True)]),
        ("remove", "sweep the floor", [("cook", False)]),
    ):
        answer = change(web, action, item)
        assert answer.status_code == 200
        assert listed(web) == expected
    assert web.files.read(paths.BACKLOG) == b"# Mine\n\n* [ ] cook\n\nkeep this\n"


def test_a_change_of_an_older_list_is_refused_with_the_list_as_it_is(web: Web) -> None:
    old = web.get("/api/backlog")["hash"]
    change(web, "add", "a")
    refused = change(web, "add", "b", hash=old)
    assert refused.status_code == 409
    told = refused.get_json()
    assert told["error"]["field"] == "hash"
    assert told["current"] == web.get("/api/backlog")
    assert change(web, "add", "b", hash=told["current"]["hash"]).status_code == 200
    assert change(web, "add", "c").status_code == 200, "without a hash it is changed as it is"
