"""uvicorn's HTTP protocol with the bounds it lacks: bytes of a request's head, the time it takes, connections.

What is no HTTP is answered as problem+json too.
"""

import asyncio
from typing import Any, Final

from pydantic_core import to_json
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.errors import STATUS, TITLES

MAX_HEAD_BYTES: Final = 64 * 1024
"""Request line and headers together."""

HEAD_TIMEOUT_S: Final = 20.0
"""From the connection, or the first byte of a later request, to the end of its head."""

MAX_CONNECTIONS: Final = 4096

CODE: Final = "invalid_request"


class HeadTooLong(Exception):
    """Raised within the parser, which then gives up."""


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose heads are too long or too slow, and those that are too many."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._head_bytes = 0
        """Of the head so far, when it comes in pieces."""
        self._named_bytes = 0
        """Of its URL and whole headers."""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
        else:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.send_400_response(f"the headers are over {MAX_HEAD_BYTES} bytes")

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = self._named_bytes = 0
        if self._timer is None:
            self._start_timer()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be read as a request, and close."""
        status = STATUS[CODE]
        body = to_json(
            {"type": "about:blank", "title": TITLES[CODE], "status": status, "code": CODE, "detail": msg, "rows": []}
        )
        head = f"HTTP/1.1 {status} Bad Request\r\ncontent-type: application/problem+json\r\nconnection: close\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.close()

    def _count(self, n_bytes: int) -> None:
        self._named_bytes += n_bytes
        if self._named_bytes > MAX_HEAD_BYTES:
            raise HeadTooLong

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
