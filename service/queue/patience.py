"""How long an API process waits for commands on behalf of its callers: as long as each wants, until it is to end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Patience:
    """The time limits of all waits in one event loop."""

    def __init__(self) -> None:
        self._waits: set[asyncio.Timeout] = set()
        self._over_at: float | None = None
        """When all waits are over, on the clock of the loop; None: the process goes on."""

    @asynccontextmanager
    async def waits(self, timeout_s: float) -> AsyncIterator[None]:
        """A context as that of `asyncio.timeout`, which may end sooner: raises TimeoutError."""
        over_at = asyncio.get_running_loop().time() + timeout_s
        async with asyncio.timeout_at(over_at if self._over_at is None else min(over_at, self._over_at)) as timeout:
            self._waits.add(timeout)
            try:
                yield
            finally:
                self._waits.discard(timeout)

    def hurry(self, within_s: float) -> None:
        """No wait lasts longer than this from now on; one that begins later does not either."""
        self._over_at = over_at = asyncio.get_running_loop().time() + within_s
        for timeout in self._waits:
            when = timeout.when()
            if not timeout.expired() and (when is None or when > over_at):
                timeout.reschedule(over_at)
