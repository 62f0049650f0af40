"""How a connection ends that is not simply closed: with a refusal that is read, or at once."""

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Final

from pydantic_core import to_json
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.api.http.timer import Timer
from service.errors import STATUS, TITLES

CODE: Final = "invalid_request"

AT_ONCE: Final = struct.pack("ii", 1, 0)
"""The value of SO_LINGER by which a close forgets what was not sent."""

LINGER_S: Final = 2.0
"""Time for a refused caller to read the answer and to close."""


def refusal(detail: str) -> bytes:
    """The whole answer: head and body."""
    status = STATUS[CODE]
    body = to_json(
        {"type": "about:blank", "title": TITLES[CODE], "status": status, "code": CODE, "detail": detail, "rows": []}
    )
    head = f"HTTP/1.1 {status} Bad Request\r\ncontent-type: application/problem+json\r\nconnection: close\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


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
