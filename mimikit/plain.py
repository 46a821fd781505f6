"""Text from programs, files and models, made harmless to show."""

from __future__ import annotations

import re

# ESC with what belongs to it: strings for the system or device, cursor and colour codes, the rest.
_ESCAPE = re.compile(
    r"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
# Control characters but tab and newline, and those that turn the direction of reading around.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# From the start of a line only: tried at each character, a long line would take for ever.
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)


def plain(text: str) -> str:
    """`text` without escapes and control characters; of a line written over, what was last seen."""
    text = _ESCAPE.sub("", text).replace("\r\n", "\n")
    return _CONTROL.sub("", _OVERWRITTEN.sub("", text))
