"""A product with engines that can be limited or logged out, lived through second by second."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from mimikit.config import Settings
from mimikit.engines.base import EngineOutage, Failed, Outcome, RunSpec
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.protocol.files import Files
from mimikit.protocol.models import Role
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.reading import transcript
from tests.support.twins import FakeClock

LOGGED_OUT = EngineOutage("codex is not logged in: run `codex login`", "logged_out")


class LimitedMind(Mind):
    """An engine that refuses everything while it is limited, and counts what it served."""

    def __init__(self, runs: list[tuple[str, int]], name: str) -> None:
        super().__init__(runs)
        self.name = name
        self.served = 0
        self.until_s: float | None = None
        """When its limit ends, in seconds after the start; in the past: end unknown."""
        self.too_small_for: Role | None = None
        self.too_long = 0
        self.kills = 0
        """How many Worker runs are killed at work."""

    def run(self, request: RunSpec) -> Outcome:
        if request.role == self.too_small_for:
            self.too_long += 1
            return Failed("error", "Limit 8000, Requested 9001.", too_long=True)
        if self.until_s is not None:
            until = START + timedelta(seconds=self.until_s)
            return Failed("rate_limited", "usage limit", retry_at=until)
        self.served += 1
        outcome = super().run(request)
        if request.role == "worker" and self.kills:
            self.kills -= 1
            killed = Failed.unavailable("broken", "codex was ended by SIGKILL")
            return replace(killed, acted=True)
        return outcome


class World:
    """A product whose `auto` may take codex, the `others`, or builtin; it outlives restarts."""

    def __init__(self, *others: str, **settings: object) -> None:
        self.files = Files(MemoryDisk())
        self.files.make_folders()
        self.clock = FakeClock(START)
        self.oracle = Oracle()
        self.mind, *self.others, self.shell = (
            LimitedMind(self.oracle.runs, name) for name in ("codex", *others, "command")
        )
        limits = {"retry_delay_s": 1, "engine_retry_s": 5}
        self.settings = Settings.model_validate({"timezone": "UTC", "limits": limits, **settings})
        self.start()

    def start(self) -> None:
        self.product = Product(
            self.files,
            self.clock,
            self.mind,
            settings=self.settings,
            more_engines=(*self.others, BuiltinEngine(is_program=lambda _: False), self.shell),
        )
        self.product.start()
        self.client = Client(self.product, self.oracle)

    def live_through(self, seconds: int) -> None:
        for _ in range(seconds):
            while self.product._pass():
                pass
            self.clock.advance(1)

    @property
    def said(self) -> list[tuple[str, str]]:
        return transcript(self.files)

    def told(self, what: str) -> list[str]:
        return [text for role, text in self.said if role == "system" and what in text]
