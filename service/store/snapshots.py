"""Snapshots of a graph's capacities at a version. The topology is written once, as the graph's base blob.

A snapshot is written under a new blob name with an expiry, read back and checked, adopted and listed by one
MULTI, and only then is the log trimmed. The log keeps what the snapshot *before* the newest one needs, so a
broken newest snapshot loses nothing.
"""

import io
import time
from collections.abc import Container
from contextlib import suppress
from typing import Any, Final

import numpy as np
import redis
import zstandard
from pydantic import BaseModel, TypeAdapter

from gpu_engine.networks.structure import Structure
from gpu_engine.types import BoolArray, UnitArray, VertexArray
from service.store.applied import Applied, Fenced
from service.store.blobs import Blobs, BrokenBlob
from service.store.keys import Keys
from service.store.listed import KEEP, LISTED, SnapshotInfo, read_listed
from service.store.room import Need
from service.store.structures import pack_structure, unpack_structure
from service.store.watched import watched

UNADOPTED_TTL_S: Final = 600
MAX_TRIES: Final = 5


class BrokenSnapshot(BrokenBlob):
    """What a snapshot holds is not what was written, or does not go with its graph."""


class Superseded(Fenced):
    """There is a newer snapshot of the graph."""


class KnownKey(BaseModel):
    """One idempotency key a snapshot remembers, since its log entry may be trimmed."""

    version: int
    applied: Applied


class Capacities(BaseModel):
    """The content of a snapshot: own capacities int64[m], closed bool[m], recent keys (oldest first), and costs
    int64[m] if the graph has any."""

    model_config = {"arbitrary_types_allowed": True}

    version: int
    own: UnitArray
    closed: BoolArray
    known: list[KnownKey]
    cost: UnitArray | None = None
    lower: UnitArray | None = None
    """int64[m], lower bounds; None: no edge has ever had one."""
    limited: VertexArray | None = None
    """int32[k], rising: the vertices that have a capacity; None: none has."""
    vertex_capacity: UnitArray | None = None
    """int64[k], of these."""
    structure: Structure | None = None
    """All that was inserted and deleted since the graph was loaded; None where nothing was."""

    @property
    def commit(self) -> str | None:
        """The mark of the last update that is in the snapshot; None for a graph as it was loaded."""
        last = self.known[-1] if self.known else None
        return last.applied.commit if last is not None and last.version == self.version else None


KNOWN = TypeAdapter(list[KnownKey])


class Snapshots:
    """Writes, lists and reads snapshots."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys
        self._blobs = Blobs(client, keys)

    def listed(self, graph_id: str) -> list[SnapshotInfo]:
        """The snapshots of a graph, the newest first."""
        key = self._keys.snapshots(graph_id)
        return read_listed(self._redis.get(key), key)

    def write(self, name: str, graph_id: str, epoch: int, capacities: Capacities) -> SnapshotInfo:
        """Make `capacities` the newest snapshot and trim the log; raises `Fenced`, `BrokenBlob` or out_of_memory."""
        data = pack_capacities(capacities)
        blob = self._blobs.put(data, UNADOPTED_TTL_S, Need.ANSWER)
        if self._blobs.get(blob) != data:
            raise BrokenBlob(f"blob {blob} was not read back as written")
        info = SnapshotInfo(version=capacities.version, bytes=len(data), created_at=time.time(), blob=blob)
        for _ in range(MAX_TRIES):
            if self._adopt(name, graph_id, epoch, info, capacities.commit):
                return info
        raise Fenced("the list of snapshots keeps changing")

    def read(self, info: SnapshotInfo) -> Capacities:
        """The content of a snapshot. Raises `BrokenSnapshot` whatever is wrong with it."""
        try:
            return unpack_capacities(self._blobs.get(info.blob))
        except (BrokenBlob, ValueError, KeyError, OSError, zstandard.ZstdError) as error:
            raise BrokenSnapshot(f"the snapshot of version {info.version} cannot be read: {error}") from error

    def _adopt(self, name: str, graph_id: str, epoch: int, info: SnapshotInfo, commit: str | None) -> bool:
        """Put the snapshot into the list; False if the list has changed meanwhile.

        Updates of the graph do not disturb: its version only grows, and a new epoch or another graph of the name is
        seen by its claim. `commit` is the mark of the update that led to the snapshot's version.
        """
        graph, listed_key, blob = self._keys.graph(graph_id), self._keys.snapshots(graph_id), self._keys.blob(info.blob)
        entry_id = f"{info.version}-0"
        with self._redis.pipeline() as pipe:
            (version, held_epoch), exists, listed, logged = watched(
                pipe,
                [self._keys.claim(name), listed_key, blob],
                ("HMGET", graph, "version", "epoch"),
                ("EXISTS", blob),
                ("GET", listed_key),
                ("XRANGE", self._keys.log(graph_id), entry_id, entry_id),
            )
            if held_epoch != b"%d" % epoch or not exists:
                raise Fenced("the graph changed hands")
            if int(version) < info.version:  # Redis came back from before it: what we hold was never kept
                raise Fenced(f"the graph is at version {int(version)}, the snapshot at {info.version}")
            before = read_listed(listed, listed_key)
            if any(info.version < s.version <= int(version) for s in before):
                raise Superseded(
                    "there is a newer snapshot"
                )  # this one is of a copy that gave way while another went on
            if commit != _commit(logged):  # Redis came back from before it, and the version was reached another way
                raise Fenced(f"the graph came to version {info.version} by another update than the snapshot has")
            kept = [info, *(s for s in before if s.version != info.version)][:KEEP]
            dropped = [self._keys.blob(s.blob) for s in before if s not in kept]
            pipe.multi()
            pipe.persist(blob)
            pipe.set(listed_key, LISTED.dump_json(kept))
            if len(kept) == KEEP:
                pipe.xtrim(self._keys.log(graph_id), minid=f"{kept[-1].version + 1}-0", approximate=False)
            if dropped:
                pipe.unlink(*dropped)
            try:
                pipe.execute()
            except redis.WatchError:
                return False
        return True

    def drop(self, graph_id: str, broken: SnapshotInfo) -> None:
        """Strike a broken snapshot off the list, so that the log is never trimmed up to it."""
        key = self._keys.snapshots(graph_id)
        with self._redis.pipeline() as pipe, suppress(redis.WatchError):  # another restore of the graph was first
            (listed,) = watched(pipe, [key], ("GET", key))
            kept = [s for s in read_listed(listed, key) if s.blob != broken.blob]
            pipe.multi()
            pipe.set(key, LISTED.dump_json(kept))
            pipe.unlink(self._keys.blob(broken.blob))
            pipe.execute()


def _commit(logged: list[tuple[bytes, dict[bytes, bytes]]]) -> str | None:
    """The mark of a log entry; None if the entry is not there."""
    return Applied.model_validate_json(logged[0][1][b"applied"]).commit if logged else None


NEWER: Final = frozenset({"structure", "vertex_capacity"})
"""Columns that the first release did not know."""


def _count_of(columns: Container[str]) -> str:
    """What the number of edges is called. An earlier release must not read what it knows and leave out the rest: it
    looks for another name."""
    if "lower" in columns:
        return "edges"
    return "rows" if any(name in columns for name in NEWER) else "count"


def pack_capacities(capacities: Capacities) -> bytes:
    """An npz of plain arrays, compressed, with a checksum."""
    plain = io.BytesIO()
    known = np.frombuffer(KNOWN.dump_json(capacities.known), np.uint8)
    columns: dict[str, Any] = {} if capacities.cost is None else {"cost": capacities.cost}
    if capacities.vertex_capacity is not None:
        columns |= {"limited": capacities.limited, "vertex_capacity": capacities.vertex_capacity}
    if capacities.structure is not None:
        columns["structure"] = np.frombuffer(pack_structure(capacities.structure), np.uint8)
    if capacities.lower is not None:
        columns["lower"] = capacities.lower
    columns[_count_of(columns)] = np.int64(len(capacities.own))
    np.savez(
        plain,
        version=np.int64(capacities.version),
        own=capacities.own,
        closed=np.packbits(capacities.closed),
        known=known,
        **columns,
    )
    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(plain.getvalue())


def unpack_capacities(data: bytes) -> Capacities:
    """The inverse of `pack_capacities`; raises ValueError, KeyError, OSError or ZstdError."""
    with np.load(io.BytesIO(zstandard.ZstdDecompressor().decompress(data)), allow_pickle=False) as arrays:
        count = int(arrays[_count_of(arrays.files)])
        own = arrays["own"]
        closed = np.unpackbits(arrays["closed"], count=count).astype(np.bool_)
        if own.shape != (count,) or own.dtype != np.int64:
            raise ValueError(f"{own.shape} capacities of {own.dtype} for {count} edges")
        cost = arrays["cost"] if "cost" in arrays.files else None
        if cost is not None and (cost.shape != (count,) or cost.dtype != np.int64):
            raise ValueError(f"{cost.shape} costs of {cost.dtype} for {count} edges")
        lower = arrays["lower"] if "lower" in arrays.files else None
        if lower is not None and (lower.shape != (count,) or lower.dtype != np.int64):
            raise ValueError(f"{lower.shape} lower bounds of {lower.dtype} for {count} edges")
        limited, of_vertices = None, None
        if "vertex_capacity" in arrays.files:
            limited, of_vertices = arrays["limited"], arrays["vertex_capacity"]
            if limited.ndim != 1 or limited.shape != of_vertices.shape or of_vertices.dtype != np.int64:
                raise ValueError(f"{of_vertices.shape} capacities of {of_vertices.dtype} for {limited.shape} vertices")
        known = KNOWN.validate_json(arrays["known"].tobytes())
        structure = unpack_structure(arrays["structure"].tobytes()) if "structure" in arrays.files else None
        version = int(arrays["version"])
        return Capacities(
            version=version,
            own=own,
            closed=closed,
            known=known,
            cost=cost,
            lower=lower,
            limited=limited,
            vertex_capacity=of_vertices,
            structure=structure,
        )
