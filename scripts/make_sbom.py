"""Makes a bill of materials (CycloneDX 1.6, JSON) of what an installed mimikit consists of.

It is read from requirements-run.lock alone, without a network: each package with its version, the
SHA-256 of every file that may be installed as it, and who needs it. What of others lies in the
wheel itself stands there, too. Given the same lock, version and time it is the same, byte for byte.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from scripts.make_third_party import ROOT, ThirdParty, third_parties

LOCK = ROOT / "requirements-run.lock"
_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?: *; *(?P<marker>[^\\]+))?")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_VIA = re.compile(r"# via (.+)")
_MIMIKIT = "mimikit"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "pkg:pypi/mimikit")


@dataclass
class LockedPackage:
    """One pin of a lock."""

    name: str
    version: str
    marker: str | None = None
    hashes: list[str] = field(default_factory=list[str])
    needed_by: list[str] = field(default_factory=list[str])
    """Names of packages; `mimikit` among them."""

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def normal(name: str) -> str:
    """A package's name as the index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(text: str) -> list[LockedPackage]:
    """Every pin of a lock that pip-compile wrote with hashes."""
    found: list[LockedPackage] = []
    for line in text.splitlines():
        if pin := _PIN.match(line):
            marker = (pin["marker"] or "").strip() or None
            found.append(LockedPackage(normal(pin["name"]), pin["version"], marker))
        elif digest := _HASH.search(line):
            found[-1].hashes.append(digest[1])
        elif via := _VIA.search(line):
            needed = (part.split("(")[0].strip() for part in via[1].split(","))
            found[-1].needed_by += [normal(name) for name in needed if not name.startswith("-")]
    return found


def bill(version: str, at: datetime, packages: list[LockedPackage]) -> dict[str, object]:
    """The bill as JSON; `at` is when the release was committed."""
    own = f"pkg:pypi/{_MIMIKIT}@{version}"
    references = {_MIMIKIT: own} | {one.name: one.purl for one in packages}
    needs: dict[str, list[str]] = {purl: [] for purl in references.values()}
    for one in packages:
        for name in one.needed_by:
            if name in references:
                needs[references[name]].append(one.purl)
    components: list[dict[str, object]] = [_component(one) for one in packages]
    components += [_carried(part) for part in third_parties()]
    text = json.dumps([version, [one.purl for one in packages]])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, text)}",
        "version": 1,
        "metadata": {
            "timestamp": at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": _MIMIKIT,
                "version": version,
                "purl": own,
            },
        },
        "components": components,
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(set(below))} for ref, below in sorted(needs.items())
        ],
    }


def _component(one: LockedPackage) -> dict[str, object]:
    found: dict[str, object] = {
        "type": "library",
        "bom-ref": one.purl,
        "name": one.name,
        "version": one.version,
        "purl": one.purl,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in sorted(one.hashes)],
    }
    if one.marker:
        found["properties"] = [{"name": "mimikit:marker", "value": one.marker}]
    return found


def _carried(part: ThirdParty) -> dict[str, object]:
    """What of others lies in the wheel, with its files."""
    version: dict[str, object] = {"version": part.version} if part.version else {}
    return {
        "type": "library",
        "bom-ref": f"in-wheel:{part.purl}",
        "name": part.name,
        **version,
        "purl": part.purl,
        "licenses": [{"license": {"id": part.licence}}],
        "components": [
            {
                "type": "file",
                "bom-ref": f"file:{path}",
                "name": path,
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
            for path, digest in sorted(part.files.items())
        ],
    }


def sbom(version: str, at: datetime) -> str:
    """The bill of this checkout."""
    made = bill(version, at, read_lock(LOCK.read_text("utf-8")))
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    target, version, epoch_s = sys.argv[1:]
    Path(target).write_text(sbom(version, datetime.fromtimestamp(int(epoch_s), UTC)), "utf-8")
