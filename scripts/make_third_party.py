"""Makes THIRD_PARTY.txt: what of others lies in the wheel, each with its licence, whole.

Listed are the page's packages (webui/vendor/manifest.json) and data made from others' tables
(licences/data.json). A wheel carries it among its licences. Packages that are installed beside
mimikit bring their own; `dist/mimikit-VERSION.cdx.json` names them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "THIRD_PARTY.txt"
MANIFESTS = {"webui/vendor/manifest.json": "webui/vendor/", "licences/data.json": ""}
"""Each with the folder that its names start from."""
_RULE = "=" * 78


@dataclass(frozen=True)
class ThirdParty:
    """One package of others of which something lies here."""

    name: str
    version: str | None
    licence: str
    """As SPDX names it."""
    licence_text: str
    purl: str
    notice: str | None
    files: dict[str, str]
    """Path from the top of the repository → SHA-256."""


def third_parties() -> list[ThirdParty]:
    found: list[ThirdParty] = []
    for manifest, folder in MANIFESTS.items():
        for package in json.loads((ROOT / manifest).read_text("utf-8"))["packages"]:
            name, version = package["name"], package.get("version")
            found.append(
                ThirdParty(
                    name,
                    version,
                    package["licence"],
                    (ROOT / folder / package["licenceFile"]).read_text("utf-8"),
                    package.get("purl") or f"pkg:npm/{name}@{version}",
                    package.get("notice"),
                    {folder + path: digest for path, digest in package["files"].items()},
                )
            )
    return found


def text() -> str:
    """The whole file."""
    parts = [
        "What of others is part of mimikit. Made by scripts/make_third_party.py.\n",
    ]
    for one in third_parties():
        head = f"{one.name} {one.version}" if one.version else one.name
        lines = [
            _RULE,
            f"{head}    {one.licence}    {one.purl}",
            *([one.notice] if one.notice else []),
        ]
        files = [f"  {path}" for path in sorted(one.files)]
        parts.append(
            "\n".join([*lines, *files, _RULE]) + "\n\n" + one.licence_text.strip("\n") + "\n"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
