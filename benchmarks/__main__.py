"""All benchmarks in turn: `python -m benchmarks`; or those named: `… queue consumer`."""

from __future__ import annotations

import subprocess
import sys

SHORT: dict[str, list[str]] = {
    "queue": ["--sizes", "1000,10000", "--repeats", "3"],
    "latency": [],
    "consumer": [],
    "web": [],
    "triggers": [],
}


def main() -> int:
    """Run each in a process of its own, so that none warms another's caches."""
    wanted = sys.argv[1:] or list(SHORT)
    unknown = [name for name in wanted if name not in SHORT]
    if unknown:
        print(f"expected some of {', '.join(SHORT)}; got {', '.join(unknown)}", file=sys.stderr)
        return 2
    failed = 0
    for name in wanted:
        print(f"\n== {name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", *SHORT[name]]
        failed |= subprocess.run(command, check=False).returncode
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
