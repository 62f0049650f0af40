"""Answers that last: they end when the caller may no longer have them, or is gone."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from anyio import CancelScope
from starlette.requests import Request

from service.errors import ServiceError

CHECK_S: Final = 1.0
"""Time between two looks at the caller's rights.

Keys are read again after `service.api.guards.access.FRESH_S`: a stream outlives its key by the sum of both at most.
"""

CANCEL_S: Final = 0.1
"""Time between two tries to cancel the wait for an event."""

Event = TypeVar("Event")


class NothingFollows(Exception):
    """The caller has had the last event. It is answered 204, after which an EventSource comes back no more (HTML
    standard, 9.2.3)."""


async def while_allowed(
    events: AsyncIterator[Event], is_allowed: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[Event, None]:
    """The events as they come, until there are no more or `is_allowed` says no. None of them may be None."""
    check_at = time.monotonic() + CHECK_S
    upcoming = _next(events)
    try:
        while True:
            await asyncio.wait({upcoming}, timeout=max(0.0, check_at - time.monotonic()))
            if time.monotonic() >= check_at:
                if not await is_allowed():
                    return
                check_at = time.monotonic() + CHECK_S
            if upcoming.done():
                event = upcoming.result()
                if event is None:
                    return
                upcoming = _next(events)
                yield event
    finally:
        with CancelScope(shield=True):
            while not upcoming.done():  # the client of Redis may lose one that comes while it takes up a connection
                upcoming.cancel()
                await asyncio.wait({upcoming}, timeout=CANCEL_S)
            with suppress(asyncio.CancelledError, ServiceError):
                upcoming.result()
            if isinstance(events, AsyncGenerator):
                await events.aclose()


def has_left(request: Request) -> bool:
    """Whether the caller has closed a side of the connection: of a stream nobody can tell that from going away."""
    return bool((request.scope.get("extensions") or {}).get("headrace", {}).get("has_left"))


def _next(events: AsyncIterator[Event]) -> asyncio.Future[Event | None]:
    return asyncio.ensure_future(anext(events, None))
