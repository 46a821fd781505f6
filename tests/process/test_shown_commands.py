"""What the first pages show a newcomer is run, in its order, as it stands there."""

from __future__ import annotations

import pytest

from tests.contract.test_docs_commands import REPO, commands_in, shown_commands
from tests.process.world import World

pytestmark = pytest.mark.needs_program("bwrap")

BY_NIGHT = (
    *("docs/quick-start.md", "docs/zh/quick-start.md", "docs/zh/memory.md", "docs/zh/reminders.md"),
    *("docs/zh/recipes.md", "docs/zh/webhooks.md", "docs/zh/notifications.md"),
)
PAGES = (
    *("README.md", "README.zh.md", "docs/recipes.md"),
    *(pytest.param(page, marks=pytest.mark.nightly) for page in BY_NIGHT),
)
NOT_HERE = {
    ("up",): "serves until it is ended: tests/cli/test_up.py",
    ("engine",): "asks an endpoint: tests/cli/test_engines.py",
    ("service",): "asks the system's own keeper of services: tests/cli/test_service.py",
    ("hooks", "test"): "calls the page: tests/process/test_webhooks.py",
    ("notify", "add"): "asks for an address: tests/cli/test_notify.py",
    ("notify", "test"): "calls a service: tests/cli/test_notify.py",
    ("notify", "remove"): "of one that was added: tests/cli/test_notify.py",
    ("local", "setup"): "fetches half a gigabyte: tests/engines/test_local_weights.py",
}


def lines_of(page: str) -> list[list[str]]:
    """The commands of a page, but for those that another test runs, each once."""
    found: list[list[str]] = []
    for place, words in shown_commands():
        is_left_out = any(tuple(words[: len(left)]) == left for left in NOT_HERE)
        if place == page and not is_left_out and words not in found:
            found.append(words)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_runs(world: World, page: str) -> None:
    for folder in (world.workspace, world.workspace / "project"):
        folder.mkdir(exist_ok=True)
        (folder / "Makefile").write_text("%:\n\t@echo made $@\n")
    world.start_consumer()
    lines = lines_of(page)
    assert lines, page
    for words in lines:
        done = world.run(*words)
        # `doctor` may find that this machine lacks something: it still says so in plain words.
        is_well = done.returncode == 0 or (words[0] == "doctor" and done.returncode == 1)
        assert is_well, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stdout + done.stderr, words
    assert world.consumer is not None
    assert world.consumer.poll() is None


def test_the_command_by_hand_is_a_task(world: World) -> None:
    world.start_consumer()
    readme = (REPO / "README.md").read_text()
    (line,) = [one for one in readme.splitlines() if one.startswith("echo '{")]
    text, path = line.removeprefix("echo ").split(" > ")
    (world.workspace / path).write_text(text.strip("'"))
    assert world.run("tasks", "output", "hello", "-f").returncode == 0
    assert commands_in("mimikit tasks output hello -f", prompt_needed=False)
