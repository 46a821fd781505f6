"""Each fault that is known has its tests, each of which says so itself, or the reason why not."""

from __future__ import annotations

import ast
import string

import pytest

from scripts import make_fault_docs as docs

CATALOGUE = [str(number) for number in range(1, 67)]
DESIGN = list(string.ascii_lowercase[:12])
RIVALS = [
    *(f"openclaw#{number}" for number in (6460, 37605, 42640, 6814, 59301, 50414, 90233, 11924)),
    *(f"claude-code#{number}" for number in (29217, 29008, 40226)),
    *(f"codex#{number}" for number in (21994, 7846, 27758)),
    *(f"codexbar#{number}" for number in (2789, 2909)),
]
COMPLAINTS = [f"complaint {number}" for number in range(1, 21)]
UPSTREAM = [f"upstream {number}" for number in range(1, 13)]

FAULTS = docs.faults()
TESTS = docs.tests()


def test_every_fault_is_there_once_and_in_order() -> None:
    """The carrier's own syntax refuses a name that stands there twice."""
    assert list(FAULTS) == [*CATALOGUE, *DESIGN, *RIVALS, *COMPLAINTS, *UPSTREAM]
    assert all(fault.fault and fault.then for fault in FAULTS.values())


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_a_fault_has_a_test_that_runs_or_the_reason_why_none_proves_it(fault: docs.Fault) -> None:
    proving = [test for test in TESTS if fault.name in test.faults]
    each_time = [test for test in proving if "nightly" not in test.marks]
    assert bool(fault.unproven) != bool(each_time), (
        f"expected `@pytest.mark.fault(...)` with {fault.name!r} above a test of `make test`, or "
        f"the reason in {docs.CARRIER.name}, not both; got {len(each_time)} tests"
    )


def test_no_test_names_a_fault_that_is_none_or_one_twice() -> None:
    wrong = [
        (test.file, test.function, name)
        for test in TESTS
        for name in test.faults
        if name not in FAULTS or test.faults.count(name) > 1
    ]
    assert wrong == []


def test_no_test_that_proves_a_fault_is_left_out_for_ever() -> None:
    assert [test for test in TESTS if test.marks & docs.NEVER_RUN] == []


def test_the_flows_that_are_named_are_those_of_the_crash_driver() -> None:
    tree = ast.parse((docs.TESTS / "crash" / "flows.py").read_text())
    there = {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("Flow")
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    named = {flow for fault in FAULTS.values() for flow in fault.flows}
    assert len(there) > 50
    assert named - there == set()


def test_a_fault_that_is_met_in_flows_is_proved_by_a_test_of_all_flows() -> None:
    all_flows = {"crash/test_crash.py", "crash/test_faults.py"}
    for fault in FAULTS.values():
        files = {test.file for test in TESTS if fault.name in test.faults}
        assert not fault.flows or files & all_flows, fault.name


def test_the_page_tells_of_each_as_the_carrier_and_the_tests_do() -> None:
    made = docs.page()
    assert made == docs.PAGE.read_text(), "it is stale: run `make docs`"
    assert "| openclaw#6460 |" in made


def test_a_marker_is_read_whatever_stands_beside_it() -> None:
    module = ast.parse(
        "pytestmark = [pytest.mark.slow, pytest.mark.needs_program('x')]\n"
        "@pytest.mark.fault(1, 'a')\n@pytest.mark.skip\ndef test_one(): pass\n"
        "@pytest.mark.nightly\n@pytest.mark.fault('codex#1')\ndef test_two(): pass\n"
        "def test_three(): pass\n"
    )
    found = list(docs._of_module("x.py", module))
    assert [(test.function, test.faults) for test in found] == [
        ("test_one", ("1", "a")),
        ("test_two", ("codex#1",)),
    ]
    assert found[0].marks == {"slow", "needs_program", "fault", "skip"}
    assert "nightly" in found[1].marks
