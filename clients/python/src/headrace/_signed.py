"""For receivers of webhooks: is this delivery from the service, and new?"""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence
from typing import Any

from headrace._amounts import loads
from headrace._errors import InvalidSignature
from headrace._feed import Event


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes | str,
    secret: str | Sequence[str],
    *,
    tolerance_s: float = 300.0,
    now: float | None = None,
) -> Event:
    """The event of a delivery, if it was signed with the secret, or one of several, and is not old.

    Args:
        headers: those of the request, in any case.
        body: the body of the request as it came, not parsed.
        secret: what `put_webhook` or `rotate_webhook` gave, ``whsec_...``.
        tolerance_s: how far the clocks may be apart, and how old a delivery may be.
        now: unix seconds; by default the clock's.

    Raises `InvalidSignature`. A delivery may come more than once: keep `Event.id` to tell.
    """
    found = {name.lower(): value for name, value in headers.items()}
    try:
        event_id, stamp, signatures = (found[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
    except KeyError as error:
        raise InvalidSignature(f"the header {error} is missing") from None
    if not stamp.isascii() or not stamp.isdecimal() or len(stamp) > 15:
        raise InvalidSignature("webhook-timestamp is no number of seconds")
    if abs(int(stamp) - (time.time() if now is None else now)) > tolerance_s:
        raise InvalidSignature("the delivery is too old, or the clocks are too far apart")
    raw = _bytes(body) if isinstance(body, str) else bytes(body)
    signed = _bytes(f"{event_id}.{stamp}.") + raw
    secrets = [secret] if isinstance(secret, str) else list(secret)
    wanted = [hmac.digest(_key(one), signed, hashlib.sha256) for one in secrets]
    given = [_decoded(one[3:]) for one in signatures.split(" ") if one.startswith("v1,")]
    if not any(hmac.compare_digest(ours, theirs) for ours in wanted for theirs in given):
        raise InvalidSignature("no signature is by this secret")
    said: Any = loads(raw.decode())
    return Event(event_id, said["type"], said["data"])


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair stands for a byte of a header that is no text
        raise InvalidSignature("a header or the body of the delivery is not valid text") from None


def _key(secret: str) -> bytes:
    key = _decoded(secret.removeprefix("whsec_"))
    if not key:
        raise InvalidSignature("the secret is not one of a webhook: whsec_ and base64")
    return key


def _decoded(text: str) -> bytes:
    """Empty for what is no base64, which equals no digest."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
