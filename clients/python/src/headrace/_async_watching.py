"""What a graph's asynchronous handle has for the change feed."""

import asyncio
import math
from contextlib import AsyncExitStack
from typing import Self, Unpack

import httpx

from headrace import _feed as feed
from headrace._async_caller import AsyncCaller
from headrace._async_handle import AsyncHandle
from headrace._async_stream import AsyncStream
from headrace._calls import Terminals
from headrace._connecting import translated
from headrace._errors import ConnectionFailed, RateLimited, TransportError, WorkerUnavailable
from headrace._exchange import Deadline, Tries
from headrace._sse import EventReader


class AsyncFollower:
    """Where a reader of a feed is, through any number of connections."""

    def __init__(self, caller: AsyncCaller, path: str, after: str | int | None) -> None:
        self._caller = caller
        self._path = path
        self.last_id = feed.event_id(after)
        self.is_over = False
        self.response: httpx.Response | None = None
        self._stack = AsyncExitStack()
        self._tries = Tries(caller.retries)
        """Since the last connection that lasted."""

    async def open(self) -> None:
        self._reader, self._blocks = EventReader(self.last_id), 0
        headers = {"Accept": "text/event-stream"} | ({} if self.last_id is None else {"Last-Event-ID": self.last_id})
        response = await self._stack.enter_async_context(
            self._caller.streamed(self._path, Deadline.after(None), headers)
        )
        self._lines, self.response = response.aiter_lines(), response

    async def read(self) -> feed.Event | None:
        while not self.is_over:
            try:
                if self.response is not None:
                    return await self._next()
                await self.open()
            except (TransportError, RateLimited, WorkerUnavailable) as error:
                await self.end()
                if self.is_over:
                    break
                pause_s = self._tries.pause_s(error)
                if pause_s is None or self._tries.failures > (self._caller.retries.retry.attempts or math.inf):
                    self._tries = Tries(self._caller.retries)
                    raise
                await asyncio.sleep(pause_s)
        return None

    async def end(self) -> None:
        self.response = None
        await self._stack.aclose()

    async def _next(self) -> feed.Event:
        with translated():
            async for line in self._lines:
                event = self._reader.feed(line)
                if not line:  # the event is whole: what is cut off before that comes again
                    self.last_id = self._reader.last_id
                    self._blocks += 1
                if event is not None or self._blocks > 1:  # the first says where it begins; a comment comes after 15 s
                    self._tries = Tries(self._caller.retries)
                if event is not None:
                    return feed.Event.of(event)
        raise ConnectionFailed("the events broke off")


class AsyncEvents(AsyncStream[feed.Event]):
    """The events of a graph from a moment on, without end: an asynchronous iterator. It comes back by itself after a
    lost connection, and goes on where it was. Close it, or use it as a context manager: then it ends, for who waits in
    it as well."""

    def __init__(self, follower: AsyncFollower) -> None:
        super().__init__(follower)
        self._follower = follower

    @classmethod
    async def opened(cls, caller: AsyncCaller, path: str, after: str | int | None) -> Self:
        follower = AsyncFollower(caller, path, after)
        await follower.open()
        return cls(follower)

    @property
    def last_id(self) -> str | None:
        """Where another reader would go on."""
        return self._follower.last_id


class AsyncWatching(AsyncHandle):
    """Watches and events of a graph."""

    async def watch(
        self,
        name: str,
        source: Terminals | None = None,
        sink: Terminals | None = None,
        *,
        timeout_s: float | None = None,
        **options: Unpack[feed.WatchOptions],
    ) -> feed.Watch:
        """Have this flow solved at each version, and told of in `events` when its value or its cut changes.

        Terminals default to the graph's own. A watch of this name is replaced. It outlives restarts, and loads of the
        graph's name. Raises `TooLarge` beyond 16 a graph.
        """
        return await self._caller.command(feed.watch(self.name, name, source, sink, options), timeout_s)

    async def unwatch(self, name: str, timeout_s: float | None = None) -> None:
        """End a watch. Raises `UnknownWatch`."""
        await self._caller.command(feed.unwatch(self.name, name), timeout_s)

    async def watches(self) -> tuple[feed.Watch, ...]:
        """The watches of the graph, by name."""
        return await self._caller.ask(feed.watches(self.name))

    async def events(self, after: str | int | None = None) -> AsyncEvents:
        """What happens to the graph from now on, or after the event of this id; "0": all that is kept.

        The connection is open when this returns, so nothing that is changed afterwards is missed. Each event comes at
        least once, in the order of the versions. An event `reset` says that some before it are not kept any more.
        """
        return await AsyncEvents.opened(self._caller, feed.events_path(self.name), after)
