"""Which graphs there are, as API processes read it. Workers write it: `service.store.catalogue`."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import redis.asyncio

from service.store.catalogue import GraphInfo, read_info
from service.store.keys import Keys
from service.store.listed import SnapshotInfo, read_listed

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

    async def get(self, name: str) -> GraphInfo | None:
        """None: there is no graph of the name. One that is replaced between two looks is there all the same."""
        known = None
        while (graph_id := await self._redis.hget(self._keys.names, name)) not in (None, known):
            row = await self._redis.hgetall(self._keys.graph(graph_id.decode()))
            if b"version" in row:
                return read_info(name, graph_id.decode(), row)
            known = graph_id
        return None

    async def snapshots(self, name: str) -> list[SnapshotInfo] | None:
        """The newest first; None for an unknown graph."""
        graph_id = await self._redis.hget(self._keys.names, name)
        if graph_id is None:
            return None
        return read_listed(await self._redis.get(self._keys.snapshots(graph_id.decode())))

    async def _fetch_names(self) -> dict[str, str]:
        names = await self._redis.hgetall(self._keys.names)
        return {name.decode(): graph_id.decode() for name, graph_id in sorted(names.items())}

    async def page(self, sees: Callable[[str], bool], after: str = "", limit: int = MAX_LISTED) -> GraphPage:
        """At most so many of the graphs whose names `sees` accepts, by name, behind the name `after`.

        One round trip for the names and one for each `READ_AT_ONCE` graphs, between which the event loop goes on; more
        for each that was replaced meanwhile.
        """
        seen = {name: graph_id for name, graph_id in (await self._fetch_names()).items() if sees(name)}
        behind = [name for name in seen if name > after]
        wanted = behind[:limit]
        there: list[GraphInfo] = []
        for start in range(0, len(wanted), READ_AT_ONCE):
            there += await self._read({name: seen[name] for name in wanted[start : start + READ_AT_ONCE]})
        return GraphPage(there, wanted[-1] if len(behind) > limit else None, len(seen))

    async def _read(self, ids: dict[str, str]) -> list[GraphInfo]:
        """The graphs of these names that are still there, in order."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for graph_id in ids.values():
                pipe.hgetall(self._keys.graph(graph_id))
            rows = await pipe.execute()
        found = [
            read_info(name, graph_id, row) if b"version" in row else await self.get(name)
            for (name, graph_id), row in zip(ids.items(), rows, strict=True)
        ]
        return [info for info in found if info is not None]
