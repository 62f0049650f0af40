"""TLS, from the first byte of a connection on.

A connection has its place among `Connections` before the handshake, so one whose handshake never ends is counted, is
timed out and gives way as any other that sends no request.
"""

import asyncio
import os
import socket
import ssl
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog

from service.api.http.connections import Place, ServerConfig
from service.api.http.protocol import HEAD_TIMEOUT_S, BoundedProtocol
from service.connections.certificate import load_certificate

LOOK_S: Final = 10.0
"""Time between two looks whether there is another certificate."""

log = structlog.get_logger("headrace.api")


class Certificate:
    """The certificate and its key as they are in their files, which are read again when they have changed.

    A process lives longer than a certificate, and whoever renews that replaces the files. Those that cannot be used, as
    while one of both is replaced, are looked at again the next time, and new connections get the one before.
    """

    def __init__(self, certificate: Path, key: Path | None) -> None:
        """Raises OSError if it cannot be used."""
        self._certificate = certificate
        self._key = key
        self._read = self._tried = self._files()
        self._context = tls_context(certificate, key)
        self._look_at = time.monotonic() + LOOK_S

    def context(self) -> ssl.SSLContext:
        """For a new connection."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self._look()
        return self._context

    def _look(self) -> None:
        found = self._files()
        if found == self._read:
            return
        try:
            self._context = tls_context(self._certificate, self._key)
        except OSError as error:
            if found != self._tried:
                log.error("certificate_not_read", file=str(self._certificate), error=str(error))
        else:
            self._read = found
            log.info("certificate_read_again", file=str(self._certificate))
        self._tried = found

    def _files(self) -> list[tuple[int, ...] | None]:
        """What tells these files from others under their names, which may be links; None for one that is not there."""
        return [_identity(path) for path in (self._certificate, self._key) if path is not None]


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def tls_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """What the server shows; the certificate's file may hold the key too."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_certificate(context, certificate, key)
    context.set_alpn_protocols(["http/1.1"])
    return context


class TlsProtocol(asyncio.Protocol):
    """Takes a new connection from the server, makes the handshake, and leaves it to a `BoundedProtocol`."""

    def __init__(self, config: ServerConfig, **options: Any) -> None:
        self._config = config
        self._options = options
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # the server gives it no other kind
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
                ssl=self._config.tls and self._config.tls(),
                ssl_handshake_timeout=HEAD_TIMEOUT_S,
            )
        except (OSError, asyncio.CancelledError):  # of the connection, of TLS, of the time; or it gave way
            place.leave()
