"""Tries an endpoint in a child process: the client takes 30 MB, and an address may never answer.

The key goes by stdin.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

from pydantic import BaseModel

from mimikit.engines.setup import EndpointFact, EndpointTest, EndpointTrial
from mimikit.errors import BadInput, Conflict

LONGEST_S = 45.0
_MOST_MODELS = 500
_one = threading.Lock()


class TrialRequest(BaseModel):
    """Without a model in `facts` its models are listed alone."""

    name: str
    facts: dict[str, EndpointFact]
    key: str | None = None


class TrialReport(BaseModel):
    """`message` and `field`: why it could not be tried."""

    models: list[str] = []
    test: EndpointTest | None = None
    message: str = ""
    field: str | None = None


def tried_apart(request: TrialRequest, state: Path) -> TrialReport:
    """Try it in a child, ended after `LONGEST_S`. Raises Conflict if another trial is running."""
    if not _one.acquire(blocking=False):
        raise Conflict("another endpoint is being tried; wait for it")
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "mimikit.engines.trial", str(state)],
            input=request.model_dump_json().encode(),
            capture_output=True,
            timeout=LONGEST_S,
            check=True,
        )
        return TrialReport.model_validate_json(ended.stdout)
    except subprocess.TimeoutExpired:
        late = f"it gave no whole answer within {LONGEST_S:.0f} s"
        return TrialReport(message=late, field="baseUrl")
    except (subprocess.CalledProcessError, OSError, ValueError):
        return TrialReport(message="it could not be tried: the trial ended without a word")
    finally:
        _one.release()


def tried(request: TrialRequest, state: Path) -> TrialReport:
    """List its models and ask the given one."""
    trial = EndpointTrial(request.name, request.facts, request.key, state)
    model = request.facts.get("model")
    models: list[str] = []
    try:
        try:
            models = trial.models()[:_MOST_MODELS]
        except BadInput:
            if model is None:  # many an endpoint cannot list what it has, and answers
                raise
        return TrialReport(models=models, test=trial.turn() if model else None)
    except BadInput as error:
        return TrialReport(models=models, message=str(error), field=error.field)


def main() -> None:
    """The child ends by itself, as its parent may be gone."""
    signal.alarm(int(LONGEST_S) + 5)
    request = TrialRequest.model_validate_json(sys.stdin.buffer.read())
    sys.stdout.write(tried(request, Path(sys.argv[1])).model_dump_json())


if __name__ == "__main__":
    main()
