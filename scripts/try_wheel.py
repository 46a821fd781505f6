"""Tries an installed mimikit as a newcomer would: `python scripts/try_wheel.py BIN`.

`BIN/mimikit` is asked for its version, makes a state folder, looks itself over, starts page and
consumer, and has to answer one message. What fails ends this with what was said.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

PATIENCE_S = 120.0


def try_program(program: Path, version: str | None = None) -> list[str]:
    """Gives what was tried and what came of it, a line each; SystemExit: something failed."""
    told: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mimikit-try-") as folder:
        place = _Place(program, Path(folder))
        said = place.run("--version")
        expected = f"mimikit {version}" if version else "mimikit "
        if not said.startswith(expected):
            sys.exit(f"--version: expected {expected!r}, got {said!r}")
        told.append(said.strip())
        told.append(place.run("init").splitlines()[0])
        # Without bubblewrap or an agent it has something to tell, and no reason to stop.
        place.run("doctor", codes=(0, 1))
        told.append("doctor: looked")
        with place.start("up", "--port", "0") as up:
            try:
                told.append(place.wait_for_page(up))
                answer = place.run("chat", "status")
                if not answer.strip():
                    sys.exit("chat: expected an answer, got nothing")
                told.append(f"chat: {answer.strip().splitlines()[0]}")
            finally:
                up.send_signal(signal.SIGINT)
                up.communicate(timeout=PATIENCE_S)
        if up.returncode != 0:
            sys.exit(f"up: expected the exit code 0, got {up.returncode}")
    return told


class _Place:
    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder = program, folder
        kept = ("PATH", "HOME", "TMPDIR")
        self.environment = {name: os.environ[name] for name in kept if name in os.environ}
        self.environment |= {"LANG": "C.UTF-8", "MIMIKIT_ENGINE": "builtin"}

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        ended = subprocess.run(
            [self.program, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if ended.returncode not in codes or "Traceback" in ended.stderr:
            sys.exit(f"{' '.join(arguments)}: {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.program, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for_page(self, up: subprocess.Popen[str]) -> str:
        """The address that it prints, once it does."""
        said: list[str] = []
        for line in up.stdout or ():
            said.append(line)
            if found := re.search(r"Page\s+(http\S+)", line):
                return f"up: {found[1]}"
        sys.exit(f"up: expected the page's address, got\n{''.join(said)}")


if __name__ == "__main__":
    print(*try_program(Path(sys.argv[1]).absolute() / "mimikit"), sep="\n")
