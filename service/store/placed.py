"""Where new graphs were just placed, until the heartbeat of their worker counts them.

A worker's report is a heartbeat old. Who places the next graph adds what was placed since, whichever API process did.
"""

import json
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import redis
from pydantic import TypeAdapter

from service.store.keys import Keys
from service.store.unreadable import readable

SETTLED_S: Final = 5.0
"""After this time a placed graph is either waiting for its load, or will not be loaded."""

FORGOTTEN_S: Final = 3600.0
"""Places of a worker that is gone are removed after this time by the next API process that writes one."""


@dataclass(frozen=True, slots=True)
class Place:
    """A worker that is to get a new graph, and what the graph will take there, roughly."""

    worker: str
    n_bytes: int
    at: float
    """Unix seconds."""


PLACE: Final = TypeAdapter(Place)


def read_places(rows: Mapping[bytes, bytes], keys: Keys) -> dict[str, Place]:
    """By the name of the graph, without what is too old to count."""
    return {name: place for name, place in _read(rows, keys).items() if _age_s(place) < FORGOTTEN_S}


def _read(rows: Mapping[bytes, bytes], keys: Keys) -> dict[str, Place]:
    """By the name of the graph, without rows that are no places."""
    return dict(readable(rows.items(), keys.placed, lambda name, text: (name, PLACE.validate_json(text))))


def _age_s(place: Place) -> float:
    """How long ago it was written. A clock may have been ahead then: what is from a time to come counts as old as it
    is ahead, lest it counts for as long as the clock was ahead."""
    return abs(time.time() - place.at)


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
        rows = _read(self._redis.hgetall(keys.placed), keys)
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
            if _age_s(rows[name]) > SETTLED_S and not waits:
                over.add(name)
        if done := [name for name in mine if name in over]:
            self._redis.hdel(keys.placed, *done)
