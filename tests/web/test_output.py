"""A task's output is read from either end, whole as a file, and says what it lacks."""

from __future__ import annotations

from typing import Any

import pytest

from mimikit.protocol import paths
from mimikit.views import output as shown
from tests.web.test_shown import end, put


def wrote(web, text: str = "", type_: str = "output", task: str = "task-1", **more: Any) -> None:
    web.files.append(paths.run_output(task), {"at": "x", "type": type_, "text": text, **more})


def page(web, **asked: str) -> dict[str, Any]:
    return web.get("/api/tasks/task-1/output", **asked)


def texts(part: dict[str, Any]) -> list[str]:
    return [event["text"] for event in part["events"]]


def whole(web) -> str:
    return web.ask("GET", "/api/tasks/task-1/output.txt").get_data(as_text=True)


def test_it_is_read_from_its_end_back_to_its_beginning(
    web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "_PART", 400)
    end(web, put(web, "task-1"))
    for number in range(50):
        wrote(web, f"{number}\n")
    wrote(web, "y" * 1000)  # longer than a part
    seen: list[str] = []
    before = "end"
    for _ in range(60):
        part = page(web, before=before)
        assert (part["offset"] == before) or before == "end"
        assert part["ended"] is (int(part["offset"]) == part["size"])
        seen = texts(part) + seen
        before = part["start"]
        if before == "0":
            break
    assert seen == [*(f"{number}\n" for number in range(50)), "y" * 1000]


def test_a_hole_in_what_is_loaded_is_filled_without_doubling(
    web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "_PART", 400)
    end(web, put(web, "task-1"))
    for number in range(20):
        wrote(web, f"{number}\n")
    first, last = page(web), page(web, before="end")
    seen, offset = texts(first), first["offset"]
    for _ in range(20):
        part = page(web, offset=offset, before=last["start"])
        seen += texts(part)
        offset = part["offset"]
        if offset == last["start"]:
            break
    assert seen + texts(last) == [f"{number}\n" for number in range(20)]


@pytest.mark.parametrize("asked", [{"before": "start"}, {"offset": "-1"}, {"offset": "end"}])
def test_a_place_that_is_none_is_refused(web, asked: dict[str, str]) -> None:
    put(web, "task-1")
    answer = web.ask("GET", "/api/tasks/task-1/output", query=asked)
    assert answer.status_code == 422


def test_a_commands_result_stands_for_its_output_where_that_has_gaps(web) -> None:
    task = put(web, "task-1", profile="command")
    wrote(web, "begin")
    wrote(web, "", "gap", data={"bytes": 7})
    end(web, task, result={"text": "begin middle end", "unkeptBytes": 7})
    part = page(web)
    assert texts(part) == ["begin middle end"]
    assert (part["start"], part["offset"], part["ended"]) == ("0", "16", True)
    assert texts(page(web, before="end")) == ["begin middle end"]
    assert texts(page(web, offset="16")) == []
    assert whole(web) == "begin middle end"


def test_output_that_is_no_longer_kept_is_had_from_the_result_with_what_it_lacks(web) -> None:
    task = put(web, "task-1", profile="command")
    said = "[the first 2000 characters are left out]\nthe end\n"
    end(web, task, result={"text": said, "cutCharacters": 2000})
    events = page(web)["events"]
    assert [(e["type"], e["text"], e["data"]) for e in events] == [
        ("gap", "", {"bytes": 2000}),
        ("output", "the end\n", {}),
    ]
    assert whole(web) == "[… 2 kB not kept …]\nthe end\n"


def test_a_result_that_lacks_more_than_the_output_does_not_stand_for_it(web) -> None:
    task = put(web, "task-1", profile="command")
    wrote(web, "begin")
    end(web, task, result={"text": "[…]\nend", "cutCharacters": 9, "unkeptBytes": 3})
    assert texts(page(web)) == ["begin"]


def test_a_gap_that_a_kill_has_left_open_is_marked_and_one_of_nothing_is_not(web) -> None:
    task = put(web, "task-1")
    wrote(web, "first half\n", stream="stdout")
    wrote(web, "", "gap", data={"bytes": 0, "open": True})
    wrote(web, "again", "started", data={"attempt": 2})
    wrote(web, "second\n", stream="stdout")
    wrote(web, "", "gap", data={"bytes": 0, "open": True})
    wrote(web, "", "gap", data={"bytes": 0})
    wrote(web, "third\n", stream="stdout")
    wrote(web, "", "gap", data={"bytes": 0, "open": True})
    end(web, task)
    lacks = "[… something not kept …]"
    shown = ["first half", lacks, "— attempt 2 —", "second", "third", lacks]
    assert whole(web).splitlines() == shown


def test_the_file_holds_everything_in_its_order(web) -> None:
    task = put(web, "task-1")
    wrote(web, "engine", "started", data={"attempt": 1})
    wrote(web, "make", "command", data={"id": "1", "status": "in_progress"})
    wrote(web, "make", "command", data={"id": "1", "output": "ok", "cutBytes": 5})
    wrote(web, "It ", "delta")
    wrote(web, "works.", "delta")
    wrote(web, "It works.", "message")
    wrote(web, "no newline", stream="stdout")
    wrote(web, "", "gap", data={"bytes": 0, "open": True})
    wrote(web, "", "gap", data={"bytes": 3_200_000})
    wrote(web, "oh\n", stream="stderr")
    wrote(web, "again", "started", data={"attempt": 2})
    wrote(web, "Done.", "message")
    end(web, task)
    assert whole(web).splitlines() == [
        "$ make",
        "[… 5 bytes not kept …]",
        "ok",
        "It works.",
        "no newline",
        "[… 3.2 MB not kept …]",
        "oh",
        "— attempt 2 —",
        "Done.",
    ]
    answer = web.ask("GET", "/api/tasks/task-1/output.txt")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="task-1.txt"'
    assert answer.mimetype == "text/plain"
