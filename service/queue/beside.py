"""Long arguments are copied and hashed outside of the event loop, which the 250 MB of a large update would stop for a
second."""

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

from service.protocol import Arguments
from service.protocol.message import Message

T = TypeVar("T")


async def beside(args: Arguments | None, act: Callable[[], T]) -> T:
    """What `act` makes of the arguments of a command; in a thread, where another process has written them, since they
    may be long. A caller who goes away waits for it, as the bytes are given back afterwards."""
    if args is None or isinstance(args, Message):
        return act()
    return await anyio.to_thread.run_sync(act)
