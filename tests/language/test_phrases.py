"""What mimikit itself says: both languages say the same, and foreign text can not break out."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mimikit.engines.builtin.grammar import parse
from mimikit.engines.builtin.reminders import RemindIntent
from mimikit.language import phrases
from mimikit.language.phrases import ResultNotice
from tests.support.sentences import (
    After,
    At,
    ChangeBacklog,
    Every,
    Plain,
    Recall,
    Remember,
    Run,
    Show,
    WhenFile,
)


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_messages() -> None:
    assert phrases.TABLE["en"].keys() == phrases.TABLE["zh"].keys()


@pytest.mark.parametrize("key", phrases.TABLE["en"])
def test_a_message_has_the_same_placeholders_in_both_languages(key: str) -> None:
    en, zh = phrases.TABLE["en"][key], phrases.TABLE["zh"][key]
    assert placeholders(en) == placeholders(zh)
    assert en.strip()
    assert zh.strip()
    assert re.search(r"[\u4e00-\u9fff]", zh)
    assert not re.search(r"[\u4e00-\u9fff]", en)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_sentence_that_help_names_is_understood(language: str) -> None:
    text = phrases.say("help", language, connect="")
    listed = "\n".join(line for line in text.splitlines() if line.startswith("- "))
    named = re.findall(r"`([^`]+)`", listed)
    intents = [parse(sentence, {"date"}.__contains__) for sentence in named]
    kinds = {type(intent) for intent in intents}
    assert {Run, Every, At, WhenFile, After, Remember, Recall, ChangeBacklog, RemindIntent} <= kinds
    shown = {intent.what for intent in intents if isinstance(intent, Show)}
    assert shown == {"tasks", "reminders", "status", "backlog"}
    assert Plain not in kinds


SAYING_WHAT_INSTEAD = [
    *("command_or_time", "file_or_word", "time_passed", "time_unclear"),
    *("after_which", "after_none", "plan_unknown"),
]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("key", SAYING_WHAT_INSTEAD)
def test_suggested_sentences_are_understood(key: str, language) -> None:
    quoted = re.findall(r"`([^`]+)`|「([^」]+)」", phrases.TABLE[language][key])
    sentences = [sentence for pair in quoted for sentence in pair if ":" in sentence]
    sentences += [sentence for pair in quoted for sentence in pair if "：" in sentence]
    assert sentences
    for sentence in sentences:
        intent = parse(sentence, {"date"}.__contains__)
        assert isinstance(intent, Run | Every | At | WhenFile | After), sentence


@pytest.mark.parametrize(
    ("text", "locale", "expected"),
    [
        ("hello there", "zh-CN", "en"),
        ("你好", "en", "zh"),
        ("帮我看看 FastAPI 的 SSE 怎么写", "en", "zh"),
        ("What does 你好 mean in this long English sentence?", "zh-CN", "zh"),
        ("What does 你好 mean in this long English sentence?", "en-US", "en"),
        ("Please tell me what the sign on the door over there says: 门", "zh-CN", "en"),
        ("", "zh-CN", "zh"),
        ("", "en", "en"),
        ("123 + 456", "zh-TW", "zh"),
        ("こんにちは、元気ですか", "ja", "en"),
    ],
)
def test_the_language_is_the_texts_then_the_locales(text: str, locale: str, expected: str) -> None:
    assert phrases.language(text, locale) == expected


@given(st.text(alphabet=st.sampled_from("`~ab \n#*[]<>")))
def test_nothing_closes_the_fence_it_stands_in(text: str) -> None:
    tokens = MarkdownIt().parse(f"before\n\n{phrases.fence(text)}\n\nafter")
    fences = [token for token in tokens if token.type == "fence"]
    assert len(fences) == 1
    assert fences[0].content == f"{text}\n"
    assert tokens[-2].content == "after"


@given(st.text(alphabet=st.sampled_from("`ab *[]<>\\"), min_size=1).map(str.strip).filter(bool))
def test_nothing_closes_the_code_span_it_stands_in(text: str) -> None:
    inline = MarkdownIt().parse(f"see {phrases.code(text)} now")[1].children or []
    assert [child.type for child in inline] == ["text", "code_inline", "text"]
    assert inline[1].content == " ".join(text.split())


# ---- tasks that ended


def told(**changes: object) -> ResultNotice:
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
    return ResultNotice(**(fields | changes))  # pyright: ignore[reportArgumentType]


def test_a_done_task_is_told_with_its_output_in_a_fence() -> None:
    assert phrases.results([told()], "en") == "`ls` is done.\n\n```text\none\ntwo\n```"
    assert phrases.results([told(text="")], "en") == "`ls` is done. It printed nothing."
    assert phrases.results([told(text="")], "zh") == "`ls` 完成了，没有输出。"


def test_a_long_output_is_cut_and_says_where_the_rest_is() -> None:
    text = phrases.results([told(text="x" * 5000)], "en")
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
    text = phrases.results([failed], "en")
    assert text.startswith("`ls` failed: it exceeded its time limit.")
    assert "ended: not done within 5 s" in text
    assert "the end" in text
    assert "start" not in text


@pytest.mark.parametrize(
    ("error", "output", "text"),
    [
        ("exit code 3\noh", "out\noh\n", "exit code 3.\n\n```text\nout\noh\n```"),
        ("exit code 3", "out", "exit code 3.\n\n```text\nout\n```"),
        ("exit code 3\nhint", "oh", "exit code 3.\n\n```text\nhint\n```\n\n```text\noh\n```"),
        ("exit code 1", "", "exit code 1."),
        ("ended by SIGTERM\noh", "oh", "it ended with an error.\n\n```text\nended by SIGTERM\n```"),
    ],
)
def test_a_failed_command_is_told_once_with_its_exit_code(
    error: str, output: str, text: str
) -> None:
    failed = told(status="failed", failure_reason="error", error=error, text=output)
    assert phrases.results([failed], "en").startswith(f"`ls` failed: {text}")
    assert phrases.results([failed], "en").count("oh") <= 1


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "reason",
    [
        *("timeout", "error", "killed", "canceled", "engine_unavailable"),
        *("rate_limited", "budget", "refused", None),
    ],
)
def test_every_failure_reason_has_words(reason: str | None, language: str) -> None:
    text = phrases.results([told(status="failed", failure_reason=reason, text="")], language)
    assert text.startswith("`ls` ")
    assert phrases.say(f"reason_{reason or 'unknown'}", language) in text


def test_a_canceled_task_is_told_in_a_word() -> None:
    assert phrases.results([told(status="canceled", text="half")], "en") == "`ls` was canceled."


def test_what_a_plan_found_is_told_as_words_not_as_output() -> None:
    found = told(seat="planner", title="when did we deploy", text="On *Friday*.")
    assert phrases.results([found], "en") == "`when did we deploy` is done.\n\nOn *Friday*."


def test_many_results_share_one_message_of_bounded_length() -> None:
    text = phrases.results([told(task_id=f"task-{n}", text="y" * 4000) for n in range(20)], "en")
    assert text.count("is done") == 20
    assert len(text) < 20_000
