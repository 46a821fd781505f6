"""Draws the app's icons as PNG: `python scripts/make_icons.py`; they are the marks of app.svg.

No library of pictures is needed for two circles and two arcs: each dot is asked how much of it lies
inside of each.
"""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path

ICONS = Path(__file__).resolve().parent.parent / "webui" / "icons"
ACCENT, WHITE = (11, 103, 131), (255, 255, 255)
ARCS = ((9.518, 7.2, 45.1, 1.0), (10.627, 10.8, 44.7, 0.55))
"""Middle, radius, half angle in degrees, and how opaque; in the 24 units of the mark."""


def main() -> None:
    ICONS.mkdir(exist_ok=True)
    for name, size, corner, scale in (
        ("app-192", 192, 5.4, 0.65),
        ("app-512", 512, 5.4, 0.65),
        ("app-180", 180, 0.0, 0.65),  # a phone rounds it by itself
        ("mask-192", 192, 0.0, 0.55),  # whatever shape cuts it, the mark stays whole
        ("mask-512", 512, 0.0, 0.55),
    ):
        (ICONS / f"{name}.png").write_bytes(png(size, corner, scale))


def png(size: int, corner: float, scale: float) -> bytes:
    """A square picture; `corner` its radius and `scale` the mark's size, of 24 units."""
    rows = bytearray()
    for y in range(size):
        rows.append(0)
        for x in range(size):
            rows += bytes(dot((x + 0.5) * 24 / size, (y + 0.5) * 24 / size, size, corner, scale))
    head = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(rows), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def dot(x: float, y: float, size: int, corner: float, scale: float) -> tuple[int, int, int, int]:
    """Red, green, blue and opacity at a place in 24 units."""
    sharp = size / 24
    to_edge = [max(abs(at - 12) - 12 + corner, 0.0) for at in (x, y)]
    inside = covered((corner - math.hypot(*to_edge)) * sharp if corner else 1.0)
    u, v = (x - 12) / scale + 12.46, (y - 12) / scale + 12  # the mark leans to the left
    white = covered((5.4 - math.hypot(u - 8.2, v - 12)) * sharp * scale)
    for middle, radius, half, opacity in ARCS:
        away = from_arc(u - middle, v - 12, radius, math.radians(half))
        white = max(white, opacity * covered((1 - away) * sharp * scale))
    mixed = (round(a + (w - a) * white) for a, w in zip(ACCENT, WHITE, strict=True))
    return (*mixed, round(255 * inside))  # pyright: ignore[reportReturnType]


def from_arc(x: float, y: float, radius: float, half: float) -> float:
    """How far a place is from an arc around the beginning, with round ends."""
    if abs(math.atan2(y, x)) <= half:
        return abs(math.hypot(x, y) - radius)
    return math.hypot(x - radius * math.cos(half), abs(y) - radius * math.sin(half))


def covered(inside: float) -> float:
    """How much of a dot is covered whose middle lies so many dots inside of an edge."""
    return min(max(inside + 0.5, 0.0), 1.0)


if __name__ == "__main__":
    main()
