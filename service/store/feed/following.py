"""All who follow one feed in a process share one reader of it, so that Redis is asked once for all of them.

The reader is a `Tail`: it waits for what comes and holds the newest page of it. Each follower has a place of its own
in the feed. Whoever is at the tail waits with it. Whoever is behind it, because he comes back or takes events slowly,
reads what he lacks for himself: so he holds nobody up, and the tail holds a page and no more.

Events are read together with a look at the server's buffer: one that Redis may still lose with its process is told to
nobody, as another one could then come in its place.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import redis
import redis.asyncio

from service.store.durable import AsyncWritten
from service.store.feed.record import Event
from service.store.jobs.events import in_order
from service.store.unreadable import readable

BLOCK_MS: Final = 2000
PAGE: Final = 100
"""How many events are read at a time."""

BEFORE_ALL: Final = "0-0"

CANCEL_S: Final = 0.1
"""Time between two tries to cancel a tail: the client of Redis may lose one while it takes up a connection."""

BEGUN_ANEW: Final = "the feed was begun anew, and what comes may be before what was read"

Entries: TypeAlias = list[tuple[bytes, dict[bytes, bytes]]]


@dataclass(frozen=True, slots=True)
class Page:
    """Events that follow one another in a feed."""

    after: str
    """The entry that they are behind."""
    upto: str
    """The last entry of them; `after` if there are none."""
    events: tuple[tuple[str, Event], ...] = ()
    gap_upto: str = BEFORE_ALL
    """Earlier events than this one are not kept any more. A reader who has read none from it on has missed some."""
    is_full: bool = False
    """Whether more events may follow this page."""

    @classmethod
    def of(cls, feed: str, after: str, entries: Entries, *, gap: bool = False) -> "Page":
        if not entries:
            return cls(after, after)
        events = readable(entries, feed, lambda entry, fields: (entry, Event.of_fields(fields)))
        first, last = entries[0][0].decode(), entries[-1][0].decode()
        return cls(after, last, tuple(events), first if gap else BEFORE_ALL, len(entries) == PAGE)

    def is_behind(self, entry: str) -> bool:
        """Whether all that comes after `entry` begins in this page or behind it."""
        return in_order(self.after) <= in_order(entry)

    def misses(self, entry: str) -> bool:
        """Whether events between `entry` and this page are gone."""
        return in_order(entry) < in_order(self.gap_upto)

    def behind(self, entry: str) -> Iterator[Event]:
        start = in_order(entry)
        return (event for at, event in self.events if in_order(at) > start)


class Tail:
    """The end of one feed. It lives as long as somebody follows it."""

    def __init__(
        self,
        client: redis.asyncio.Redis,
        listeners: redis.asyncio.Redis,
        written: AsyncWritten,
        feed: str,
        entry: str,
    ) -> None:
        self._redis: Any = client
        self._listeners: Any = listeners
        self._written = written
        self._feed = feed
        self.page = Page(entry, entry)
        self.followers = 0
        self._news = asyncio.Event()
        self._error: Exception | None = None
        self.task = asyncio.create_task(self._read(), name="feed")

    async def behind(self, entry: str) -> Page:
        """The latest page, as soon as it goes beyond this entry. Raises RedisError."""
        while in_order(self.page.upto) <= in_order(entry):
            if self._error is not None:
                raise self._error
            await self._news.wait()
        return self.page

    async def _read(self) -> None:
        try:
            while self.followers:
                answer = await self._listeners.xread({self._feed: self.page.upto}, count=1, block=BLOCK_MS)
                if answer:
                    await self._turn(await settled_entries(self._written, self._feed, self.page.upto))
                elif await self._is_anew():
                    raise redis.ConnectionError(BEGUN_ANEW)  # a reader who comes back learns where the feed goes on
                else:
                    self.page = Page(self.page.upto, self.page.upto)  # events that were passed on long ago are not held
        except Exception as error:
            self._error = error
            self._news.set()

    async def _turn(self, entries: Entries) -> None:
        """Pass on the events that have come, unless Redis has lost them since."""
        if not entries:
            return
        after = self.page.upto
        self.page = Page.of(self._feed, after, entries, gap=await is_gap(self._redis, self._feed, after, entries))
        self._news.set()
        self._news = asyncio.Event()

    async def _is_anew(self) -> bool:
        """Whether the newest entry is before what was read: the clock was set back, or Redis lost the feed."""
        newest = await self._redis.xrevrange(self._feed, count=1)
        return bool(newest) and in_order(newest[0][0].decode()) < in_order(self.page.upto)

    @property
    def is_over(self) -> bool:
        return self._error is not None


class Tails:
    """The tails of one process, by feed."""

    def __init__(self, client: redis.asyncio.Redis, listeners: redis.asyncio.Redis, written: AsyncWritten) -> None:
        """`listeners`: for reads that block."""
        self._redis: Any = client
        self._listeners = listeners
        self._written = written
        self._tails: dict[str, Tail] = {}
        self._one_by_one = asyncio.Lock()
        """Lets one follower go on each time the event loop turns, because hundreds at once would delay all other
        requests."""

    async def follow(self, feed: str, entry: str) -> AsyncGenerator[Event | None]:
        """The events behind an entry, without end. None says that some before the next one are not kept any more.
        Raises RedisError, and ConnectionError where a feed was begun anew."""
        tail: Tail | None = None
        try:
            while True:
                if tail is not None and tail.page.is_behind(entry):
                    page = await tail.behind(entry)
                    async with self._one_by_one:
                        await asyncio.sleep(0)
                    if not page.is_behind(entry):  # the tail has gone on by more than a page meanwhile
                        continue
                else:
                    page = await self._page(feed, entry)
                    if tail is None and not page.is_full:
                        tail = self._join(feed, page.upto)
                if page.misses(entry):
                    yield None
                for event in page.behind(entry):
                    yield event
                entry = page.upto
                del page  # while nothing comes it is held by nobody
        finally:
            if tail is not None:
                await self._leave(feed, tail)

    async def _page(self, feed: str, entry: str) -> Page:
        entries = await settled_entries(self._written, feed, entry)
        return Page.of(feed, entry, entries, gap=await is_gap(self._redis, feed, entry, entries))

    def _join(self, feed: str, entry: str) -> Tail:
        tail = self._tails.get(feed)
        if tail is None or tail.is_over:
            tail = self._tails[feed] = Tail(self._redis, self._listeners, self._written, feed, entry)
        tail.followers += 1
        return tail

    async def _leave(self, feed: str, tail: Tail) -> None:
        tail.followers -= 1
        if tail.followers:
            return
        if self._tails.get(feed) is tail:
            del self._tails[feed]
        while not tail.task.done():
            tail.task.cancel()
            await asyncio.wait({tail.task}, timeout=CANCEL_S)


async def settled_entries(written: AsyncWritten, feed: str, after: str, count: int = PAGE) -> Entries:
    """The entries behind one, that Redis cannot lose with its process any more. One round trip."""
    (entries,) = await written.settled(("XRANGE", feed, f"({after}", "+", "COUNT", str(count)))
    return list(entries)


async def is_gap(client: Any, feed: str, after: str, entries: Entries) -> bool:
    """Whether some events between `after` and these entries, which follow it, may be gone: so many at once are what a
    reader finds who was long away. One round trip then."""
    if len(entries) < PAGE or after == BEFORE_ALL:
        return False
    return not await client.xrange(feed, after, after, 1)
