"""Where page and prompts lie: inside an installed wheel, else at the top of the repository."""

from __future__ import annotations

import functools
from pathlib import Path

from mimikit.errors import NotFound

_PACKAGE = Path(__file__).resolve().parent


@functools.cache
def asset_folder(name: str) -> Path:
    """The folder of an asset, `webui` or `prompts`.

    Raises:
        NotFound: neither place has it, so the installation is broken.
    """
    places = (_PACKAGE / "_assets" / name, _PACKAGE.parent / name)
    for place in places:
        if place.is_dir():
            return place
    tried = " or ".join(map(str, places))
    raise NotFound(f"expected the folder {name!r} at {tried}, found none; install mimikit again")
