"""An in-memory workspace: files are names with a time and a size; watchers are notified."""

from __future__ import annotations

from collections.abc import Callable

from mimikit.triggers.patterns import Pattern, Seen


class Desk:
    """Fake of `FolderWorkspace` and `FileWatch` in one."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[int, int]] = {}
        self.changed: Callable[[set[str]], None] = lambda ids: None
        self.blind = False
        """Whether file events are lost, so that only polling finds changes."""
        self._watched: dict[str, tuple[Pattern, ...]] = {}

    def write(self, name: str, time: int, size: int = 1) -> None:
        self.files[name] = (time, size)
        self._tell(name)

    def remove(self, name: str) -> None:
        if self.files.pop(name, None):
            self._tell(name)

    def list_files(self, pattern: Pattern) -> Seen | None:
        return {name: list(entry) for name, entry in self.files.items() if _meant(pattern, name)}

    def exists(self, pattern: Pattern) -> bool:
        return any(_meant(pattern, name) for name in self.files)

    def is_inside(self, pattern: Pattern) -> bool:
        return not pattern.base.startswith("/")

    def set(self, trigger_id: str, patterns: tuple[Pattern, ...]) -> None:
        self._watched[trigger_id] = patterns

    def needs_polling(self, trigger_id: str) -> bool:
        return self.blind and bool(self._watched.get(trigger_id))

    def _tell(self, name: str) -> None:
        if not self.blind:
            concerned = {
                trigger_id
                for trigger_id, patterns in self._watched.items()
                if any(_meant(pattern, name) for pattern in patterns)
            }
            if concerned:
                self.changed(concerned)


def _meant(pattern: Pattern, name: str) -> bool:
    if pattern.is_plain:
        return name == pattern.base or name.startswith(pattern.base + "/")
    if pattern.base == ".":
        return pattern.matches(name)
    return name.startswith(pattern.base + "/") and pattern.matches(name[len(pattern.base) + 1 :])
