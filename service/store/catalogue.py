"""The catalogue: which graphs there are, at which version, on which worker.

A graph has a name, which may be given again, and an id, which is never used twice: the id of the command that
loaded it. All its keys hang on the id, so a new graph of an old name never meets an old log.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import redis
import redis.asyncio
from pydantic import BaseModel

from service.store.keys import Keys
from service.store.log import Fenced
from service.store.snapshots import SnapshotInfo, read_listed


class GraphInfo(BaseModel):
    """What the API says about a graph (docs/api.md, Graphs)."""

    name: str
    version: int
    n_vertices: int
    n_edges: int
    n_arcs: int
    decimals: int
    bytes: int
    """Of host memory, at rest."""
    device_bytes: int = 0
    created_at: datetime
    updated_at: datetime
    engine: str
    worker: str
    source: int | str | None = None
    sink: int | str | None = None
    flow_states: int = 0


class LoadedInfo(GraphInfo):
    """What PUT answers."""

    replaced: bool
    """There was a graph of this name before."""


class Held(BaseModel):
    """What a worker must agree with before it touches a graph it holds."""

    model_config = {"frozen": True}

    graph_id: str
    version: int
    epoch: int
    base: str
    """Blob of the packed edge list the graph was loaded from."""


class Catalogue:
    """The reading side, for API processes."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys

    async def get(self, name: str) -> GraphInfo | None:
        graph_id = await self._redis.hget(self._keys.names, name)
        if graph_id is None:
            return None
        row = await self._redis.hgetall(self._keys.graph(graph_id.decode()))
        return read_info(name, row) if b"version" in row else None

    async def snapshots(self, name: str) -> list[SnapshotInfo] | None:
        """The newest first; None for an unknown graph."""
        graph_id = await self._redis.hget(self._keys.names, name)
        if graph_id is None:
            return None
        return read_listed(await self._redis.get(self._keys.snapshots(graph_id.decode())))

    async def _fetch_names(self) -> dict[str, str]:
        names = await self._redis.hgetall(self._keys.names)
        return {name.decode(): graph_id.decode() for name, graph_id in sorted(names.items())}

    async def list(self) -> list[GraphInfo]:
        """All graphs, by name. Two round trips."""
        names = await self._fetch_names()
        async with self._redis.pipeline(transaction=False) as pipe:
            for graph_id in names.values():
                pipe.hgetall(self._keys.graph(graph_id))
            rows = await pipe.execute()
        return [read_info(name, row) for name, row in zip(names, rows, strict=True) if b"version" in row]


class Registry:
    """The writing side, for the worker that owns the graphs."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys

    def hold(self, name: str, graph_id: str | None) -> tuple[str | None, str | None, Held | None]:
        """(graph id now, its owner, what the catalogue says of `graph_id` if it is still the one). One round trip."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hget(self._keys.names, name)
            pipe.hget(self._keys.owners, name)
            pipe.hmget(self._keys.graph(graph_id or ""), "version", "epoch", "base")
            current, owner, row = pipe.execute()
        now = None if current is None else current.decode()
        held = None
        if now is not None and now == graph_id and None not in row:
            held = Held(graph_id=now, version=int(row[0]), epoch=int(row[1]), base=row[2].decode())
        return now, None if owner is None else owner.decode(), held

    def owned_by(self, worker: str) -> list[str]:
        """Names of the graphs a worker serves."""
        owners = self._redis.hgetall(self._keys.owners)
        return sorted(name.decode() for name, owner in owners.items() if owner.decode() == worker)

    def sizes(self, names: Sequence[str]) -> dict[str, int]:
        """Bytes of host memory of these graphs at rest, as they were noted last; 0 for a name without a graph."""
        if not names:
            return {}
        ids = [graph_id or b"" for graph_id in self._redis.hmget(self._keys.names, names)]
        with self._redis.pipeline(transaction=False) as pipe:
            for graph_id in ids:
                pipe.hget(self._keys.graph(graph_id.decode()), "bytes")
            return {name: int(size or 0) for name, size in zip(names, pipe.execute(), strict=True)}

    def create(self, info: GraphInfo, graph_id: str, base: str) -> bool:
        """Put a graph at version 1 under its name, and drop the one that had it, in one MULTI.

        True if there was one. Raises `Fenced` if the blob has expired, another load was faster, the name is another
        worker's, this load is lost, or already committed: after a lost connection, or by who took the graph over.
        """
        with self._redis.pipeline() as pipe:
            pipe.watch(self._keys.names, self._keys.blob(base))
            self._watch_command(pipe, info.name, info.worker, graph_id)
            old = pipe.hget(self._keys.names, info.name)
            if not pipe.exists(self._keys.blob(base)):
                raise Fenced("the uploaded edges have expired")
            doomed = [] if old is None else self._keys_of(pipe, old.decode())
            pipe.multi()
            pipe.persist(self._keys.blob(base))
            pipe.hset(self._keys.names, info.name, graph_id)
            pipe.hset(self._keys.owners, info.name, info.worker)
            pipe.hset(self._keys.graph(graph_id), mapping=write_info(info) | {"epoch": 1, "base": base})
            pipe.hset(self._keys.job(graph_id), "committed", info.model_dump_json())
            if doomed:
                pipe.unlink(*doomed)
            _execute(pipe)
        return old is not None

    def remove(self, name: str, job_id: str, worker: str) -> bool:
        """Take a graph out, in one MULTI with a mark in the job that did it. False if there is none.

        Raises `Fenced` as `create` does.
        """
        with self._redis.pipeline() as pipe:
            pipe.watch(self._keys.names)
            self._watch_command(pipe, name, worker, job_id)
            graph_id = pipe.hget(self._keys.names, name)
            if graph_id is None:
                return False
            doomed = self._keys_of(pipe, graph_id.decode())
            pipe.multi()
            pipe.hdel(self._keys.names, name)
            pipe.hdel(self._keys.owners, name)
            pipe.unlink(*doomed)
            pipe.hset(self._keys.job(job_id), "committed", "{}")
            _execute(pipe)
        return True

    def disown(self, name: str) -> None:
        """Forget who was to serve a name that has no graph after all."""
        with self._redis.pipeline() as pipe:
            pipe.watch(self._keys.names)
            if not pipe.hexists(self._keys.names, name):
                pipe.multi()
                pipe.hdel(self._keys.owners, name)
                with suppress(redis.WatchError):  # a harmless entry stays
                    pipe.execute()

    def take_over(self, name: str, worker: str, old_owner: str) -> bool:
        """Make `worker` the owner if `old_owner` still is; a new epoch fences the old one off."""
        with self._redis.pipeline() as pipe:
            pipe.watch(self._keys.owners, self._keys.names)
            owner = pipe.hget(self._keys.owners, name)
            graph_id = pipe.hget(self._keys.names, name)
            if owner != old_owner.encode():
                return False
            pipe.multi()
            pipe.hset(self._keys.owners, name, worker)
            if graph_id is not None:
                pipe.hset(self._keys.graph(graph_id.decode()), "worker", worker)
                pipe.hincrby(self._keys.graph(graph_id.decode()), "epoch", 1)
            _execute(pipe)
        return True

    def note(self, graph_id: str, **fields: int) -> None:
        """Keep figures such as `flow_states` and `bytes` up to date for a graph that still exists."""
        key = self._keys.graph(graph_id)
        with self._redis.pipeline() as pipe:
            pipe.watch(key)
            if pipe.hexists(key, "version"):
                pipe.multi()
                pipe.hset(key, mapping=fields)
                with suppress(redis.WatchError):  # figures only: the next command writes them again
                    pipe.execute()

    def _watch_command(self, pipe: Any, name: str, worker: str, job_id: str) -> None:
        """A worker that was paused, or lost its connection in a commit, must not do again what is done.

        Nor what Redis has lost: its client was told so, and sends it again.
        """
        pipe.watch(self._keys.owners, self._keys.job(job_id))
        owner = pipe.hget(self._keys.owners, name)
        if owner not in (None, worker.encode()):
            raise Fenced(f"{name} is served by {owner.decode()}")
        status, committed = pipe.hmget(self._keys.job(job_id), "status", "committed")
        if committed is not None:
            raise Fenced("the command is committed")
        if status is None:
            raise Fenced("the command is lost")

    def _keys_of(self, pipe: Any, graph_id: str) -> list[str]:
        """Every key of a graph. The pipe is watching: reads run at once."""
        listed_key = self._keys.snapshots(graph_id)
        pipe.watch(listed_key)
        base = pipe.hget(self._keys.graph(graph_id), "base")
        blobs = [s.blob for s in read_listed(pipe.get(listed_key))]
        blobs += [] if base is None else [base.decode()]
        keys = [self._keys.graph(graph_id), self._keys.log(graph_id), listed_key]
        return keys + [self._keys.blob(name) for name in blobs]


def _execute(pipe: Any) -> None:
    try:
        pipe.execute()
    except redis.WatchError as error:
        raise Fenced("the catalogue changed meanwhile") from error


def write_info(info: GraphInfo) -> dict[Any, Any]:
    """Hash fields; the version and its time stand apart, as every commit changes them."""
    moving = {"name", "version", "updated_at", "worker", "flow_states", "bytes", "device_bytes"}
    static = info.model_dump_json(exclude=moving)
    return {
        "info": static,
        "version": info.version,
        "updated_at": info.updated_at.timestamp(),
        "worker": info.worker,
        "flow_states": info.flow_states,
        "bytes": info.bytes,
        "device_bytes": info.device_bytes,
    }


def read_info(name: str, row: dict[bytes, bytes]) -> GraphInfo:
    moving = {key: row[key.encode()].decode() for key in ("version", "updated_at", "worker", "flow_states", "bytes")}
    moving["device_bytes"] = row.get(b"device_bytes", b"0").decode()
    info = GraphInfo.model_validate(json.loads(row[b"info"]) | {"name": name} | moving)
    return info.model_copy(update={"updated_at": info.updated_at.astimezone(UTC)})
