"""Who notices that a guard is left out: a flow of the crash driver, or a test.

`guards.toml` names one for each guard, as `flow: NAME` (crashed once), `flow, power: NAME` (power
fails after the kill), `flow, twice: NAME` (the recovery crashes as well) or the id of a test; or
says why nobody can.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.crash.driver import Explorer
from tests.crash.flows import FLOWS
from tests.crash.mutants import Mutant, left_out
from tests.crash.without_guard import LEFT_OUT

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_TABLE = tomllib.loads((HERE / "guards.toml").read_text())
NOTICED: Mapping[str, str] = _TABLE["noticed"]
EXPLAINED: Mapping[str, str] = _TABLE["explained"]
"""By what is left out: who notices it, and why nothing is lost without it."""
OPEN: Mapping[str, list[str]] = _TABLE.get("open", {})
"""Neither noticed nor explained yet: who is thought to notice it."""
WAYS: Mapping[str, Mapping[str, Any]] = {
    "flow": {"crashes": 1, "power_every": 1},
    "flow, power": {"then_power": True, "inner_every": 2},
    "flow, twice": {"crashes": 2, "power_every": 1, "inner_every": 8},
}
_PYTEST = ("-m", "pytest", "-x", "-q", "-n0", "-m", "", "-p", "no:cacheprovider", "--timeout=120")
"""Without its guard it may wait for ever: that is noticed as well."""
_MOST = 12


def who_may_notice(mutant: Mutant) -> Iterator[str]:
    """Who is said to; of a guard of which nothing is said, those that notice its neighbours."""
    known = [NOTICED[str(mutant)]] if str(mutant) in NOTICED else OPEN.get(str(mutant))
    if known:
        yield from known
        return
    function = f" in {mutant.module}:{mutant.function}:"
    near = [who for guard, who in NOTICED.items() if function in guard]
    near += [who for guard, who in NOTICED.items() if f" in {mutant.module}:" in guard]
    yield from list(dict.fromkeys(near))[:_MOST]
    room = f"tests/{mutant.module.split('.')[1]}"
    if (ROOT / room).is_dir():
        yield room


def notices(who: str, mutant: Mutant) -> bool:
    """Whether a flow is violated, or a test fails, on the product without this guard."""
    way, _, name = who.partition(": ")
    if way in WAYS:
        flow = next(flow for flow in FLOWS if flow.name == name)
        with left_out(mutant):
            return bool(Explorer(flow, most_violations=1, **WAYS[way]).run().violations)
    known = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "CI"))
    }
    done = subprocess.run(
        [sys.executable, *_PYTEST, "-p", "tests.crash.without_guard", who],
        cwd=ROOT,
        env={**known, LEFT_OUT: str(mutant)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), f"{who} could not be run: {done.stdout}{done.stderr}"
    return done.returncode == 1
