"""Tasks that ended, told where no model speaks: bounded, in fences, with their reason."""

from __future__ import annotations

import pytest

from mimikit.engines.base import ToldResult
from mimikit.engines.builtin import replies
from mimikit.language import phrases


def told(**changes: object) -> ToldResult:
    fields: dict[str, object] = {
        "title": "ls",
        "prompt": "ls",
        "seat": "worker",
        "status": "done",
        "text": "one\ntwo\n",
        "error": None,
        "failure_reason": None,
        "task_id": "task-1",
    }
    return ToldResult(**(fields | changes))  # pyright: ignore[reportArgumentType]


def test_a_done_task_is_told_with_its_output_in_a_fence() -> None:
    assert replies.results([told()], "en") == "`ls` is done.\n\n```text\none\ntwo\n```"
    assert replies.results([told(text="")], "en") == "`ls` is done. It printed nothing."
    assert replies.results([told(text="")], "zh") == "`ls` 完成了，没有输出。"


def test_a_long_output_is_cut_and_says_where_the_rest_is() -> None:
    text = replies.results([told(text="x" * 5000)], "en")
    assert "x" * 2000 in text
    assert "x" * 2001 not in text
    assert "3,000 more characters" in text
    assert "mimikit tasks show task-1" in text


def test_a_failed_task_is_told_with_its_reason_its_error_and_the_end_of_its_output() -> None:
    failed = told(
        status="failed",
        failure_reason="timeout",
        error="ended: not done within 5 s",
        text="start" + "x" * 3000 + "the end",
    )
    text = replies.results([failed], "en")
    assert text.startswith("`ls` failed: it took longer than it may.")
    assert "ended: not done within 5 s" in text
    assert "the end" in text
    assert "start" not in text


def test_an_error_that_is_also_the_text_is_told_once() -> None:
    failed = told(status="failed", failure_reason="error", error="boom", text="boom")
    assert replies.results([failed], "en").count("boom") == 1


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "reason",
    [
        *("timeout", "error", "killed", "canceled", "engine_unavailable"),
        *("rate_limited", "budget", "refused", None),
    ],
)
def test_every_failure_reason_has_words(reason: str | None, language: str) -> None:
    text = replies.results([told(status="failed", failure_reason=reason, text="")], language)
    assert text.startswith("`ls` ")
    assert phrases.say(f"reason_{reason or 'unknown'}", language) in text


def test_a_canceled_task_is_told_in_a_word() -> None:
    assert replies.results([told(status="canceled", text="half")], "en") == "`ls` was canceled."


def test_what_a_plan_found_is_told_as_words_not_as_output() -> None:
    found = told(seat="planner", title="when did we deploy", text="On *Friday*.")
    assert replies.results([found], "en") == "`when did we deploy` is done.\n\nOn *Friday*."


def test_many_results_share_one_message_of_bounded_length() -> None:
    text = replies.results([told(task_id=f"task-{n}", text="y" * 4000) for n in range(20)], "en")
    assert text.count("is done") == 20
    assert len(text) < 20_000
