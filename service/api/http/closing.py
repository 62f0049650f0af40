"""How a connection ends that is not simply closed: with a refusal that is read, or at once."""

import asyncio
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from pydantic_core import to_json
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.api.headers import request_id_of
from service.api.http.timer import Timer
from service.errors import STATUS, TITLES

CODE: Final = "invalid_request"

AT_ONCE: Final = struct.pack("ii", 1, 0)
"""The value of SO_LINGER by which a close forgets what was not sent."""

LINGER_S: Final = 2.0
"""Time for a refused caller to read the answer and to close."""


def id_of_refused(asked: Iterable[tuple[bytes, bytes]], begun: RequestResponseCycle | None) -> str:
    """The id of a request that is refused as it is read: `asked` are its headers as far as they were read. One whose
    body is refused has `begun`, and perhaps an id already."""
    known: str | None = None if begun is None else begun.scope["state"].get("request_id")
    sent = next((value for name, value in asked if name == b"x-request-id"), b"")
    return known or request_id_of(sent.decode("latin-1"))


def refusal(detail: str, request_id: str, dated: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The whole answer: head and body. `dated` are the headers that the server gives to every answer: its `Date`."""
    status = STATUS[CODE]
    said = {"type": "about:blank", "title": TITLES[CODE], "status": status, "code": CODE, "detail": detail, "rows": []}
    body = to_json(said | {"request_id": request_id})
    told = [
        *dated,
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        (b"x-request-id", request_id.encode()),
    ]
    lines = [f"HTTP/1.1 {status} Bad Request".encode(), *(name + b": " + value for name, value in told), b"", body]
    return b"\r\n".join(lines)


def reset(transport: asyncio.Transport) -> None:
    """Close at once, so that the kernel keeps nothing for the reader either."""
    with suppress(OSError):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    transport.abort()


def close_unless_begun(cycle: RequestResponseCycle, transport: asyncio.Transport) -> None:
    """Close a connection whose answer has not begun, as its caller may be gone: who has closed one side and who has
    closed both look the same."""
    if not cycle.response_started:
        transport.close()


def hang_up(transport: asyncio.Transport, timer: Timer) -> None:
    """Say that nothing more comes, and close when the caller does, or after `LINGER_S`.

    To close at once would reset a connection whose caller is still sending, and the answer would be lost with what it
    has not read (RFC 9112, section 9.6). Whoever calls reads on until then.
    """
    if transport.can_write_eof():  # not with TLS: there the caller closes, having read the answer's length
        transport.write_eof()
    timer.start(LINGER_S, transport.close)
