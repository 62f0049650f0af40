"""How many wrong API keys may be typed into the log-in page of one API process."""

import math
import time
from typing import Final

from service.errors import ServiceError

PER_S: Final = 1.0
"""How many wrong keys a second are answered as wrong; more are answered with rate_limited."""

AT_ONCE: Final = 20
"""How many wrong keys may come at once before that rate counts."""


class WrongKeys:
    """Counts wrong keys. A right key is accepted at any time, so that nobody can lock others out with wrong ones."""

    def __init__(self) -> None:
        self._next_at = 0.0

    def count(self) -> None:
        """Count a wrong key. Raises rate_limited if there were too many lately."""
        now = time.monotonic()
        due_at = max(self._next_at, now - AT_ONCE / PER_S) + 1 / PER_S
        if due_at > now:
            wait_s = max(1, math.ceil(due_at - now))
            raise ServiceError("rate_limited", "too many wrong keys were typed here", retry_after_s=wait_s)
        self._next_at = due_at
