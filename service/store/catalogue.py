"""The catalogue: which graphs there are, at which version, on which worker.

A graph has a name, which may be given again, and an id, which is never used twice: the id of the command that
loaded it. All its keys hang on the id, so a new graph of an old name never meets an old log.
"""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import redis
from pydantic import BaseModel

from service.errors import ServiceError
from service.protocol import Wanted
from service.store.applied import Fenced, SizeInfo
from service.store.held import HELD, Found
from service.store.jobs.outcomes import commit, decision, outcome_key, refuse_decided
from service.store.keys import Keys, generation_of
from service.store.listed import read_listed
from service.store.rounded import RoundedInfo
from service.store.states import TTL_S
from service.store.unreadable import Unreadable, each, figure, texts
from service.store.watched import Read, watched

MAX_TRIES: Final = 20
"""How often a commit is repeated because its connection is lost or others change its name."""

PAGE: Final = 1000
"""How many names are looked up at once."""

IfMatch: TypeAlias = Wanted | None
"""The version a graph must be at for a command to be done, or several that will do; ``*``: any, but it must be there;
``absent``: it must not be, which a PUT asks for, and ``new``: the same for what is to become a copy."""


class GraphInfo(BaseModel):
    """What the API says about a graph (docs/api.md, Graphs)."""

    name: str
    version: int
    generation: str = ""
    """8 hexadecimal digits, others for each load of the name: versions count from 1 in each."""
    n_vertices: int
    n_edges: int
    n_arcs: int
    decimals: int
    cost_decimals: int | None = None
    """Of the costs; None: the edges have none."""
    bytes: int
    """Bytes of host memory at rest."""
    device_bytes: int = 0
    created_at: datetime
    updated_at: datetime
    engine: str
    worker: str
    source: int | str | None = None
    sink: int | str | None = None
    flow_states: int = 0
    measured_at: datetime | None = None
    """When its worker last told `bytes`, `device_bytes`, `flow_states` and `engine`: at the latest a heartbeat after a
    change."""
    coordinates: str | None = None
    """What x and y of the vertices are, as in EPSG:4326; None: they have none."""


class LoadedInfo(GraphInfo):
    """What PUT answers."""

    replaced: bool
    """Whether there was a graph of this name before."""
    rounded: RoundedInfo | None = None
    """Of the capacities that were sent; left out where none was rounded."""
    rounded_costs: RoundedInfo | None = None

    def to_json(self) -> str:
        nothing = {name for name in ("rounded", "rounded_costs") if getattr(self, name) is None}
        return self.model_dump_json(exclude=nothing)


SIZES: Final = tuple(SizeInfo.model_fields)
"""Fields of their own once the structure of a graph has changed."""


class Registry:
    """The writing side, for the worker that owns the graphs."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys

    def find(self, name: str, guess: str | None = None) -> Found:
        """What the name stands for now. One round trip if ``guess`` is the graph's id, else two.

        Read in one MULTI: another worker may replace the graph meanwhile. Raises `Fenced` if that goes on.
        """
        for _ in range(MAX_TRIES):
            about = self._keys.names, self._keys.owners, self._keys.graph(guess or "")
            with self._redis.pipeline() as pipe:
                pipe.hget(self._keys.names, name)
                pipe.hget(self._keys.owners, name)
                pipe.hmget(about[-1], *HELD)
                current, owner, row = each(pipe.execute(raise_on_error=False), about)
            owned_by = None if owner is None else owner.decode(errors="replace")
            if current is None:
                return Found(owner=owned_by)
            graph_id = current.decode(errors="replace")
            if graph_id == guess:
                break
            guess = graph_id
        else:
            raise Fenced(f"{name} keeps changing")
        if row is None:
            row = []  # of a key of another kind, which cannot be read as a graph
        return Found(graph_id, owned_by, None if None in row else row, self._keys.graph(graph_id))

    def owned_by(self, worker: str) -> list[str]:
        """Names of the graphs a worker serves."""
        owners = texts(self._redis.hgetall(self._keys.owners), self._keys.owners)
        return sorted(name for name, owner in owners.items() if owner == worker)

    def ids(self, names: Sequence[str]) -> dict[str, str]:
        """The ids of the graphs that have these names now, without names that no graph has. A round trip for each
        thousand."""
        found: dict[str, str] = {}
        for i in range(0, len(names), PAGE):
            page = names[i : i + PAGE]
            ids = zip(page, self._redis.hmget(self._keys.names, page), strict=True)
            found |= {name: graph_id.decode(errors="replace") for name, graph_id in ids if graph_id is not None}
        return found

    def sizes(self, names: Sequence[str]) -> dict[str, int]:
        """Bytes of host memory of these graphs at rest, as they were noted last; 0 for a name without a graph."""
        if not names:
            return {}
        ids = ((graph_id or b"").decode(errors="replace") for graph_id in self._redis.hmget(self._keys.names, names))
        graphs = [*map(self._keys.graph, ids)]
        with self._redis.pipeline(transaction=False) as pipe:
            for graph in graphs:
                pipe.hget(graph, "bytes")
            sizes = each(pipe.execute(raise_on_error=False), graphs)
        return dict(zip(names, map(figure, sizes), strict=True))

    def create(
        self,
        info: GraphInfo,
        graph_id: str,
        base: str,
        if_match: IfMatch = None,
        *,
        rounded: RoundedInfo | None = None,
        rounded_costs: RoundedInfo | None = None,
        also: Callable[[Any], None] = lambda pipe: None,
    ) -> LoadedInfo:
        """Put a graph at version 1 under its name, and drop the one that had it, in one MULTI, to which `also` adds.
        What was ``rounded`` is a part of the answer.

        Raises `Cancelled`, `Committed` or `Over` for a command that is decided, version_conflict if `if_match` does not
        hold, worker_unavailable if the blob has expired, `Fenced` if the name is another worker's. A lost race, or a
        lost answer, is settled here: what was built is put under its name by the next try. Cost: three round trips.
        """
        blob = self._keys.blob(base)
        for _ in range(MAX_TRIES):
            with self._redis.pipeline() as pipe, suppress(redis.WatchError):
                old, there = self._look(pipe, info.name, info.worker, graph_id, [blob], ("EXISTS", blob))
                if not there:
                    raise ServiceError("worker_unavailable", "the uploaded edges have expired; send them again")
                doomed = self._replaced(pipe, info.name, old, if_match)
                said = info.model_dump() | {"rounded": rounded, "rounded_costs": rounded_costs}
                loaded = LoadedInfo(**said, replaced=old is not None)
                pipe.multi()
                pipe.persist(blob)
                pipe.hset(self._keys.names, info.name, graph_id)
                give(pipe, self._keys, info.name, info.worker)
                pipe.hset(self._keys.graph(graph_id), mapping=write_info(info) | {"epoch": 1, "base": base})
                commit(pipe, self._keys, graph_id, loaded.to_json())
                if doomed:
                    pipe.unlink(*doomed)
                also(pipe)
                pipe.execute()
                return loaded
        raise Fenced(f"{info.name} keeps changing")

    def remove(
        self,
        name: str,
        job_id: str,
        worker: str,
        if_match: IfMatch = None,
        also: Callable[[Any, str, int], None] = lambda pipe, graph_id, version: None,
    ) -> bool:
        """Take a graph out, in one MULTI with the outcome of the command that does it. False if there is none.

        `also` adds to the MULTI; it is told the graph's id and last version. Raises as `create` does.
        """
        for _ in range(MAX_TRIES):
            with self._redis.pipeline() as pipe, suppress(redis.WatchError):
                (old,) = self._look(pipe, name, worker, job_id, [])
                doomed = self._replaced(pipe, name, old, if_match)
                if old is None:
                    return False
                (version,) = watched(pipe, [], ("HGET", self._keys.graph(old), "version"), of_any_kind=True)
                pipe.multi()
                pipe.hdel(self._keys.names, name)
                give(pipe, self._keys, name, None)
                pipe.unlink(*doomed)
                commit(pipe, self._keys, job_id, "{}")
                also(pipe, old, figure(version))
                pipe.execute()
                return True
        raise Fenced(f"{name} keeps changing")

    def disown(self, name: str, worker: str) -> None:
        """Forget who was to serve a name that has no graph after all."""
        with self._redis.pipeline() as pipe, suppress(redis.WatchError):  # then another load has come meanwhile
            exists, owner = watched(
                pipe,
                [self._keys.claim(name)],
                ("HEXISTS", self._keys.names, name),
                ("HGET", self._keys.owners, name),
            )
            if not exists and owner == worker.encode():
                pipe.multi()
                give(pipe, self._keys, name, None)
                pipe.execute()

    def states(self, graph_id: str) -> bytes | None:
        """The packed list of flow states that `note` was last given."""
        packed: bytes | None = self._redis.get(self._keys.states(graph_id))
        return packed

    def note(self, graph_id: str, states: bytes, **fields: int | str) -> None:
        """Keep figures such as `flow_states` and `bytes`, its `engine` and the packed list of states up to date for a
        graph that still exists."""
        key = self._keys.graph(graph_id)
        with self._redis.pipeline() as pipe, suppress(redis.WatchError):  # only figures: the next command writes them
            (exists,) = watched(pipe, [key], ("HEXISTS", key, "version"))
            if exists:
                pipe.multi()
                pipe.hset(key, mapping=fields | {"measured_at": time.time()})
                pipe.set(self._keys.states(graph_id), states, ex=TTL_S)
                pipe.execute()

    def _look(self, pipe: Any, name: str, worker: str, job_id: str, keys: list[str], *reads: Read) -> list[Any]:
        """The id of the graph that has the name, and the answers to `reads`; all that decides is watched.

        A worker that was paused, or lost its connection in a commit, must not do again what is done. Nor what Redis
        has lost: its client was told so, and sends it again.
        """
        current, owner, outcome, status, *answers = watched(
            pipe,
            [self._keys.claim(name), outcome_key(self._keys, job_id), *keys],
            ("HGET", self._keys.names, name),
            ("HGET", self._keys.owners, name),
            *decision(self._keys, job_id),
            *reads,
        )
        refuse_decided(outcome, status)
        if owner not in (None, worker.encode()):
            raise Fenced(f"{name} is served by {owner!r}")
        return [None if current is None else current.decode(errors="replace"), *answers]

    def _replaced(self, pipe: Any, name: str, graph_id: str | None, if_match: IfMatch) -> list[str]:
        """Every key of the graph that is to go, watched as well. Raises version_conflict."""
        if graph_id is None:
            check_version(name, None, if_match, "")
            return []
        graph, listed = self._keys.graph(graph_id), self._keys.snapshots(graph_id)
        reads = ("HMGET", graph, "version", "base"), ("GET", listed)
        row, snapshots = watched(pipe, [graph, listed], *reads, of_any_kind=True)
        version, base = row or (None, None)
        at = None if version is None else figure(version)
        check_version(name, at, if_match, generation_of(graph_id))
        blobs = []
        with suppress(Unreadable):  # otherwise the graph could only be removed by hand in Redis
            blobs += [s.blob for s in read_listed(snapshots, listed)]
        blobs += [] if base is None else [base.decode(errors="replace")]
        own = [graph, self._keys.log(graph_id), listed, self._keys.states(graph_id)]
        return [*own, *(self._keys.blob(blob) for blob in blobs)]


def give(pipe: Any, keys: Keys, name: str, worker: str | None) -> None:
    """Write who serves a name (None: nobody), and the claim of the name, which is what others watch, within a MULTI.

    A graph that was served in place of another worker is from now on at home where it is; one that was held by a worker
    that was about to hand it over is not any more.
    """
    pipe.hdel(keys.homes, name)
    pipe.unlink(keys.hold(name))
    pipe.set(keys.claim(name), worker or "")  # also where there was none: only a key that is there can be seen to go
    if worker is None:
        pipe.hdel(keys.owners, name)
        pipe.unlink(keys.claim(name))
    else:
        pipe.hset(keys.owners, name, worker)


def check_version(name: str, version: int | None, if_match: IfMatch, generation: str) -> None:
    """Raises version_conflict unless a graph at `version` (None: there is no graph) is what the caller wants; a copy
    gets already_exists."""
    if if_match in ("absent", "new") and version is None:
        return
    if if_match == "new":
        raise ServiceError("already_exists", f"there is a graph {name!r}: delete it first, or choose another name")
    if if_match == "absent":
        raise ServiceError(
            "version_conflict", f"there is a graph {name!r}, and If-None-Match: * says not to replace it"
        )
    wanted = if_match if isinstance(if_match, list) else [if_match]
    tag = f"{generation}-{version}"
    if if_match is None or (version is not None and (if_match == "*" or version in wanted or tag in wanted)):
        return
    has = "there is no such graph" if version is None else f'it is at version {version}, "{tag}"'
    if version is not None and all(isinstance(one, str) and not one.startswith(f"{generation}-") for one in wanted):
        has += ", of another load than the one that If-Match names: read the graph anew"
    raise ServiceError("version_conflict", f"If-Match does not hold for {name!r}: {has}")


def write_info(info: GraphInfo) -> dict[Any, Any]:
    """Hash fields; the version and its time stand apart, as every commit changes them."""
    figures = {"flow_states", "bytes", "device_bytes", "measured_at"}
    moving = {"name", "version", "generation", "updated_at", "worker", *figures}
    static = info.model_dump_json(exclude=moving)
    return {
        "info": static,
        "version": info.version,
        "updated_at": info.updated_at.timestamp(),
        "worker": info.worker,
        "flow_states": info.flow_states,
        "bytes": info.bytes,
        "device_bytes": info.device_bytes,
        "engine": info.engine,
        "measured_at": info.updated_at.timestamp(),
    }


def read_info(name: str, graph_id: str, row: dict[bytes, bytes]) -> GraphInfo:
    """What is said of a graph. Raises `unreadable.NOT_READ`."""
    moving = {key: row[key.encode()].decode() for key in ("version", "updated_at", "worker", "flow_states", "bytes")}
    moving["device_bytes"] = row.get(b"device_bytes", b"0").decode()
    measured_at = float(row.get(b"measured_at") or moving["updated_at"])  # an earlier release kept none
    moving |= {key: row[key.encode()].decode() for key in (*SIZES, "engine") if key.encode() in row}
    ends = json.loads(row.get(b"ends", b"{}"))
    info = GraphInfo.model_validate(json.loads(row[b"info"]) | {"name": name} | moving | ends)
    info.generation = generation_of(graph_id)
    info.updated_at, info.measured_at = info.updated_at.astimezone(UTC), datetime.fromtimestamp(measured_at, UTC)
    return info
