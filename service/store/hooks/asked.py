"""What an Idempotency-Key of a request about a webhook stands for. No worker has a part in it, so there is no job."""

import hashlib
from typing import Final, Self

from pydantic import BaseModel

from service.store.hooks.record import Webhook

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
    created_at: float | None = None
    """When the webhook was made that it was about: another one may have its id since, and a secret of its own."""
    answer: str | None = None
    """The JSON that was answered, where it cannot be read from the webhook."""

    @classmethod
    def of(cls, key: str, key_id: str | None, what: bytes) -> Self:
        said = f"{key_id or ''} {key}".encode()
        return cls(key=hashlib.sha256(said).hexdigest(), digest=hashlib.sha256(what).hexdigest())

    def is_about(self, hook: Webhook) -> bool:
        """Whether this webhook is the one that it was about; an earlier release did not say which that was."""
        return self.created_at in (None, hook.created_at)
