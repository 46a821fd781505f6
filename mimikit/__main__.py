"""The program `mimikit`: every command, imported when it is used."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import click

import mimikit
from mimikit.cli.frame import LazyGroup, place_options

# Imports make many objects and no garbage: by default collecting takes a tenth of the start.
gc.set_threshold(20_000, 10, 10)

# Without an output (`>&-`) Python has no stream, and the next opened file would be the output.
for _name in ("stdout", "stderr"):
    if getattr(sys, _name) is None:
        setattr(sys, _name, Path(os.devnull).open("w"))  # noqa: SIM115 - open until the end

SECTIONS = {
    "Run": {
        "up": ("up", "Start mimikit with its page; one Ctrl-C ends both."),
        "web": ("up", "Start the page alone."),
        "consumer": ("process_group", "Start mimikit without its page."),
        "init": ("up", "Make a state folder here."),
        "export": ("up", "Write all that is known here into one zip."),
        "import": ("up", "Make a state folder of such a zip."),
        "service": ("service", "Have systemd keep mimikit and its page running."),
    },
    "Talk and work": {
        "chat": ("chat", "Send a message and see the reply; without a text, a conversation."),
        "enqueue": ("tasks", "Put a task into the queue, or repeat it with --every."),
        "remind": ("triggers", "Get a reminder at a time, or repeatedly."),
        "tasks": ("tasks", "List tasks, show one, follow its output, cancel or retry it."),
        "triggers": ("triggers", "List triggers; pause, resume, run, edit or remove them."),
        "memory": ("memory", "Search what is remembered, show it, add a note."),
        "backlog": ("memory", "The list of things to do: see it, add, tick, remove."),
        "self-awake": ("life", "Improvements while nothing else is to do, on own branches."),
        "pause": ("tasks", "Pause the queues: what runs goes on, nothing new starts."),
        "resume": ("tasks", "Resume the queues."),
    },
    "Look": {
        "status": ("status", "Everything that matters on one screen."),
        "doctor": ("doctor", "Check everything and say how to fix it."),
        "usage": ("status", "Token usage, costs and caps."),
        "logs": ("status", "What happened, newest last."),
        "engine": ("engines", "Set up engines and the order they are used in."),
        "local": ("local", "A small model on this machine, without an account."),
        "notify": ("life", "Channels that reach you outside the page: phone, mail, chat."),
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
