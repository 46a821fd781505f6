"""Triggers in words, with when they ran and will run."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from mimikit.errors import UnsafeFile
from mimikit.protocol.models import Trigger, time_text
from mimikit.triggers import registry, schedule
from mimikit.web.guest import GuestFiles

MAX_LISTED = 500
_WORDS = {
    "task_done": ("when tasks are done", "当任务完成时"),
    "task_failed": ("when tasks fail", "当任务失败时"),
    "file_changed": ("when files change", "当文件变化时"),
    "file_exists": ("when a file exists", "当文件出现时"),
    "llm_eval": ("when a judgement says so", "当判断成立时"),
    "and": ("when all conditions hold", "当全部条件成立时"),
    "or": ("when one of the conditions holds", "当任一条件成立时"),
    "not": ("when a condition does not hold", "当条件不成立时"),
}


def listed(files: GuestFiles) -> list[dict[str, Any]]:
    """Triggers, newest first; of very many the newest by name."""
    ids = registry.ids(files)[-MAX_LISTED:]
    found = [trigger for id_ in ids if (trigger := find(files, id_))]
    return sorted(found, key=lambda trigger: trigger["createdAt"], reverse=True)


def find(files: GuestFiles, trigger_id: str) -> dict[str, Any] | None:
    """One trigger; None when there is none. A broken one is shown with its reason."""
    trigger, broken = _active(files, trigger_id)
    state = registry.state(files, trigger_id)
    if trigger is None and broken is None:
        return None
    return {
        "id": trigger_id,
        "title": (trigger.title or trigger.prompt[:80]) if trigger else trigger_id,
        "prompt": trigger.prompt if trigger else "",
        "profile": trigger.profile if trigger else "",
        "type": trigger.type if trigger else "broken",
        "words": words(trigger),
        "enabled": trigger.enabled if trigger else False,
        "createdAt": time_text(trigger.created_at) if trigger else "",
        "lastRunAt": time_text(state.last_run_at) if state.last_run_at else None,
        "nextRunAt": time_text(state.next_run_at) if state.next_run_at else None,
        "fireCount": state.fire_count,
        "lastTaskId": state.last_task_id,
        "lastVerdict": state.last_verdict,
        "failureStreak": state.failure_streak,
        "blockedBy": state.blocked_by,
        "cooldown": trigger.cooldown if trigger else 0,
        "broken": broken,
    }


def _active(files: GuestFiles, trigger_id: str) -> tuple[Trigger | None, str | None]:
    """The definition in force and what is wrong with its file, whatever that is."""
    try:
        return registry.active(files, trigger_id)
    except UnsafeFile as error:
        return None, str(error)
    except ValidationError:
        return None, "neither the definition nor its last good version can be read"


def words(trigger: Trigger | None) -> dict[str, str]:
    """When it runs, in each language of the page."""
    if trigger is not None and trigger.schedule is not None:
        return {
            language: schedule.describe(trigger.schedule, language) for language in ("en", "zh")
        }
    kind = trigger.condition.type if trigger is not None and trigger.condition else ""
    english, chinese = _WORDS.get(kind, (kind or "never", kind or "从不"))
    return {"en": english, "zh": chinese}
