"""How a call of a webhook proves who sent it: a token, or a signature of its body. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from mimikit.hook_settings import HookSettings

SIGNATURE, GITHUB_SIGNATURE = "X-Mimikit-Signature", "X-Hub-Signature-256"
SENT_ID, GITHUB_SENT_ID = "X-Mimikit-Delivery", "X-GitHub-Delivery"
READ = (SIGNATURE, GITHUB_SIGNATURE, SENT_ID, GITHUB_SENT_ID, "Authorization")
"""The headers that are looked at."""
FRESH = timedelta(minutes=5)
"""So far the time that is signed may be from ours."""
LEAST_SECRET = 16
"""Characters; with fewer nobody is let in."""
_SIGNED = re.compile(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})")
_GITHUB = re.compile(r"sha256=([0-9a-f]{64})")
_SENT = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True, slots=True)
class WebhookProof:
    """What a call proves itself by."""

    sent_id: str | None = None
    signature: str | None = None


def proved(
    hook: HookSettings, secret: str, headers: Mapping[str, str], body: bytes, now: datetime
) -> WebhookProof | None:
    """Whether a call has the secret of a webhook; None: it has not. Pure.

    Compared in constant time, and over the bytes as they came.
    """
    key = secret.encode()
    # Both are made of every call, whatever counts here: its time tells nobody what there is.
    found = _SIGNED.fullmatch(headers.get(SIGNATURE, "").replace(" ", "").lower())
    dated = (found[1].encode() if found else b"0") + b"." + body
    whole_due, dated_due = (hmac.new(key, it, "sha256").hexdigest() for it in (body, dated))
    sent = headers.get(GITHUB_SENT_ID if hook.signature == "github" else SENT_ID, "")
    sent_id = sent if _SENT.fullmatch(sent) else None
    if hook.kind == "token":
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        digests = [hashlib.sha256(it).digest() for it in (given.strip().encode(), key)]
        is_right = hmac.compare_digest(*digests) and scheme.lower() == "bearer"
        return WebhookProof(sent_id) if is_right else None
    if hook.signature == "github":
        github = _GITHUB.fullmatch(headers.get(GITHUB_SIGNATURE, "").strip().lower())
        due, given, is_fresh = whole_due, github[1] if github else "", github is not None
    else:
        due, given = dated_due, found[2] if found else ""
        age_s = abs(now.timestamp() - int(found[1])) if found else FRESH.total_seconds() + 1
        is_fresh = age_s <= FRESH.total_seconds()
    if not hmac.compare_digest(due, given) or not is_fresh:
        return None
    return WebhookProof(sent_id, due)


def proof_headers(hook: HookSettings, secret: str, body: bytes, now: datetime) -> dict[str, str]:
    """The headers by which a call proves itself."""
    key = secret.encode()
    if hook.kind == "token":
        return {"Authorization": f"Bearer {secret}"}
    if hook.signature == "github":
        return {GITHUB_SIGNATURE: f"sha256={hmac.new(key, body, 'sha256').hexdigest()}"}
    at = int(now.timestamp())
    due = hmac.new(key, b"%d." % at + body, "sha256").hexdigest()
    return {SIGNATURE: f"t={at},v1={due}"}
