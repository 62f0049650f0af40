"""Feeds of graphs that were deleted: each is kept for a week, but of so many names at most.

A stream takes 4 KiB at least. Whoever puts graphs under a new name each time, and deletes them, would otherwise leave
that much of each for a week. A sorted set has the names in the order of their deletions, and the oldest go. A feed that
a webhook reads, or whose name has watches, is not among them: it is kept for as long as was said.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import redis

from service.store.feed.record import DELETED
from service.store.keys import Keys, generation_of
from service.store.unreadable import each, readable
from service.store.watched import watched

MOST_LEFT: Final = 10_000
"""How many feeds of deleted graphs are kept."""

AT_ONCE: Final = 100
"""How many more there may be before as many are dropped, so that the readers of feeds are looked up once for all of
these."""

PAGE: Final = 1000
"""How many feeds are looked at with one round trip."""


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

    def of_no_deletion(self, graphs: Mapping[str, str]) -> set[str]:
        """Of which of these graphs, whose names no graph has any more, no delete is recorded. By name, with their ids.

        A delete, and a load in their place, is the last that their feeds say of them. Where the feed itself may have
        been dropped, because there were too many, or cannot be read, nobody can tell: those are not among them.
        """
        found, named = set(), list(graphs.items())
        for i in range(0, len(named), PAGE):
            page = named[i : i + PAGE]
            feeds = [self._keys.feed(name) for name, _ in page]
            with self._redis.pipeline(transaction=False) as pipe:
                for feed in feeds:
                    pipe.xrevrange(feed, count=1)
                pipe.zcard(self._keys.left_feeds)
                *last, n_left = each(pipe.execute(raise_on_error=False), [*feeds, self._keys.left_feeds])
            all_kept = n_left is not None and n_left < self._most
            of = zip(page, last, strict=True)
            found |= {name for (name, graph_id), entries in of if _ends_without_deletion(entries, graph_id, all_kept)}
        return found

    def _let_go(self, name: str, *, is_read: bool) -> None:
        feed, watches = self._keys.feed(name), self._keys.watches(name)
        with self._redis.pipeline() as pipe:
            ttl_s, is_watched = watched(pipe, [feed, watches], ("TTL", feed), ("EXISTS", watches))
            pipe.multi()
            pipe.zrem(self._keys.left_feeds, name)
            if ttl_s >= 0 and not is_watched and not is_read:  # without a time to live, there is a graph of that name
                pipe.unlink(feed, self._keys.told(name))
            pipe.execute()


def _ends_without_deletion(entries: Any, graph_id: str, all_kept: bool) -> bool:
    """Whether the last entry of a feed is about this graph, and tells of no delete of it. ``entries`` is None if the
    feed cannot be read, and empty where there is none, which says something if `all_kept` are there."""
    if not entries:
        return entries is not None and all_kept
    fields: dict[bytes, bytes] = entries[0][1]
    is_own = fields.get(b"id", b"").startswith(f"{generation_of(graph_id)}-".encode())
    return is_own and fields.get(b"event") != DELETED.encode()


def _graphs(hook_id: str, row: bytes) -> list[str]:
    """The graphs whose feeds a webhook reads."""
    return list(json.loads(row)["graphs"])
