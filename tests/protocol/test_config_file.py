"""The settings as text: whoever changes them holds their lock."""

from __future__ import annotations

import pytest

from mimikit import config_file
from mimikit.errors import BadSettings, StorageError
from mimikit.protocol import paths, writer_lock
from mimikit.protocol.files import Files
from mimikit.testing.memory_disk import MemoryDisk

CAPS = {"daily_tokens": 9_000_000}


@pytest.fixture
def files() -> Files:
    made = Files(MemoryDisk())
    made.make_folders()
    return made


def test_nobody_else_changes_the_settings_meanwhile(files: Files) -> None:
    held: list[bool] = []

    def change(text: str) -> str:
        held.append(files.lock(paths.CONFIG_LOCK) is None)
        return config_file.with_table(text, ("budget",), CAPS)

    config_file.rewrite(files, change)
    config_file.rewrite(
        files, lambda text: config_file.with_table(text, ("self_awake",), {"enabled": True})
    )
    assert held == [True]
    data = files.read(paths.CONFIG) or b""
    assert b"daily_tokens" in data
    assert b"self_awake" in data


def test_what_can_not_be_changed_is_left_and_free_again(files: Files) -> None:
    files.write(paths.CONFIG, b"what is no settings")
    with pytest.raises(BadSettings):
        config_file.rewrite(files, lambda text: config_file.with_table(text, ("budget",), CAPS))
    assert files.read(paths.CONFIG) == b"what is no settings"
    assert files.lock(paths.CONFIG_LOCK) is not None


def test_a_lock_that_is_kept_is_told(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_lock, "_PATIENCE_S", 0.01)
    assert files.lock(paths.CONFIG_LOCK) is not None
    with pytest.raises(StorageError, match=r"config\.lock: another writer keeps it; try again"):
        config_file.rewrite(files, lambda text: text)
