"""Reading what comes one after the other in an answer that lasts, by threads that others may have to end."""

import socket
from contextlib import suppress
from threading import Lock
from typing import Generic, Protocol, TypeVar

import httpx

T = TypeVar("T", covariant=True)


class Source(Protocol[T]):
    """Where it comes from."""

    is_over: bool
    """Set once nobody wants any more."""
    response: httpx.Response | None
    """The connection that is read, if there is one."""

    def read(self) -> T | None:
        """The next one; None where there is none any more. Looks at `is_over` once `response` is another one."""

    def end(self) -> None:
        """End the connection."""


class Reading(Generic[T]):
    """What a source has, one after the other. Threads that wait for it take turns."""

    def __init__(self, source: Source[T]) -> None:
        self._source = source
        self._is_read = Lock()

    def next(self) -> T | None:
        """The next one; None where there is none any more, and once this is closed."""
        with self._is_read:
            if self._source.is_over:
                return None
            try:
                return self._source.read()
            finally:
                if self._source.is_over:
                    self._source.end()

    def close(self) -> None:
        """End the connection; a thread that waits for what comes next is woken."""
        self._source.is_over = True
        if self._is_read.acquire(blocking=False):
            try:
                self._source.end()
            finally:
                self._is_read.release()
        elif self._source.response is not None:
            _wake(self._source.response)


def _wake(response: httpx.Response) -> None:
    """Have the thread that reads this answer find its end. To close a connection wakes nobody who reads it."""
    stream = response.extensions.get("network_stream")
    connection = stream and stream.get_extra_info("socket")
    if connection is not None:
        with suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # that of TLS would take its keys from the reader
