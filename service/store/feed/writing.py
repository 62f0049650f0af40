"""The writing side of the change feed, for the worker that owns the graph.

The `version` and `graph.deleted` events go into the MULTI that makes the version or removes the graph. What watches see
is told by a MULTI of its own, which also writes that it was told: each event stands in the feed once.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import redis

from service.protocol import WatchArgs
from service.store.applied import Fenced
from service.store.feed.left import LeftFeeds
from service.store.feed.record import AT, Event, Seen, deleted_event, read_watches, version_event, version_tag
from service.store.jobs.outcomes import commit, decision, outcome_key, refuse_decided
from service.store.keys import Keys
from service.store.primary import n_opened
from service.store.watched import Read, watched

MAX_TRIES: Final = 20
"""How often a commit is repeated because its connection is lost or others write to the graph."""

ORPHANED_TTL_S: Final = 7 * 24 * 3600
"""How long watches and events of a deleted graph are kept, for readers that are behind, and for a load of its name;
`service.store.feed.left` says of how many."""

FEED_BYTES: Final = 8 << 20
"""Memory of one feed. The older half of a larger one is dropped, however many events it has."""

SAMPLES: Final = 16
"""How many nodes of the stream Redis samples to estimate its size."""


@dataclass(slots=True)
class Feed:
    """The watches of one graph, as its owner knows them."""

    watches: dict[str, WatchArgs] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)
    """What each watch has been told last."""
    at: str | None = None
    """The version that they have all been told of; None: there were no watches yet."""
    n_opened: int = 0
    """How many connections to Redis had been opened before it was read."""


class Feeds:
    """Writes the feeds of the graphs of one worker. Raises RedisError."""

    def __init__(self, client: redis.Redis, keys: Keys, history: int) -> None:
        """`history`: events that are kept of each graph."""
        self._redis: Any = client
        self._keys = keys
        self._history = history
        self._left = LeftFeeds(client, keys)

    def read(self, name: str) -> Feed:
        """The watches of this name. One round trip."""
        opened = n_opened(self._redis)
        with self._redis.pipeline() as pipe:
            pipe.hgetall(self._keys.watches(name))
            pipe.hgetall(self._keys.told(name))
            watches, told = pipe.execute()
        found, at = read_watches(name, self._keys, watches, told)
        return Feed(
            watches={watch: args for watch, (args, _) in found.items()},
            seen={watch: seen for watch, (_, seen) in found.items() if seen is not None},
            at=at,
            n_opened=opened,
        )

    def may_have_changed(self, feed: Feed) -> bool:
        """Whether Redis may have been started again since the feed was read, and have come back with other watches."""
        return feed.n_opened != n_opened(self._redis)

    def announce(self, pipe: Any, name: str, graph_id: str, version: int) -> None:
        """Write that there is a new version, within the MULTI that makes it."""
        self._add(pipe, name, [version_event(name, graph_id, version)])

    def loaded(self, pipe: Any, name: str, graph_id: str) -> None:
        """Write that a graph was loaded, within the MULTI that puts it under its name. Its watches stay."""
        self.announce(pipe, name, graph_id, 1)
        for key in self._keys_of(name):
            pipe.persist(key)

    def deleted(self, pipe: Any, graph_id: str, version: int, *, name: str) -> None:
        """Write that a graph was deleted, within the MULTI that removes it."""
        self._add(pipe, name, [deleted_event(name, graph_id, version)])
        for key in self._keys_of(name):
            pipe.expire(key, ORPHANED_TTL_S)
        self._left.note(pipe, name)

    def keep_few(self) -> None:
        """Drop feeds of graphs that were deleted, if there are too many. A failure is made up for by the next one."""
        with suppress(redis.RedisError):
            self._left.keep_few()

    def tell(
        self,
        name: str,
        graph_id: str,
        epoch: int,
        version: int,
        feed: Feed,
        seen: Mapping[str, Seen],
        events: Sequence[Event],
    ) -> None:
        """Write what the watches see at a version, and the events of it, unless it was told.

        `feed` says what was told before. Raises `Fenced` if that has changed, or the graph has.
        """
        tag = version_tag(graph_id, version)
        for _ in range(MAX_TRIES):
            with self._redis.pipeline() as pipe, suppress(redis.WatchError):
                (at,) = self._look(pipe, name, graph_id, epoch, version)
                if at == tag.encode():
                    break  # by an earlier try, whose answer was lost
                refuse_other(name, at, feed.at)
                pipe.multi()
                self._add(pipe, name, events)
                pipe.hset(self._keys.told(name), mapping=self._told(tag, seen))
                pipe.execute()
                break
        else:
            raise Fenced(f"others keep writing to {name}")
        feed.at = tag
        feed.seen.update(seen)
        self._keep_small(name)

    def put(
        self,
        name: str,
        graph_id: str,
        epoch: int,
        version: int,
        told: str | None,
        args: WatchArgs,
        seen: Seen,
        job_id: str,
        result: str,
    ) -> None:
        """Write a watch, and what it sees now. `told`: the version that the others were told of last. Raises as
        `Log.append`, and `Fenced` if they were told of another."""
        tag = version_tag(graph_id, version)

        def write(pipe: Any) -> None:
            pipe.hset(self._keys.watches(name), args.watch, args.kept())
            pipe.hset(self._keys.told(name), mapping=self._told(tag, {args.watch: seen}))

        self._commit(name, graph_id, epoch, version, told, job_id, result, write)

    def drop(
        self, name: str, graph_id: str, epoch: int, version: int, told: str | None, watch: str, job_id: str
    ) -> None:
        """Forget a watch. Raises as `put`."""

        def write(pipe: Any) -> None:
            pipe.hdel(self._keys.watches(name), watch)
            pipe.hdel(self._keys.told(name), f"={watch}", f"#{watch}", f"~{watch}")

        self._commit(name, graph_id, epoch, version, told, job_id, "{}", write)

    def _commit(
        self,
        name: str,
        graph_id: str,
        epoch: int,
        version: int,
        told: str | None,
        job_id: str,
        result: str,
        write: Any,
    ) -> None:
        for _ in range(MAX_TRIES):
            with self._redis.pipeline() as pipe, suppress(redis.WatchError):
                at, outcome, status = self._look(
                    pipe,
                    name,
                    graph_id,
                    epoch,
                    version,
                    *decision(self._keys, job_id),
                    keys=[outcome_key(self._keys, job_id)],
                )
                refuse_decided(outcome, status)
                refuse_other(name, at, told)
                pipe.multi()
                write(pipe)
                commit(pipe, self._keys, job_id, result)
                pipe.execute()
                return
        raise Fenced(f"others keep writing to {name}")

    def _look(
        self, pipe: Any, name: str, graph_id: str, epoch: int, version: int, *reads: Read, keys: Sequence[str] = ()
    ) -> list[Any]:
        """The version that was told, and the answers to `reads`; all that decides is watched. Raises `Fenced`."""
        graph, told = self._keys.graph(graph_id), self._keys.told(name)
        held, at, *answers = watched(
            pipe, [graph, told, *keys], ("HMGET", graph, "version", "epoch"), ("HGET", told, AT), *reads
        )
        if held != [b"%d" % version, b"%d" % epoch]:
            raise Fenced(f"the graph is at version and epoch {held}")
        return [at, *answers]

    def _told(self, tag: str, seen: Mapping[str, Seen]) -> dict[Any, Any]:
        mapping: dict[Any, Any] = {AT: tag}
        for watch, what in seen.items():
            mapping |= what.fields(watch)
        return mapping

    def _add(self, pipe: Any, name: str, events: Sequence[Event]) -> None:
        for event in events:
            pipe.xadd(self._keys.feed(name), event.fields, maxlen=self._history, approximate=True)

    def _keep_small(self, name: str) -> None:
        """Drop the older half of a feed that takes too much memory. A failure is made up for by the next one."""
        feed = self._keys.feed(name)
        with suppress(redis.RedisError):
            n_bytes = self._redis.memory_usage(feed, samples=SAMPLES) or 0
            if n_bytes > FEED_BYTES:
                self._redis.xtrim(feed, maxlen=self._redis.xlen(feed) // 2, approximate=False)

    def _keys_of(self, name: str) -> list[str]:
        return [self._keys.feed(name), self._keys.watches(name), self._keys.told(name)]


def refuse_other(name: str, at: bytes | None, told: str | None) -> None:
    """Raises `Fenced` if the watches of a name were told of another version than their owner knows."""
    if at != (None if told is None else told.encode()):
        raise Fenced(f"the watches of {name} have been told of {at!r}")
