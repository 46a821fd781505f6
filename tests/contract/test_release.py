"""What is released: licences and bill of materials tell of all that is in it."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import mimikit
from scripts import dist, make_sbom, make_third_party
from scripts.make_sbom import read_lock, sbom

REPO = Path(__file__).parents[2]
AT = datetime(2026, 11, 26, 9, 30, tzinfo=UTC)
PURL = re.compile(r"pkg:(pypi|npm|github)/[A-Za-z0-9._/-]+(@[A-Za-z0-9.+!_-]+)?")


def test_the_licences_are_those_of_the_manifests() -> None:
    assert (REPO / "THIRD_PARTY.txt").read_text("utf-8") == make_third_party.text(), (
        "run `python scripts/make_third_party.py`"
    )
    text = make_third_party.text()
    for one in make_third_party.third_parties():
        assert one.name in text
        assert one.licence_text.strip() in text
        for path, digest in one.files.items():
            assert path in text
            assert hashlib.sha256((REPO / path).read_bytes()).hexdigest() == digest, path


def test_the_bill_names_every_package_of_the_lock_with_its_hashes() -> None:
    locked = read_lock((REPO / "requirements-run.lock").read_text())
    lines = (REPO / "requirements-run.lock").read_text().splitlines()
    assert len(locked) == sum("==" in line and not line.startswith(" ") for line in lines)
    assert sum(len(one.hashes) for one in locked) == sum("--hash=" in line for line in lines)
    found = {one["purl"]: one for one in bill()["components"]}
    for one in locked:
        sums = [each["content"] for each in found[one.purl]["hashes"]]
        assert sums == sorted(one.hashes)
        assert sums


def bill() -> dict[str, Any]:
    return json.loads(sbom(mimikit.__version__, AT))


def test_the_bill_is_cyclonedx() -> None:
    made = bill()
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["serialNumber"])
    assert made["metadata"]["timestamp"] == "2026-11-26T09:30:00Z"
    own = made["metadata"]["component"]
    assert (own["type"], own["version"]) == ("application", mimikit.__version__)
    refs = [own["bom-ref"]]
    for one in made["components"]:
        refs.append(one["bom-ref"])
        assert one["type"] == "library"
        assert PURL.fullmatch(one["purl"]), one["purl"]
        files = one.get("components", [])
        refs += [file["bom-ref"] for file in files]
        for each in [*one.get("hashes", []), *(h for file in files for h in file["hashes"])]:
            assert each["alg"] == "SHA-256"
            assert re.fullmatch(r"[0-9a-f]{64}", each["content"])
        assert "version" in one or files
    assert len(set(refs)) == len(refs)
    for one in made["dependencies"]:
        assert {one["ref"], *one["dependsOn"]} <= set(refs)
    needs = {one["ref"]: one["dependsOn"] for one in made["dependencies"]}
    assert any(ref.startswith("pkg:pypi/huey@") for ref in needs[own["bom-ref"]])


def test_the_bill_is_the_same_for_the_same_commit() -> None:
    assert sbom("0.1.0", AT) == sbom("0.1.0", AT)


def test_a_lock_is_read_as_it_is_written() -> None:
    first, second = read_lock(
        "a-b==1.0 ; platform_machine == 'x' \\\n    --hash=sha256:" + "0" * 64 + " \\\n"
        "    --hash=sha256:"
        + "1"
        * 64
        + "\n    # via -c requirements.lock, mimikit (pyproject.toml)\n"
        "C_d==2 \\\n    --hash=sha256:" + "2" * 64 + "\n    # via a-b\n"
    )
    assert (first.name, first.version, len(first.hashes)) == ("a-b", "1.0", 2)
    assert (first.marker, first.needed_by) == ("platform_machine == 'x'", ["mimikit"])
    assert (second.purl, second.needed_by) == ("pkg:pypi/c-d@2", ["a-b"])
    assert make_sbom.normal("Foo.Bar_baz") == "foo-bar-baz"


@pytest.mark.parametrize(
    ("changelog", "told"),
    [
        ("## 1.0.0 - 2026-11-26\n\n### Added\n\n- A thing.\n", True),
        ("## [1.0.0] - 2026-11-26\n\n- A thing.\n\n## 0.9.0 - 2026-01-01\n\n- B.\n", True),
        ("## 1.0.0 - 2026-11-26\n\n## 0.9.0 - 2026-01-01\n\n- B.\n", False),
        ("## Unreleased\n\n- A thing.\n", False),
        ("## 1.0.0\n\n- A thing.\n", False),
        ("## 1.0.01 - 2026-11-26\n\n- A thing.\n", False),
    ],
)
def test_the_changelog_has_to_tell_of_the_version(changelog: str, told: bool) -> None:
    assert dist.has_section(changelog, "1.0.0") is told


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit, in the place of this one."""
    (tmp_path / "CHANGELOG.md").write_text("## 1.0.0 - 2026-11-26\n\n- A thing.\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    git(tmp_path, *who, "commit", "-qm", "one")
    monkeypatch.setattr(dist, "ROOT", tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def test_a_commit_is_released_only_under_its_tag_and_when_all_is_committed(
    repository: Path,
) -> None:
    (untagged,) = dist.objections("1.0.0")
    assert "expected the tag v1.0.0 on this commit, got none" in untagged
    git(repository, "tag", "v1.0.1")
    assert "got v1.0.1" in dist.objections("1.0.0")[0]
    git(repository, "tag", "v1.0.0")
    assert dist.objections("1.0.0") == []
    (repository / "left").write_text("x")
    assert "1 changes" in dist.objections("1.0.0")[0]
    assert dist.objections("1.0.1")[-1].startswith("expected a section `## 1.0.1 - ")


def test_the_version_stands_in_one_place() -> None:
    module = (REPO / "mimikit/__init__.py").read_text()
    assert dist.version_of(module) == mimikit.__version__
    with pytest.raises(SystemExit):
        dist.version_of("")


@pytest.mark.nightly
def test_the_same_commit_gives_the_same_files(tmp_path: Path) -> None:
    made = [dist.build(tmp_path / name, mimikit.__version__) for name in ("one", "two")]
    sums = [[hashlib.sha256(path.read_bytes()).hexdigest() for path in each] for each in made]
    assert sums[0] == sums[1]
    assert len(sums[0]) == 4
