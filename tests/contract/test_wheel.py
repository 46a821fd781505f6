"""A built wheel, installed elsewhere, runs and carries the page and the prompts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import editables
import pytest

REPO = Path(__file__).parents[2]
ASSETS = ["webui/index.html", "prompts/teller.md"]


def run(*command: str | Path, cwd: Path) -> str:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    result = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a new environment with the wheel; its libraries are lent by this one."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    run(*build, "--outdir", folder, REPO, cwd=folder)
    (wheel,) = folder.glob("mimikit_assistant-*.whl")
    home = folder / "env"
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    # A folder named in a .pth file is searched last, and its own .pth files (an editable
    # mimikit among them) are not read.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    run(*pip, "--no-deps", "--no-index", wheel, cwd=folder)
    return python.parent


def test_the_installed_program_answers_help_from_any_folder(
    installed: Path, tmp_path: Path
) -> None:
    assert "Usage: mimikit" in run(installed / "mimikit", "--help", cwd=tmp_path)


@pytest.mark.parametrize("asset", ASSETS)
def test_the_installed_package_holds_its_assets(
    installed: Path, tmp_path: Path, asset: str
) -> None:
    program = (
        "import importlib.resources, mimikit, sys;"
        "print(mimikit.__file__);"
        "print((importlib.resources.files('mimikit') / '_assets' / sys.argv[1]).read_text())"
    )
    place, _, text = run(installed / "python", "-c", program, asset, cwd=tmp_path).partition("\n")
    assert Path(place).is_relative_to(installed.parent)
    assert text.strip() == (REPO / asset).read_text().strip()


def test_a_checkout_is_installed_by_its_package_alone(tmp_path: Path) -> None:
    """Else Python takes up what lies at its top, a `sitecustomize.py` before all else."""
    build = "import sys, hatchling.build; hatchling.build.build_editable(sys.argv[1])"
    run(sys.executable, "-c", build, tmp_path, cwd=REPO)
    (wheel,) = tmp_path.glob("mimikit_assistant-*.whl")
    home = tmp_path / "env"
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    shutil.copytree(Path(editables.__file__).parent, site / "editables")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    program = "import sys, mimikit; print(mimikit.__file__, *sys.path, sep='\\n')"
    place, *searched = run(home / "bin" / "python", "-P", "-c", program, cwd=tmp_path).splitlines()
    assert Path(place) == REPO / "mimikit" / "__init__.py"
    assert str(REPO) not in searched
