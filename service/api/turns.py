"""Work that waits for its turn of the event loop, so that much of it at once does not hold up what comes between."""

import asyncio
from collections import deque
from collections.abc import Callable


class Turns:
    """Lets one waiting task go on each time the event loop turns. If all of a hundred tasks went on at once, each other
    task would wait for all of them. It is used in one event loop, so it has no locks."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_called = False
        self._is_taken = False
        """Whether a task has gone on since the loop turned last."""

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` when its turn comes."""
        self._waiting.append(go_on)
        self._call()

    async def mine(self) -> None:
        """Return when the turn of this task comes: at once, if nobody else wants it."""
        if not (self._waiting or self._is_taken):
            self._take()
            return
        come = asyncio.get_running_loop().create_future()
        self.wait(lambda: None if come.done() else come.set_result(None))
        await come

    def _call(self) -> None:
        if self._waiting and not self._is_called:
            self._is_called = True
            asyncio.get_running_loop().call_soon(self._next)

    def _take(self) -> None:
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._free)

    def _free(self) -> None:
        self._is_taken = False

    def _next(self) -> None:
        self._is_called = False
        self._take()
        go_on = self._waiting.popleft()
        self._call()
        go_on()
