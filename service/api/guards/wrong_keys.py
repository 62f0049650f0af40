"""How many wrong API keys may be typed into the log-in page of one API process."""

import math
import time
from typing import Final

from service.errors import ServiceError

PER_S: Final = 1.0
"""Wrong keys a second that are answered as such."""

AT_ONCE: Final = 20
"""As many more as may come in a moment."""


class WrongKeys:
    """Counts them. A key that is right is let in at any time, so nobody can shut others out by typing wrong ones."""

    def __init__(self) -> None:
        self._next_at = 0.0

    def count(self) -> None:
        """One more was typed. Raises rate_limited if there were too many lately."""
        now = time.monotonic()
        due_at = max(self._next_at, now - AT_ONCE / PER_S) + 1 / PER_S
        if due_at > now:
            wait_s = max(1, math.ceil(due_at - now))
            raise ServiceError("rate_limited", "too many wrong keys were typed here", retry_after_s=wait_s)
        self._next_at = due_at
