"""What options take, complaining in our words: "expected X, got Y"."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mimikit.cli import durations
from mimikit.errors import BadInput

_ZERO = ("0", "0s", "none")


class Duration(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """A span of time such as `10m`, in seconds."""

    name = "DURATION"

    def __init__(self, *, or_none_at_all: bool = False) -> None:
        """Take no time at all, too, where that means something."""
        self._takes_zero = or_none_at_all

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read it."""
        if isinstance(value, int | float):
            return float(value)
        if self._takes_zero and str(value).strip() in _ZERO:
            return 0.0
        try:
            return durations.parse_duration(str(value))
        except BadInput as error:
            self.fail(str(error), param, ctx)


class Whole(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """A whole number between two others, both included."""

    name = "NUMBER"

    def __init__(self, least: int, most: int) -> None:
        """Take `least` to `most`."""
        self._least, self._most = least, most

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read it."""
        text = str(value).strip()
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
        if not self._least <= number <= self._most:
            expected = f"a number from {self._least} to {self._most}"
            self.fail(f"expected {expected}, got {text!r}", param, ctx)
        return number


class OneOf(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """One of some words."""

    name = "WORD"

    def __init__(self, words: Sequence[str]) -> None:
        """Take these."""
        self._words = words

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check it."""
        if value not in self._words:
            self.fail(f"expected one of {', '.join(self._words)}; got {str(value)!r}", param, ctx)
        return str(value)


PORT = Whole(0, 65535)
