"""Many who follow one feed of a real Redis: each hears all, in order and once, and Redis is asked once for all."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from itertools import pairwise
from typing import Any, TypeAlias

import pytest
import redis

from service.settings import Settings
from service.store.connection import connect_async, connect_listeners
from service.store.durable import AsyncWritten
from service.store.feed.following import PAGE
from service.store.feed.reading import FeedReader
from service.store.feed.record import RESET, version_event
from service.store.keys import Keys
from service.store.watched import Read

MANY = 40
PATIENCE_S = 60


class House:
    """A feed, and who writes and reads it."""

    def __init__(self, settings: Settings) -> None:
        self.client: Any = connect_async(settings)
        self.listeners: Any = connect_listeners(settings)
        keys = Keys(settings.redis_prefix)
        self.feed = keys.feed("g")
        self.reader = FeedReader(self.client, self.listeners, keys)
        self.written = 0

    async def write(self, count: int = 1) -> None:
        async with self.client.pipeline() as pipe:
            for _ in range(count):
                self.written += 1
                pipe.xadd(self.feed, version_event("g", "0123456789abcdef", self.written).fields)
            await pipe.execute()

    async def hear(self, heard: list[int], upto: int, after: str = "0-0", pause_s: float = 0) -> None:
        """Follow up to an event, by their numbers; 0 stands for a reset."""
        events: Any = self.reader.follow("g", after)
        async with aclosing(events):
            async for event in events:
                heard.append(0 if event.type == RESET else int(event.id.split("-")[1]))
                if heard[-1] == upto:
                    return
                await asyncio.sleep(pause_s)

    @property
    def waiting(self) -> int:
        """Connections that wait for events."""
        return len(self.listeners.connection_pool._in_use_connections)


Work: TypeAlias = Callable[[House], Awaitable[None]]


@pytest.fixture
def run(settings: Settings) -> Callable[[Work], None]:
    def run(work: Work) -> None:
        async def whole() -> None:
            house = House(settings)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await work(house)
            finally:
                await house.client.aclose()
                await house.listeners.aclose()

        asyncio.run(whole())

    return run


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_many_who_follow_a_graph_wait_for_redis_once(run: Callable[[Work], None]) -> None:
    async def work(house: House) -> None:
        heard: list[list[int]] = [[] for _ in range(MANY)]
        following = [asyncio.create_task(house.hear(numbers, 3)) for numbers in heard]
        await house.write()
        await until(lambda: all(heard) and house.waiting > 0)
        assert house.waiting == 1
        await house.write(2)
        await asyncio.gather(*following)
        assert heard == MANY * [[1, 2, 3]]
        await until(lambda: house.waiting == 0)
        assert {task.get_name() for task in asyncio.all_tasks()}.isdisjoint({"feed"})

    run(work)


def test_each_hears_all_that_is_behind_its_place_once(run: Callable[[Work], None]) -> None:
    """They come and go all the while, and some take their time: who is behind reads on from where he is."""
    random_ = random.Random(20)

    async def work(house: House) -> None:
        await house.write(3 * PAGE)
        last = 5 * PAGE
        kept = [entry.decode() for entry, _ in await house.client.xrange(house.feed)]
        heard: list[tuple[int, int, list[int]]] = []

        async def come() -> None:
            await asyncio.sleep(random_.uniform(0, 1))
            start = random_.choice([0, 1, PAGE, 2 * PAGE - 1, 3 * PAGE])
            upto = random_.choice([last, last, random_.randint(start + 1, last)])
            numbers: list[int] = []
            heard.append((start, upto, numbers))
            after = kept[start - 1] if start else "0-0"
            await house.hear(numbers, upto, after, random_.choice([0, 0, 0, 0.003]))

        coming = [asyncio.create_task(come()) for _ in range(MANY)]
        while house.written < last:
            await house.write(min(random_.choice([1, 1, 7, PAGE + 3]), last - house.written))
            await asyncio.sleep(0.01)
        await asyncio.gather(*coming)
        for start, upto, numbers in heard:
            assert numbers == list(range(start + 1, upto + 1))

    run(work)


def test_nobody_is_told_of_what_redis_may_still_lose(
    run: Callable[[Work], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another event could come in its place: neither who follows is told, nor a receiver of webhooks."""
    written, ask = asyncio.Event(), AsyncWritten._ask

    async def told(self: AsyncWritten, *reads: Read) -> list[Any]:
        *answers, info, known = await ask(self, *reads)
        return [*answers, dict(info) | {"aof_buffer_length": int(not written.is_set())}, known]

    async def work(house: House) -> None:
        heard: list[int] = []
        first = asyncio.create_task(house.hear(heard, 2))
        await asyncio.sleep(0.1)
        written.set()
        await house.write()
        while not heard:
            await asyncio.sleep(0.01)
        written.clear()
        await house.write()
        late = asyncio.create_task(house.hear([], 2)), asyncio.create_task(house.reader.after("g", "0-0"))
        done, _ = await asyncio.wait([first, *late], timeout=0.3)
        assert not done
        written.set()
        await asyncio.gather(first, *late)
        assert heard == [1, 2]

    monkeypatch.setattr(AsyncWritten, "_ask", told)
    run(work)


def test_a_slow_reader_holds_nobody_up_and_hears_of_what_is_gone(run: Callable[[Work], None]) -> None:
    async def work(house: House) -> None:
        await house.write()
        slow: Any = house.reader.follow("g", "0-0")
        assert (await anext(slow)).id.endswith("-1-version")
        heard: list[int] = []
        fast = asyncio.create_task(house.hear(heard, 1 + 3 * PAGE))
        for _ in range(3):
            await house.write(PAGE)
            await until(lambda: heard[-1:] == [house.written])
        await fast
        assert heard == list(range(1, 1 + 3 * PAGE + 1))
        await house.client.xtrim(house.feed, maxlen=PAGE + 5, approximate=False)
        assert (await anext(slow)).type == RESET
        rest = [int((await anext(slow)).id.split("-")[1]) for _ in range(PAGE)]
        assert all(after == before + 1 for before, after in pairwise(rest))
        await slow.aclose()

    run(work)


def test_a_feed_that_was_begun_anew_ends_the_streams(run: Callable[[Work], None]) -> None:
    """Its entries are numbered by the clock, which was set back: whoever waited on would hear nothing for an hour."""

    async def work(house: House) -> None:
        await house.client.xadd(house.feed, version_event("g", "0123456789abcdef", 1).fields, id="99999999999999-0")
        heard: list[list[int]] = [[], []]
        following = [asyncio.create_task(house.hear(numbers, 2)) for numbers in heard]
        await until(lambda: all(heard))
        await house.client.delete(house.feed)
        house.written = 1
        await house.write()
        ends = await asyncio.gather(*following, return_exceptions=True)
        assert [type(end) for end in ends] == [redis.ConnectionError] * 2
        again: list[int] = []
        await house.hear(again, 2, (await house.reader.place("g", "01234567-1-version")).after)
        assert again == [2]

    run(work)


def test_what_redis_refuses_ends_all_streams_and_none_that_begins_later(run: Callable[[Work], None]) -> None:
    async def work(house: House) -> None:
        await house.write()
        heard: list[list[int]] = [[] for _ in range(MANY)]
        following = [asyncio.create_task(house.hear(numbers, 3)) for numbers in heard]
        await until(lambda: all(heard) and house.waiting > 0)
        await house.client.set(house.feed, "no feed")
        ends = await asyncio.gather(*following, return_exceptions=True)
        assert all(isinstance(end, redis.ResponseError) for end in ends)
        await house.client.delete(house.feed)
        house.written = 0
        await house.write()
        again: list[int] = []
        await house.hear(again, 1)
        assert again == [1]

    run(work)
