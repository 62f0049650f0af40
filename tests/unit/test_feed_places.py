"""Where readers of the change feed go on that name an event of long ago, or one that never was."""

import asyncio
from typing import Any, cast

import redis.asyncio

from service.store.feed.reading import PAGE, PAGES_AT_ONCE, FeedReader, Placed
from service.store.keys import Keys

N_EVENTS = 30 * PAGE
READERS = 40


class Log:
    """A feed that is read in pages, each of which takes a turn of the event loop."""

    def __init__(self) -> None:
        self.older = self.most_older = 0

    async def xrevrange(self, _: str, upto: str, __: str, count: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        self.older += upto != "+"
        self.most_older = max(self.most_older, self.older)
        await asyncio.sleep(0)
        self.older -= upto != "+"
        newest = N_EVENTS if upto == "+" else int(upto.removeprefix("(").partition("-")[0]) - 1
        entries = range(newest, max(0, newest - count), -1)
        return [(f"{entry}-0".encode(), {b"id": f"9f3c02aa-{entry}-version".encode()}) for entry in entries]


def test_readers_who_name_an_event_that_never_was_take_turns() -> None:
    """They are answered as documented, and few pages are read at once for all of them together."""
    log = Log()

    async def place() -> list[Placed]:
        reader = reader_of(log)
        return await asyncio.gather(*(reader.place("g", f"deadbeef-{k}-version") for k in range(READERS)))

    assert asyncio.run(place()) == READERS * [Placed("0-0", reset=True)]
    assert log.most_older == PAGES_AT_ONCE


def test_an_event_is_found_wherever_it_lies() -> None:
    async def place(last: str | None) -> Placed:
        return await reader_of(Log()).place("g", last)

    for entry in (1, 2, PAGE, PAGE + 1, N_EVENTS - PAGE, N_EVENTS - PAGE + 1, N_EVENTS):
        event = f"9f3c02aa-{entry}-version"
        assert asyncio.run(place(event)) == Placed(f"{entry}-0", event)
    assert asyncio.run(place(None)) == Placed(f"{N_EVENTS}-0", f"9f3c02aa-{N_EVENTS}-version")
    assert asyncio.run(place("0")) == Placed("0-0")


def test_who_knows_the_newest_events_waits_for_nobody() -> None:
    async def place() -> tuple[Placed, bool]:
        reader = reader_of(Log())
        others = asyncio.gather(*(reader.place("g", "deadbeef-1-version") for _ in range(READERS)))
        await asyncio.sleep(0)
        placed = await reader.place("g", f"9f3c02aa-{N_EVENTS - 1}-version")
        is_first = not others.done()
        await others
        return placed, is_first

    assert asyncio.run(place()) == (Placed(f"{N_EVENTS - 1}-0", f"9f3c02aa-{N_EVENTS - 1}-version"), True)


def reader_of(log: Log) -> FeedReader:
    client = cast("redis.asyncio.Redis", log)
    unused: Any = None
    return FeedReader(client, unused, Keys("feed"))
