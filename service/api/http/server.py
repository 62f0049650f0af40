"""The API process: uvicorn on a socket the supervisor has bound (``python -m service.api --fd N``), or on an address of
its own (``--host 0.0.0.0 --port 8080``, for containers).

A socket bound once by the supervisor means that a restart of this process never loses the port nor the connections
that wait. With `HEADRACE_TLS_CERT` and `HEADRACE_TLS_KEY` it speaks TLS.
"""

import argparse
import logging
import socket
from functools import partial
from typing import Final

import uvicorn

from service.api.app import create_app
from service.api.ending import GRACE_S, Ending
from service.api.http.connections import MAX_CONNECTIONS, Connections, ServerConfig
from service.api.http.protocol import BoundedProtocol
from service.api.http.tls import Certificate, TlsProtocol
from service.api.watchdog import Watchdog
from service.beginning import refuse
from service.collector import leave_alone_what_is_here
from service.left_out import leave_out_pandas
from service.machine import TooFewFiles, raise_limit, room_for_callers, take_files
from service.settings import Settings, SettingsError, read_settings
from service.telemetry import logs
from service.telemetry.doubts import warn_of_redis_address

ACCEPTED_AT_ONCE: Final = 16
"""Connections that are accepted each time the event loop turns. It takes one from each descriptor of the socket: with
one descriptor, a caller behind a hundred others would wait until it has turned a hundred times."""

KEEP_ALIVE_S: Final = 75
"""How long a connection is kept after an answer, for the next request. Proxies keep theirs for a minute: one that sends
a request as the service closes the connection has no answer, and tells its caller 502."""


class Server(uvicorn.Server):
    """The server of uvicorn, in a process whose garbage collector does not look through the application again, which
    tells the application when it is about to end, and which ends if its event loop hangs."""

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self._ending = config.ending
        self._watchdog = Watchdog()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        leave_alone_what_is_here()
        self._watchdog.begin()

    async def on_tick(self, counter: int) -> bool:  # ten times a second
        self._watchdog.sign()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._watchdog.rest()
        self._ending.begin()
        await super().shutdown(sockets)


def main() -> None:
    """Serve until a signal; exits with a line if the process cannot serve."""
    parser = argparse.ArgumentParser(prog="python -m service.api", description=__doc__)
    parser.add_argument("--fd", type=int, help="descriptor of a listening socket")
    parser.add_argument("--host", default="127.0.0.1", help="without --fd: the address to listen on")
    parser.add_argument("--port", type=int, default=8080, help="without --fd: its port")
    options = parser.parse_args()
    try:
        settings = read_settings()
        take_files()
    except (SettingsError, TooFewFiles) as error:
        refuse(str(error))
    leave_out_pandas()
    logs.configure("api")
    warn_of_redis_address(settings)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    try:
        server = Server(config(settings, host=options.host, port=options.port))
    except OSError as error:  # of TLS: a file that is not there, may not be read or is no certificate
        refuse(f"HEADRACE_TLS_CERT or HEADRACE_TLS_KEY cannot be used: {error}")
    # A socket from a descriptor knows its family, so connections get TCP_NODELAY.
    with server.config.bind_socket() if options.fd is None else socket.socket(fileno=options.fd) as listener:
        server.run(sockets=descriptors(listener))


def descriptors(listener: socket.socket) -> list[socket.socket]:
    """Several descriptors of one listening socket: as many as connections are to be accepted at once."""
    return [listener, *(listener.dup() for _ in range(ACCEPTED_AT_ONCE - 1))]


def config(settings: Settings, host: str = "127.0.0.1", port: int = 0) -> ServerConfig:
    """How uvicorn is to serve the application; the process may open as many files from now on as the machine allows."""
    listeners = settings.max_event_streams + settings.max_requests
    room = min(MAX_CONNECTIONS, room_for_callers(raise_limit(), listeners))
    tls = None if settings.tls_cert is None else Certificate(settings.tls_cert, settings.tls_key).context
    ending = Ending()
    return ServerConfig(
        partial(create_app, settings, ending=ending),
        Connections(room),
        tls,
        ending,
        factory=True,
        host=host,
        port=port,
        http=BoundedProtocol if tls is None else TlsProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
