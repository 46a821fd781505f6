"""`mimikit chat`: one message and its reply, or a conversation."""

from __future__ import annotations

import sys

import click

from mimikit.cli import naming, terminal
from mimikit.cli.conversing import converse
from mimikit.cli.frame import Frame, LeafCommand, json_option, pass_frame
from mimikit.cli.guest import GuestState
from mimikit.cli.reply import ReplyPrinter, question_lines
from mimikit.cli.talking import Said, Talk
from mimikit.cli.waiting import Failed, Patience, Watcher, live_runs
from mimikit.protocol import paths
from mimikit.protocol.models import InboxItem, Message, Question
from mimikit.web.shown import tasks as shown

WATCHED = (paths.ROOT, paths.INBOX, paths.TRANSCRIPT)


@click.command(cls=LeafCommand)
@click.argument("text", required=False)
@click.option("--wait", is_flag=True, help="Also wait for the tasks that the reply starts.")
@json_option
@pass_frame
def chat(frame: Frame, text: str | None, wait: bool, as_json: bool) -> None:
    """Send TEXT and print the reply as it comes; `-` reads it from the input.

    Without TEXT this is a conversation: Ctrl-D leaves it, /help says more. While a question is
    open, the number of an option answers it.
    """
    if text is None and (wait or as_json):
        raise click.UsageError("expected TEXT with --wait or --json, got none")
    state = frame.open()
    if text is None:
        converse(state)
        return
    said = sys.stdin.read() if text == "-" else text
    _OneMessage(state, as_json=as_json).run(said, wait=wait)


class _OneMessage:
    """One message, its reply, and with `wait` what the work it started came to."""

    def __init__(self, state: GuestState, *, as_json: bool) -> None:
        self._state, self._as_json = state, as_json
        self._talk = Talk(state)
        self._printer = ReplyPrinter(quiet=as_json)
        self._patience = Patience(state, "your message is kept until then", terminal.note)

    def run(self, text: str, *, wait: bool) -> None:
        with Watcher(self._state, WATCHED) as watcher:
            item = self._talk.say(text)
            try:
                replies = self._follow(watcher, item)
                started = self._started_by(item, replies)
                late = self._follow_tasks(watcher, started) if wait and started else []
            except KeyboardInterrupt:
                self._printer.end()
                terminal.note(
                    "\nIt goes on without you; the page and `mimikit chat` show what comes."
                )
                raise
        self._conclude(item, replies, started, late, waited=wait)

    def _follow(self, watcher: Watcher, item: InboxItem) -> list[Message]:
        """Print the reply as it comes; gives its messages.

        Raises:
            Failed: there is nobody to reply.
        """
        replies: list[Message] = []
        while True:
            # Asked before reading: once it is settled, the transcript has the whole reply.
            is_settled = self._talk.is_settled(item.id)
            for news in self._talk.news():
                self._printer.take(news, item.id)
                if isinstance(news, Said) and item.id in news.message.in_reply_to:
                    replies.append(news.message)
            if is_settled:
                self._printer.end()
                return replies
            self._check("teller", item.id, queued=False)
            watcher.pause()

    def _check(self, seat: str, awaited: str | None, *, queued: bool) -> None:
        try:
            self._patience.check(seat, queued=queued)
        except Failed:
            for news in self._talk.news():  # what came just before the end
                self._printer.take(news, awaited)
            self._printer.end()
            raise

    def _started_by(self, item: InboxItem, replies: list[Message]) -> list[str]:
        """Tasks that the reply started, over or not: what it tells of is older than the message."""
        ids = dict.fromkeys(id_ for message in replies for id_ in message.task_ids)
        found = [shown.find_view(self._state.files, id_) for id_ in ids]
        tasks = [view.task for view in found if view is not None]
        return [task.id for task in tasks if task.created_at >= item.created_at]

    def _follow_tasks(self, watcher: Watcher, started: list[str]) -> list[Message]:
        """Print what is told of the work until all of it is over, or it asks a question."""
        traces = {
            view.task.trace_id
            for id_ in started
            if (view := shown.find_view(self._state.files, id_)) is not None
        }
        late: list[Message] = []
        while True:
            is_over = self._is_over(traces) or self._talk.question() is not None
            for news in self._talk.news():
                self._printer.take(news, None)
                if isinstance(news, Said) and news.message.role != "user":
                    late.append(news.message)
            if is_over:
                self._printer.end()
                return late
            self._check("planner", None, queued=True)
            watcher.pause()

    def _is_over(self, traces: set[str]) -> bool:
        """Nothing of these traces runs, waits, or is still to be told; what repeats aside."""
        files = self._state.files
        if any(
            view.task.trace_id in traces and view.task.source_trigger_id is None
            for view in shown.live_views(files)
        ):
            return False
        items = (
            files.peek(f"{paths.INBOX}/{name}", InboxItem) for name in files.names(paths.INBOX)
        )
        return not any(item and item.trace_id in traces for item in items)

    def _conclude(
        self,
        item: InboxItem,
        replies: list[Message],
        started: list[str],
        late: list[Message],
        *,
        waited: bool,
    ) -> None:
        question = self._talk.question()
        if self._as_json:
            terminal.print_json(_as_data(item, [*replies, *late], started, question))
        else:
            self._print_rest(replies, started, question, waited=waited)
        if any(message.failed for message in [*replies, *late]):
            raise Failed("the message was not answered; what it says above is why")
        bad = [id_ for id_ in started if waited and self._has_failed(id_)]
        if bad:
            raise Failed(f"work failed: `mimikit tasks show {naming.short(bad[0])}` tells why")

    def _print_rest(
        self, replies: list[Message], started: list[str], question: Question | None, *, waited: bool
    ) -> None:
        if not replies:
            terminal.note("The answer is passed on.")
        if question is not None:
            said = replies[-1].text if replies else ""
            for line in question_lines(question, said, self._state.clock.now()):
                terminal.out(line)
        if started and not waited:
            number = "A task is" if len(started) == 1 else f"{len(started)} tasks are"
            terminal.note(f"{number} started; `mimikit tasks list` shows how it goes.")

    def _has_failed(self, planner_or_task: str) -> bool:
        view = shown.find_view(self._state.files, planner_or_task)
        if view is None:
            return False
        trace = shown.trace_of(self._state.files, view, live_runs(self._state))
        return any(task["state"] == "failed" for task in trace if not task["sourceTriggerId"])


def _as_data(
    item: InboxItem, messages: list[Message], started: list[str], question: Question | None
) -> dict[str, object]:
    return {
        "id": item.id,
        "messages": [message.to_dict() for message in messages],
        "taskIds": started,
        "question": question.to_dict() if question else None,
    }
