"""What a `config.toml` that was changed says, for who goes by it at once."""

from __future__ import annotations

from mimikit import config_file
from mimikit.config import Settings
from mimikit.errors import BadSettings, StorageError
from mimikit.protocol import paths
from mimikit.supervisor.store import Store


class SettingsWatch:
    """Looks whether the file has changed; one that is wrong is told of and changes nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mark: tuple[int, int] | None = self._look()

    def changed(self) -> Settings | None:
        """What it says now; None: as before, or nothing that can be used."""
        mark = self._look()
        if mark == self._mark:
            return None
        self._mark = mark
        try:
            return config_file.settings_of(self._store.files)
        except BadSettings as error:
            self._store.log.write("error", "settings_not_read", error=str(error))
        return None

    def _look(self) -> tuple[int, int] | None:
        try:
            stat = self._store.files.stat(paths.CONFIG)
        except StorageError:
            return None
        return (stat.mtime_ns, stat.size) if stat else None
