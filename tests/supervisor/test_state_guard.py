"""Which folders may change under a consumer, and when it has to end."""

from __future__ import annotations

import pytest

from mimikit.protocol import paths
from mimikit.supervisor.state_guard import (
    HELD_IN_MEMORY,
    LOOK_EVERY_S,
    READ_EACH_TIME,
    StateGuard,
    why_to_end,
)
from tests.crash.driver import Client
from tests.support.product import START


@pytest.mark.parametrize("folder", paths.FOLDERS)
def test_what_a_change_of_each_folder_means(folder: str) -> None:
    before: dict[str, int | None] = {"inbox": 1, folder: 2}
    held = folder in HELD_IN_MEMORY
    assert why_to_end(before, before, {folder}) is None
    assert why_to_end(before, before | {folder: None}, set()) == (
        f"{folder}/ was removed" if held else None
    )
    kept = folder in READ_EACH_TIME
    expected = None if kept else f"{folder}/ was replaced"
    assert why_to_end(before, before | {folder: 3}, {folder}) == expected
    assert why_to_end(before | {folder: None}, before | {folder: 3}, {folder}) == expected
    made_again = f"{folder}/ was replaced" if held else None
    assert why_to_end(before, before | {folder: 3}, set()) == made_again


def test_the_two_lists_name_folders_of_the_protocol_and_share_none() -> None:
    assert set(paths.FOLDERS) >= HELD_IN_MEMORY | READ_EACH_TIME
    assert not HELD_IN_MEMORY & READ_EACH_TIME


def test_what_is_as_it_was_is_not_told(client: Client) -> None:
    for _ in range(3):
        client.product.clock.advance(LOOK_EVERY_S)
        client.product.tick()
    assert client.product.log.errors == []


def test_a_folder_held_in_memory_that_goes_ends_the_consumer_and_is_not_made_again(
    client: Client,
) -> None:
    ended = list[str]()
    guard = StateGuard(client.product.store, client.product._lock(), ended.append)
    client.files.fs.remove_dir(paths.TRIGGER_STATE)
    guard.step(START)
    assert ended == [f"{paths.TRIGGER_STATE}/ was removed"]
    assert guard.is_ending
    assert not client.files.exists(paths.TRIGGER_STATE)
