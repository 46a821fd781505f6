"""The door for webhooks: each call proves by itself who sent it.

No cookie and no origin count here, and no login: a program sends it, from anywhere that reaches us.
Whoever is not let in learns nothing: a webhook that does not exist is refused in the same words and
by the same work as a wrong secret.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from mimikit import config, config_file
from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.conversation import deliveries
from mimikit.conversation.deliveries import AcceptedDelivery, ReceivedCall
from mimikit.conversation.hook_proof import LEAST_SECRET, proved
from mimikit.errors import BadSettings, StorageError
from mimikit.hook_settings import HookSettings
from mimikit.log import EventLog
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import Files
from mimikit.web.guard import RateLimit, RequestDenied

DENIED = "there is no such webhook, or this is not its secret"
_FAILED_PER_MINUTE, _FAILED_OVERALL = 20, 240
_LOGGED = 30
_NOBODY = HookSettings(secret_file="none", kind="hmac")  # noqa: S106 - the name of no file


class WebhookGuard:
    """Lets calls of webhooks in. Safe between threads."""

    def __init__(self, files: Files, settings: Settings, clock: Clock, log: EventLog) -> None:
        self._files, self._settings = files, settings
        self._clock, self._log = clock, log
        self._hooks: dict[str, HookSettings] = dict(settings.hooks)
        self._stamp: FileStat | None = self._files.stat(paths.CONFIG)
        self._nobodys = secrets.token_hex(32)
        self._failures = RateLimit(clock, _FAILED_PER_MINUTE, _FAILED_OVERALL)
        self._told = RateLimit(clock, _LOGGED)
        self._lacking = RateLimit(clock, 1)
        self._all = RateLimit(clock, settings.web.hooks_per_minute)
        self._each: dict[str, tuple[int, RateLimit]] = {}

    @property
    def most_bytes(self) -> int:
        """So much is read of a body before it is known whose it is."""
        default = HookSettings.model_fields["max_bytes"].default
        return max([hook.max_bytes for hook in self._known().values()] + [default])

    def take(
        self, name: str, headers: Mapping[str, str], body: bytes, address: str
    ) -> AcceptedDelivery:
        """Let a call in and keep it; once this returns it is on disk.

        Raises:
            RequestDenied: the secret is wrong, the body too long, or they are too many.
            NoRoom: the files kept take all the room there is.
        """
        now = self._clock.now()
        hook = self._known().get(name)
        secret = self._secret(name, hook or _NOBODY)
        proof = proved(hook or _NOBODY, secret or self._nobodys, headers, body, now)
        if hook is None or secret is None or proof is None:
            raise self._refused(name, address)
        if len(body) > hook.max_bytes:
            raise too_large(hook.max_bytes)
        self._take_turn(name, hook)
        call = ReceivedCall(name, body, now, proof.sent_id, proof.signature)
        return deliveries.accept(self._files, call, hook, self._settings.files)

    def _known(self) -> Mapping[str, HookSettings]:
        """The webhooks as the settings have them now; broken ones change nothing."""
        try:
            stamp = self._files.stat(paths.CONFIG)
            if stamp != self._stamp:
                text = config_file.text_of(self._files)
                self._stamp = stamp
                self._hooks = dict(config.parsed(text, Path(paths.CONFIG)).hooks)
        except (BadSettings, StorageError) as error:
            self._log.write("error", "hooks_not_read", error=str(error))
        return self._hooks

    def _secret(self, name: str, hook: HookSettings) -> str | None:
        secret = config_file.secret_of(self._files, hook.secret_file)
        if len(secret) < LEAST_SECRET:
            if hook is not _NOBODY and self._lacking.take(name):
                self._log.write("error", "hook_without_secret", hook=name, file=hook.secret_file)
            return None
        return secret

    def _refused(self, name: str, address: str) -> RequestDenied:
        if self._told.take(""):
            self._log.write("audit", "hook_refused", hook=name[:40], address=address)
        wait = self._failures.wait_s(address)
        if wait > 0:
            said = f"too many calls with wrong secrets; try again in {int(wait) + 1} s"
            return RequestDenied(429, said, reason="too many failed logins", wait_s=wait)
        self._failures.note(address)
        return RequestDenied(401, DENIED, reason="hook denied")

    def _take_turn(self, name: str, hook: HookSettings) -> None:
        most, each = self._each.get(name, (0, self._all))
        if most != hook.per_minute:
            each = RateLimit(self._clock, hook.per_minute)
            self._each[name] = hook.per_minute, each
        wait = max(each.wait_s(name), self._all.wait_s(""))
        if wait > 0 or not each.take(name) or not self._all.take(""):
            said = f"too many deliveries in this minute; try again in {int(wait) + 1} s"
            raise RequestDenied(429, said, reason="too many deliveries", wait_s=max(wait, 1))


def too_large(most: int) -> RequestDenied:
    said = f"the body is too large; at most {most:,} bytes are taken"
    denied = RequestDenied(413, said, reason="delivery too large", field="body")
    denied.params = {"limit": most}
    return denied
