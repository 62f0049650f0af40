"""A graph goes from the worker that serves it to another one, with the commands that wait for it, in one MULTI.

Commands are held back for the moment between the look at what waits and the change of owner: a hold is a key that
expires, and every submission looks at it. So none is left behind, and none overtakes another.
"""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

import redis

from service.protocol import Command
from service.store.applied import Fenced
from service.store.catalogue import give
from service.store.jobs.transitions import Entry, move
from service.store.keys import Keys
from service.store.ownership import fence
from service.store.watched import watched

HOLD_MS: Final = 10_000
"""How long commands are held back if the worker that holds them dies. Callers are told to try again after 1.5 s."""

MAX_TRIES: Final = 20
MOST_TOLD: Final = 2000


Wish = Literal["prepare", "restore"]
"""What another worker is told to do: read a graph before it is to serve it, or one that it serves from now on."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A command that waits in the stream of the worker, as its entry has it."""

    entry_id: bytes
    fields: dict[bytes, bytes]
    command: Command


class Handover:
    """Hands graphs of one worker over. Raises RedisError; then it is not known whether a graph has been."""

    def __init__(self, client: redis.Redis, keys: Keys, worker: str) -> None:
        self._redis: Any = client
        self._keys = keys
        self._worker = worker

    def hold(self, name: str) -> str | None:
        """Have no command queued about the graph from now on; what `switch` and `release` are to be given. None if the
        graph is not the worker's, or not there."""
        keys, token = self._keys, uuid.uuid4().hex
        for _ in range(MAX_TRIES):
            with self._redis.pipeline() as pipe, suppress(redis.WatchError):
                reads = ("HGET", keys.owners, name), ("HEXISTS", keys.names, name)
                owner, exists = watched(pipe, [keys.claim(name)], *reads)
                if owner != self._worker.encode() or not exists:
                    return None
                pipe.multi()
                pipe.set(keys.hold(name), token, px=HOLD_MS)
                pipe.set(keys.claim(name), self._worker)  # who has looked before is to look again
                pipe.execute()
                return token
        raise Fenced(f"{name} keeps changing")

    def release(self, name: str, token: str) -> None:
        """Let commands be queued again."""
        with self._redis.pipeline() as pipe, suppress(redis.WatchError):
            (held,) = watched(pipe, [self._keys.hold(name)], ("GET", self._keys.hold(name)))
            if held == token.encode():
                pipe.multi()
                pipe.delete(self._keys.hold(name))
                pipe.execute()

    def switch(
        self, name: str, to: str, token: str, waiting: Sequence[Queued], reply: str, home: str | None = None
    ) -> bool:
        """Make `to` the owner of a graph that is held, give it what waits, and let it know; it is to write to the key
        `reply` once it serves the graph. With `home` the graph goes back there some day.

        False, and nothing is changed, if the hold is over, or `to` is away.
        """
        keys, tried = self._keys, False
        for _ in range(MAX_TRIES):
            with self._redis.pipeline() as pipe, suppress(redis.WatchError):  # a lost answer is one as well
                owner, graph_id, held, alive = watched(
                    pipe,
                    [keys.claim(name), keys.hold(name)],
                    ("HGET", keys.owners, name),
                    ("HGET", keys.names, name),
                    ("GET", keys.hold(name)),
                    ("EXISTS", keys.lease(to)),
                )
                if tried and owner == to.encode():
                    return True
                if owner != self._worker.encode() or graph_id is None or held != token.encode() or not alive:
                    return False
                pipe.multi()
                give(pipe, keys, name, to)
                fence(pipe, keys, graph_id.decode(errors="replace"), to)
                if home is not None and home != to:
                    pipe.hset(keys.homes, name, home)
                for one in waiting:
                    move(pipe, keys, one.command, Entry(self._worker, one.entry_id), one.fields, to)
                pipe.xadd(keys.control(to), {"restore": name, "answer_to": reply}, maxlen=MOST_TOLD, approximate=True)
                tried = True
                pipe.execute()
                return True
        raise Fenced(f"{name} keeps changing")

    def tell(self, to: str, what: Wish, name: str, reply: str) -> None:
        """Have another worker read a graph that is its own, or is to be, and write to the key `reply` when it has."""
        told = {what: name, "answer_to": reply}
        self._redis.xadd(self._keys.control(to), told, maxlen=MOST_TOLD, approximate=True)

    def heard(self, to: str, reply: str) -> tuple[str | None, bool]:
        """What was written to the key `reply`, if anything, and whether the other worker is alive."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.get(reply)
            pipe.exists(self._keys.lease(to))
            said, alive = pipe.execute()
        return None if said is None else said.decode(), bool(alive)

    def answer(self, reply: str, text: str) -> None:
        """Write to a key that another worker waits for."""
        self._redis.set(reply, text, ex=60)

    def stream(self, start: str, count: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Entries of the worker's stream from `start` on, in order."""
        entries: list[tuple[bytes, dict[bytes, bytes]]] = self._redis.xrange(
            self._keys.commands(self._worker), start, count=count
        )
        return entries
