"""A turn of a Teller with an endpoint, against a model server on this machine that answers at once.

Beside it, in turn, the bare request: the same bytes, sent and read by the standard library.
Run: python -m benchmarks.endpoint [--turns N]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mimikit.engines.base import EngineRequest, ToolReply, ToolSpec
from mimikit.engines.openai.engine import OpenAIEngine
from tests.support.endpoint import KEY, endpoint_ground
from tests.support.engine_requests import Desk
from tests.support.fake_llm import Body, FakeLLM

_TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
_REPLY = ToolSpec("reply", "Say it to the user.", _TEXT)
_PATHS = {"chat": "/chat/completions", "responses": "/responses"}


def bare(url: str, path: str, body: Body) -> None:
    """The request alone, on a connection of its own as each turn has."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    connection.request("POST", f"{place.path}{path}", json.dumps(body), headers)
    connection.getresponse().read()
    connection.close()


def turn(engine: OpenAIEngine, request: EngineRequest) -> None:
    """A turn, as a consumer has it carried out."""
    outcome = engine.run(request)
    if outcome.status != "done":
        raise SystemExit(f"expected a turn to be done, got: {outcome.error}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=30)
    turns = parser.parse_args().turns
    steps: dict[str, Body] = {
        "words": {"text": "hi"},
        "one tool call": {"call": {"name": "reply", "arguments": {"text": "hi"}}},
    }
    said = [steps["words"]]
    desk = Desk(lambda _name, _arguments: ToolReply(True, "sent", final=True))
    took: dict[str, list[tuple[float, float]]] = {}
    with (
        tempfile.TemporaryDirectory() as made,
        FakeLLM([lambda _body: said[0]], key=KEY) as llm,
    ):
        here = endpoint_ground(Path(made))
        ways: dict[str, tuple[Callable[[], None], str, Body]] = {}
        for api, path in _PATHS.items():
            engine = here.engine(llm, api=api)
            asked = here.ask("hello", desk=desk, tools=(_REPLY,))
            for name, step in steps.items():
                ways[f"{api}, {name}"] = (partial(turn, engine, asked), path, step)
        for number in range(turns + 1):  # one after the other: all have the same neighbours
            for name, (carry_out, path, said[0]) in ways.items():
                begun = time.perf_counter()
                carry_out()
                done = time.perf_counter()
                bare(llm.url, path, llm.requests[-1])
                if number:  # the first warms up
                    times = (done - begun) * 1000, (time.perf_counter() - done) * 1000
                    took.setdefault(name, []).append(times)
        asked_in_all = len(llm.requests)
    if asked_in_all != 2 * len(ways) * (turns + 1):
        raise SystemExit(f"expected one request for each turn, got {asked_in_all} in all")
    print(f"{'':28}{'p50 ms':>9}{'bare ms':>9}{'more ms':>9}")
    for name, found in took.items():
        ours, alone = (statistics.median(times) for times in zip(*found, strict=True))
        print(f"{name:28}{ours:>9.1f}{alone:>9.1f}{ours - alone:>9.1f}")
    print(f"load now: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
