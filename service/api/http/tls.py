"""TLS, from the first byte of a connection on.

A connection has its place among `Connections` before the handshake, so one whose handshake never ends is counted, is
timed out and gives way as any other that sends no request.
"""

import asyncio
import os
import socket
import ssl
from functools import partial
from pathlib import Path
from typing import Any

from service.api.http.connections import Place, ServerConfig
from service.api.http.protocol import HEAD_TIMEOUT_S, BoundedProtocol


def tls_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """What the server shows; the certificate's file may hold the key too."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["http/1.1"])
    return context


class TlsProtocol(asyncio.Protocol):
    """Takes a new connection from the server, makes the handshake, and leaves it to a `BoundedProtocol`."""

    def __init__(self, config: ServerConfig, **options: Any) -> None:
        self._config = config
        self._options = options
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        place = self._config.connections.enter(self)
        if place is not None:
            try:
                # A duplicate, since the event loop has begun to serve this one without TLS.
                plain = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
            except OSError:  # no file is left
                place.leave()
            else:
                self._handshake = asyncio.get_running_loop().create_task(self._begin_tls(plain, place))
        transport.abort()

    def abort(self) -> None:
        """End the handshake, as another connection needs the place."""
        if self._handshake is not None:
            self._handshake.cancel()

    async def _begin_tls(self, plain: socket.socket, place: Place) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                partial(BoundedProtocol, config=self._config, place=place, **self._options),
                plain,
                ssl=self._config.tls,
                ssl_handshake_timeout=HEAD_TIMEOUT_S,
            )
        except (OSError, asyncio.CancelledError):  # of the connection, of TLS, of the time; or it gave way
            place.leave()
