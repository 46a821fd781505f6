"""A program that serves one model on loopback; it imports nothing else of mimikit.

Its first line of input is JSON: `modelPath`, `key`, `threads`, `contextTokens`. Its one line of
output is `{"port": …}` once it listens, or `{"error": "…"}`. It ends when its input is closed, so
also when the parent process is killed.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import threading
from typing import Any

PACKAGE = "xllamacpp"
_NICE = 5
_MAX_TOKENS = 1024
_TEMPERATURE = 0.0


def main() -> int:
    options = json.loads(sys.stdin.readline())
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):  # the library's own output is discarded
        os.dup2(null, stream)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    try:
        server = _start(options)
        answer: dict[str, object] = {"port": int(server.listening_address.rpartition(":")[2])}
    except Exception as error:  # noqa: BLE001 - reported to the parent
        answer = {"error": f"{type(error).__name__}: {error}"[:500]}
    with report:
        report.write(json.dumps(answer) + "\n")
    if "error" in answer:
        return 1
    threading.Event().wait()
    return 0


def _start(options: dict[str, Any]) -> Any:
    library = importlib.import_module(PACKAGE)
    params = library.CommonParams()
    params.model.path = options["modelPath"]
    params.n_ctx = options["contextTokens"]
    params.n_predict = _MAX_TOKENS
    params.n_parallel = 1
    params.n_threads_http = 2
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = options["threads"]
        threads.poll = 0  # no busy waiting
    params.sampling.temp = _TEMPERATURE
    params.api_keys = [options["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.warmup = False  # the first request does it
    params.cache_ram_mib = 0
    return library.Server(params)


def _exit_with_parent() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
