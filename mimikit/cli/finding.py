"""What the doctor finds, one thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "warning", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    mend: what to do, when there is something to do.
    fix: does it, when a program safely can.
    """

    level: Level
    area: str
    text: str
    mend: str = ""
    fix: Callable[[], object] | None = None

    def to_dict(self) -> dict[str, object]:
        """For programs."""
        return {
            "level": self.level,
            "area": self.area,
            "text": self.text,
            "mend": self.mend or None,
            "fixable": self.fix is not None,
        }
