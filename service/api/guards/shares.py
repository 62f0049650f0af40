"""What one API key may have of what a process has for all callers, and the bytes of commands that are shared so."""

import math
import random
from collections import Counter
from typing import Final

from service.errors import ServiceError

KEY_SHARE: Final = 2
"""One API key may have one part in this many of the open requests, of the event streams, and of `QUEUED_BYTES`."""

LONGEST_RETRY_S: Final = 10.0

QUEUED_BYTES: Final = 256 << 20
"""Bytes of long commands, unfinished, that one API process lets in: Redis holds them, and so does the worker, where a
scenario takes some ten times of what it takes in Redis. One alone may be longer."""


def share_of_key(limit: int) -> int:
    """How many of what a process has for all callers one API key may have: the others are to get in."""
    return max(1, limit // KEY_SHARE)


def too_much(detail: str, retry_after_s: float = 1.0) -> ServiceError:
    """A refusal that says when to come back: later for some than for others, so that they do not come all at once."""
    least = math.ceil(min(max(1.0, retry_after_s), LONGEST_RETRY_S))
    return ServiceError("rate_limited", detail, retry_after_s=random.randint(least, 2 * least))


class QueuedBytes:
    """Counts the bytes of long commands that are unfinished. One event loop uses it, so there are no locks."""

    def __init__(self, limit_bytes: int = QUEUED_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._of_key: Counter[str | None] = Counter()

    def refusal(self, key_id: str | None, n_bytes: int) -> ServiceError | None:
        """Why there is no room for so many more, rate_limited; None if there is, as for what is not long."""
        if not n_bytes:
            return None
        if self._used_bytes and self._used_bytes + n_bytes > self._limit_bytes:
            return too_much(f"unfinished commands have {self._used_bytes} bytes, and this one has {n_bytes}")
        of_key = 0 if key_id is None else self._of_key[key_id]
        if of_key and of_key + n_bytes > share_of_key(self._limit_bytes):
            return too_much(f"unfinished commands of this API key have {of_key} bytes, and this one has {n_bytes}")
        return None

    def count(self, key_id: str | None, n_bytes: int) -> None:
        """Take note of so many more, or less."""
        self._used_bytes += n_bytes
        self._of_key[key_id] += n_bytes
        if not self._of_key[key_id]:
            del self._of_key[key_id]
