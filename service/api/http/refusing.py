"""What the log gets of bytes that are no HTTP: anybody can send them, thousands of times a second."""

import logging
import time
from typing import Final

import structlog

TOLD_EVERY_S: Final = 1.0
"""The least time between two lines of the log."""


class Refusals:
    """Writes a line for a refusal, and counts those behind it until the next line."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._told_at = float("-inf")
        self._untold = 0

    def tell(self, why: str, request_id: str | None = None) -> None:
        """Log this refusal, under the id that its answer has, or count it for the next line."""
        now = time.monotonic()
        if now - self._told_at < TOLD_EVERY_S:
            self._untold += 1
            return
        others = f" ({self._untold} more since the line before)" if self._untold else ""
        with structlog.contextvars.bound_contextvars(**({} if request_id is None else {"request_id": request_id})):
            self._logger.warning("refused: %s%s", why, others)
        self._told_at, self._untold = now, 0
