"""A checkout that is installed in place puts nothing but its package on the path."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import editables

REPO = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    result = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


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
