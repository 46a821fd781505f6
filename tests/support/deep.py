"""Folders nested deeper than Python's recursion limit."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Generator
from pathlib import Path

LEVELS = 1100


@contextlib.contextmanager
def nested_folders(top: Path) -> Generator[None]:
    """Make nested folders in `top`; removed at the end, as pytest's cleanup cannot."""
    folder = os.open(top, os.O_RDONLY)
    try:
        for _ in range(LEVELS):
            os.mkdir("deep", dir_fd=folder)
            below = os.open("deep", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = below
        yield
    finally:
        os.close(folder)
        subprocess.run(["rm", "-rf", str(top / "deep")], check=True)
