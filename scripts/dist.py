"""Makes what is released, into dist/: `make dist`.

1. The commit's tag has to be `v` and the version in mimikit/__init__.py, the tree clean, and the
   changelog have a section of that version. `--trial` asks for none of these.
2. Wheel and source are built from what is committed, and nothing else, with the commit's time as
   SOURCE_DATE_EPOCH: the same commit gives the same bytes. The wheel is built from the source.
3. The bill of materials is made from the lock, the checksums of all three are written.
4. The wheel is installed into an empty environment, with the packages of the lock and their hashes,
   and tried: version, init, doctor, up, one message. `--no-try` leaves this out.

Nothing is published.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from datetime import UTC, datetime
from pathlib import Path

from scripts.make_sbom import LOCK, sbom
from scripts.make_third_party import ROOT
from scripts.try_wheel import try_program

DIST = ROOT / "dist"
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--trial", action="store_true", help="of any commit, not to be published")
    options.add_argument("--no-try", action="store_true", help="do not install and try it")
    options.add_argument("--into", type=Path, default=DIST, help="the folder (default: dist/)")
    given = options.parse_args()
    version = version_of((ROOT / "mimikit/__init__.py").read_text("utf-8"))
    if not given.trial and (reasons := objections(version)):
        sys.exit("\n".join(["not to be released:", *(f"  {reason}" for reason in reasons)]))
    made = build(given.into, version)
    if not given.no_try:
        wheel = next(path for path in made if path.suffix == ".whl")
        print(*in_empty_environment(wheel, version), sep="\n")
    for path in made:
        print(path)


def version_of(module: str) -> str:
    if (found := _VERSION.search(module)) is None:
        sys.exit('mimikit/__init__.py: expected a line `__version__ = "…"`, got none')
    return found[1]


def objections(version: str) -> list[str]:
    """Why this commit is not to be released."""
    found: list[str] = []
    tags = git("tag", "--points-at", "HEAD").split()
    if f"v{version}" not in tags:
        got = ", ".join(tags) or "none"
        found.append(f"expected the tag v{version} on this commit, got {got}; `git tag v{version}`")
    if changed := git("status", "--porcelain").splitlines():
        found.append(f"expected everything committed, got {len(changed)} changes (`git status`)")
    if not has_section((ROOT / "CHANGELOG.md").read_text("utf-8"), version):
        found.append(f"expected a section `## {version} - YYYY-MM-DD` in CHANGELOG.md, got none")
    return found


def has_section(changelog: str, version: str) -> bool:
    """Whether the changelog tells of this version, with its day and something below."""
    head = rf"^## \[?{re.escape(version)}\]? - \d{{4}}-\d\d-\d\d$\n(?P<body>(?:(?!^## ).*\n?)*)"
    section = re.search(head, changelog, re.MULTILINE)
    return section is not None and "\n- " in section["body"]


def build(target: Path, version: str) -> list[Path]:
    """Wheel, source, bill and checksums of the commit that is checked out."""
    epoch_s = int(git("log", "-1", "--format=%ct"))
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("mimikit-*"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="mimikit-dist-") as folder:
        packed, source = Path(folder) / "committed.tar", Path(folder) / "source"
        git("archive", "--format=tar", f"--output={packed}", "HEAD")
        with tarfile.open(packed) as archive:
            archive.extractall(source, filter="data")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch_s), "PYTHONHASHSEED": "0"}
        command = [
            sys.executable,
            "-P",
            "-m",
            "build",
            "--no-isolation",
            "--outdir",
            target,
            source,
        ]
        run(*command, env=environment)
    bill = target / f"mimikit-{version}.cdx.json"
    bill.write_text(sbom(version, datetime.fromtimestamp(epoch_s, UTC)), "utf-8")
    made = sorted(target.glob(f"mimikit-{version}*"))
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made]
    (target / "SHA256SUMS").write_text("".join(sums), "utf-8")
    return [*made, target / "SHA256SUMS"]


def in_empty_environment(wheel: Path, version: str) -> list[str]:
    """Install a wheel beside the packages of the lock, nothing else, and try it."""
    with tempfile.TemporaryDirectory(prefix="mimikit-env-") as folder:
        venv.create(folder, with_pip=True, symlinks=True)
        programs = Path(folder) / "bin"
        pip = [programs / "python", "-P", "-m", "pip", "--disable-pip-version-check", "--quiet"]
        run(*pip, "install", "--require-hashes", "--requirement", LOCK)
        run(*pip, "install", "--no-deps", "--no-index", wheel.absolute())
        run(*pip, "check")
        return try_program(programs / "mimikit", version)


def git(*arguments: str) -> str:
    return run("git", *arguments)


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{command[0]} failed ({ended.returncode}):\n{ended.stdout}{ended.stderr}")
    return ended.stdout


if __name__ == "__main__":
    main()
