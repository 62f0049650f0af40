"""Feeds of graphs that were deleted: each is kept for a week, but of so many names at most.

A stream takes 4 KiB at least. Whoever puts graphs under a new name each time, and deletes them, would otherwise leave
that much of each for a week. A sorted set has the names in the order of their deletions, and the oldest go. A feed that
a webhook reads, or whose name has watches, is not among them: it is kept for as long as was said.
"""

import json
import time
from contextlib import suppress
from typing import Any, Final

import redis

from service.store.keys import Keys
from service.store.unreadable import readable
from service.store.watched import watched

MOST_LEFT: Final = 10_000
"""How many feeds of deleted graphs are kept."""

AT_ONCE: Final = 100
"""How many more there may be before as many are dropped, so that the readers of feeds are looked up once for all of
these."""


class LeftFeeds:
    """Raises RedisError."""

    def __init__(self, client: redis.Redis, keys: Keys, most: int = MOST_LEFT, at_once: int = AT_ONCE) -> None:
        self._redis: Any = client
        self._keys = keys
        self._most = most
        self._at_once = at_once

    def note(self, pipe: Any, name: str) -> None:
        """Write that a graph is deleted, within the MULTI that removes it."""
        pipe.zadd(self._keys.left_feeds, {name: time.time()})

    def keep_few(self) -> None:
        """Drop the feeds of the names that were deleted first, if there are too many; else it is one round trip."""
        if self._redis.zcard(self._keys.left_feeds) < self._most + self._at_once:
            return
        names = self._redis.zrange(self._keys.left_feeds, 0, self._at_once - 1)
        hooks = self._redis.hgetall(self._keys.webhooks).items()
        read = {graph for graphs in readable(hooks, self._keys.webhooks, _graphs) for graph in graphs}
        for name in (name.decode(errors="replace") for name in names):
            with suppress(redis.WatchError):  # a graph is loaded under the name just now
                self._let_go(name, is_read=name in read)

    def _let_go(self, name: str, *, is_read: bool) -> None:
        feed, watches = self._keys.feed(name), self._keys.watches(name)
        with self._redis.pipeline() as pipe:
            ttl_s, is_watched = watched(pipe, [feed, watches], ("TTL", feed), ("EXISTS", watches))
            pipe.multi()
            pipe.zrem(self._keys.left_feeds, name)
            if ttl_s >= 0 and not is_watched and not is_read:  # without a time to live, there is a graph of that name
                pipe.unlink(feed, self._keys.told(name))
            pipe.execute()


def _graphs(hook_id: str, row: bytes) -> list[str]:
    """The graphs whose feeds a webhook reads."""
    return list(json.loads(row)["graphs"])
