"""The end of an API process: work that would last is told beforehand, so that it ends by itself."""

from collections.abc import Callable
from typing import Final

GRACE_S: Final = 10
"""How long open requests may finish after SIGTERM."""

HURRY_S: Final = 5.0
"""A caller who still waits for a command after this time is told that it goes on as a job, which every API process can
show."""


class Ending:
    """Whether the process is about to end. The server of the process sets it, once."""

    def __init__(self) -> None:
        self._is_near = False
        self._told: list[Callable[[], None]] = []

    @property
    def is_near(self) -> bool:
        """Whether the process ends within seconds: a stream of events ends now, and its reader finds another one."""
        return self._is_near

    def tell(self, what: Callable[[], None]) -> None:
        """Call `what` once the end is near."""
        self._told.append(what)

    def begin(self) -> None:
        """The process is about to end: tell all who asked to hear of it."""
        self._is_near = True
        for what in self._told:
            what()
