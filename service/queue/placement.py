"""Which worker gets a command: the one that serves its graph, if it is there and has room; a new name, the emptiest."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from service.errors import RETRY_AFTER_S, ServiceError
from service.protocol import Command, Kind
from service.queue.models import WorkerInfo
from service.queue.watch import Watch
from service.store.keys import Keys
from service.store.watched import Read, watched_async

OWNERS_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What one round trip says of a graph's owner."""

    owner: str | None
    exists: bool
    """Whether there is a graph of the name."""
    alive: bool
    waiting: int
    """Commands of the owner that have not ended."""

    def with_one_more(self) -> "Seen":
        """The same with one more command of the owner."""
        return replace(self, waiting=self.waiting + 1)

    def is_free(self, command: Command) -> bool:
        """Whether any worker may get the command: a load of a name that has no owner, or an absent one and no graph."""
        return command.kind is Kind.LOAD and (self.owner is None or not (self.alive or self.exists))


class Placement:
    """Chooses workers for commands. Raises ServiceError and RedisError."""

    def __init__(self, keys: Keys, watch: Watch, queue_limit: int) -> None:
        self._keys = keys
        self._watch = watch
        self._queue_limit = queue_limit
        self._owner_of: dict[str, str] = {}
        """The owner of each graph at its last command, who most often still is."""

    def guess(self, graph: str) -> str:
        """Who is most likely the owner; empty if nothing is known of the graph."""
        return self._owner_of.get(graph, "")

    def reads(self, graph: str, guess: str) -> tuple[Read, ...]:
        """What to read for `seen`, which is to get the same guess: by then `guess` may give another."""
        keys = self._keys
        return (
            ("HGET", keys.owners, graph),
            ("HEXISTS", keys.names, graph),
            ("EXISTS", keys.lease(guess)),
            ("XLEN", keys.commands(guess)),
        )

    def expected(self, guess: str, answers: Iterator[Any]) -> Seen | None:
        """What the next answers say of the graph's owner; None if it is not the guess, who is there."""
        found, exists, alive, waiting = islice(answers, 4)
        if found != guess.encode() or not (exists and alive):
            return None
        return Seen(guess, exists=True, alive=True, waiting=waiting)

    async def seen(self, pipe: Any, guess: str, answers: list[Any]) -> Seen:
        """What the answers say of the graph's owner. One more round trip if the guess was wrong."""
        found, exists, alive, waiting = answers
        owner = None if found is None else found.decode()
        if owner is not None and owner != guess:
            reads = (("EXISTS", self._keys.lease(owner)), ("XLEN", self._keys.commands(owner)))
            alive, waiting = await watched_async(pipe, [], *reads)
        return Seen(owner, bool(exists), bool(alive), waiting)

    def checked(self, graph: str, seen: Seen) -> str:
        """The worker, alive and with room for one more command."""
        if seen.owner is None:
            raise ServiceError("unknown_graph", f"there is no graph {graph!r}")
        if not seen.alive:
            raise unavailable(f"worker {seen.owner} is away")
        if seen.waiting >= self._queue_limit:
            detail = f"{seen.waiting} commands wait for worker {seen.owner}"
            raise ServiceError("rate_limited", detail, retry_after_s=RETRY_AFTER_S)
        if len(self._owner_of) >= OWNERS_KEPT:
            self._owner_of.clear()
        self._owner_of[graph] = seen.owner
        return seen.owner

    async def choose(self) -> WorkerInfo:
        """The live worker with the fewest bytes, for a new name."""
        alive = [worker for worker in await self._watch.workers() if worker.alive]
        if not alive:
            raise unavailable("no worker is there")
        return min(alive, key=lambda worker: (not worker.ready, worker.bytes, worker.graphs, worker.name))


def unavailable(detail: str) -> ServiceError:
    return ServiceError("worker_unavailable", detail, retry_after_s=RETRY_AFTER_S)
