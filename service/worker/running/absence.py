"""What a worker's log says of a Redis that is away: once that it is, and once that it is back."""

import time
from typing import Final

import structlog

WORTH_TELLING_S: Final = 1.0
"""A shorter absence, such as after a cut connection, is not logged."""

log = structlog.get_logger(__name__)


class Absence:
    """Told of each try by one thread; a try that succeeds may take a second."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._since: float | None = None
        self._is_told = False

    def goes_on(self, error: Exception) -> None:
        """A try has failed."""
        if self._since is None:
            self._since = time.monotonic()
        elif not self._is_told and time.monotonic() - self._since >= WORTH_TELLING_S:
            log.warning("redis_away", worker=self._worker, error=str(error))
            self._is_told = True

    def is_over(self) -> None:
        """A try has succeeded."""
        if self._since is None:
            return
        if self._is_told:
            log.info("redis_back", worker=self._worker, away_s=round(time.monotonic() - self._since))
        self._since, self._is_told = None, False
