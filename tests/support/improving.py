"""A mind that plans, does and judges improvements, and all that stands around it."""

from __future__ import annotations

from typing import Any

from mimikit.config import Settings
from mimikit.engines.base import EngineRequest, Outcome
from mimikit.self_awake_settings import SelfAwakeSettings
from tests.support.mind import Mind
from tests.support.product import scripted_settings

CHECK = "check it"
IDLE_S = 301.0


def awake_settings(**more: Any) -> Settings:
    """Settings under which lint is looked for after five minutes; what is given comes on top."""
    facts: dict[str, Any] = {"enabled": True, "items": ["lint"], "checks": [CHECK], **more}
    made = SelfAwakeSettings.model_validate(facts)
    return scripted_settings().model_copy(update={"self_awake": made})


class ImprovingMind(Mind):
    """Plans one task for each item, does it, and says what its fields tell of a change."""

    verdict = '{"ok": true, "reason": "it is neat"}'
    plans = True
    works = True
    checks = True

    def _planner(self, request: EngineRequest) -> Outcome:
        task = request.input.task
        if task is None or task.origin != "self_awake":
            return super()._planner(request)
        self.hook(request)
        if self.plans:
            asked = {"prompt": "make it neat", "title": "neater"}
            request.call_tool("delegate", asked)
            request.call_tool("delegate", asked)  # one too many, and refused
        return Outcome("done", text="nothing fits" if not self.plans else "")

    def _worker(self, request: EngineRequest) -> Outcome:
        task = request.input.task
        if task is None or task.worktree is None:
            return super()._worker(request)
        self.hook(request)
        if task.profile == "command":
            is_good = self.checks and task.prompt == CHECK
            return Outcome("done", text="fine", exit_code=0) if is_good else _failed("exit code 1")
        if task.internal:
            return Outcome("done", text=f"Let me see. {self.verdict}")
        return Outcome("done", text="did it") if self.works else _failed("it broke")


def _failed(error: str) -> Outcome:
    return Outcome("failed", error=error, failure_reason="error", exit_code=1)
