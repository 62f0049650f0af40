"""Something that is to be done in a while, unless it is called off before."""

import asyncio
from collections.abc import Callable


class Timer:
    """Has the event loop make at most one call later."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_running(self) -> bool:
        return self._handle is not None

    def start(self, after_s: float, act: Callable[[], object]) -> None:
        """Have `act` called after so many seconds, in place of what was to be called until now."""
        self.stop()
        self._handle = self._loop.call_later(after_s, self._fire, act)

    def stop(self) -> None:
        """Call off what was to be called, if anything was."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self, act: Callable[[], object]) -> None:
        self._handle = None
        act()
