"""A program: runs Huey's own test modules with Huey's default storage replaced by ClaimStorage.

Usage: huey_suite.py SDIST_FOLDER WORK_FOLDER. Prints one JSON object: ran, failed, skipped.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import sys
import unittest
from pathlib import Path

MODULES = (
    "test_api", "test_consumer", "test_helpers", "test_immediate", "test_mini", "test_priority",
    "test_registry", "test_serializer", "test_signals",
)  # fmt: skip
BORROWED = (
    ("TestFileStorageMethods", "test_float_priority"),
    ("TestFileStorageMethods", "test_fs_multithreaded"),
    ("TestFileStorageMethods", "test_filesystem_put_data_atomic"),
    ("TestMemoryStorage", "test_put_if_empty_concurrent"),
    ("TestSqliteStorage", "test_read_schedule_large"),
    ("TestSqliteStorage", "test_dequeue_multithreaded"),
)


def main(sdist: Path, work: Path) -> None:
    """Build the suite, run it, print what came of it."""
    os.environ["HUEY_SLOW_TESTS"] = "1"
    sys.path.insert(0, str(sdist))
    import huey
    from huey.tests import base, test_storage

    from mimikit.hueyfiles.storage import ClaimHuey

    numbers = itertools.count()

    def get_huey(_self: object, **options: object) -> ClaimHuey:
        return ClaimHuey("test", path=work / str(next(numbers)), utc=False, **options)

    setattr(base.BaseTestCase, "get_huey", lambda self: get_huey(self, blocking=False))  # noqa: B010 - another type on purpose
    suite = unittest.TestSuite()
    loader = unittest.defaultTestLoader
    for module in MODULES:
        suite.addTests(loader.loadTestsFromName(f"huey.tests.{module}"))
    methods = {name: getattr(test_storage, owner).__dict__[name] for owner, name in BORROWED}
    for blocking in (False, True):
        made = type(
            "TestClaimStorageBlocking" if blocking else "TestClaimStorage",
            (test_storage.StorageTests, base.BaseTestCase),
            {
                **methods,
                "supports_ttl": False,
                "get_huey": lambda self, blocking=blocking: get_huey(
                    self, blocking=blocking, read_timeout=0.05
                ),
            },
        )
        suite.addTests(loader.loadTestsFromTestCase(made))
    report(suite, huey.__version__)


def report(suite: unittest.TestSuite, version: str) -> None:
    """Run quietly and print the outcome."""
    with contextlib.redirect_stdout(io.StringIO()):
        result = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(suite)

    def named(pairs: list[tuple[unittest.TestCase, str]]) -> dict[str, str]:
        return {test.id().rpartition("tests.")[2]: text for test, text in pairs}

    outcome = {
        "version": version,
        "ran": result.testsRun,
        "failed": named([*result.errors, *result.failures]),
        "skipped": named(result.skipped),
    }
    sys.stdout.write(json.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
