"""Makes mimikit/memory/simplified.txt: traditional characters with their simplified ones.

Run by hand when OpenCC changes its table (`pip install opencc` first).
The data is OpenCC's (Apache-2.0). Each line of the file is one simplified character followed by the
traditional ones that are written so.
"""

from __future__ import annotations

from pathlib import Path

TARGET = Path(__file__).parent.parent / "mimikit" / "memory" / "simplified.txt"
FIRST, LAST = 0x3400, 0x9FFF


def table() -> dict[str, list[str]]:
    """Simplified character → its traditional ones, as OpenCC maps single characters."""
    import opencc  # pyright: ignore[reportMissingImports]

    characters = [chr(code) for code in range(FIRST, LAST + 1)]
    converted = opencc.OpenCC("t2s").convert("\n".join(characters)).split("\n")
    found: dict[str, list[str]] = {}
    for character, simplified in zip(characters, converted, strict=True):
        if len(simplified) == 1 and simplified != character:
            found.setdefault(simplified, []).append(character)
    return found


if __name__ == "__main__":
    lines = [simplified + "".join(others) for simplified, others in sorted(table().items())]
    TARGET.write_text("\n".join(lines) + "\n")
