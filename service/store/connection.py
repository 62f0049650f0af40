"""Redis clients, for the blocking and the asynchronous side."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import redis
import redis.asyncio
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.exceptions import AuthenticationError
from redis.retry import Retry

from service.settings import Settings
from service.store.kept_socket import PathOfFile, SocketFile, kept
from service.store.keys import Keys
from service.store.primary import AsyncOfPrimary, Demoted, NotNow, Server, understood

RedisError = redis.RedisError

OnConnect: TypeAlias = Callable[[AbstractConnection], Awaitable[None]]


class Unwritten(redis.TimeoutError):
    """Redis answers, and has not written to its file what it has acknowledged."""


AWAY = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.ExecAbortError,
    redis.exceptions.MasterDownError,
    NotNow,
)
"""Errors that say that Redis is away. It is not there or not yet (`BusyLoadingError` is a ConnectionError), carries
nothing out, or takes no writes: `maxmemory` is reached, its disk is full, or it has become a replica."""

WHY: Final[Mapping[type[Exception], str]] = {
    redis.exceptions.OutOfMemoryError: "Redis has reached its maxmemory and takes no writes",
    redis.exceptions.ReadOnlyError: "Redis is a replica and takes no writes",
    Demoted: "Redis is a replica and takes no writes",
    redis.exceptions.MasterDownError: "Redis is a replica without its primary and answers nothing",
    redis.exceptions.BusyLoadingError: "Redis reads its files and does not answer yet",
    Unwritten: "Redis has not written to its disk what it was told: the disk is full, or too busy",
    AuthenticationError: "Redis does not take the password of this service any more",
    redis.exceptions.NoPermissionError: "Redis does not let its user do what this needs; the log says what",
    redis.ResponseError: "Redis has refused what it was asked; the log says why",
}
"""What callers are told, by the kind of the error: the first that fits. The last one is for what has no other, as where
somebody has made a key something else."""

TIMEOUT_S = 30.0
"""Time for one answer of Redis: more than any blocking read takes, an fsync on a busy disk, or a chunk of a blob."""

NUMBERED_TIMEOUT_S = 2.0
"""The time limit for what is asked on a numbered connection. A caller whose question runs into it asks on another
one."""

CONNECTIONS = 64
"""Connections of one API process for commands; each is in use for a fraction of a millisecond."""

WATCH_CONNECTIONS = 2
"""Connections of one API process for what probes ask: they wait behind no caller's command."""

IDLE_LISTENERS = 16
"""Connections for blocking reads that are kept while nobody uses them."""

API_RETRIES = 5
"""An API process sits out 1.7 s without Redis, and then says why: before probes and whoever needs the API keys give up,
who wait for two seconds and could say no more than that there was no answer."""


class _ClosedIsAway(AsyncOfPrimary):
    """A connection that was closed meanwhile raises `redis.ConnectionError`, whatever the event loop makes of it.

    A write to it is a RuntimeError in uvloop, a TypeError in asyncio of Python 3.12 and 3.13; just before that, these
    two go on watching a descriptor that the next connection may get. So nothing is written to one that is closing. The
    error of uvloop is caught for one that closes while its server is asked, which lets the loop turn.
    """

    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:
        if self._writer is not None and self._writer.is_closing():
            await self.disconnect(nowait=True)
            raise redis.ConnectionError("the connection was closed before the command was sent")
        try:
            await super().send_packed_command(command, check_health)
        except RuntimeError as error:
            raise redis.ConnectionError(str(error)) from error


class _Tcp(_ClosedIsAway, Connection): ...


class _Tls(_ClosedIsAway, SSLConnection): ...


class _Unix(PathOfFile, _ClosedIsAway, UnixDomainSocketConnection):
    """A connection to a Unix socket whose file may be gone."""

    async def connect_check_health(self, *args: Any, **options: Any) -> None:
        try:
            await super().connect_check_health(*args, **options)
        except redis.ConnectionError as error:
            if isinstance(error.__cause__, AuthenticationError):  # the library hides it, with unix sockets alone
                raise error.__cause__ from None
            raise


CLOSED_IS_AWAY: Final[dict[type[AbstractConnection], type[AbstractConnection]]] = {
    Connection: _Tcp,
    SSLConnection: _Tls,
    UnixDomainSocketConnection: _Unix,
}


class _FewIdle(redis.asyncio.ConnectionPool):
    """Keeps few of the connections that nobody uses any more, those that were used last. The library keeps all of them,
    and with them as many descriptors and clients of Redis as there ever were at a time."""

    async def release(self, connection: AbstractConnection) -> None:
        await super().release(connection)
        idle = self._available_connections
        surplus = [idle.pop(0) for _ in range(len(idle) - IDLE_LISTENERS)]
        for each in surplus:
            await each.disconnect()


def is_away(error: Exception) -> bool:
    """Whether an error is one of `AWAY`, of a client of the library's own too."""
    return isinstance(understood(error), AWAY)


def is_of_wrong_type(error: Exception) -> bool:
    """Whether a key is none of the kind that it should be, as somebody has made it something else: it stays so."""
    return isinstance(error, redis.ResponseError) and "WRONGTYPE" in str(error)


def why_away(error: Exception) -> str:
    """For callers: what Redis says itself names commands, keys and hosts."""
    if isinstance(error := understood(error), NotNow):
        return error.why
    return next((why for kind, why in WHY.items() if isinstance(error, kind)), "Redis does not answer")


def connect(settings: Settings) -> redis.Redis:
    """A thread-safe client that never retries: a worker must know when the outcome of a write is unknown."""
    retry = Retry(NoBackoff(), 0)
    client = redis.Redis.from_url(settings.redis_location, protocol=2, retry=retry, socket_timeout=TIMEOUT_S)
    client = kept(client, Keys(settings.redis_prefix).nothing)
    client.set_response_callback("INFO", read_info)
    return client


def read_info(response: Any, **_: Any) -> "Info":
    """What the server says of itself, as the client library reads it, but only what is looked at."""
    return Info(response)


class Info(Mapping[str, Any]):
    """What the server says of itself, by name: integers, texts, and dictionaries of them where it says several.

    Each commit waits for such an answer and looks at five of its hundred values. The client library reads them all,
    which takes fourteen times as long.
    """

    def __init__(self, text: bytes) -> None:
        self._text = b"\n" + text.replace(b"\r", b"")

    def __getitem__(self, name: str) -> Any:
        start = self._text.find(b"\n%s:" % name.encode())
        if start < 0:
            raise KeyError(name)
        start += len(name) + 2
        end = self._text.find(b"\n", start)
        value = self._text[start : end if end >= 0 else None].decode(errors="replace")
        if "=" not in value:
            return _number(value)
        parts = (part.partition("=") for part in value.split(","))
        return {part: _number(amount) for part, _, amount in parts}

    def __iter__(self) -> Iterator[str]:
        for line in self._text.decode(errors="replace").splitlines():
            name, colon, _ = line.partition(":")
            if colon and not name.startswith("#"):
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _number(text: str) -> int | str:
    return int(text) if text.removeprefix("-").isdecimal() else text


def connect_async(settings: Settings, connections: int = CONNECTIONS) -> redis.asyncio.Redis:
    """A client that sits out short absences. Everything an API process writes may safely be written twice.

    Its commands are short: what finds all `connections` busy waits for one.
    """
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        settings.redis_location, max_connections=connections, timeout=TIMEOUT_S, **_patient()
    )
    return _closed_is_away(redis.asyncio.Redis.from_pool(pool), settings)


def connect_numbered(settings: Settings, on_connect: OnConnect) -> redis.asyncio.Redis:
    """A client with one connection, which never retries. ``on_connect`` is called with each new one, and has to call
    its `on_connect`."""
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        settings.redis_location,
        max_connections=1,
        timeout=TIMEOUT_S,
        protocol=2,
        retry=AsyncRetry(NoBackoff(), 0),
        socket_timeout=NUMBERED_TIMEOUT_S,
        redis_connect_func=on_connect,
    )
    return _closed_is_away(redis.asyncio.Redis.from_pool(pool), settings)


def connect_listeners(settings: Settings) -> redis.asyncio.Redis:
    """A client for blocking reads, which hold a connection each: as many as requests may be open, and one that reads
    the replies to all."""
    limit = settings.max_event_streams + settings.max_requests + 1
    pool = _FewIdle.from_url(settings.redis_location, max_connections=limit, **_patient())
    return _closed_is_away(redis.asyncio.Redis.from_pool(pool), settings)


def _closed_is_away(client: redis.asyncio.Redis, settings: Settings) -> redis.asyncio.Redis:
    pool = client.connection_pool
    pool.connection_class = CLOSED_IS_AWAY[pool.connection_class]
    pool.connection_kwargs["server"] = Server(Keys(settings.redis_prefix).nothing)
    if pool.connection_class is _Unix:
        pool.connection_kwargs["file"] = SocketFile(pool.connection_kwargs.pop("path"))
    client.set_response_callback("INFO", read_info)
    return client


class _Patience(AsyncRetry):
    """Tries again what an absence has failed. A password that was refused is refused again, and says so at once."""

    async def call_with_retry(self, do: Any, fail: Any, is_retryable: Any = None, *args: Any, **options: Any) -> Any:
        return await super().call_with_retry(do, fail, is_retryable or _passes, *args, **options)


def _passes(error: Exception) -> bool:
    return not isinstance(error, AuthenticationError)


def _patient() -> dict[str, Any]:
    backoff = ExponentialBackoff(cap=0.5, base=0.05)
    retry = _Patience(backoff, API_RETRIES, supported_errors=(redis.ConnectionError,))  # who waited once has waited
    return {"protocol": 2, "retry": retry, "socket_timeout": TIMEOUT_S}
