"""Streams that end with the rights of who listens."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Self

import pytest

from service.api.ending import Ending
from service.api.replies import streams
from service.api.replies.streams import while_allowed
from service.api.routes.feed import graph_events
from service.api.routes.jobs import job_events
from service.errors import ServiceError
from service.store.feed.reading import Placed


class Events:
    """Counts until it is told to stop; knows whether it was closed."""

    def __init__(self, pause_s: float, last: int, error: Exception | None = None) -> None:
        self.pause_s, self.last, self.error = pause_s, last, error
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[int]:
        try:
            for number in range(1, self.last + 1):
                await asyncio.sleep(self.pause_s)
                yield number
            if self.error is not None:
                raise self.error
        finally:
            self.is_closed = True


class Rights:
    def __init__(self, looks: int) -> None:
        self.looks = looks

    async def __call__(self) -> bool:
        self.looks -= 1
        return self.looks >= 0


async def heard(events: Events, rights: Rights) -> list[int]:
    return [number async for number in while_allowed(aiter(events), rights)]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CHECK_S", 0.05)


def test_all_is_heard_by_who_may() -> None:
    events = Events(0.001, 200)
    assert asyncio.run(heard(events, Rights(1000))) == list(range(1, 201))
    assert events.is_closed


@pytest.mark.parametrize("pause_s", [0.0001, 0.01, 60], ids=["at once", "steadily", "never"])
def test_nothing_is_heard_after_the_rights_have_ended(pause_s: float) -> None:
    events = Events(pause_s, 10**9)
    numbers = asyncio.run(asyncio.wait_for(heard(events, Rights(2)), 30))
    assert numbers == list(range(1, len(numbers) + 1))
    assert events.is_closed


def test_an_error_ends_it() -> None:
    events = Events(0.001, 2, ServiceError("worker_unavailable", "away"))
    with pytest.raises(ServiceError, match="away"):
        asyncio.run(heard(events, Rights(1000)))
    assert events.is_closed


def test_who_stops_listening_leaves_nothing_behind() -> None:
    events = Events(0.001, 10**9)

    async def first() -> int:
        stream = while_allowed(aiter(events), Rights(1000))
        try:
            return await anext(stream)
        finally:
            await stream.aclose()

    assert asyncio.run(first()) == 1
    assert events.is_closed


def test_a_wait_that_loses_its_cancel_is_ended_all_the_same() -> None:
    """Found with rows that came slowly: the client of Redis had lost it, and the reader's connection stayed."""
    ended: list[bool] = []

    async def deaf() -> AsyncIterator[int]:
        yield 1
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def first_of() -> int:
        async with aclosing(while_allowed(deaf(), Rights(1000))) as events:
            async for number in events:
                await asyncio.sleep(0.01)  # the next one is waited for
                return number
        raise AssertionError("there was none")

    assert asyncio.run(asyncio.wait_for(first_of(), 30)) == 1
    assert ended == [True]


@dataclass
class Told:
    """An event as any feed gives it."""

    id: str = "1-0"
    event: str = "version"
    type: str = "version"
    data: str = "{}"


@dataclass
class Followed:
    """A backend whose streams have events without end; knows whether they were closed."""

    is_closed: bool = False

    async def follow(self, *_: object) -> AsyncIterator[Told]:
        try:
            while True:
                await asyncio.sleep(0)
                yield Told()
        finally:
            self.is_closed = True

    events = follow

    @property
    def feed(self) -> Self:
        return self

    dispatcher = feed
    ending = Ending()


def of_graph(backend: Any) -> Any:
    return graph_events("g", NOBODY, backend, strings=False, placed=Placed("0-0"))


def of_job(backend: Any) -> Any:
    return job_events(NOBODY, NOBODY, backend, None)


NOBODY: Any = SimpleNamespace(id="job", graph="g")


@pytest.mark.parametrize("begin", [of_graph, of_job])
def test_who_goes_away_between_two_events_leaves_no_stream_to_the_garbage_collector(
    begin: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closed two streams of which one reads the other, both at once, and the log had an error for it."""
    monkeypatch.setattr(streams, "CHECK_S", 60.0)

    async def leave(backend: Followed) -> bool:
        heard = begin(backend)
        for _ in range(3):
            await anext(heard)
        await heard.aclose()
        return backend.is_closed

    assert asyncio.run(leave(Followed()))
