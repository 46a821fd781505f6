"""The extras: what each brings, and how it gets to where this program runs."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import re
import shlex
import sys

_REQUIRED = re.compile(r"""^([^;]+);.*\bextra *== *['"]([\w-]+)['"]""")


@functools.cache
def install_line(extra: str) -> str:
    """The command line that installs an extra's packages for the Python that runs this.

    They go by their own names: what a registry has under the name of mimikit may be another's.
    """
    from importlib import metadata  # slow to import, and seldom asked

    lines: list[str] = []
    with contextlib.suppress(metadata.PackageNotFoundError):
        lines = metadata.requires("mimikit") or []
    found = filter(None, map(_REQUIRED.match, lines))
    wanted = [one[1].strip() for one in found if one[2] == extra]
    wanted = wanted or ["-e", f".[{extra}]"]  # it runs from a checkout that it was not installed of
    has_pip = importlib.util.find_spec("pip") is not None
    front = [sys.executable, "-m", "pip"] if has_pip else ["uv", "pip"]
    where = [] if has_pip else ["--python", sys.executable]
    return shlex.join([*front, "install", *where, *wanted])


def missing(package: str, extra: str) -> str:
    """What to say where a package of an extra is not installed."""
    return f"expected the package {package}, got none; {install_line(extra)}"
