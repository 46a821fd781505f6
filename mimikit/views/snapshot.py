"""The snapshot that a page loads first, and the changes after it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Literal, cast
from zoneinfo import ZoneInfo

from pydantic import Field

from mimikit import __version__
from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.language.plain_text import utf16_length
from mimikit.log import blocks_of, read_changes, streamed_reply
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import Instant
from mimikit.triggers.explain import ExplanationContext
from mimikit.views import messages, status, tasks, triggers
from mimikit.views.base import Render, View
from mimikit.views.home import HomeReader, HomeView
from mimikit.views.job_views import JobReader, JobView
from mimikit.views.jobs import LIVE, JobState
from mimikit.views.messages import InboxItemView, MessagesPage, MessageView, QuestionView
from mimikit.views.status import Consumer, StatusView, read_consumer
from mimikit.views.tasks import TaskView
from mimikit.views.triggers import TriggerView
from mimikit.views.usage import UsageReader

_MESSAGES, _LIVE_JOBS = 20, 20


class DraftBlock(View):
    """A complete block of a reply in progress. Offsets count UTF-16 code units."""

    start: int
    end: int
    html: str


class DraftView(View):
    """What has come of the reply in progress."""

    turn_id: str
    text: str
    blocks: list[DraftBlock]
    end: int
    """The offset of the delta that comes next."""


class SnapshotView(View):
    cursor: str
    version: str
    now: Instant
    timezone: str
    messages: list[MessageView]
    before: str | None
    inbox: list[InboxItemView]
    question: QuestionView | None
    draft: DraftView | None
    jobs: list[JobView]
    """Those in progress, and those that the messages are about."""
    totals: dict[JobState, int]
    triggers: list[TriggerView]
    status: StatusView


class MessageChange(View):
    kind: Literal["message"] = "message"
    message: MessageView


class InboxChange(View):
    kind: Literal["inbox"] = "inbox"
    id: str
    item: InboxItemView | None
    gone: bool = Field(default=False, exclude_if=lambda gone: not gone)
    """Whether it has left the inbox."""


class TaskChange(View):
    """The task, its job as it is now (null: nothing came of it yet), and all jobs by state."""

    kind: Literal["task"] = "task"
    task: TaskView
    job: JobView | None
    totals: dict[JobState, int]


class TriggerChange(View):
    """Without the trigger when it was removed."""

    kind: Literal["trigger"] = "trigger"
    id: str
    trigger: TriggerView | None


class QuestionChange(View):
    kind: Literal["question"] = "question"
    question: QuestionView | None


class StatusChange(View):
    kind: Literal["status"] = "status"
    status: StatusView


class TurnChange(View):
    kind: Literal["turn"] = "turn"
    state: Literal["started", "ended"]
    turn_id: str
    headline: str
    inputs: list[str]


class DeltaChange(View):
    """A part of a reply in progress."""

    kind: Literal["delta"] = "delta"
    turn_id: str
    text: str
    offset: int | None = None
    """The number of UTF-16 code units that this attempt has streamed before it."""
    reset: bool = False
    """The parts before it are withdrawn."""
    blocks: list[DraftBlock]
    """Those that it completes."""


Change = (
    MessageChange
    | InboxChange
    | TaskChange
    | TriggerChange
    | QuestionChange
    | StatusChange
    | TurnChange
    | DeltaChange
)


class ChangeList(View):
    """Changes since a cursor; `reset`: too many, load a new snapshot."""

    cursor: str
    reset: bool
    events: list[Change]


class StateReader:
    def __init__(
        self, files: ReadOnlyFiles, settings: Settings, clock: Clock, render: Render
    ) -> None:
        self.files = files
        self.render = render
        self.conversation = messages.ConversationReader(files, render)
        self.jobs = JobReader(files, render)
        self._settings = settings
        self._clock = clock
        self.usage = UsageReader(files, settings)
        self._home = HomeReader(files)

    def consumer(self) -> Consumer:
        return read_consumer(self.files, self._clock.now())

    def status(self, consumer: Consumer | None = None) -> StatusView:
        consumer = consumer or self.consumer()
        usage = self.usage.today(self._clock.now(), consumer.current)
        return status.status_view(self.files, consumer, usage)

    def home(self, reader: ZoneInfo | None) -> HomeView:
        consumer = self.consumer()
        listed = triggers.listed(self.files, self.situation(consumer, reader))
        return self._home.read(self._clock.now(), self.status(consumer), listed, consumer.live)

    def situation(
        self, consumer: Consumer | None = None, reader: ZoneInfo | None = None
    ) -> ExplanationContext:
        consumer = consumer or self.consumer()
        now, zone = self._clock.now(), self._settings.zone
        here = status.situation(self.files, consumer, now=now, zone=zone, jobs=self.jobs)
        return dataclasses.replace(here, reader=reader)

    def messages(self, before: str | None, limit: int) -> MessagesPage:
        page = self.conversation.page(before, limit)
        about = {message.trigger_id or message.id for message in page.messages}
        cards = self.jobs.cards(about, self.consumer().live)
        return MessagesPage(messages=page.messages, jobs=cards, before=page.before)

    def snapshot(self, reader: ZoneInfo | None) -> SnapshotView:
        # The cursor is read first, so that no change is missed.
        cursor = read_changes(self.files, None).cursor
        consumer = self.consumer()
        # The inbox is read before the messages, so that an item that moves is not missed.
        waiting = messages.waiting(self.files)
        page = self.messages(None, _MESSAGES)
        jobs = self.jobs.page(consumer.live, states=LIVE, most_live=_LIVE_JOBS)
        seen = {message.id for message in page.messages}
        current, draft = self.status(consumer), None
        if turn_id := current.teller.turn_id:
            text, end, blocks = streamed_reply(self.files, turn_id)
            rendered = self._rendered(blocks)
            draft = DraftView(turn_id=turn_id, text=text, blocks=rendered, end=end)
        return SnapshotView(
            cursor=cursor,
            version=__version__,
            now=self._clock.now(),
            timezone=str(self._settings.zone),
            messages=page.messages,
            before=page.before,
            inbox=[item for item in waiting if item.id not in seen],
            question=messages.open_question(self.files),
            draft=draft,
            jobs=[*jobs.jobs, *page.jobs],
            totals=jobs.totals,
            triggers=triggers.listed(self.files, self.situation(consumer, reader)),
            status=current,
        )

    def change(self, event: dict[str, object], reader: ZoneInfo | None) -> Change | None:
        """Look up the object of an event of the change feed; None for an unknown one."""
        match event:
            case {"kind": "message", "id": str(id_)}:
                message = self.conversation.find(id_)
                return message and MessageChange(message=message)
            case {"kind": "task", "id": str(id_)} if is_id(id_):
                live = self.consumer().live
                if task := tasks.find(self.files, id_, live):
                    job = self.jobs.find(task.source_trigger_id or task.trace_id, live)
                    return TaskChange(task=task, job=job, totals=self.jobs.totals())
                return None
            case {"kind": "trigger", "id": str(id_)} if is_id(id_):
                trigger = triggers.find(self.files, id_, self.situation(reader=reader))
                return TriggerChange(id=id_, trigger=trigger)
            case {"kind": "inbox", "id": str(id_)} if is_id(id_):
                if id_.startswith(messages.RESULTS):
                    return None
                item = messages.waiting_item(self.files, id_)
                return InboxChange(id=id_, item=item, gone=item is None)
            case {"kind": "question"}:
                return QuestionChange(question=messages.open_question(self.files))
            case {"kind": "status"}:
                return StatusChange(status=self.status())
            case {"kind": "turn", "turnId": str(id_), "state": "started" | "ended"}:
                run, inputs = self.consumer().live.get(id_), event.get("inputs")
                ids = cast("list[object]", inputs) if isinstance(inputs, list) else []
                return TurnChange(
                    state="started" if event["state"] == "started" else "ended",
                    turn_id=id_,
                    headline=run.headline if run else "",
                    inputs=[str(it) for it in ids],
                )
            case {"kind": "delta", "turnId": str(id_), "text": str(text)}:
                offset, is_reset = event.get("offset"), event.get("reset") is True
                known = offset if isinstance(offset, int) else None
                blocks = self._rendered(blocks_of(event))
                return DeltaChange(
                    turn_id=id_, text=text, offset=known, reset=is_reset, blocks=blocks
                )
            case _:
                return None

    def _rendered(self, blocks: Iterable[tuple[int, str]]) -> list[DraftBlock]:
        return [
            DraftBlock(start=start, end=start + utf16_length(text), html=self.render(text))
            for start, text in blocks
        ]
