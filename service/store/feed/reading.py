"""The reading side of the change feed, for API processes."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import redis.asyncio

from service.protocol import WatchArgs
from service.store.durable import AsyncWritten
from service.store.feed.following import BEFORE_ALL, PAGE, Tails, settled_entries
from service.store.feed.record import Event, Seen, read_watches, reset_event
from service.store.keys import Keys
from service.store.unreadable import readable

PAGES_AT_ONCE: Final = 4
"""How many older pages are read at a time for readers who come back, so that other requests have turns in between."""

OLDEST: Final = "0"
"""The event id by which a reader asks for all events that are kept."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The place in a feed where a reader goes on."""

    after: str
    """The entry of the stream behind which the reader goes on."""
    event_id: str = OLDEST
    """The id of the event in that entry."""
    reset: bool = False
    """Whether the reader may have missed events, because the event that it had last is not kept any more."""


@dataclass(frozen=True, slots=True)
class WatchSeen:
    """A watch, and what it was told last."""

    args: WatchArgs
    at: str | None
    """``9f3c02aa-7``."""
    seen: Seen | None


class FeedReader:
    """Reads feeds by the name of their graph. Raises RedisError."""

    def __init__(self, client: redis.asyncio.Redis, listeners: redis.asyncio.Redis, keys: Keys) -> None:
        """`listeners`: for reads that block."""
        self._redis: Any = client
        self._keys = keys
        self._written = AsyncWritten(client, keys)
        self._tails = Tails(client, listeners, self._written)
        self._older = asyncio.Semaphore(PAGES_AT_ONCE)

    async def exists(self, name: str) -> bool:
        """Whether there are events of this name, of a graph that may be gone."""
        return bool(await self._redis.exists(self._keys.feed(name)))

    async def watches(self, name: str) -> list[WatchSeen]:
        """All watches of a graph, by name."""
        async with self._redis.pipeline() as pipe:
            pipe.hgetall(self._keys.watches(name))
            pipe.hgetall(self._keys.told(name))
            watches, told = await pipe.execute()
        found, at = read_watches(name, self._keys, watches, told)
        return [WatchSeen(args, at, seen) for args, seen in found.values()]

    async def place(self, name: str, last: str | None) -> Placed:
        """Where a reader goes on that had the event `last`; None: with what comes from now on.

        Looked for from the newest event backwards: who comes back has mostly missed little.
        """
        feed = self._keys.feed(name)
        if last == OLDEST:
            return Placed(BEFORE_ALL)
        page = await self._page(feed, "+")
        if page and last is None:
            return Placed(page[0][0].decode(), _id_of(page[0][1]))
        while page and last is not None:
            for entry, fields in page:
                if _id_of(fields) == last:
                    return Placed(entry.decode(), last)
            async with self._older:  # whoever names an event that never was reads all that is kept
                page = await self._page(feed, f"({page[-1][0].decode()}")
        return Placed(BEFORE_ALL, reset=last is not None)

    async def _page(self, feed: str, upto: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Entries from this one on, the newest first."""
        page: list[tuple[bytes, dict[bytes, bytes]]] = await self._redis.xrevrange(feed, upto, "-", PAGE)
        return page

    async def after(self, name: str, entry: str, count: int = PAGE) -> list[tuple[str, Event]]:
        """The events behind an entry, as far as they are there and stay. One round trip."""
        feed = self._keys.feed(name)
        page = await settled_entries(self._written, feed, entry, count)
        return list(readable(page, feed, lambda found, fields: (found, Event.of_fields(fields))))

    async def with_news(self, entries: Mapping[str, str]) -> list[str]:
        """The names of feeds that have events behind these entries of theirs. One round trip."""
        if not entries:
            return []
        streams = {self._keys.feed(name): entry for name, entry in entries.items()}
        found = {stream.decode() for stream, _ in await self._redis.xread(streams, count=1)}
        return [name for name in entries if self._keys.feed(name) in found]

    async def has(self, name: str, entry: str) -> bool:
        """Whether this entry is still kept."""
        return bool(await self._redis.xrange(self._keys.feed(name), entry, entry, 1))

    async def follow(self, name: str, entry: str) -> AsyncIterator[Event]:
        """The events behind an entry, without end. A `reset` says that the reader was so slow that some are gone."""
        async with aclosing(self._tails.follow(self._keys.feed(name), entry)) as events:
            async for event in events:
                yield reset_event(name) if event is None else event


def _id_of(fields: dict[bytes, bytes]) -> str:
    return fields.get(b"id", b"").decode(errors="replace")
