"""Room in Redis: a part of its memory is kept for what frees memory.

A Redis at its `maxmemory` takes no writes at all, and to delete a graph is a few small ones. So what makes it grow is
refused while some room is left: first graphs, updates and long results, then questions and snapshots; deletes,
cancels, heartbeats and the ends of commands never. Where `maxmemory` is not set, or may not be asked for, all is taken.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import redis
import redis.asyncio
import structlog

from service.errors import ServiceError

RESERVE_SHARE: Final = 10
"""One in this many bytes of `maxmemory` is kept in reserve, within the two bounds below."""

RESERVE_LEAST_BYTES: Final = 16 << 20
"""The least reserve, unless that is more than half of `maxmemory`."""

RESERVE_MOST_BYTES: Final = 256 << 20
"""The largest reserve."""

FRESH_S: Final = 0.25
"""How long an answer of Redis is used; what was taken since is added to it."""

NO_EVICTION: Final = "noeviction"
EVICTS: Final = "once maxmemory is reached this Redis removes graphs and keys: CONFIG SET maxmemory-policy noeviction"

log = structlog.get_logger(__name__)


class Need(Enum):
    """What memory is wanted for, and how much of the reserve must be left behind it."""

    GROWTH = 1.0
    """Graphs, updates, long results."""
    ANSWER = 0.5
    """Questions and their short results; snapshots, which let go of the log and of older ones."""
    RELEASE = 0.0
    """Deletes and cancels."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of the Redis server, in bytes."""

    used: int = 0
    limit: int = 0
    """0: none."""

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> "Memory":
        """What Redis itself holds against `maxmemory`, by its INFO."""
        used = int(info.get("used_memory", 0)) - int(info.get("mem_not_counted_for_evict", 0))
        return cls(used, int(info.get("maxmemory", 0)))

    @property
    def reserve(self) -> int:
        wanted = min(max(self.limit // RESERVE_SHARE, RESERVE_LEAST_BYTES), RESERVE_MOST_BYTES)
        return min(wanted, self.limit // 2)

    def has_room(self, more: int, need: Need) -> bool:
        """Whether so much more fits. A Redis that is full refuses by itself, and is treated as one that is away."""
        if not self.limit or self.used >= self.limit or need is Need.RELEASE:
            return True
        return self.used + more <= self.limit - int(need.value * self.reserve)


def warn_of_eviction(info: Mapping[str, Any]) -> None:
    """Tell the log, once in each process, of a server that by its INFO may forget what was acknowledged."""
    policy = info.get("maxmemory_policy", NO_EVICTION)
    if policy != NO_EVICTION:
        _tell_eviction(policy)


@lru_cache
def _tell_eviction(policy: str) -> None:
    log.warning("redis_may_evict", maxmemory_policy=policy, hint=EVICTS)


class _Room:
    """The memory of Redis as both kinds of process know it between two answers."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._asked_at = float("-inf")
        self._taken = 0
        self._may_ask = True

    @property
    def is_stale(self) -> bool:
        return self._may_ask and time.monotonic() - self._asked_at >= FRESH_S

    def heard(self, info: Mapping[str, Any] | None) -> None:
        """Take note of the answer to INFO; None: it was denied, and is not asked for again."""
        self._may_ask = info is not None
        warn_of_eviction(info or {})
        self._memory = Memory() if info is None else Memory.of(info)
        self._asked_at, self._taken = time.monotonic(), 0

    def take_as_heard(self, more: int, need: Need, of: int = 0) -> None:
        """`take` by the latest answer there is."""
        if not self._memory.has_room(self._taken + max(more, of), need):
            used, limit = self._memory.used + self._taken, self._memory.limit
            raise ServiceError(
                "out_of_memory",
                f"Redis has no room for {max(more, of)} more bytes: {used} of {limit} are in use, and the rest is kept "
                "for deleting graphs; delete some, or give it more memory",
            )
        self._taken += more


class Room(_Room):
    """Room as workers ask for it. Where several threads share one, it is a little less exact."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__()
        self._redis: Any = client

    def take(self, more: int, need: Need, of: int = 0) -> None:
        """Count `more` bytes before they are written, the first of `of`. Raises out_of_memory if these have no room.

        At most one round trip, mostly none.
        """
        if self.is_stale:
            try:
                self.heard(self._redis.info("memory"))
            except redis.exceptions.NoPermissionError:
                self.heard(None)
        self.take_as_heard(more, need, of)


class AsyncRoom(_Room):
    """Room as API processes ask for it, in their event loop."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        super().__init__()
        self._redis: Any = client

    async def take(self, more: int, need: Need, of: int = 0) -> None:
        """As `Room.take`."""
        if self.is_stale:
            try:
                self.heard(await self._redis.info("memory"))
            except redis.exceptions.NoPermissionError:
                self.heard(None)
        self.take_as_heard(more, need, of)
