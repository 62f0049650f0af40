"""Which graphs there are, as API processes read it. Workers write it: `service.store.catalogue`."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import redis.asyncio

from service.store.catalogue import GraphInfo, read_info
from service.store.keys import Keys
from service.store.listed import SnapshotInfo, read_listed
from service.store.unreadable import Unreadable, each, readable, reading

MAX_LISTED: Final = 1_000
"""Graphs in one answer; what there may be of them has no bound but memory."""

READ_AT_ONCE: Final = 32
"""Graphs whose entries are read in one go, in some milliseconds of the event loop."""


class GraphPage(NamedTuple):
    """Some of the graphs, by name."""

    graphs: list[GraphInfo]
    next: str | None
    """The last name of this page if there are others behind it."""
    total: int
    """How many there are in all."""


class Catalogue:
    """Reads graphs by name, and lists them."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys
        self._looking = asyncio.Lock()
        self._names: list[str] = []
        """The names that were read at the last look. They take no more memory than one question would by itself."""
        self._look = self._begun = 0
        """The number of that look, and of the one that was begun last."""

    async def get(self, name: str) -> GraphInfo | None:
        """None: there is no graph of the name. One that is replaced between two looks is there all the same. Raises
        `Unreadable`."""
        known = None
        while (graph_id := await self._redis.hget(self._keys.names, name)) not in (None, known):
            found = graph_id.decode(errors="replace")
            with reading(f"graph {name!r}", key := self._keys.graph(found)):
                row = await self._redis.hgetall(key)
                if b"version" in row:
                    return read_info(name, found, row)
            known = graph_id
        return None

    async def snapshots(self, name: str) -> list[SnapshotInfo] | None:
        """The snapshots of a graph, the newest first; None for an unknown graph. Raises `Unreadable`."""
        graph_id = await self._redis.hget(self._keys.names, name)
        if graph_id is None:
            return None
        key = self._keys.snapshots(graph_id.decode(errors="replace"))
        return read_listed(await self._redis.get(key), key)

    async def page(self, sees: Callable[[str], bool], after: str = "", limit: int = MAX_LISTED) -> GraphPage:
        """At most so many of the graphs whose names `sees` accepts, by name, behind the name `after`.

        One round trip for the names and two for each `READ_AT_ONCE` graphs, between which the event loop goes on; more
        for each that was replaced meanwhile.
        """
        wanted, following, total = await asyncio.to_thread(_chosen, await self._all_names(), sees, after, limit)
        there: list[GraphInfo] = []
        for start in range(0, len(wanted), READ_AT_ONCE):
            there += await self._read(wanted[start : start + READ_AT_ONCE])
        return GraphPage(there, following, total)

    async def _all_names(self) -> list[str]:
        """The names of all graphs, in order. Who asks while they are being read waits for the next look at them, which
        all share who wait for it: of 20,000 graphs each takes a twentieth of a second."""
        begun_before = self._begun
        async with self._looking:
            if self._look <= begun_before:  # it may lack what has come since
                self._begun = look = self._begun + 1
                names = await self._redis.hkeys(self._keys.names)
                self._names, self._look = await asyncio.to_thread(_in_order, names, self._keys.names), look
            return self._names

    async def _read(self, names: Sequence[str]) -> list[GraphInfo]:
        """The graphs of these names that are still there and can be read, in order."""
        ids = zip(names, await self._redis.hmget(self._keys.names, names), strict=True)
        there = {name: graph_id.decode(errors="replace") for name, graph_id in ids if graph_id is not None}
        keys = [*map(self._keys.graph, there.values())]
        async with self._redis.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.hgetall(key)
            rows = each(await pipe.execute(raise_on_error=False), keys)
        found: list[GraphInfo] = []
        for (name, graph_id), key, row in zip(there.items(), keys, rows, strict=True):
            if row is None:
                continue
            with suppress(Unreadable):  # it has been told, and the others are there all the same
                with reading(f"graph {name!r}", key):
                    info = read_info(name, graph_id, row) if b"version" in row else await self.get(name)
                found += [] if info is None else [info]
        return found


def _in_order(names: Iterable[bytes], key: str) -> list[str]:
    return sorted(readable(((name, None) for name in names), key, lambda name, _: name))


def _chosen(
    names: Iterable[str], sees: Callable[[str], bool], after: str, limit: int
) -> tuple[list[str], str | None, int]:
    """The first names behind `after` of those that are seen; the last of them if others follow; how many are seen."""
    seen = list(filter(sees, names))
    start = bisect_right(seen, after)
    wanted = seen[start : start + limit]
    return wanted, wanted[-1] if len(seen) > start + limit else None, len(seen)
