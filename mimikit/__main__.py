"""The program `mimikit`: every command, imported when it is used."""

from __future__ import annotations

import gc

import click

import mimikit
from mimikit.cli.frame import LazyGroup, place_options

# Imports make many objects and no garbage: by its default the collector looks after each 700 of
# them, for a tenth of the time that a start takes.
gc.set_threshold(20_000, 10, 10)

SECTIONS = {
    "Run": {
        "up": ("up", "Start the page and the consumer together; one Ctrl-C ends both."),
        "web": ("up", "Start the page alone."),
        "consumer": ("process_group", "Start the consumer alone: it answers, plans and works."),
        "init": ("up", "Make a state folder here."),
        "service": ("service", "Have systemd start it and keep it running, or no longer."),
    },
    "Talk and work": {
        "chat": ("chat", "Send a message and see the reply; without a text, a conversation."),
        "enqueue": ("tasks", "Put a task into the queue, or have it repeat with --every."),
        "remind": ("triggers", "Have yourself told something at a time, or again and again."),
        "tasks": ("tasks", "List tasks, show one, follow its output, cancel or retry it."),
        "triggers": ("triggers", "List what repeats; pause, resume, run or remove it."),
        "memory": ("memory", "Search what is known, show it, add a note."),
        "backlog": ("memory", "The list of things to do: see it, add, tick, remove."),
        "pause": ("tasks", "Let the queues rest: what runs goes on, nothing new starts."),
        "resume": ("tasks", "Let the queues go on."),
    },
    "Look": {
        "status": ("status", "Everything that matters on one screen."),
        "doctor": ("doctor", "Check everything and say how to mend it."),
        "usage": ("usage", "How many tokens were used, by what, and how many may be."),
        "logs": ("status", "What happened, newest last."),
        "prompt": ("status", "What a turn or a task was told: why it said what it said."),
        "engine": ("engines", "What does the thinking: use another, or go on without one."),
        "local": (
            "local",
            "A small model on this machine, without an account.",
        ),
        "token": ("up", "The token for scripts, or a login link for the page."),
    },
}


@click.group(
    "mimikit",
    cls=LazyGroup,
    sections=SECTIONS,
    params=list(place_options()),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(mimikit.__version__, "-V", "--version", message="mimikit %(version)s")
def main() -> None:
    """An assistant that lives on your machine, and a durable job runner under it."""


if __name__ == "__main__":
    main()
