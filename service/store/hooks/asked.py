"""What an Idempotency-Key of a request about a webhook stands for. No worker has a part in it, so there is no job."""

import hashlib
from typing import Final, Self

from pydantic import BaseModel

KEPT_S: Final = 3600
"""How long a key stands for its request."""


class Asked(BaseModel):
    """A request under a key, which is written with what the request has changed."""

    key: str
    """SHA-256 of the key, and of the API key that came with it: another caller's is another one."""
    digest: str
    """SHA-256 of what was asked."""
    made: bool = False
    """Whether it made the webhook, whose secret its answer has."""
    answer: str | None = None
    """The JSON that was answered, where it cannot be read from the webhook."""

    @classmethod
    def of(cls, key: str, key_id: str | None, what: bytes) -> Self:
        said = f"{key_id or ''} {key}".encode()
        return cls(key=hashlib.sha256(said).hexdigest(), digest=hashlib.sha256(what).hexdigest())
