"""A mimikit of a version to come, whose state has one step more: `newer_mimikit.py COMMAND …`.

With DIE_ONCE=FILE it is killed in the midst of its first migration, and makes that file before.
"""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

from mimikit.__main__ import main
from mimikit.protocol import paths, schema
from mimikit.protocol.json import Json

_records = itertools.count()


def marked(record: dict[str, Json]) -> dict[str, Json]:
    flag = Path(os.environ.get("DIE_ONCE", os.devnull))
    if next(_records) == 3 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return record if "of" in record else {**record, "of": 2}


schema.STATE_SCHEMA = 2
PLACES = (
    f"{paths.TRANSCRIPT}/*.jsonl",
    paths.HISTORY,
    "worker/ended/*.json",
    "worker/results/*.json",
    f"{paths.TRIGGERS}/*.json",
)
schema.STEPS = (schema.MigrationStep(to=2, places=PLACES, change=marked),)

if __name__ == "__main__":
    main()
