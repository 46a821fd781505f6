"""Self-awake: while nobody needs anything, one improvement on a branch of its own.

A run goes through stages (`look, plan, make, work, inspect, check, weigh, review, commit, tidy,
tell`; from any of them `remove`). What a stage needs stands in `self_awake.json` before it begins,
what it makes has an id that follows from the run's: so each may be done again, and the start goes
on where a kill has left it. Minds and command lines are tasks like any other; git is asked beside
this thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from mimikit import config
from mimikit.conversation import turns
from mimikit.conversation.inbox import InboxIndex
from mimikit.engines.worktrees import (
    BRANCHES,
    GitWorktrees,
    SweptWorktrees,
    WorktreeChange,
    Worktrees,
)
from mimikit.errors import BadInput
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Task, TurnRecord, time_text
from mimikit.protocol.results import TaskResult
from mimikit.protocol.self_awake import (
    MOST_PAST,
    Improvement,
    ImprovementStage,
    PastImprovement,
    SelfAwakeState,
)
from mimikit.protocol.triggers import PlanResult
from mimikit.roles.run import RunContext
from mimikit.roles.worktree_place import folder_of
from mimikit.self_awake_settings import ImprovementKind, SelfAwakeSettings
from mimikit.supervisor.background_jobs import BackgroundJobs, JobRunner
from mimikit.supervisor.code_turns import (
    code_record,
    improvement_words,
    left_words,
    system_message,
)
from mimikit.supervisor.improvement_choice import ImprovementFacts, choose, forbidden, verdict
from mimikit.supervisor.improvement_facts import ImprovementFactsReader
from mimikit.supervisor.improvement_tasks import ImprovementTasks, task_id
from mimikit.supervisor.settings_watch import SettingsWatch
from mimikit.supervisor.store import Store

LOOK_EVERY = timedelta(seconds=30)
LONGEST = timedelta(hours=12)
"""A run that takes longer ends."""
MOST_CUT = 3
"""So often a part of a run that the end of a consumer has cut is begun anew."""
_HELD_BY = {
    "running": "an improvement is in progress already",
    "nothing_due": "there is nothing of it to be done",
}
"""Why none begins that somebody asks for; of anything else the choice says it."""


class ImprovementScheduler:
    """Has improvements made; the supervisor's thread alone."""

    def __init__(
        self,
        store: Store,
        context: RunContext,
        inputs: InboxIndex,
        commit: Callable[[TurnRecord], None],
        submit: Callable[[Task], None],
        worktrees: Worktrees | None = None,
        jobs: JobRunner | None = None,
    ) -> None:
        """`commit` makes a turn of code's true, `submit` queues a task."""
        self._store, self._context, self._inputs = store, context, inputs
        folder = folder_of(store.settings.self_awake.folder, context.state)
        self._worktrees = worktrees or GitWorktrees(folder, context.state)
        self._jobs = jobs or BackgroundJobs(store.events.bell.ring)
        self._commit, self._files = commit, store.files
        self._facts = ImprovementFactsReader(store, context)
        self._tasks = ImprovementTasks(store.files, context.prompts, submit, inputs.language)
        self.settings: SelfAwakeSettings = store.settings.self_awake
        self._config = SettingsWatch(store)
        self._state: SelfAwakeState | None = None
        self._busy_at = store.clock.now()
        self._ends = len(store.ledger)
        self._look_at: datetime | None = None
        self._is_swept = False
        self._stages: dict[ImprovementStage, Callable[[Improvement, datetime], bool]] = {
            "look": self._look,
            "plan": self._plan,
            "make": self._make,
            "work": self._work,
            "inspect": self._inspect,
            "check": self._check,
            "weigh": self._inspect,
            "review": self._review,
            "commit": self._keep,
            "tidy": self._tidy,
            "remove": self._remove,
            "tell": self._tell,
        }
        """Each gives whether it came further."""

    @property
    def state(self) -> SelfAwakeState:
        """What stands in the file, which nobody else writes."""
        if self._state is None:
            self._state = self._files.load(paths.SELF_AWAKE, SelfAwakeState) or SelfAwakeState()
        return self._state

    def step(self, now: datetime) -> bool:
        """Go on with the run, or begin one that is due; gives whether anything was done."""
        if (changed := self._config.changed()) is not None:
            self.settings = changed.self_awake
        self._watch(now)
        run = self.state.run
        if run is None:
            return self._begin_if_due(now)
        if not run.stop and (why := self._why_stop(run, now)):
            run = run.but(stop=why)
            self._save(run)
        return self._stages[run.stage](run, now)

    def begin(
        self, wanted: ImprovementKind | None, command_id: str, now: datetime
    ) -> ImprovementKind:
        """Begin one at once, as somebody asks for it.

        Crash: asked again by the same command it gives what that began.

        Raises:
            BadInput: why none can begin.
        """
        id_ = derived_id("awake", command_id)
        known = [*self.state.past, *([self.state.run] if self.state.run else [])]
        if (begun := next((one for one in known if one.id == id_), None)) is not None:
            return begun.kind
        choice = choose(now, self._read(now), self.settings, self.state, asked=True, wanted=wanted)
        if choice.kind is None:
            said = _HELD_BY.get(choice.held_by or "", choice.why)
            raise BadInput(
                f"no improvement begins: {said}", code="no_improvement", params={"why": said}
            )
        self._begin(choice.kind, choice.subject, now, asked_as=id_)
        return choice.kind

    # ---- when

    def _begin_if_due(self, now: datetime) -> bool:
        if not self._is_swept and self._files.exists(paths.SELF_AWAKE):
            # Of a run whose state was lost; where there never was one nothing is looked for.
            done = self._jobs.ask("sweep", partial(self._worktrees.sweep, None))
            if done is None:
                return False
            self._is_swept = True
            if done.value is not None:
                self._tell_swept(done.value, now)
        looked = self._look_at
        is_early = looked is not None and timedelta() <= looked - now <= LOOK_EVERY
        if not self.settings.enabled or is_early or self._is_busy(now):
            return False
        choice = choose(now, self._read(now), self.settings, self.state)
        if choice.kind is not None:
            self._begin(choice.kind, choice.subject, now)
        self._look_at = now + LOOK_EVERY
        return choice.kind is not None

    def _begin(
        self, kind: ImprovementKind, subject: str, now: datetime, asked_as: str | None = None
    ) -> None:
        """`asked_as`: the id of one that somebody asked for.

        Crash: the run stands in its file, whole, or never was.
        """
        id_, asked = asked_as or derived_id("awake", kind, time_text(now)), asked_as is not None
        run = Improvement(
            id=id_,
            kind=kind,
            asked=asked,
            subject=subject,
            started_at=now,
            branch=f"{BRANCHES}{now:%Y%m%d}-{kind.replace('_', '-')}-{id_[-6:]}",
            checks=list(self.settings.checks),
            profile=self.settings.profile,
        )
        self._save(run)
        self._store.save_runtime(last_self_awake_at=now)
        self._store.log.write("audit", "self_awake_began", runId=id_, item=kind, asked=asked)

    def _tell_swept(self, swept: SweptWorktrees, now: datetime) -> None:
        """Say what stays, once.

        Crash: what was said is found by its id, which is that of the worktree.
        """
        if swept.removed:
            self._store.log.write("audit", "self_awake_swept", worktrees=swept.removed)
        for path in swept.kept:
            if path not in self.state.left:
                self._store.log.write("audit", "self_awake_kept", path=path)
                self._say(left_words(path, self._inputs.language()), path, now)
        if swept.kept != self.state.left:
            self._write(self.state.but(left=swept.kept))

    def _watch(self, now: datetime) -> None:
        """See whether anything is said or runs; each end in the ledger was a run."""
        ends = len(self._store.ledger)
        if ends != self._ends or self._store.live.list() or len(self._inputs):
            self._ends, self._busy_at = ends, now

    def _is_busy(self, now: datetime) -> bool:
        """Whether it is too soon for sure: asked often, it reads no file."""
        idle = timedelta(minutes=self.settings.idle_minutes)
        return timedelta() <= now - self._busy_at < idle

    def _read(self, now: datetime) -> ImprovementFacts:
        return self._facts.read(now, self._busy_at, self.settings.profile)

    # ---- stages: each saves what it found and where to go on, or waits

    def _look(self, run: Improvement, now: datetime) -> bool:
        if run.stop:
            return self._drop(run, run.stop)

        def look() -> tuple[object, list[str]]:
            place = self._worktrees.look(self._context.workspace)
            return place, self._worktrees.branches(place)

        done = self._jobs.ask(f"look {run.id}", look)
        if done is None:
            return False
        why = str(done.error) if done.error else ""
        place, branches = done.value or (None, [])
        if len(branches) >= self.settings.most_branches:
            why = f"{len(branches)} branches of its own wait to be merged or removed"
        if why:
            state = self.state.but(run=None, blocked=why, blocked_at=now)
            self._write(state)
            self._store.log.write("audit", "self_awake_blocked", runId=run.id, reason=why)
            return True
        state = self.state
        retried = [*state.retried, run.subject][-100:] if run.kind == "retry" else state.retried
        taken = {**state.last, run.kind: now}
        self._write(state.but(last=taken, retried=retried, blocked="", blocked_at=None))
        return self._go(run.but(place=place, waiting=branches), "plan")

    def _plan(self, run: Improvement, now: datetime) -> bool:
        """Have a Planner write the task."""
        waiting = [past.title for past in self.state.past if past.branch in run.waiting]
        outcome = self._tasks.plan(run, waiting, now)
        if outcome is None:
            return False
        if self._is_cut(run, "plan", outcome):
            return True
        if not isinstance(outcome, PlanResult) or outcome.status != "done":
            return self._drop(run, outcome.error or f"no task was planned: {outcome.status}")
        summary = outcome.summary or ""
        if not outcome.tasks:
            end = "proposed" if run.kind == "memory" and summary else "nothing"
            return self._go(run.but(end=end, why=summary), "tell")
        task = outcome.tasks[0]
        return self._go(run.but(title=task.title or run.kind, prompt=task.prompt), "make")

    def _make(self, run: Improvement, now: datetime) -> bool:
        if run.place is None or run.stop:
            return self._drop(run, run.stop)
        make = partial(self._worktrees.make, run.place, run.id, run.branch)
        done = self._jobs.ask(f"make {run.id}", make)
        if done is None:
            return False
        return self._drop(run, str(done.error)) if done.error else self._go(run, "work")

    def _work(self, run: Improvement, now: datetime) -> bool:
        outcome = self._tasks.work(run, now)
        if outcome is None:
            return False
        if self._is_cut(run, "work", outcome):
            return True
        if outcome.status != "done":
            return self._drop(run, outcome.error or outcome.status)
        return self._go(run, "inspect")

    def _inspect(self, run: Improvement, now: datetime) -> bool:
        """See what is changed: before the checks whether anything is, after them what is judged."""
        if run.place is None or run.stop:
            return self._drop(run, run.stop)
        known = run.files if run.stage == "weigh" else None  # checks leave files behind
        look = partial(self._worktrees.change, run.place, run.id, known)
        done = self._jobs.ask(f"{run.stage} {run.id}", look)
        if done is None:
            return False
        change = done.value
        if change is None:
            return self._drop(run, str(done.error))
        if not change.files:
            return self._go(run.but(end="nothing", why="nothing was changed"), "remove")
        if change.same:
            why = f"{change.same} holds the same already"
            return self._go(run.but(end="nothing", why=why), "remove")
        if why := self._refusal(run, change):
            return self._drop(run, why)
        run = run.but(files=list(change.files), tree=change.tree)
        if run.stage == "inspect":
            return self._go(run, "check")
        run = run.but(whole=change.whole)
        # Written before it is asked for, so that a replay puts the same question.
        self._files.write(_diff_path(run), change.diff.encode(errors="replace"))
        return self._go(run, "review")

    def _refusal(self, run: Improvement, change: WorktreeChange) -> str | None:
        """Why a change is not kept whatever anybody says of it."""
        place = run.place
        if place is None:
            return "its place is gone"
        top, own = os.path.realpath(place.top), list[str]()
        for path in (self._context.state, config.asset_folder("prompts")):
            real = Path(os.path.realpath(path))
            own += [real.relative_to(top).as_posix()] if real.is_relative_to(top) else []
        if (name := forbidden(change.files, place.prefix, own)) is not None:
            return f"it changes {name}, which is not its to change"
        return change.odd or None

    def _check(self, run: Improvement, now: datetime) -> bool:
        """Run the owner's command lines, one after the other."""
        if run.check >= len(run.checks):
            return self._go(run, "weigh")
        line = run.checks[run.check]
        outcome = self._tasks.check(run, now, self.settings.check_minutes * 60)
        if outcome is None:
            return False
        if self._is_cut(run, f"check-{run.check}", outcome):
            return True
        if outcome.status != "done":
            return self._drop(run, f"the check `{line}` failed: {outcome.error or outcome.status}")
        return self._go(run.but(check=run.check + 1), "check")

    def _review(self, run: Improvement, now: datetime) -> bool:
        """Have a mind say whether the change is good."""
        diff = (self._files.read(_diff_path(run)) or b"").decode("utf-8", "replace")
        outcome = self._tasks.review(run, diff, now)
        if outcome is None:
            return False
        if self._is_cut(run, "review", outcome):
            return True
        if outcome.status != "done" or not isinstance(outcome, TaskResult):
            return self._drop(run, outcome.error or f"it was not reviewed: {outcome.status}")
        said = verdict(outcome.text)
        if not said.is_good:
            return self._drop(run, f"the review says no: {said.why}")
        return self._go(run.but(why=said.why), "commit")

    def _keep(self, run: Improvement, now: datetime) -> bool:
        """Commit what was judged."""
        if run.place is None or run.stop:
            return self._drop(run, run.stop)
        message = f"{run.title or run.kind}\n\nSelf-awake: {run.kind}\nRun: {run.id}\n"
        commit = partial(
            self._worktrees.commit,
            run.place,
            run.id,
            run.branch,
            run.tree,
            message,
            run.files,
        )
        done = self._jobs.ask(f"commit {run.id}", commit)
        if done is None:
            return False
        if done.value is None:
            return self._drop(run, str(done.error))
        return self._go(run.but(commit=done.value, end="committed"), "tidy")

    def _tidy(self, run: Improvement, now: datetime) -> bool:
        """Remove the worktree; the branch stays."""
        return self._removed(run, None)

    def _remove(self, run: Improvement, now: datetime) -> bool:
        """Remove all of it."""
        return self._removed(run, run.branch)

    def _removed(self, run: Improvement, branch: str | None) -> bool:
        if run.place is not None:
            # Another run's sandbox may hold the folder that held the worktree.
            is_first = run.place.is_first and not self._store.live.list()
            place = run.place.but(is_first=is_first)
            remove = partial(self._worktrees.remove, place, run.id, branch, run.whole)
            done = self._jobs.ask(f"remove {run.id}", remove)
            if done is None:
                return False
            if done.value:
                run = run.but(left=done.value)
                self._store.log.write("audit", "self_awake_kept", runId=run.id, path=run.left)
            if done.error:
                said = str(done.error)
                self._store.log.write("error", "self_awake_left", runId=run.id, error=said)
        return self._go(run, "tell")

    def _tell(self, run: Improvement, now: datetime) -> bool:
        """Say what came of it, and put it with those before it.

        Crash: what was said is found by its id; the run stands there until it is among the past.
        """
        if run.end in ("committed", "proposed"):
            task_ids = [task_id(run, "work")] if run.end == "committed" else []
            self._say(improvement_words(run, self._inputs.language()), run.id, now, task_ids)
        if run.left:
            self._say(left_words(run.left, self._inputs.language()), run.left, now)
        past = PastImprovement.of(run, task_id(run, "work"), now)
        state = self.state
        left = [*state.left, *filter(None, [run.left])]
        self._write(state.but(run=None, past=[*state.past, past][-MOST_PAST:], left=left))
        self._files.remove(_diff_path(run))
        facts = {"item": run.kind, "end": past.end, "reason": run.why[:500], "branch": past.branch}
        self._store.log.write("audit", "self_awake_ended", runId=run.id, **facts)
        self._busy_at = now
        return True

    def _say(self, text: str, of: str, now: datetime, task_ids: Sequence[str] = ()) -> None:
        """Say something in the chat, once for what it is `of`, if it is to be told at all."""
        turn_id = derived_id("turn", of, "tell")
        if self.settings.notify == "message" and not turns.is_committed(self._files, turn_id):
            base = code_record(turn_id, now)
            self._commit(base.but(messages=[system_message(base, text, task_ids=list(task_ids))]))

    # ---- what stages have in common

    def _why_stop(self, run: Improvement, now: datetime) -> str:
        if not self.settings.enabled and not run.asked:
            return "self-awake was switched off"
        if now - run.started_at > LONGEST:
            return f"it took longer than {LONGEST.total_seconds() / 3600:g} hours"
        return ""

    def _is_cut(self, run: Improvement, part: str, outcome: TaskResult | PlanResult) -> bool:
        """Begin a part anew that the end of a consumer has cut; gives whether it was that.

        Nothing of it is outside of the worktree, which is made anew for a Worker: it may be done
        twice. Not for ever: it may be what ends the consumer.
        """
        if run.stop or outcome.failure_reason != "killed" or len(run.cut) >= MOST_CUT:
            return False
        stage: ImprovementStage = "make" if part == "work" else run.stage
        self._store.log.write("audit", "self_awake_again", runId=run.id, part=part)
        return self._go(run.but(cut=[*run.cut, part]), stage)

    def _drop(self, run: Improvement, why: str) -> bool:
        return self._go(run.but(end="dropped", why=(run.stop or why)[:2000]), "remove")

    def _go(self, run: Improvement, stage: ImprovementStage) -> bool:
        self._save(run.but(stage=stage))
        return True

    def _save(self, run: Improvement) -> None:
        self._write(self.state.but(run=run))

    def _write(self, state: SelfAwakeState) -> None:
        """Crash: the old one whole or the new one; what is in memory follows the disk."""
        self._files.save(paths.SELF_AWAKE, state)
        self._state = state
        self._store.feed.tell("status")


def _diff_path(run: Improvement) -> str:
    return paths.side(f"{run.id}-diff")
