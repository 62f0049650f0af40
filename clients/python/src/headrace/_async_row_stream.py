"""`AsyncRowStream`: the rows of an answer while they are made."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar

import httpx

from headrace import _calls as calls
from headrace._async_caller import AsyncCaller
from headrace._async_stream import AsyncStream
from headrace._calls import Call
from headrace._connecting import translated
from headrace._exchange import SHORT_HOLD_S, Deadline
from headrace._results import Json
from headrace._rows_read import LINES, LOST, LastLine, RowReader

Row = TypeVar("Row")


class AsyncRowSource(Generic[Row]):
    """Where a reader of rows is, through any number of connections."""

    def __init__(self, caller: AsyncCaller, reader: RowReader[Row]) -> None:
        self._caller = caller
        self._stack = AsyncExitStack()
        self.reader = reader
        self.is_over = False
        self.response: httpx.Response | None = None

    async def read(self) -> Row | None:
        while not self.is_over and not self.reader.is_over:
            try:
                if self.response is None:
                    await self._open()
                elif (row := await self._next()) is not None:
                    return row
            except LastLine as last:
                await self.end()
                raise last.error from None
            except LOST as error:
                await self.end()
                if not self.is_over:
                    await asyncio.sleep(self.reader.pause_s(error))
        await self.end()
        return None

    async def end(self) -> None:
        self.response = None
        await self._stack.aclose()

    async def _open(self) -> None:
        headers, reader, asked_at = self.reader.headers(), self.reader, time.monotonic()
        hold_s = reader.deadline.hold_s
        response = await self._stack.enter_async_context(
            self._caller.streamed(reader.path, reader.deadline, headers, hold_s)
        )
        if reader.opened(response):
            self._lines, self.response = response.aiter_lines(), response
            return
        await self.end()
        if time.monotonic() - asked_at < SHORT_HOLD_S:
            await asyncio.sleep(SHORT_HOLD_S)

    async def _next(self) -> Row | None:
        """The next row of this connection; None at the end of all. Raises `ConnectionFailed` if there is neither."""
        with translated():
            async for line in self._lines:
                if (row := self.reader.feed(line)) is not None or self.reader.is_over:
                    return row
        raise self.reader.cut()


class AsyncRowStream(AsyncStream[Row]):
    """The rows of one answer, each as soon as it is there: an asynchronous iterator, which keeps none of them.

    It comes back by itself after a lost connection, and goes on behind the last row it gave. Raises what the question
    was refused with, also behind rows; `WorkerUnavailable` if a worker was lost and the question is begun again; and
    `WaitTimeout`. Close it, or use it as a context manager: then it ends, for who waits in it as well. The question
    goes on until `cancel`.
    """

    def __init__(self, caller: AsyncCaller, source: AsyncRowSource[Row]) -> None:
        super().__init__(source)
        self._caller = caller
        self._reader = source.reader
        self._first: Row | None = None

    @classmethod
    async def opened(
        cls, caller: AsyncCaller, call: Call[Any], parse: Callable[[Any], Row], timeout_s: float | None = None
    ) -> Self:
        deadline = Deadline.after(timeout_s)
        job = await caller.submit(replace(call, headers={**call.headers, **LINES}), deadline)
        stream = cls(caller, AsyncRowSource(caller, RowReader(job.id, parse, caller.retries, deadline)))
        stream._first = await stream._reading.next()
        return stream

    @property
    def job_id(self) -> str:
        return self._reader.job_id

    @property
    def head(self) -> Json:
        """What the answer says before its rows."""
        return self._reader.head

    @property
    def version(self) -> int:
        """The version of the graph that all rows are about."""
        version: int = self._reader.head["version"]
        return version

    async def __anext__(self) -> Row:
        row, self._first = self._first, None
        return await super().__anext__() if row is None else row

    async def close(self) -> None:
        self._first = None
        await super().close()

    async def cancel(self) -> None:
        """Stop the question; the next row is then `Cancelled`."""
        await self._caller.ask(calls.cancel_job(self.job_id))
