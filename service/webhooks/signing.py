"""Signatures as Standard Webhooks has them (https://www.standardwebhooks.com), version 1 of the symmetric kind."""

import base64
import hashlib
import hmac
from collections.abc import Sequence

from service.store.hooks.record import SECRET_PREFIX


def signature_headers(event_id: str, body: str, secrets: Sequence[str], now: float) -> dict[str, str]:
    """The three headers of one try. There is a signature by each of the secrets."""
    stamp = str(int(now))
    signed = f"{event_id}.{stamp}.{body}".encode()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
