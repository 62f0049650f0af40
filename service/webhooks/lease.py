"""A lease in Redis: one process at a time holds it, as long as it comes back to renew it."""

import time
from contextlib import suppress
from typing import Any, Final

import redis
import redis.asyncio

LEASE_S: Final = 30.0
"""How long the lease lasts: longer than one try to deliver, so that a process that hangs in one is not replaced too
soon."""

RENEW_S: Final = 5.0


class Lease:
    """The lease under one key, for the holder of `token`. Raises RedisError."""

    def __init__(self, client: redis.asyncio.Redis, key: str, token: str) -> None:
        self._redis: Any = client
        self._key = key
        self._token = token
        self._renew_at = 0.0

    async def hold(self) -> bool:
        """Whether this process holds the lease, which is taken if nobody does and renewed when it is time."""
        if time.monotonic() < self._renew_at:
            return True
        expires_ms = int(1e3 * LEASE_S)
        if await self._redis.set(self._key, self._token, nx=True, px=expires_ms) or await self._renewed(expires_ms):
            self._renew_at = time.monotonic() + RENEW_S
            return True
        self._renew_at = 0.0
        return False

    async def release(self) -> None:
        """Let go of it, if this process holds it."""
        self._renew_at = 0.0
        async with self._redis.pipeline() as pipe:
            await pipe.watch(self._key)
            if await pipe.get(self._key) == self._token.encode():
                pipe.multi()
                pipe.unlink(self._key)
                with suppress(redis.WatchError):
                    await pipe.execute()

    async def _renewed(self, expires_ms: int) -> bool:
        async with self._redis.pipeline() as pipe:
            await pipe.watch(self._key)
            if await pipe.get(self._key) != self._token.encode():
                return False
            pipe.multi()
            pipe.pexpire(self._key, expires_ms)
            try:
                await pipe.execute()
            except redis.WatchError:
                return False
        return True
