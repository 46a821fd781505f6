"""Notifications that arrive, or not, without a process: for products in one thread."""

from __future__ import annotations

from collections.abc import Callable

from mimikit.errors import StorageError
from mimikit.notifications.courier import SendReport
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.notifications import NotificationSend


class CourierInPlace:
    """Writes the mark and delivers, as a process does; `deliver` gives why it can not be."""

    def __init__(self, files: Files, ring: Callable[[], None]) -> None:
        self._files, self._ring = files, ring
        self._reports: list[SendReport] = []
        self.arrived: list[NotificationSend] = []
        self.silent = 0
        """So many of the next ones end without a word."""
        self.deliver: Callable[[NotificationSend], str | None] = self.take

    def take(self, send: NotificationSend) -> str | None:
        self.arrived.append(send)
        return None

    def post(self, send: NotificationSend, url: str) -> None:
        try:
            self._files.save(paths.notification_sending(send.id), send)
        except StorageError as error:
            self._reports.append(SendReport(send, str(error), is_marked=False))
        else:
            is_known, self.silent = not self.silent, max(self.silent - 1, 0)
            error = self.deliver(send) if is_known else "without a word"
            self._reports.append(SendReport(send, error, is_known=is_known))
        self._ring()

    def reports(self) -> list[SendReport]:
        found, self._reports = self._reports, []
        return found

    def close(self, timeout_s: float) -> None:
        """Nothing is under way."""
