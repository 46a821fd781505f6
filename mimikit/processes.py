"""The processes that the terminal starts: the consumer, and the page with its address and token."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from mimikit import notifications
from mimikit.config import Settings
from mimikit.errors import BadInput
from mimikit.protocol import paths
from mimikit.protocol.disk import Lock
from mimikit.protocol.runtime import PageAddress
from mimikit.state import State, limit_malloc_arenas, make_search

if TYPE_CHECKING:
    from mimikit.app import ConsumerCore
    from mimikit.engines.base import Engine
    from mimikit.runner.consumer import PooledConsumer
    from mimikit.web.serve import ServerSocket


def check_consumer_starts(state: State) -> None:
    """Raise MimikitError when a consumer could not start; writes and runs nothing."""
    from mimikit.roles.prompts import Prompts
    from mimikit.roles.run import LiveRuns
    from mimikit.supervisor import consumer_lock
    from mimikit.supervisor.store import Store

    state = state.read_only()
    if state.files.exists(paths.CONSUMER_LOCK):
        consumer_lock.free_lock(state).release()
    Store(state.files, state.settings, state.clock, live=LiveRuns(), log=state.log)
    Prompts(state.files)


class ConsumerProcess:
    """A consumer with the threads of its pools and its Teller, its watches and its tool server."""

    def __init__(self, state: State, lock: Lock, engines: list[Engine] | None = None) -> None:
        """`engines`: instead of the product's. Nothing runs before `run`."""
        limit_malloc_arenas()
        from mimikit import app
        from mimikit.protocol.watch import FolderWatch
        from mimikit.roles.prompts import Prompts
        from mimikit.roles.teller import TellerThread
        from mimikit.sandbox import programs
        from mimikit.tools.mcp import ToolServer
        from mimikit.triggers.workspace import FileWatch, FolderWorkspace

        self.state, prompts = state, Prompts(state.files)
        workspace = FolderWorkspace(state.workspace, state.path)
        self.search = make_search(state, stays=True)
        self.watch = FolderWatch(state.path)
        self.file_watch = FileWatch(
            workspace,
            lambda ids: self.store.events.changed_files.put(ids),  # noqa: PLW0108 - made later
        )
        self.tool_server = ToolServer(
            on_refused=lambda facts: state.log.write("audit", "tools_door_refused", **facts)
        )
        parts = app.Parts(
            state=state,
            lock=lock,
            engines=engines or app.engines_of(state),
            endpoints=functools.partial(app.endpoint_engines, state),
            search=self.search,
            prompts=prompts,
            workspace=workspace,
            file_watch=self.file_watch,
            teller=TellerThread,
            pool=self._make_pool,
            crash=self._crash,
            tool_server=self.tool_server,
            git=programs.find("git"),
        )
        try:
            self.core = app.build(parts)
        except BaseException:
            self.close()
            raise
        self.store, self.context = self.core.store, self.core.context
        self.supervisor = self.core.supervisor

    def close(self) -> None:
        self.watch.close()
        self.file_watch.close()
        self.tool_server.stop()

    def _make_pool(self, core: ConsumerCore) -> PooledConsumer:
        """Huey's pools, with the thread of the supervisor."""
        from mimikit.runner.consumer import PooledConsumer

        settings, events, supervisor = self.state.settings, core.events, core.supervisor
        self.pool = PooledConsumer(
            self.state.files,
            watch=self.watch,
            threads={"planner": 1, "worker": settings.max_concurrency},
            run_task=core.run_task,
            supervise=supervisor.run,
            wake_supervisor=events.bell.ring,
            periodic={
                "retention": ("17 */6 * * *", supervisor.retention.ring),
                "archive": ("41 */6 * * *", supervisor.archiver.summaries.ring),
                "index": ("* * * * *", self.search.index_ahead),
            },
            on_stopping=self._stopping,
            last_step=lambda: supervisor.last_step,
            crash=self._crash,
            is_known_id=lambda task_id: core.store.ledger.end_of(task_id) is not None,
            shutdown_timeout_s=settings.limits.kill_after_s + 5,
        )
        return self.pool

    def run(self, say: Callable[[str], None] = lambda _line: None) -> int:
        """Recover and run until stopped; returns the exit code. `say` prints to the terminal."""
        from mimikit.engines.process_marks import kill_orphans, mark_environment, state_id
        from mimikit.roles.scratch import sweep_scratch
        from mimikit.runner.consumer import end_with_threads

        end_with_threads(self._crash)
        state, store, core = self.state, self.store, self.core
        mark_environment(state.path)
        if ended := kill_orphans(state_id(state.path)):
            state.log.write("audit", "leftovers_ended", pids=ended)
        sweep_scratch(state.path)
        for reason in self.context.prompts.skipped:
            state.log.write("error", "prompt_passed_over", reason=reason)
            say(f"{reason}.")
        self.supervisor.start()
        # The root folder (with the logs) is not watched: each tick looks for `inbox.json`.
        inputs = core.teller.inputs
        inputs.is_watched = self.watch.watch(paths.INBOX, inputs.notify)
        for folder in (paths.INBOX, paths.COMMANDS):
            self.watch.watch(folder, lambda _names: store.events.bell.ring())
        self.watch.watch(paths.TRIGGERS, store.events.trigger_files_changed)
        store.events.changed_triggers.put(None)  # some may have changed since they were read
        core.apply_pause()
        self.tool_server.start()
        self.search.warm_up()
        try:
            self.pool.run()
        finally:
            # Apply the last results, and record a clean stop.
            self.context.live.stop_all()
            core.seat.close(timeout_s=state.settings.limits.kill_after_s + 2)
            self.context.engines.close()
            self.supervisor.tick(passes=10)  # the rest is for the next start
            notifications.close()
            self.close()
            self.search.close()
            store.ledger.checkpoint()
            store.save_runtime(seen_at=state.clock.now())
            state.files.remove(paths.HEALTH)
        return 0

    def _crash(self, reason: str) -> NoReturn:
        from mimikit.runner.consumer import end_process

        end_process(reason, lambda why: self.state.log.write("error", "crashed", reason=why))

    def _stopping(self) -> None:
        """Let the runs end within `shutdown_timeout_s`, then stop them."""
        # Counted in sleeps, so that a suspend does not shorten it.
        for _ in range(math.ceil(self.state.settings.limits.shutdown_timeout_s / 0.02)):
            if not self.context.live.list() or self.context.stopping.wait(0.02):
                break
        self.context.stopping.set()
        self.context.live.stop_all()


# ---- the page's process, its address and its token


def serve_page(
    state: State, host: str | None, port: int | None, on_ready: Callable[[str, int], None] | None
) -> None:
    """Serve the page until a signal ends it. Never returns: leaves by SystemExit."""
    os.chdir("/")  # before gunicorn is imported: it cannot start in a folder like `x `
    from mimikit.web.serve import serve

    limit_malloc_arenas()
    serve(state, host, port, on_ready)


def listen(host: str, port: int | None, settings: Settings) -> ServerSocket:
    """Bind `port`, else `$PORT`, else that of the settings; BadSettings if that is not possible."""
    from mimikit.web import serve

    return serve.bind(host, serve.chosen_port(port, settings))


def pages(state: State) -> list[PageAddress]:
    """Where this state's pages listen, the newest last."""
    known = state.files.load_all(paths.PAGES, PageAddress)
    alive = [page for page in known if page.is_alive]
    return sorted(alive, key=lambda page: page.started_at)


def page_token(state: State, *, renew: bool = False) -> str:
    """The current token; `renew` replaces it, BadInput if an environment variable sets it."""
    from mimikit.web import tokens

    if not renew:
        return tokens.load_token(state.files)
    if tokens.operator_token() is not None:
        raise BadInput(f"expected no {tokens.TOKEN_VARIABLE}, got one; change that instead")
    return tokens.renew_token(state.files)


def login_link(state: State, host: str, port: int) -> str:
    """A link that logs in a browser, once, within an hour."""
    from mimikit.web import tokens

    return tokens.login_link(host, port, tokens.new_login_code(state.files, state.clock.now()))
