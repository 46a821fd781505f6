"""Runs tests as an ordinary user: root is refused nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 4242


@contextmanager
def folder_of_an_ordinary_user() -> Generator[Path]:
    """A folder that an ordinary user owns and can reach; pytest's tmp_path is root's."""
    path = Path(tempfile.mkdtemp(prefix="mimikit-test-"))
    try:
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        yield path
    finally:
        for top, folders, _ in os.walk(path):
            for folder in folders:
                if not os.path.islink(there := os.path.join(top, folder)):
                    os.chmod(there, 0o700)
        shutil.rmtree(path)


def as_an_ordinary_user(test: Callable[[], None]) -> None:
    """Run a test as an ordinary user; if this is root, in a child process."""
    if os.geteuid() != 0:
        test()
        return
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            test()
            status = 0
        except BaseException:  # noqa: BLE001 - it is told, whatever it is
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
