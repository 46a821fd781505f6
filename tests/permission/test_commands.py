"""Who may have a shell command run, and from where."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mimikit import permission
from mimikit.config import Settings, WebSettings
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Origin, Task
from mimikit.protocol.runtime import PageAddress
from mimikit.roles.dispatcher import task_refusal
from tests.support.memory_disk import MemoryDisk

NOW = datetime(2026, 12, 1, tzinfo=UTC)
PROCESS: dict[str, Any] = {"pid": 1, "process_started": "1", "boot_id": "b", "started_at": NOW}
HOME = PageAddress(host="127.0.0.1", port=8787, local=True, **PROCESS)
ABROAD = PageAddress(host="192.0.2.1", port=8787, local=False, **PROCESS)
OWNERS: tuple[Origin, ...] = ("cli", "file", "http", "builtin")


def task(origin: Origin, trigger_origin: Origin | None = None) -> Task:
    made = Task(id="t", prompt="date", profile="command", created_at=NOW, trace_id="t")
    return made.but(origin=origin, trigger_origin=trigger_origin)


def state_with(*pages: PageAddress) -> Files:
    """A state folder at which these pages are served, started in this order."""
    files = Files(MemoryDisk())
    files.make_folders()
    for number, page in enumerate(pages):
        files.save(paths.page(f"page-{number}"), page)
    return files


@pytest.mark.parametrize("origin", OWNERS)
@pytest.mark.parametrize("pages", [(), (HOME,), (HOME, HOME)], ids=["none", "one", "two"])
def test_the_owner_may_at_home(origin: Origin, pages: tuple[PageAddress, ...]) -> None:
    files = state_with(*pages)
    assert task_refusal(task(origin), Settings(), files) is None
    assert task_refusal(task("trigger", origin), Settings(), files) is None


@pytest.mark.parametrize("origin", ["teller", "planner", "self_awake", "trigger"])
def test_a_mind_may_not_unless_allowed(origin: Origin) -> None:
    assert task_refusal(task(origin), Settings(), state_with(HOME))
    allowed = Settings(allow_llm_commands=True)
    assert task_refusal(task(origin), allowed, state_with(HOME)) is None


@pytest.mark.parametrize("origin", ["http", "builtin", "planner", "teller"])
@pytest.mark.parametrize(
    ("settings", "pages"),
    [
        (Settings(), [ABROAD]),
        (Settings(), [ABROAD, HOME]),
        (Settings(), [HOME, ABROAD, HOME]),
        (Settings(allow_llm_commands=True), [ABROAD]),
        (Settings(web=WebSettings(host="0.0.0.0")), [HOME]),  # noqa: S104 - the case in question
        (Settings(web=WebSettings(host="0.0.0.0")), []),  # noqa: S104
    ],
    ids=[
        *("really abroad", "abroad, then one at home", "abroad among some at home"),
        *("abroad and minds allowed", "abroad by the settings", "abroad and not there yet"),
    ],
)
def test_nobody_from_afar(origin: Origin, settings: Settings, pages: list[PageAddress]) -> None:
    files = state_with(*pages)
    assert task_refusal(task(origin), settings, files)
    assert task_refusal(task("trigger", origin), settings, files)


def test_what_is_no_record_of_a_page_is_set_aside_and_takes_no_command() -> None:
    files = state_with(HOME)
    for name in ("page-x", "odd one"):
        files.write(f"{paths.PAGES}/{name}.json", b"{")
    assert task_refusal(task("http"), Settings(), files) is None
    assert files.names(paths.PAGES) == ["page-0.json"]
    kept = [files.read(f"{paths.CORRUPT}/{name}") for name in files.names("corrupt", suffix="")]
    assert (kept.count(b"{"), len(kept)) == (2, 4)


def test_from_afar_when_the_owner_says_so_and_always_at_the_machine() -> None:
    open_web = Settings(web=WebSettings(allow_commands=True))
    assert task_refusal(task("http"), open_web, state_with(ABROAD)) is None
    assert task_refusal(task("cli"), Settings(), state_with(ABROAD)) is None
    assert task_refusal(task("file"), Settings(), state_with(ABROAD)) is None


@pytest.mark.parametrize(
    ("engine", "answer", "by_user", "is_own"),
    [
        ("local", "run: ls", True, True),
        ("local", " run: ls\n", True, True),
        ("local", "Yes", True, True),
        ("local", "好的", True, True),
        ("local", "yes", False, False),
        ("codex", "yes", True, False),
        ("local", "run: ls", False, False),
        ("codex", "run: ls", True, False),
        ("builtin", "run: ls", True, False),
        ("local", "no", True, False),
        ("local", "run: rm x", True, False),
        ("local", "", True, False),
    ],
)
def test_a_proposal_is_the_users_own_words_once_they_chose_it_themselves(
    engine: str, answer: str, by_user: bool, is_own: bool
) -> None:
    options = ["run: ls", "no"]
    assert permission.is_confirmed(engine, options, answer, by_user=by_user) is is_own
    assert not permission.is_confirmed(engine, [], answer, by_user=by_user)
