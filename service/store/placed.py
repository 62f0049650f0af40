"""Where new graphs were just placed, until the heartbeat of their worker counts them.

A worker's report is a heartbeat old. Who places the next graph adds what was placed since, whichever API process did.
"""

import json
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import redis

from service.store.keys import Keys

SETTLED_S: Final = 5.0
"""A graph that was placed so long ago either waits for its load, or there will be none."""

FORGOTTEN_S: Final = 3600.0
"""Places of a worker that is gone are forgotten after so long, by whoever writes the next one."""


@dataclass(frozen=True, slots=True)
class Place:
    """A worker that is to get a new graph, and what the graph will take there, roughly."""

    worker: str
    n_bytes: int
    at: float
    """Unix seconds."""


def read_places(rows: Mapping[bytes, bytes]) -> dict[str, Place]:
    """By the name of the graph, without what is too old to count."""
    places = {name.decode(): Place(**json.loads(text)) for name, text in rows.items()}
    return {name: place for name, place in places.items() if time.time() - place.at < FORGOTTEN_S}


def write_place(pipe: Any, keys: Keys, name: str, place: Place, forgotten: Iterable[bytes]) -> None:
    """Note it, within a MULTI, and forget the others."""
    for old in forgotten:
        pipe.hdel(keys.placed, old)
    pipe.hset(keys.placed, name, json.dumps(asdict(place)))


class Settling:
    """A worker's side: forgets the places that its reports count by now, or that came to nothing. Raises RedisError."""

    def __init__(self, client: redis.Redis, keys: Keys, worker: str) -> None:
        self._redis: Any = client
        self._keys = keys
        self._worker = worker

    def settle(self, reported: Collection[str]) -> None:
        """`reported` are the graphs that the last report counts. One round trip while nothing is placed here."""
        keys = self._keys
        rows = {name.decode(): Place(**json.loads(text)) for name, text in self._redis.hgetall(keys.placed).items()}
        mine = [name for name, place in rows.items() if place.worker == self._worker]
        if not mine:
            return
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hmget(keys.owners, mine)
            pipe.hmget(keys.names, mine)
            owners, ids = pipe.execute()
        over = set(reported)
        for name, owner, graph_id in zip(mine, owners, ids, strict=True):
            waits = owner == self._worker.encode() and graph_id is None
            if time.time() - rows[name].at > SETTLED_S and not waits:
                over.add(name)
        if done := [name for name in mine if name in over]:
            self._redis.hdel(keys.placed, *done)
