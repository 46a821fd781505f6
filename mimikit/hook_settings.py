"""The settings of webhooks. They are part of `config.Settings`."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from mimikit.engine_settings import SettingsSection


class HookSettings(SettingsSection):
    """`[hooks.NAME]`: what `POST /hooks/NAME` proves itself by, and what comes of it."""

    secret_file: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,59}$")]
    """The file in `secrets/` that holds its secret."""
    kind: Literal["hmac", "token"] = "token"
    signature: Literal["generic", "github"] = "generic"
    """Of kind `hmac`: in whose header, and over what."""
    does: Literal["input", "task", "event"] = "event"
    """A message to the assistant, a task, or nothing but an event for conditions, which each is."""
    prompt: Annotated[str, StringConstraints(max_length=20_000)] | None = None
    title: Annotated[str, StringConstraints(max_length=200)] | None = None
    profile: Literal["standard", "specialist", "deferred", "command", "reminder"] = "standard"
    notify: Literal["teller", "message", "change", "failure", "none"] | None = None
    max_bytes: Annotated[int, Field(ge=1, le=4 * 2**20)] = 262_144
    per_minute: Annotated[int, Field(ge=1, le=6000)] = 30

    @model_validator(mode="after")
    def _has_words(self) -> Self:
        if self.does != "event" and not (self.prompt or "").strip():
            raise ValueError(f"expected a prompt where a webhook makes a {self.does}, got none")
        if self.does == "input" and self.profile != "standard":
            raise ValueError(f"expected no profile for an input, got {self.profile!r}")
        if self.profile == "command" and _DATA.search(self.prompt or ""):
            raise ValueError(
                "expected a command line without {body}, {name} or {time}, which are never put "
                'into one, got them; the body is a file in "$MIMIKIT_FILES"'
            )
        return self


_DATA = re.compile(r"(?<!\$)\{(?:body|name|time)\}")
