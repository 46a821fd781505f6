"""Every command that the documentation shows exists, with the options it is shown with."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import click
import pytest

from mimikit.__main__ import main

REPO = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELLS = {"", "bash", "console", "sh", "shell"}
END_OF_COMMAND = {"|", "||", "&", "&&", ";", ">", ">>", "<"}


def documents() -> list[Path]:
    return [REPO / "README.md", REPO / "README.zh.md", *sorted((REPO / "docs").rglob("*.md"))]


def shown_commands() -> list[tuple[str, list[str]]]:
    """Each command line shown, with where, as the words after `mimikit`."""
    return [
        (path.relative_to(REPO).as_posix(), words)
        for path in documents()
        for language, block in FENCE.findall(path.read_text())
        if language in SHELLS
        for line in block.replace("\\\n", " ").splitlines()
        for words in commands_in(line, prompt_needed=language == "console")
    ] + [
        ("Procfile", words)
        for line in (REPO / "Procfile").read_text().splitlines()
        for words in commands_in(line.partition(":")[2], prompt_needed=False)
    ]


def commands_in(line: str, *, prompt_needed: bool) -> list[list[str]]:
    """The mimikit commands on one line: after `$ `, after a pipe, after variables."""
    line = line.strip()
    if prompt_needed and not line.startswith("$ "):
        return []
    parts: list[list[str]] = [[]]
    for word in shlex.split(line.removeprefix("$ "), comments=True):
        if word in END_OF_COMMAND:
            parts.append([])
        else:
            parts[-1].append(word)
    found: list[list[str]] = []
    for part in parts:
        words = list(itertools.dropwhile(re.compile(r"[A-Z_]+=").match, part))
        if words and words[0].rpartition("/")[2] == "mimikit":
            found.append(words[1:])
    return found


def check(words: list[str]) -> None:
    """Walk the words down the tree of commands, as the shell's user would."""
    command: click.Command = main
    context = click.Context(command, info_name="mimikit", **main.context_settings)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("-") and word != "-":
            name, equals, _ = word.partition("=")
            option = options_of(command, context).get(name)
            assert option is not None, f"{context.command_path} has no option {name}"
            if not equals and not option.is_flag and not option.count:
                assert rest, f"{name} needs a value"
                rest = rest[option.nargs :]
        elif isinstance(command, click.Group):
            below = command.get_command(context, word)
            assert below is not None, f"{context.command_path} has no command {word}"
            command, context = below, click.Context(below, parent=context, info_name=word)


def options_of(command: click.Command, context: click.Context) -> dict[str, click.Option]:
    """The options of a command by each of their names, `--help` among them."""
    return {
        name: parameter
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
        for name in [*parameter.opts, *parameter.secondary_opts]
    }


@pytest.mark.parametrize(
    ("place", "words"),
    [
        pytest.param(place, words, id=f"{number}-{place}-{'-'.join(words)}")
        for number, (place, words) in enumerate(shown_commands())
    ],
)
def test_a_shown_command_exists(place: str, words: list[str]) -> None:
    check(words)


def test_the_readme_shows_how_to_start() -> None:
    assert [words for place, words in shown_commands() if place == "README.md"]


@pytest.mark.parametrize("words", [["no-such-command"], ["up", "--no-such-option"]], ids=" ".join)
def test_a_command_that_does_not_exist_is_noticed(words: list[str]) -> None:
    with pytest.raises(AssertionError, match="has no"):
        check(words)
