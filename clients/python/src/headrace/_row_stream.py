# Made by scripts/synchronous_client.py from _async_row_stream.py: change that one.
"""`RowStream`: the rows of an answer while they are made."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar

import httpx

from headrace import _calls as calls
from headrace._caller import Caller
from headrace._calls import Call
from headrace._connecting import translated
from headrace._exchange import SHORT_HOLD_S, Deadline
from headrace._results import Json
from headrace._rows_read import LINES, LOST, LastLine, RowReader
from headrace._stream import Stream

Row = TypeVar("Row")


class RowSource(Generic[Row]):
    """Where a reader of rows is, through any number of connections."""

    def __init__(self, caller: Caller, reader: RowReader[Row]) -> None:
        self._caller = caller
        self._stack = ExitStack()
        self.reader = reader
        self.is_over = False
        self.response: httpx.Response | None = None

    def read(self) -> Row | None:
        while not self.is_over and not self.reader.is_over:
            try:
                if self.response is None:
                    self._open()
                elif (row := self._next()) is not None:
                    return row
            except LastLine as last:
                self.end()
                raise last.error from None
            except LOST as error:
                self.end()
                if not self.is_over:
                    time.sleep(self.reader.pause_s(error))
        self.end()
        return None

    def end(self) -> None:
        self.response = None
        self._stack.close()

    def _open(self) -> None:
        headers, reader, asked_at = self.reader.headers(), self.reader, time.monotonic()
        hold_s = reader.deadline.hold_s
        response = self._stack.enter_context(self._caller.streamed(reader.path, reader.deadline, headers, hold_s))
        if reader.opened(response):
            self._lines, self.response = response.iter_lines(), response
            return
        self.end()
        if time.monotonic() - asked_at < SHORT_HOLD_S:
            time.sleep(SHORT_HOLD_S)

    def _next(self) -> Row | None:
        """The next row of this connection; None at the end of all. Raises `ConnectionFailed` if there is neither."""
        with translated():
            for line in self._lines:
                if (row := self.reader.feed(line)) is not None or self.reader.is_over:
                    return row
        raise self.reader.cut()


class RowStream(Stream[Row]):
    """The rows of one answer, each as soon as it is there: an iterator, which keeps none of them.

    It comes back by itself after a lost connection, and goes on behind the last row it gave. Raises what the question
    was refused with, also behind rows; `WorkerUnavailable` if a worker was lost and the question is begun again; and
    `WaitTimeout`. Close it, or use it as a context manager: then it ends, for who waits in it as well. The question
    goes on until `cancel`.
    """

    def __init__(self, caller: Caller, source: RowSource[Row]) -> None:
        super().__init__(source)
        self._caller = caller
        self._reader = source.reader
        self._first: Row | None = None

    @classmethod
    def opened(
        cls, caller: Caller, call: Call[Any], parse: Callable[[Any], Row], timeout_s: float | None = None
    ) -> Self:
        deadline = Deadline.after(timeout_s)
        job = caller.submit(replace(call, headers={**call.headers, **LINES}), deadline)
        stream = cls(caller, RowSource(caller, RowReader(job.id, parse, caller.retries, deadline)))
        stream._first = stream._reading.next()
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

    def __next__(self) -> Row:
        row, self._first = self._first, None
        return super().__next__() if row is None else row

    def close(self) -> None:
        self._first = None
        super().close()

    def cancel(self) -> None:
        """Stop the question; the next row is then `Cancelled`."""
        self._caller.ask(calls.cancel_job(self.job_id))
