"""Head and body leave in one write, a head alone no later than the event loop turns, and nothing is lost or swapped."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from service.api.http.corked import HELD_BYTES, Corked


class Written:
    """A transport that remembers what it is given."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.writes.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


LONG = b"x" * (HELD_BYTES + 1)


def head_and_body(corked: Corked) -> None:
    corked.write(b"head")
    corked.write(b"body")


def head_and_long_body(corked: Corked) -> None:
    corked.write(b"head")
    corked.write(LONG)


def closed_behind_the_head(corked: Corked) -> None:
    corked.write(b"head")
    corked.close()
    corked.write(b"lost, as it is to a transport")


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (head_and_body, [b"headbody"]),
        (head_and_long_body, [b"head", LONG]),
        (closed_behind_the_head, [b"head"]),
        (lambda corked: corked.write(b"head"), []),
        (lambda corked: corked.write(b""), []),
    ],
)
def test_what_is_written_at_once(act: Callable[[Corked], Any], expected: list[bytes]) -> None:
    async def run() -> None:
        written, failed = Written(), list[object]()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failed.append(context))
        act(Corked(written, loop))  # type: ignore[arg-type]
        assert written.writes == expected
        await asyncio.sleep(0)
        assert failed == []

    asyncio.run(run())


def test_a_head_alone_leaves_when_the_loop_turns() -> None:
    async def run() -> None:
        written = Written()
        corked = Corked(written, asyncio.get_running_loop())  # type: ignore[arg-type]
        corked.write(b"head")
        await asyncio.sleep(0)
        assert written.writes == [b"head"]
        corked.write(b"event")
        await asyncio.sleep(0)
        assert written.writes == [b"head", b"event"]

    asyncio.run(run())
