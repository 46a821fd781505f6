"""Everything together: the snapshot a page starts from, and the changes that keep it fresh."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import cache, partial
from itertools import chain, islice
from typing import Literal, cast

from mimikit import __version__
from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.conversation.drafts import DraftPiece
from mimikit.errors import StorageError
from mimikit.log import read_changes
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import Instant
from mimikit.tasks import ledger
from mimikit.triggers.explain import ExplanationContext
from mimikit.views import messages, status, tasks, triggers
from mimikit.views.base import Render, View
from mimikit.views.drafts import DraftBlock, DraftReader, DraftView, Splitters
from mimikit.views.job_reader import JobReader, JobScene
from mimikit.views.jobs import JobView
from mimikit.views.messages import InboxItemView, MessagesPage, MessageView, QuestionView
from mimikit.views.status import Consumer, StatusView, look_at_consumer
from mimikit.views.tasks import TaskView
from mimikit.views.triggers import TriggerView
from mimikit.views.usage import UsageBy, UsageReader, UsageReport

FIRST_TASKS = 8
"""Tasks at work and ended ones in a snapshot."""


class SnapshotView(View):
    """All a page needs to begin."""

    cursor: str
    """Where the changes after it begin."""
    version: str
    now: Instant
    timezone: str
    messages: list[MessageView]
    before: str | None
    inbox: list[InboxItemView]
    question: QuestionView | None
    draft: DraftView | None
    """The reply that is being written."""
    jobs: list[JobView]
    """Those at work, those that ended last, and those that its messages speak of."""
    tasks: list[TaskView]
    """Those at work, and those that are next; lists of tasks are asked for."""
    triggers: list[TriggerView]
    status: StatusView


class MessageChange(View):
    kind: Literal["message"] = "message"
    message: MessageView


class InboxChange(View):
    kind: Literal["inbox"] = "inbox"
    id: str
    item: InboxItemView


class InboxGone(View):
    kind: Literal["inbox"] = "inbox"
    id: str
    item: None = None
    gone: Literal[True] = True


class TaskChange(View):
    kind: Literal["task"] = "task"
    task: TaskView


class JobChange(View):
    """One of its tasks moved, or what it does now."""

    kind: Literal["job"] = "job"
    job: JobView


class TriggerChange(View):
    """Without the trigger when it is gone."""

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
    """The Teller's run began or ended."""

    kind: Literal["turn"] = "turn"
    state: Literal["started", "ended"]
    turn_id: str
    headline: str
    inputs: list[str]
    """Ids of the messages it answers."""


class DeltaChange(View):
    """A piece of the reply that is being written. Units: UTF-16."""

    kind: Literal["delta"] = "delta"
    turn_id: str
    part: int
    """Which text of the turn it belongs to; a later one takes the place of those before."""
    at: int
    """Where in that it stands."""
    text: str
    blocks: list[DraftBlock]
    """What is whole with it."""


Change = (
    MessageChange
    | InboxChange
    | InboxGone
    | TaskChange
    | JobChange
    | TriggerChange
    | QuestionChange
    | StatusChange
    | TurnChange
    | DeltaChange
)


class ChangeList(View):
    """What changed since a cursor; `reset`: too much, load a new snapshot."""

    cursor: str
    reset: bool
    events: list[Change]


class StateReader:
    """The state folder as the page sees it now."""

    def __init__(
        self,
        files: ReadOnlyFiles,
        settings: Settings,
        clock: Clock,
        render: Render,
        splitters: Splitters,
    ) -> None:
        """`render` makes HTML of markdown, `splitters` what cuts it into blocks as it comes."""
        self.files = files
        self._drafts = DraftReader(files, render, splitters)
        self.render = render
        self.jobs = JobReader(files, settings.zone)
        self.conversation = messages.ConversationReader(files, render, self.jobs.job_id)
        self.settings = settings
        self._clock = clock
        self.usage = UsageReader(files, settings)

    def consumer(self) -> Consumer:
        return look_at_consumer(self.files, self._clock.now())

    def status(self, consumer: Consumer | None = None, here: JobScene | None = None) -> StatusView:
        consumer = consumer or self.consumer()
        usage = self.usage.today(self._clock.now(), consumer.current)
        try:
            jobs = self.jobs.counts(here or self.job_scene(consumer))
        except StorageError:  # something else is in the place of a folder: `degraded` tells of it
            jobs = None
        return status.status_view(self.files, consumer, usage, jobs)

    def job_scene(self, consumer: Consumer | None = None) -> JobScene:
        """What is at work now, to find jobs in."""
        return self.jobs.scene((consumer or self.consumer()).live, self._clock.now())

    def usage_report(self, by: UsageBy, since: date | None) -> UsageReport:
        return self.usage.report(by, since, self._clock.now(), self.consumer().current)

    def situation(self, consumer: Consumer | None = None) -> ExplanationContext:
        """What triggers are explained by."""
        consumer = consumer or self.consumer()
        return triggers.situation(
            self.files,
            now=self._clock.now(),
            zone=self.settings.zone,
            consumer_up=consumer.is_there,
            health=consumer.health,
            paused=status.is_paused(self.files, consumer.current),
        )

    def snapshot(self) -> SnapshotView:
        """All a page needs; its cursor is older than what is in it, so that no change is missed."""
        cursor = read_changes(self.files, None).cursor
        consumer = self.consumer()
        # The inbox before the messages: an item that moves meanwhile is in both, not in neither.
        waiting = messages.waiting(self.files)
        draft = self._drafts.under_way()
        here = self.job_scene(consumer)
        page = self.conversation.page(None, 50)
        seen = {message.id for message in page.messages}
        return SnapshotView(
            cursor=cursor,
            version=__version__,
            now=self._clock.now(),
            timezone=str(self.settings.zone),
            messages=page.messages,
            before=page.before,
            inbox=[item for item in waiting if item.id not in seen],
            question=messages.open_question(self.files),
            draft=draft,
            jobs=self.jobs.first(here, named(page.messages)),
            tasks=self._first_tasks(here, consumer),
            triggers=triggers.listed(self.files, self.situation(consumer)),
            status=self.status(consumer, here),
        )

    def _first_tasks(self, here: JobScene, consumer: Consumer) -> list[TaskView]:
        """The tasks at work and the next ones, then those that ended last."""
        live = list(chain.from_iterable(here.live.tasks.values()))
        begun = [id_ for id_ in live if id_ in here.live.begun]
        at_work = dict.fromkeys([*begun, *live[:FIRST_TASKS]])
        most = max(FIRST_TASKS, len(begun))
        ids = dict.fromkeys([*islice(at_work, most), *ledger.ended_ids(self.files, FIRST_TASKS)])
        found = (tasks.find(self.files, id_, consumer.live) for id_ in ids)
        return [task for task in found if task]

    def with_jobs(self, page: MessagesPage) -> MessagesPage:
        """The page with the jobs that its messages speak of."""
        here = self.job_scene()
        found = (self.jobs.find(id_, here) for id_ in named(page.messages))
        return page.model_copy(update={"jobs": [job for job in found if job]})

    def changes(self) -> Callable[[dict[str, object]], list[Change]]:
        """What makes hints of the consumer's whole, a batch of them.

        For all of them what is at work is looked at once: after the hints were read.
        """
        return partial(self._changes, cache(self.job_scene))

    def _changes(self, here: Callable[[], JobScene], hint: dict[str, object]) -> list[Change]:
        """What a hint stands for, from the state files; a task's moves its job, too."""
        match hint:
            case {"kind": "task", "id": str(id_)} if is_id(id_):
                task = tasks.find(self.files, id_, here().runs)
                job = task and self.jobs.of_task(id_, here())
                found = (task and TaskChange(task=task), job and JobChange(job=job))
                return [change for change in found if change]
            case {"kind": "job", "id": str(id_)} if is_id(id_):
                job = self.jobs.of_task(id_, here())
                return [JobChange(job=job)] if job else []
            case {"kind": "trigger", "id": str(id_)} if is_id(id_):
                trigger = triggers.find(self.files, id_, self.situation())
                job = self.jobs.of_step(id_, here())
                told = TriggerChange(id=id_, trigger=trigger)
                return [told, JobChange(job=job)] if job else [told]
            case {"kind": "status"}:
                return [StatusChange(status=self.status(here=here()))]
            case _:
                change = self._change(hint)
                return [change] if change else []

    def _change(self, hint: dict[str, object]) -> Change | None:
        match hint:
            case {"kind": "message", "id": str(id_)}:
                message = self.conversation.find(id_)
                return message and MessageChange(message=message)
            case {"kind": "inbox", "id": str(id_)} if is_id(id_):
                if id_.startswith(messages.RESULTS):
                    return None
                item = messages.waiting_item(self.files, id_)
                return InboxChange(id=id_, item=item) if item else InboxGone(id=id_)
            case {"kind": "question"}:
                return QuestionChange(question=messages.open_question(self.files))
            case {"kind": "turn", "turnId": str(id_), "state": "started" | "ended"}:
                run, inputs = self.consumer().live.get(id_), hint.get("inputs")
                ids = cast("list[object]", inputs) if isinstance(inputs, list) else []
                return TurnChange(
                    state="started" if hint["state"] == "started" else "ended",
                    turn_id=id_,
                    headline=run.headline if run else "",
                    inputs=[str(it) for it in ids],
                )
            case {
                "kind": "delta",
                "turnId": str(id_),
                "part": int(part),
                "at": int(at),
                "text": str(text),
            } if is_id(id_):
                blocks = self._drafts.blocks(id_, DraftPiece(part, at, text))
                return DeltaChange(turn_id=id_, part=part, at=at, text=text, blocks=blocks)
            case _:
                return None


def named(said: list[MessageView]) -> list[str]:
    """The jobs that messages speak of."""
    return list(dict.fromkeys(message.job_id for message in said if message.job_id))
