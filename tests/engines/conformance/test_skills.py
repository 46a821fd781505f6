"""A skill that a Worker reads: its script lies where the Worker can run it, whatever its engine."""

from __future__ import annotations

import pytest

from mimikit.protocol.files import Files
from mimikit.testing.memory_disk import MemoryDisk
from mimikit.tools.provider import ProvidedTools, RunScratch, ToolRun
from mimikit.tools.skill_reader import SkillReader
from tests.engines.conformance.drivers import EngineDriver, open_session

TEXT = b"---\nname: report\ndescription: How a report is made.\n---\nBegin with the numbers.\n"


@pytest.mark.put_to(by_server=True, roles=("worker",))
def test_a_worker_reads_a_skill_and_runs_its_script(driver: EngineDriver) -> None:
    files = Files(MemoryDisk())
    files.make_folders(["skills", "skills/report"])
    files.write("skills/report/SKILL.md", TEXT)
    files.write("skills/report/count.sh", b"#!/bin/sh\necho seven\n")
    scratch = driver.here.scratch / "skilled"
    scratch.mkdir()
    run = ToolRun("skilled", "worker", "standard", place=RunScratch(scratch))
    session = open_session("worker", ProvidedTools([SkillReader(files)], run))
    script = scratch / "skills/report/count.sh"
    steps = [
        {"tools": [["read_skill", {"name": "report"}]]},
        {"shell": f"{script} > made"},
    ]
    played = driver.play(
        *steps, {"text": "done"}, role="worker", session=session, timeout_s=60.0, scratch=scratch
    )
    assert (played.outcome.status, played.outcome.text) == ("done", "done")
    assert "Begin with the numbers." in str(played.told)
    assert (driver.here.workspace / "made").read_text() == "seven\n"
