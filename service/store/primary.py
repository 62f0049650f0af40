"""Connections to a server that has become a replica are given up.

Behind the address there may be another primary by then, as after a planned change of roles, while the former one goes
on and keeps its connections open. It answers reads, later and later, and refuses writes: who stayed would never find
the way to the other one. So each connection that is used is asked once a second whether its server takes writes, by a
write that changes nothing, and at once after a write was refused.
"""

import time
from collections.abc import Iterable
from typing import Any, Final

import redis
import redis.asyncio.connection
import redis.connection
from redis.exceptions import ReadOnlyError, ResponseError

ASKED_EVERY_S: Final = 1.0
NEVER: Final = float("-inf")


class Demoted(redis.ConnectionError):
    """The server at the other end is a replica; the connection to it is closed, and nothing was sent."""


class OfPrimary(redis.connection.AbstractConnection):
    """A connection of the blocking client. `nothing` is a key that never is, among those that its user may write."""

    def __init__(self, *, nothing: str, **options: Any) -> None:
        super().__init__(**options)
        self._nothing = nothing
        self._asked_at = NEVER

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if check_health and self._sock is not None and time.monotonic() - self._asked_at >= ASKED_EVERY_S:
            self._ask()
        super().send_packed_command(command, check_health)  # type: ignore[no-untyped-call]

    def _ask(self) -> None:
        self.send_command("UNLINK", self._nothing, check_health=False)  # type: ignore[no-untyped-call]
        self._asked_at = time.monotonic()
        try:
            self.read_response()
        except ReadOnlyError:
            self.disconnect()
            raise Demoted("the server has become a replica") from None
        except ResponseError:
            pass  # it refuses writes for another reason, which whoever writes is told

    def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return super().read_response(*args, **options)
        except ReadOnlyError:
            self._asked_at = NEVER
            raise

    def disconnect(self, *args: Any, **options: Any) -> None:
        self._asked_at = NEVER
        super().disconnect(*args, **options)  # type: ignore[no-untyped-call]


class AsyncOfPrimary(redis.asyncio.connection.AbstractConnection):
    """`OfPrimary` in an event loop."""

    def __init__(self, *, nothing: str, **options: Any) -> None:
        super().__init__(**options)
        self._nothing = nothing
        self._asked_at = NEVER

    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:
        if check_health and self.is_connected and time.monotonic() - self._asked_at >= ASKED_EVERY_S:
            await self._ask()
        await super().send_packed_command(command, check_health)

    async def _ask(self) -> None:
        await self.send_command("UNLINK", self._nothing, check_health=False)
        self._asked_at = time.monotonic()
        try:
            await self.read_response()
        except ReadOnlyError:
            await self.disconnect(nowait=True)
            raise Demoted("the server has become a replica") from None
        except ResponseError:
            pass

    async def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().read_response(*args, **options)
        except ReadOnlyError:
            self._asked_at = NEVER
            raise

    async def disconnect(self, *args: Any, **options: Any) -> None:
        self._asked_at = NEVER
        await super().disconnect(*args, **options)


class _Tcp(OfPrimary, redis.connection.Connection): ...


class _Tls(OfPrimary, redis.connection.SSLConnection): ...


OF_PRIMARY: Final[dict[type[Any], type[OfPrimary]]] = {
    redis.connection.Connection: _Tcp,
    redis.connection.SSLConnection: _Tls,
}
