"""Waits for a reply, which end when nobody is there any more who could get it.

A client that waits for a second and asks again would have a place among the open requests for each of its tries, until
the longest wait that there may be is over.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from starlette.requests import Request

UNWATCHED_S: Final = 1.0
"""A wait that is over so soon costs nothing more."""

CANCEL_S: Final = 0.1
"""Time between two tries to cancel a wait."""

Found = TypeVar("Found")


async def while_there(
    request: Request, wait: Callable[[str, float], Awaitable[Found]], job_id: str, wait_s: float
) -> Found | None:
    """What `wait` finds for a job within `wait_s`; None also as soon as the caller has gone. The body has been read."""
    found = await wait(job_id, min(wait_s, UNWATCHED_S))
    if found is not None or wait_s <= UNWATCHED_S:
        return found
    waits = asyncio.ensure_future(wait(job_id, wait_s - UNWATCHED_S))
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({waits, gone}, return_when=asyncio.FIRST_COMPLETED)
        return waits.result() if waits.done() else None
    finally:
        await _end(waits)
        await _end(gone)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _end(task: asyncio.Future[Found] | asyncio.Future[None]) -> None:
    """Cancel the task, if it runs, until it is over: the client of Redis may lose a try while it connects."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_S)
