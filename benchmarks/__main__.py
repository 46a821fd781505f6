"""All benchmarks in turn: `python -m benchmarks`; or those named: `… queue consumer`.

`web` measures the page in the browser (`page`), too.

With `--data FOLDER` alone: how well memory is searched, by the question sets of a folder.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

SHORT: dict[str, list[str]] = {
    "queue": ["--sizes", "1000,10000", "--repeats", "3"],
    "latency": [],
    "consumer": [],
    "load": [
        *("--messages", "5000", "--tasks", "5000", "--fired", "5000", "--queued", "5000"),
        *("--dropped", "5000", "--long", "1000"),
    ],
    "web": [],
    "page": [],
    "triggers": [],
    "codex": [],
    "retrieval": ["--scale", "6000"],
}


def main() -> int:
    """Run each in a process of its own, so that none warms another's caches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SHORT))
    parser.add_argument("--data", metavar="FOLDER", help="question sets, as JSON files")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in SHORT]
    if unknown:
        parser.error(f"expected some of {', '.join(SHORT)}; got {', '.join(unknown)}")
    named = set(args.names or SHORT) | ({"page"} if "web" in args.names else set())
    runs = {name: more for name, more in SHORT.items() if name in named}
    if args.data:
        runs = {"retrieval": ["--data", args.data]}
    failed = 0
    for name, more in runs.items():
        print(f"\n== {name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", *more]
        failed |= subprocess.run(command, check=False).returncode
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
