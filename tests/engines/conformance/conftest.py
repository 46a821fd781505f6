"""An engine at its workspace, once for all cases of a file; and which cases are put to which."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from mimikit.tools.mcp import ToolServer
from tests.engines.conformance.drivers import DRIVERS, KEY, MARKS, EngineDriver
from tests.support.fake_llm import FakeLLM
from tests.support.runs import ground

NEEDS = ("thinks", "by_server", "by_process")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Put each case to each driver that can be asked it, as the marker `put_to` says."""
    if "driver" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("put_to")
    wanted: dict[str, Any] = dict(marker.kwargs) if marker else {}
    names = [name for name in ("case", "role") if name in metafunc.fixturenames]
    cases: Iterable[Any] = wanted.get("cases", {"": None}).items()
    made: list[Any] = []
    for kind in DRIVERS:
        if metafunc.function.__name__ in kind.cannot or any(
            wanted.get(need) and not getattr(kind, need) for need in NEEDS
        ):
            continue
        for role in wanted.get("roles", kind.roles[:1]):
            for name, case in cases:
                if role not in kind.roles or name in kind.cannot:
                    continue
                values = {"case": case, "role": role}
                marks = list(MARKS.get(kind.name, ()))
                if kind.everyday is not None and metafunc.function.__name__ not in kind.everyday:
                    marks.append(pytest.mark.nightly)
                if role == "worker" and kind.by_server:
                    marks.append(pytest.mark.needs_program("bwrap"))
                id_ = "-".join(filter(None, [kind.name, role if "role" in names else "", name]))
                made.append(pytest.param(kind, *(values[n] for n in names), id=id_, marks=marks))
    metafunc.parametrize(["driver", *names], made, indirect=["driver"])


Drivers = Callable[[type[EngineDriver]], EngineDriver]


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """Each driver, from when it is first wanted until the file is done."""
    root = tmp_path_factory.mktemp("engines")
    (root / "home" / ".ssh").mkdir(parents=True)
    (root / "home" / ".ssh" / "id").write_text("canary-of-the-home")
    (root / "tmp").mkdir()
    made: dict[str, EngineDriver] = {}
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setenv("HOME", str(root / "home"))
        patch.setenv("TMPDIR", str(root / "tmp"))
        patch.setenv("FAKE_KEY", KEY)
        patch.setenv("OTHER_TOKEN", "canary-of-the-environment")
        for name in ("CODEX_HOME", "CODEX_API_KEY"):
            patch.delenv(name, raising=False)
        patch.setattr("mimikit.engines.openai.run.BACKOFF_S", (0.0,))
        patch.setattr("mimikit.engines.openai.run._MAX_FAILURES", 20)  # of many wrong calls
        door = stack.enter_context(ToolServer())

        def driver(kind: type[EngineDriver]) -> EngineDriver:
            if kind.name not in made:
                here = ground(root / kind.name)
                (here.state / "secret").write_text("canary-of-the-state")
                answer = [{"text": "hello"}]
                llm = stack.enter_context(FakeLLM(answer, apis=kind.apis, key=KEY))
                made[kind.name] = kind(here, llm, door)
                stack.callback(made[kind.name].close)
            return made[kind.name]

        yield driver


@pytest.fixture
def driver(request: pytest.FixtureRequest, drivers: Drivers) -> EngineDriver:
    return drivers(request.param)
