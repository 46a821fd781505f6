"""A notification reaches a real desktop daemon: Xvfb, a session bus of its own, and dunst."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = ("Xvfb", "dbus-run-session", "dunst", "dunstctl")
SYSTEM = Path("/usr/lib/python3/dist-packages")
PYTHON = f"cpython-{sys.version_info.major}{sys.version_info.minor}-x86_64-linux-gnu.so"
MODULES = ("dbus", "gi", f"_dbus_bindings.{PYTHON}", f"_dbus_glib_bindings.{PYTHON}")
SESSION = """
Xvfb :97 -screen 0 640x480x16 & x=$!
sleep 1; export DISPLAY=:97
dunst & d=$!
sleep 1
echo '["dbus://", "mimikit", "can reach you"]' | "$1" -P -m mimikit.notifications >&3
dunstctl count displayed >&3
kill $d $x
"""


def test_a_desktop_daemon_shows_a_notification(tmp_path: Path) -> None:
    missing = [one for one in PROGRAMS if not shutil.which(one)]
    missing += [one for one in MODULES if not (SYSTEM / one).exists()]
    if missing:
        pytest.skip(
            f"needs {', '.join(missing)}: apt install xvfb dbus dunst python3-dbus python3-gi"
        )
    for name in MODULES:
        (tmp_path / name).symlink_to(SYSTEM / name)
    script = ["dbus-run-session", "--", "sh", "-c", f"{SESSION}", "sh", sys.executable]
    command = ["sh", "-c", 'exec "$@" 3>&1 >/dev/null 2>&1', "sh", *script]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert '"outcome":"sent"' in out.stdout
    assert out.stdout.split()[-1].endswith("1")
