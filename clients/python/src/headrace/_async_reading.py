"""Reading what comes one after the other in an answer that lasts, by tasks that may be cancelled."""

import asyncio
from typing import Generic, Protocol, TypeVar

T = TypeVar("T", covariant=True)


class AsyncSource(Protocol[T]):
    """Where it comes from."""

    is_over: bool
    """Set once nobody wants any more."""

    async def read(self) -> T | None:
        """The next one; None where there is none any more."""

    async def end(self) -> None:
        """End the connection."""


class AsyncReading(Generic[T]):
    """What a source has, one after the other.

    Who is cancelled while he waits, as by `asyncio.timeout`, ends nothing: the source is read on, and who asks next has
    what it gives. That ends with `close`, or once nothing refers to this object any more.
    """

    def __init__(self, source: AsyncSource[T]) -> None:
        self._source = source
        self._task: asyncio.Task[T | None] | None = None

    async def next(self) -> T | None:
        """The next one; None where there is none any more, and once this is closed."""
        while not self._source.is_over:
            if self._task is None:
                self._task = asyncio.create_task(_read(self._source))
                self._task.add_done_callback(_looked_at)
            task = self._task
            await asyncio.wait({task})
            if self._task is task:  # else another one who waited has it
                self._task = None
                return task.result()
        return None

    async def close(self) -> None:
        """End the connection, and all waits for what comes next."""
        self._source.is_over = True
        if (task := self._task) is not None:
            self._task = None
            task.cancel()
            await asyncio.wait({task})
        await self._source.end()

    def __del__(self) -> None:
        if (task := self._task) is not None and not task.done() and not task.get_loop().is_closed():
            task.get_loop().call_soon_threadsafe(task.cancel)


async def _read(source: AsyncSource[T]) -> T | None:
    try:
        found = await source.read()
    except BaseException as error:
        if source.is_over or isinstance(error, asyncio.CancelledError):
            await source.end()
        raise
    if source.is_over:
        await source.end()
    return found


def _looked_at(task: asyncio.Task[T | None]) -> None:
    """Python tells of errors that nobody has looked at, and of a read that was given up nobody wants to hear."""
    if not task.cancelled():
        task.exception()
