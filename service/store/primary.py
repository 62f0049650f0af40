"""Connections to a server that is not the primary any more are given up: behind its address there may be another one.

A server that has become a replica, as at a planned change of roles, may keep its connections open. It answers reads,
later and later, and refuses writes: who stayed would never find the way to the other one. So each connection that is
used is asked once a second whether its server takes writes, by a write that changes nothing, and at once after a write
was refused.

What a server says while it carries nothing out, and the library has no class for, is raised as `NotNow`.

A machine that is gone closes nothing: who waits for its answer hears nothing, and each of the connections that others
left for later would take as long to find that out. So they are given up with the first one that gets no answer in time.
"""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import redis
import redis.asyncio.connection
import redis.connection
from redis._parsers.hiredis import NOT_ENOUGH_DATA, _AsyncHiredisParser
from redis.exceptions import NoPermissionError, ReadOnlyError, ResponseError

ASKED_EVERY_S: Final = 1.0
NEVER: Final = float("-inf")


class GivenUp(redis.ConnectionError):
    """The connection is closed, and nothing was sent."""


class Demoted(GivenUp):
    """The server at the other end has become a replica."""


NOT_NOW: Final = {
    "MISCONF": "Redis cannot write its files and takes no writes",
    "NOREPLICAS": "Redis has fewer replicas than min-replicas-to-write and takes no writes",
    "BUSY": "Redis runs a script of somebody's that takes long, and does nothing else meanwhile",
}
"""Codes of a server that is there, and the reason why it does not do what it is asked."""


class NotNow(ResponseError):
    """The server refuses all commands, or all writes, for a reason that passes."""

    why = "Redis does not do what it is asked"


def understood(error: Exception) -> Exception:
    """The error, or what it is in truth: `NotNow` if its code is one of `NOT_NOW`, and `NoPermissionError` of a server
    whose owner lets nobody have the command, as those of many clouds say of CONFIG."""
    if isinstance(error, ResponseError) and str(error).startswith("unknown command"):
        return NoPermissionError(*error.args)
    why = NOT_NOW.get(str(error).partition(" ")[0]) if isinstance(error, ResponseError) else None
    if why is None or isinstance(error, NotNow):
        return error
    refused = NotNow(*error.args)
    refused.why = why
    return refused


@dataclass(slots=True)
class Server:
    """What the connections of one client know of the server."""

    nothing: str
    """A key that never is, among those that the user may write."""
    silent_at: float = NEVER
    """The time at which a connection last got no answer in time."""
    opened: int = 0
    """How many connections have been opened."""


def n_opened(client: redis.Redis) -> int:
    """How many connections a client of `service.store.connection` has opened so far. Without another one it cannot have
    come to a server that was started again."""
    server: Server = client.connection_pool.connection_kwargs["server"]
    return server.opened


class _Heard:
    """What one connection knows of its server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.disconnected()

    def disconnected(self) -> None:
        self._answer_at, self._asked_at = float("inf"), NEVER
        self.is_open = False

    def opened(self) -> None:
        """What is said at the beginning of a connection is over: its answers were read, and none is expected. Each user
        of a kept connection says so too."""
        if not self.is_open:
            self._server.opened += 1
        self.is_open = True

    def answer(self) -> None:
        self._answer_at = time.monotonic()

    def error(self, error: redis.RedisError) -> None:
        if isinstance(error, redis.TimeoutError):
            self._server.silent_at = time.monotonic()
        elif isinstance(error, ReadOnlyError):
            self._asked_at = NEVER

    def must_ask(self) -> bool:
        """Whether the server is to be asked now. Raises `GivenUp` if it is silent."""
        if self._answer_at < self._server.silent_at:
            raise GivenUp("the server has not answered others in time")
        now = time.monotonic()
        if not self.is_open or now - self._asked_at < ASKED_EVERY_S:
            return False
        self._asked_at = now
        return True


class OfPrimary(redis.connection.AbstractConnection):
    """A connection of the blocking client."""

    def __init__(self, *, server: Server, **options: Any) -> None:
        super().__init__(**options)
        self._nothing, self._heard = server.nothing, _Heard(server)

    def before_connecting(self) -> None:
        """Called before a connection is made anew."""

    def connect(self) -> None:
        if not self._heard.is_open:
            self.before_connecting()
        super().connect()  # type: ignore[no-untyped-call]
        self._heard.opened()

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if check_health:
            try:
                if self._heard.must_ask():
                    self._ask()
            except GivenUp:
                self.disconnect()
                raise
        super().send_packed_command(command, check_health)  # type: ignore[no-untyped-call]

    def _ask(self) -> None:
        self.send_command("UNLINK", self._nothing, check_health=False)  # type: ignore[no-untyped-call]
        try:
            self.read_response()
        except ReadOnlyError:
            raise Demoted("the server has become a replica") from None
        except ResponseError:
            pass  # it refuses writes for another reason, which the writer will be told

    def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            answer = super().read_response(*args, **options)
        except redis.RedisError as error:
            self._heard.error(error)
            if (refused := understood(error)) is not error:
                raise refused from None
            raise
        self._heard.answer()
        return answer

    def disconnect(self, *args: Any, **options: Any) -> None:
        self._heard.disconnected()
        super().disconnect(*args, **options)  # type: ignore[no-untyped-call]


class AsyncOfPrimary(redis.asyncio.connection.AbstractConnection):
    """`OfPrimary` in an event loop."""

    def __init__(self, *, server: Server, **options: Any) -> None:
        super().__init__(**options)
        self._nothing, self._heard = server.nothing, _Heard(server)

    def before_connecting(self) -> None:
        """See `OfPrimary`."""

    async def connect(self) -> None:
        if not self._heard.is_open:
            self.before_connecting()
        await super().connect()  # type: ignore[no-untyped-call]
        self._heard.opened()

    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:
        if check_health:
            try:
                if self._heard.must_ask():
                    await self._ask()
            except GivenUp:
                await self.disconnect(nowait=True)
                raise
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        await self._send(command)

    async def _send(self, command: bytes | str | Iterable[bytes]) -> None:
        """Write the command within the time for an answer.

        The library waits by `asyncio.wait_for`. In Python 3.11 that makes a task for each command, and loses a cancel
        which comes as that task ends: whoever was cancelled went on, and a process that was to end did not.
        """
        if isinstance(command, str):
            command = command.encode()
        try:
            async with asyncio.timeout(self.socket_timeout):
                await self._send_packed_command([command] if isinstance(command, bytes) else command)
        except TimeoutError:
            await self.disconnect(nowait=True)
            raise redis.TimeoutError("the server has not taken the command in time") from None
        except OSError as error:
            await self.disconnect(nowait=True)
            raise redis.ConnectionError(f"the command could not be sent: {error}") from error
        except BaseException:
            await self.disconnect(nowait=True)
            raise

    async def _ask(self) -> None:
        await self.send_command("UNLINK", self._nothing, check_health=False)
        try:
            await self.read_response()
        except ReadOnlyError:
            raise Demoted("the server has become a replica") from None
        except ResponseError:
            pass

    async def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            answer = NOT_ENOUGH_DATA if args or options else self._next_that_came()
            if answer is NOT_ENOUGH_DATA:
                answer = await super().read_response(*args, **options)
            elif isinstance(answer, redis.ConnectionError):
                await self.disconnect(nowait=True)
                raise answer
            elif isinstance(answer, redis.RedisError):
                raise answer
        except redis.RedisError as error:
            self._heard.error(error)
            if (refused := understood(error)) is not error:
                raise refused from None
            raise
        self._heard.answer()
        return answer

    def _next_that_came(self) -> Any:
        """The next answer, or NOT_ENOUGH_DATA if all that came of it so far is less than the whole.

        The answers to commands that were sent together come together, and the library sets up a time limit for each.
        """
        if not self.is_connected or not isinstance(self._parser, _AsyncHiredisParser):
            return NOT_ENOUGH_DATA
        reader: Any = self._parser._reader
        return reader.gets()

    async def disconnect(self, *args: Any, **options: Any) -> None:
        self._heard.disconnected()
        await super().disconnect(*args, **options)


class _Tcp(OfPrimary, redis.connection.Connection): ...


class _Tls(OfPrimary, redis.connection.SSLConnection): ...


OF_PRIMARY: Final[dict[type[Any], type[OfPrimary]]] = {
    redis.connection.Connection: _Tcp,
    redis.connection.SSLConnection: _Tls,
}
