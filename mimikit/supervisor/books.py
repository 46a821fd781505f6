"""What every built-in operation writes with. One per consumer; the supervisor thread's alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.conversation.history import Conversation
from mimikit.errors import NewerState
from mimikit.log import ChangeFeed, EventLog
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import History, Runtime, StatusCheckpoint, Task, TaskResult
from mimikit.runs import LiveRuns
from mimikit.tasks.ledger import Ledger


@dataclass
class Books:
    """The state folder with what is kept of it in memory."""

    files: Files
    settings: Settings
    clock: Clock
    log: EventLog
    feed: ChangeFeed
    live: LiveRuns
    ledger: Ledger
    conversation: Conversation
    runtime: Runtime
    wake_queues: Callable[[], None] = field(default=lambda: None)
    """Tell the storages of pause, resume or a queue that changed by hand of the supervisor."""
    triggers_changed: Callable[[str], None] = field(default=lambda _id: None)
    task_ended: Callable[[str], None] = field(default=lambda _id: None)
    """Tell those who wait for this task: its end stands in the ledger."""
    answers_came: Callable[[Task, TaskResult], None] = field(default=lambda _task, _result: None)
    """Take in what a model said of conditions."""
    summary_came: Callable[[Task, TaskResult], None] = field(default=lambda _task, _result: None)
    """Write down the summary that this run has made."""
    canceling: set[str] = field(default_factory=set[str])
    """Tasks whose cancel this process began and the disk cut short: to be taken up again."""

    @classmethod
    def open(
        cls, files: Files, settings: Settings, clock: Clock, *, live: LiveRuns, log: EventLog
    ) -> Books:
        """Read what is needed before the first operation.

        Raises:
            NewerState: a newer version wrote here; nothing was changed.
        """
        _refuse_newer(files)
        ledger = Ledger(files)
        ledger.load()
        return cls(
            files=files,
            settings=settings,
            clock=clock,
            log=log,
            feed=ChangeFeed(files, clock),
            live=live,
            ledger=ledger,
            conversation=Conversation(files),
            runtime=files.load(paths.RUNTIME, Runtime) or Runtime(),
        )

    def save_runtime(self, **changes: object) -> None:
        """Change and save the runtime facts."""
        self.runtime = self.runtime.but(**changes)
        self.files.save(paths.RUNTIME, self.runtime)


def _refuse_newer(files: Files) -> None:
    """A format of a newer major version is not ours to rewrite."""
    for path, model in ((paths.HISTORY, History), (paths.TASK_STATUS, StatusCheckpoint)):
        found = files.peek(path, model)
        known = model.model_fields["schema_version"].default
        if found is not None and found.schema_version > known:
            raise NewerState(
                f"{path}: expected schemaVersion {known} or older, got {found.schema_version}; "
                "use the newer mimikit that wrote it"
            )
