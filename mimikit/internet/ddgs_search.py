"""Asks ddgs, in a short program of its own: its HTTP client is compiled, and asks for no guard.

    python -I -m mimikit.internet.ddgs_search < {"query", "most", "proxy"} > {"results" or "error"}

All its connections go through `proxy`, which is the guard of the consumer.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

_TIMEOUT_S = 10
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "DDGS_PROXY")


def main() -> None:
    for name in _PROXIES:  # nothing of the environment leads around the guard
        os.environ.pop(name, None)
        os.environ.pop(name.lower(), None)
    order = json.loads(sys.stdin.buffer.read())
    ddgs: Any = importlib.import_module("ddgs")
    failed: type[Exception] = importlib.import_module("ddgs.exceptions").DDGSException
    try:
        found = ddgs.DDGS(proxy=order["proxy"], timeout=_TIMEOUT_S).text(
            order["query"], max_results=order["most"]
        )
        told: dict[str, object] = {"results": found}
    except failed as error:
        is_empty = "No results" in str(error)
        told = {"results": []} if is_empty else {"error": str(error)[:300]}
    except Exception as error:  # noqa: BLE001 - whatever it is, the consumer is told in words
        told = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
