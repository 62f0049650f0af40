"""The update log of one graph: a stream whose entry ids are the versions.

Redis refuses an id that is not above the last one, so a second or stale writer cannot append: that is the fence.
Appending is the commit of a PATCH; it goes into one MULTI with the version in the catalogue.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import redis
import zstandard

from gpu_engine.networks.costs import CostChange
from gpu_engine.networks.lowers import LowerChange
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.updates import Change
from gpu_engine.types import EdgeArray, UnitArray, VertexArray
from gpu_engine.vertices.table import VertexChange
from service.store.applied import Applied, EndsInfo, Fenced, SizeInfo
from service.store.jobs.outcomes import commit, outcome_key, refuse_decided, status_read
from service.store.keys import Keys, generation_of
from service.store.structures import pack_structure, unpack_structure
from service.store.watched import watched

Packed: TypeAlias = tuple["Entry", dict[Any, Any]]
"""An entry, and the fields that it has in the stream."""

Also: TypeAlias = Callable[[Any, int], None]
"""Queues what belongs into the MULTI of a commit: gets the pipeline and the version."""

PAGE = 256
"""How many entries are read at a time in a replay."""

MAX_TRIES = 10
"""How often an append is repeated because its connection is lost or others write to its graph."""


class BrokenLog(RuntimeError):
    """The log has a gap or an unreadable entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    version: int
    applied: Applied
    change: Change
    costs: CostChange | None = None
    """The changes of costs; None where none changes, or the graph has none."""
    vertices: VertexChange | None = None
    """Capacities of vertices that change, or that are the first ones."""
    structure: Structure | None = None
    """What is inserted and deleted, if anything is. The change then has the capacities of inserted edges too."""
    counts: SizeInfo | None = None
    """How large the graph is then, if its structure changes."""
    ends: EndsInfo | None = None
    """Its default terminals then, if vertices are deleted, or there again."""
    lower: LowerChange | None = None
    """Lower bounds of edges that change."""

    def result_json(self, graph_id: str) -> str:
        """The answer to the PATCH, without the flows that it changed."""
        flows: dict[str, Any] = {"flow_states": [], "timings_ms": {}}
        return json.dumps(
            {"version": self.version, "generation": generation_of(graph_id)} | self.applied.counts | flows
        )


class Log:
    """Appends to the logs of graphs, and replays them."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys

    def append(
        self,
        graph_id: str,
        epoch: int,
        updates: Sequence[tuple[Entry, str]],
        updated_at: float,
        also: Also = lambda pipe, version: None,
    ) -> None:
        """Commit entries as the versions after the present one, each as the outcome of the command with the id beside
        it, all in one MULTI; `also` adds to it, for each version.

        Raises `Fenced`, `Cancelled`, `Committed` or `Over`, and then nothing is written. After a ConnectionError it is
        not known what was: read the log again. Cost: two round trips.
        """
        for _ in range(MAX_TRIES):
            with self._redis.pipeline() as pipe, suppress(redis.WatchError):  # a lost answer is a WatchError as well
                if self._are_there(pipe, graph_id, epoch, updates):
                    return
                pipe.multi()
                self.queue(pipe, graph_id, [pack(entry) for entry, _ in updates], updated_at, also)
                for entry, job_id in updates:
                    commit(pipe, self._keys, job_id, entry.result_json(graph_id))
                _execute(pipe)
                return
        raise Fenced("others keep writing to the graph")

    def queue(self, pipe: Any, graph_id: str, some: Sequence[Packed], updated_at: float, also: Also) -> None:
        """Queue what commits these entries, and what `also` adds for each version, on a pipeline that has watched the
        graph's hash since it said the version before the first of them, and the epoch."""
        moving: dict[Any, Any] = {"version": some[-1][0].version, "updated_at": updated_at}
        for entry, fields in some:
            pipe.xadd(self._keys.log(graph_id), fields, id=f"{entry.version}-0")
            if entry.structure is not None and entry.counts is not None:
                moving |= entry.counts.model_dump()
            if entry.ends is not None:
                moving["ends"] = entry.ends.model_dump_json()
            also(pipe, entry.version)
        pipe.hset(self._keys.graph(graph_id), mapping=moving)

    def _are_there(self, pipe: Any, graph_id: str, epoch: int, updates: Sequence[tuple[Entry, str]]) -> bool:
        """Whether an earlier try has written the entries, whose answer was lost. Raises as `append` does."""
        graph, jobs = self._keys.graph(graph_id), [job_id for _, job_id in updates]
        names = [outcome_key(self._keys, job_id) for job_id in jobs]
        held, outcomes, *statuses = watched(
            pipe,
            [graph, *names],
            ("HMGET", graph, "version", "epoch"),
            ("MGET", *names),
            *(status_read(self._keys, job_id) for job_id in jobs),
        )
        is_at_last = held == [b"%d" % updates[-1][0].version, b"%d" % epoch]
        if is_at_last and all(outcomes) and outcomes == [entry.result_json(graph_id).encode() for entry, _ in updates]:
            return True
        for outcome, status in zip(outcomes, statuses, strict=True):
            refuse_decided(outcome, status)
        if held != [b"%d" % (updates[0][0].version - 1), b"%d" % epoch]:
            raise Fenced(f"the graph is at version and epoch {held}")
        return False

    def replay(self, graph_id: str, after: int) -> Iterator[Entry]:
        """Entries after version `after`, in order; raises `BrokenLog` at a gap or an unreadable entry."""
        for version, fields in self._entries(graph_id, after):
            yield _read_entry(version, fields)

    def structures(self, graph_id: str, after: int) -> Iterator[Structure]:
        """The changes of structure after version `after`, in order; raises as `replay`. Nothing else is unpacked."""
        for version, fields in self._entries(graph_id, after):
            if b"structure" in fields:
                yield _read_structure(version, fields[b"structure"])

    def _entries(self, graph_id: str, after: int) -> Iterator[tuple[int, dict[bytes, bytes]]]:
        """Versions and fields; raises `BrokenLog` at a gap."""
        version = after
        while True:
            page = self._redis.xrange(self._keys.log(graph_id), f"{version + 1}-0", "+", PAGE)
            for entry_id, fields in page:
                if entry_id != b"%d-0" % (version + 1):
                    raise BrokenLog(f"version {version + 1} is missing, {entry_id.decode()} follows")
                version += 1
                yield version, fields
            if len(page) < PAGE:
                return


def pack(entry: Entry) -> Packed:
    """The entry with what it is in the stream. O(what it changes)."""
    fields: dict[Any, Any] = {"applied": entry.applied.model_dump_json(exclude_none=True)}
    # Under another name beside what an earlier release does not know: it must not take the rest for the whole update.
    is_known = entry.structure is None and entry.vertices is None
    name = "bounded" if entry.lower is not None else "change" if is_known else "values"
    fields[name] = pack_change(entry.change)
    if entry.structure is not None:
        fields["structure"] = pack_structure(entry.structure)
    if entry.costs is not None:
        fields["costs"] = pack_units(entry.costs.rows, entry.costs.cost)
    if entry.vertices is not None:
        fields["vertices"] = pack_units(entry.vertices.vertices, entry.vertices.capacity)
    if entry.lower is not None:
        fields["lower"] = pack_units(entry.lower.rows, entry.lower.lower)
    return entry, fields


def _execute(pipe: Any) -> None:
    try:
        pipe.execute()
    except redis.ResponseError as error:
        if "equal or smaller" not in str(error):
            raise  # full, or a disk that is
        raise Fenced(str(error)) from error


def _read_entry(version: int, fields: dict[bytes, bytes]) -> Entry:
    try:
        applied = Applied.model_validate_json(fields[b"applied"])
        costs = CostChange(*unpack_units(fields[b"costs"])) if b"costs" in fields else None
        vertices = _read_vertices(fields[b"vertices"]) if b"vertices" in fields else None
        structure = _read_structure(version, fields[b"structure"]) if b"structure" in fields else None
        lower = LowerChange(*unpack_units(fields[b"lower"])) if b"lower" in fields else None
        is_known = structure is None and vertices is None
        packed = fields[b"bounded" if lower is not None else b"change" if is_known else b"values"]
        change = unpack_change(packed, applied.skipped, applied.unchanged)
        return Entry(version, applied, change, costs, vertices, structure, lower=lower)
    except (KeyError, ValueError, zstandard.ZstdError) as error:
        raise BrokenLog(f"version {version} cannot be read: {error}") from error


def _read_vertices(data: bytes) -> VertexChange:
    vertices, capacity = unpack_units(data)
    return VertexChange(vertices.astype(np.int32), capacity)


def _read_structure(version: int, data: bytes) -> Structure:
    try:
        return unpack_structure(data)
    except (KeyError, ValueError, OSError, zstandard.ZstdError) as error:
        raise BrokenLog(f"version {version} cannot be read: {error}") from error


def pack_change(change: Change) -> bytes:
    """Rows int64[k], own capacities int64[k] and closed flags, compressed, with a checksum."""
    columns = (change.rows.astype("<i8"), change.own.astype("<i8"), change.closed.astype(np.uint8))
    raw = b"".join(column.tobytes() for column in columns)
    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(raw)


def unpack_change(data: bytes, skipped: int = 0, unchanged: int = 0) -> Change:
    """The inverse of `pack_change`; raises ValueError or ZstdError."""
    raw = zstandard.ZstdDecompressor().decompress(data)
    k, rest = divmod(len(raw), 17)
    if rest:
        raise ValueError(f"{len(raw)} bytes are no whole number of rows")
    return Change(
        rows=np.frombuffer(raw, "<i8", k).astype(np.int64),
        own=np.frombuffer(raw, "<i8", k, 8 * k).astype(np.int64),
        closed=np.frombuffer(raw, np.uint8, k, 16 * k).astype(np.bool_),
        skipped=skipped,
        unchanged=unchanged,
    )


def pack_units(rows: EdgeArray | VertexArray, units: UnitArray) -> bytes:
    """Rows or vertices int64[k] and costs or capacities int64[k], compressed, with a checksum."""
    raw = rows.astype("<i8").tobytes() + units.astype("<i8").tobytes()
    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(raw)


def unpack_units(data: bytes) -> tuple[EdgeArray, UnitArray]:
    """The inverse; raises ValueError or ZstdError."""
    raw = zstandard.ZstdDecompressor().decompress(data)
    k, rest = divmod(len(raw), 16)
    if rest:
        raise ValueError(f"{len(raw)} bytes are no whole number of rows")
    rows, units = np.frombuffer(raw, "<i8", k), np.frombuffer(raw, "<i8", k, 8 * k)
    return rows.astype(np.int64), units.astype(np.int64)
