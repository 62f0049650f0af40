"""The connections of one API process: how many there may be, and which one goes when there are too many.

A connection costs its caller nothing, so anybody can open thousands. When all places are taken, a new connection gets
the place of one that keeps it for no request: of the oldest that never sent one, else of the one that has been idle
for longest. So who opens connections and sends nothing locks nobody out.
"""

import logging
import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import uvicorn

from service.api.ending import Ending
from service.api.http.refusing import Refusals
from service.api.turns import Turns

MAX_CONNECTIONS: Final = 4096


class Transport(Protocol):
    """A connection, or a handshake that may become one."""

    def abort(self) -> None: ...


class Place:
    """The place of one connection, from its beginning to its end."""

    def __init__(self, transport: Transport, connections: "Connections") -> None:
        self._transport = transport
        self._connections = connections

    def goes_to(self, transport: Transport) -> None:
        """Keep the place for the connection that a handshake has become."""
        self._transport = transport

    def busy(self) -> None:
        """Keep the place until the present request is answered."""
        self._connections.waiting_first.pop(self, None)
        self._connections.idle.pop(self, None)

    def free(self) -> None:
        """Take note that the request is answered, and the next one has not come yet."""
        if self in self._connections.taken:
            self._connections.idle[self] = None

    def leave(self) -> None:
        """Give the place up, as the connection has ended. It may be called more than once."""
        self.busy()
        self._connections.taken.discard(self)

    def give_up(self) -> None:
        """Close the connection, as somebody else needs its place."""
        self.leave()
        self._transport.abort()


class Connections:
    """The places of one process. One event loop uses them, so there are no locks. Each step takes constant time."""

    def __init__(self, limit: int = MAX_CONNECTIONS) -> None:
        self.limit = limit
        self.taken: set[Place] = set()
        self.waiting_first: dict[Place, None] = {}
        """Places of connections that never sent a request, the oldest first."""
        self.idle: dict[Place, None] = {}
        """Places of connections between two requests, the longest idle first."""

    def enter(self, transport: Transport) -> Place | None:
        """A place for a new connection; None: all others have requests to answer, so this one must go."""
        if len(self.taken) >= self.limit:
            victim = next(iter(self.waiting_first), None) or next(iter(self.idle), None)
            if victim is None:
                return None
            victim.give_up()
        place = Place(transport, self)
        self.taken.add(place)
        self.waiting_first[place] = None
        return place


TlsOfNow: TypeAlias = Callable[[], ssl.SSLContext]
"""Gives the TLS context for a new connection."""


class ServerConfig(uvicorn.Config):
    """uvicorn's settings, and what the connections of a process share."""

    def __init__(
        self,
        app: Any,
        connections: Connections,
        tls: TlsOfNow | None = None,
        ending: Ending | None = None,
        **options: Any,
    ) -> None:
        super().__init__(app, **options)
        self.connections = connections
        self.turns = Turns()
        self.refusals = Refusals(logging.getLogger("uvicorn.error"))
        self.tls = tls
        self.ending = ending or Ending()
