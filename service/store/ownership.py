"""Who serves a graph, and how that changes: a takeover from a worker that is away, and the way back.

Each change is one MULTI with a new fencing epoch. It watches the graph's claim, as every submission and every commit
about the name does: a command is either queued before the change, and goes with it, or behind it, with the new owner.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import redis

from service.store.applied import Fenced
from service.store.catalogue import give
from service.store.jobs.record import graph_of, waiting_jobs
from service.store.keys import Keys
from service.store.unreadable import each, figure, texts
from service.store.watched import watched

MAX_TRIES: Final = 20
"""How often a takeover is repeated because its connection is lost or others change its graph."""

TRIES_BACK: Final = 3
"""How often the way back of a graph is tried at a heartbeat; the next heartbeat tries again."""

MOST_WAITING: Final = 2000
"""How many commands of a worker are searched for those of one graph."""


@dataclass(frozen=True, slots=True)
class Loads:
    """Bytes at rest as the catalogue has them, host and device together."""

    of_graph: dict[str, int]
    of_worker: dict[str, int]
    owner: dict[str, str]
    """Who serves each graph that there is."""

    def owned_by(self, worker: str) -> list[str]:
        """The graphs of a worker, the smallest first, so that most of them have moved soon."""
        return sorted((name for name, owner in self.owner.items() if owner == worker), key=self.of_graph.__getitem__)


class Ownership:
    """Takes graphs over and hands them back, for one worker. Raises RedisError."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys

    def take_over(
        self, name: str, worker: str, old_owner: str, also: Callable[[Any], None] = lambda pipe: None
    ) -> bool:
        """Make `worker` the owner if `old_owner` still is; `also` adds to the MULTI. Raises `Fenced`.

        The graph remembers where it comes from, through any number of takeovers.
        """
        keys = self._keys
        for _ in range(MAX_TRIES):
            with self._redis.pipeline() as pipe, suppress(redis.WatchError):
                owner, graph_id, home = watched(
                    pipe,
                    [keys.claim(name)],
                    ("HGET", keys.owners, name),
                    ("HGET", keys.names, name),
                    ("HGET", keys.homes, name),
                )
                if owner != old_owner.encode():
                    return False
                pipe.multi()
                give(pipe, keys, name, worker)
                if graph_id is not None:
                    fence(pipe, keys, graph_id.decode(errors="replace"), worker)
                    home = old_owner if home is None else home.decode(errors="replace")
                    if home != worker:
                        pipe.hset(keys.homes, name, home)
                also(pipe)
                pipe.execute()
                return True
        raise Fenced(f"{name} keeps changing")

    def hand_back(self, name: str, worker: str, home: str) -> bool:
        """Give a graph of `worker` to `home`, and let it know. False if it is not the time.

        That is while commands about it wait for `worker`, which must not be overtaken by later ones, while `home` is
        away, or while the worker's queue changes too fast to be looked through.
        """
        keys = self._keys
        for _ in range(TRIES_BACK):
            with self._redis.pipeline() as pipe, suppress(redis.WatchError):
                owner, graph_id, alive, waiting = watched(
                    pipe,
                    [keys.claim(name), keys.commands(worker)],
                    ("HGET", keys.owners, name),
                    ("HGET", keys.names, name),
                    ("EXISTS", keys.lease(home)),
                    waiting_jobs(keys, worker, MOST_WAITING + 1),
                )
                if owner != worker.encode() or graph_id is None or not alive or len(waiting) > MOST_WAITING:
                    return False
                jobs = [job.decode(errors="replace") for job in waiting]
                if name.encode() in watched(pipe, [], *(graph_of(keys, job) for job in jobs)):
                    return False
                pipe.multi()
                give(pipe, keys, name, home)
                fence(pipe, keys, graph_id.decode(errors="replace"), home)
                pipe.xadd(keys.control(home), {"restore": name}, maxlen=MOST_WAITING, approximate=True)
                pipe.execute()
                return True
        return False

    def away_from_home(self, worker: str) -> dict[str, str]:
        """Graphs that `worker` serves in place of another, with that other. One or two round trips."""
        homes = texts(self._redis.hgetall(self._keys.homes), self._keys.homes)
        owners = self._redis.hmget(self._keys.owners, [*homes]) if homes else []
        served = zip(homes.items(), owners, strict=True)
        return {name: home for (name, home), owner in served if owner == worker.encode()}

    def loads(self) -> Loads:
        """What all graphs and their owners hold. Two round trips."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hgetall(self._keys.names)
            pipe.hgetall(self._keys.owners)
            found, owners = pipe.execute()
            names = texts(found, self._keys.names)
            graphs = [*map(self._keys.graph, names.values())]
            for graph in graphs:
                pipe.hmget(graph, "bytes", "device_bytes")
            told = each(pipe.execute(raise_on_error=False), graphs)
        sizes = [sum(map(figure, figures or ())) for figures in told]
        of_graph = dict(zip(names, sizes, strict=True))
        of_worker: dict[str, int] = {}
        owner_of = texts(owners, self._keys.owners)
        for name, owner in owner_of.items():
            of_worker[owner] = of_worker.get(owner, 0) + of_graph.get(name, 0)
        return Loads(of_graph, of_worker, {name: owner for name, owner in owner_of.items() if name in of_graph})


def fence(pipe: Any, keys: Keys, graph_id: str, worker: str) -> None:
    """Begin a new epoch, within a MULTI: commits of the owner before are refused by it."""
    pipe.hset(keys.graph(graph_id), "worker", worker)
    pipe.hincrby(keys.graph(graph_id), "epoch", 1)
