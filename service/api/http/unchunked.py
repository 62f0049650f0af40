"""Answers to HTTP/1.0, which knows no chunks: one without a length ends with its connection (RFC 9112, 6.1)."""

from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


def without_chunks(cycle: RequestResponseCycle) -> None:
    """Have an answer without a length go out as it is, which the server of uvicorn puts into chunks."""
    send = cycle.send

    async def send_plain(message: Any) -> None:
        if message["type"] == "http.response.body":
            cycle.expected_content_length = len(message.get("body", b""))  # or it takes it for too long
        await send(message)

    cycle.chunked_encoding = False
    cycle.send = send_plain  # type: ignore[method-assign]
