"""That an API process is about to end. What would last is told, so that it is over before it is cut off."""

from collections.abc import Callable
from typing import Final

GRACE_S: Final = 10
"""How long open requests may finish after SIGTERM."""

HURRY_S: Final = 5.0
"""After so long who waits for a command is answered that it goes on as a job, which any API process tells of."""


class Ending:
    """Told once, by the server of the process."""

    def __init__(self) -> None:
        self._is_near = False
        self._told: list[Callable[[], None]] = []

    @property
    def is_near(self) -> bool:
        """Whether the process ends within seconds: a stream of events ends now, and its reader finds another one."""
        return self._is_near

    def tell(self, what: Callable[[], None]) -> None:
        """Call `what` once it is near."""
        self._told.append(what)

    def begin(self) -> None:
        """The process is about to end: tell all who asked to hear of it."""
        self._is_near = True
        for what in self._told:
            what()
