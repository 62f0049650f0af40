"""A request that is given up leaves its connection closed, or free for the next one."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


async def given_up_whole(request: Coroutine[Any, Any, T]) -> T:
    """What the request comes to; where the caller is cancelled, it ends in a scope of anyio first.

    httpcore shields from such scopes alone the steps in which it takes a connection and gives it back. A task that is
    cancelled in one of them leaves a connection that is neither free nor closed, of which a client has a hundred.
    """
    scope = anyio.CancelScope()

    async def scoped() -> T:
        with scope:
            return await request
        raise asyncio.CancelledError

    task = asyncio.create_task(scoped())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        scope.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # nobody waits for it any more, and Python would say so
        raise
