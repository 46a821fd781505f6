"""What the wheel holds, and that its entry point answers: from an archive, outside the checkout."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

REPO = Path(__file__).parents[2]


def test_the_entry_point_of_the_wheel_answers(tmp_path: Path) -> None:
    build = "import sys, hatchling.build; hatchling.build.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=REPO, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    scripts = configparser.ConfigParser()
    scripts.read(next(site.glob("*.dist-info")) / "entry_points.txt")
    module, _, function = scripts["console_scripts"]["mimikit"].partition(":")
    call = f"import sys, {module}; sys.argv[0] = 'mimikit'; {module}.{function}()"
    program = f"import mimikit; print(mimikit.__file__); {call}"
    paths = os.pathsep.join([str(site), sysconfig.get_path("purelib")])
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    said = subprocess.run(
        [sys.executable, "-c", program, "--help"],
        cwd=tmp_path,
        env=env | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    place, _, help_text = said.partition("\n")
    assert Path(place).is_relative_to(site)
    assert "Usage: mimikit" in help_text
    assert (site / "mimikit/_assets/webui/index.html").is_file()
    assert (site / "mimikit/_assets/prompts/teller.md").is_file()
