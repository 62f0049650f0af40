"""The unix socket of the embedded Redis server, which may be removed with all other files while the server runs.

The server goes on, and so do connections that are open; new ones need the file. Linux connects to the file that a
descriptor stands for as well, whether it still has a name or not, so who has connected once can do so again, and what
the server has in memory can be exported.
"""

import os
import threading
from contextlib import suppress
from typing import Any, Final

import redis
from redis.connection import UnixDomainSocketConnection

from service.store.primary import OF_PRIMARY, OfPrimary, Server

BY_DESCRIPTOR: Final[int | None] = getattr(os, "O_PATH", None)
"""How a file is opened to be named alone; None where the system has no such way."""


class SocketFile:
    """The file at a path, and the one that was there last. Safe from any thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._descriptor: int | None = None

    def __str__(self) -> str:
        return self._path

    def path(self) -> str:
        """Where to connect to: the path itself, but for a file that is gone the name of its descriptor."""
        if BY_DESCRIPTOR is None:
            return self._path
        with self._lock:
            try:
                found = os.open(self._path, BY_DESCRIPTOR | os.O_CLOEXEC)
            except OSError:
                return self._path if self._descriptor is None else f"/proc/self/fd/{self._descriptor}"
            self._close()
            self._descriptor = found
            return self._path

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def __del__(self) -> None:
        with suppress(OSError):
            self._close()


class PathOfFile:
    """Where a connection of the client library, of either kind, connects to: what its `SocketFile` says as it begins.

    The library reads the attribute `path` of a connection when it connects, and with each answer, for what it would say
    of an error. It sets it when it makes a connection.
    """

    def __init__(self, *, file: SocketFile, **options: Any) -> None:
        self._file, self._path = file, str(file)
        super().__init__(**options)

    def before_connecting(self) -> None:
        self._path = self._file.path()

    @property
    def path(self) -> str:
        return self._path

    @path.setter
    def path(self, made_with: str) -> None:
        pass


class KeptUnixConnection(PathOfFile, OfPrimary, UnixDomainSocketConnection):
    """A connection of the blocking client to a socket whose file may be gone."""


def kept(client: redis.Redis, nothing: str) -> redis.Redis:
    """The client, which goes on to connect to a unix socket whose file is removed, and leaves a server that is not the
    primary any more. `nothing` is a key that never is."""
    pool = client.connection_pool
    if pool.connection_class is UnixDomainSocketConnection:
        pool.connection_class = KeptUnixConnection
        pool.connection_kwargs["file"] = SocketFile(pool.connection_kwargs.pop("path"))
    else:
        pool.connection_class = OF_PRIMARY[pool.connection_class]
    pool.connection_kwargs["server"] = Server(nothing)
    return client
