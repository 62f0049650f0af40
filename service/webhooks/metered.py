"""Connections that read no more than a bound, for answers of strangers whose bodies are never read.

The parser takes any number of 1xx answers before the one that counts, and bounds each head by itself: without another
bound a receiver keeps the event loop busy for as long as a try may last.
"""

import ssl
from collections.abc import Iterable
from typing import Any, Final

import httpcore

MAX_HEAD_BYTES: Final = 64 << 10
"""Bytes of an answer: its head, whatever goes before it, and the beginning of its body."""

READ_BYTES: Final = 4 << 10
"""How many bytes are read and parsed at a time, so that others have their turns in between."""


class Metered(httpcore.AsyncNetworkBackend):
    """A backend of connections that bounds what those of another backend read."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend) -> None:
        self._backend = backend

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._backend.connect_tcp(host, port, timeout, local_address, socket_options))

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream):
    """One connection, which raises `RemoteProtocolError` for what is sent beyond the bound."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._left = MAX_HEAD_BYTES

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._stream.read(min(max_bytes, READ_BYTES), timeout)
        self._left -= len(data)
        if self._left < 0:
            raise httpcore.RemoteProtocolError(f"over {MAX_HEAD_BYTES >> 10} KiB before the body of the answer")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
