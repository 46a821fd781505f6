"""`mimikit web`."""

from __future__ import annotations

import click

from mimikit.cli import terminal
from mimikit.cli.frame import Frame, LeafCommand, pass_frame
from mimikit.cli.parent import end_with_parent, parent_option
from mimikit.cli.values import PORT


@click.command(cls=LeafCommand)
@click.option("--host", help="Address to listen on (default: web.host of the settings).")
@click.option(
    "--port",
    type=PORT,
    help="Port to listen on (default: $PORT, else web.port of the settings; 0 takes a free one).",
)
@parent_option
@pass_frame
def web(frame: Frame, host: str | None, port: int | None, with_parent: bool) -> None:
    """Start the page and its API; the consumer, which does the work, is started apart."""
    from mimikit.cli.waiting import HINT, look_at_consumer
    from mimikit.web.serve import serve
    from mimikit.web.tokens import login_link, new_login_code

    state = frame.open_as_keeper(create=True)

    def ready(at_host: str, at_port: int) -> None:
        link = login_link(at_host, at_port, new_login_code(state.files, state.clock.now()))
        terminal.out(f"Page     {link.partition('#')[0]}")
        terminal.out(f"Log in   {link}")
        if not look_at_consumer(state).is_there:
            terminal.note(f"Messages and tasks wait: {HINT}.")

    if with_parent:
        end_with_parent()
    on_ready = None if with_parent else ready
    serve(state.path, state.workspace, state.settings, host, port, on_ready)
