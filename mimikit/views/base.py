"""What the views share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Render: TypeAlias = Callable[[str], str]
"""Makes safe HTML of markdown; whoever shows HTML hands it in."""

CUT = "\n\n… (cut here: the text is longer than can be shown)"
