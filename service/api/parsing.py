"""Where a body is parsed: the event loop must turn meanwhile.

Arrow and NumPy let other threads run while they read. The JSON parser does not: it holds the interpreter from the first
byte to the last, for some tenths of a second each 10 MB. So long JSON is parsed in another process.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, ParamSpec, TypeVar

import anyio.to_process
import anyio.to_thread
from anyio import CapacityLimiter

from service.api.bodies import INLINE_BYTES
from service.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

JSON: Final = "application/json"
THREAD_BYTES: Final = 2 << 20
"""Longer JSON goes to another process, which takes a second to start and stays for five minutes."""


class Parsers:
    """One for each event loop."""

    def __init__(self) -> None:
        self._one_at_a_time = CapacityLimiter(1)

    async def run(self, media_type: str, body: bytearray, read: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
        """``read(*args)``, here if the body is short, else `apart`."""
        if len(body) <= INLINE_BYTES:
            return read(*args, **kw)
        return await self.apart(media_type, body, read, *args, **kw)

    async def apart(self, media_type: str, body: bytearray, read: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
        """``read(*args)`` in a thread or a process; `body` is among the arguments. Raises what `read` does."""
        call = partial(read, *args, **kw)
        if media_type == JSON and len(body) > THREAD_BYTES:
            return await anyio.to_process.run_sync(call, limiter=self._one_at_a_time)
        return await anyio.to_thread.run_sync(call)


def limit_of(media_type: str, settings: Settings) -> int:
    """Bytes a body of this kind may have."""
    return min(settings.max_body_bytes, settings.max_json_bytes) if media_type == JSON else settings.max_body_bytes
