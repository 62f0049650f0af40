"""Which worker gets a command: the one that serves its graph, if it is there and has room; a new name, the emptiest."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

import redis
import redis.asyncio

from service.errors import RETRY_AFTER_S, ServiceError
from service.protocol import Command, Kind
from service.queue.models import WorkerInfo
from service.queue.watch import Watch
from service.store.keys import Keys
from service.store.placed import Place, read_places, write_place
from service.store.watched import Read, needs_writes, watched_async

OWNERS_KEPT: Final = 10_000

BYTES_PER_BYTE: Final = 5
"""A rough estimate of the memory that a graph takes for each byte of its packed edges, until its worker reports it."""

FOR_A_DEVICE_BYTES: Final = 200_000
"""A graph with at least this many bytes of packed edges is placed on a worker with a device. Smaller graphs are solved
on the host of any worker."""

CHOICES: Final = 10
"""How often the choice of a worker is repeated because other API processes have chosen too; after that their choices do
not count."""

UNKNOWN_BUDGET: Final = 8 << 30
"""The budget of a worker of a release that did not report one."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one round trip has told of a graph's owner."""

    owner: str | None
    exists: bool
    """Whether there is a graph of the name."""
    alive: bool
    waiting: int
    """Commands of the owner that have not ended."""

    def with_one_more(self) -> "Seen":
        """What was seen, with one more command of the owner."""
        return replace(self, waiting=self.waiting + 1)

    def is_free(self, command: Command) -> bool:
        """Whether any worker may get the command: a load of a name that has no owner, or an absent one and no graph."""
        return command.kind is Kind.LOAD and (self.owner is None or not (self.alive or self.exists))


class Placement:
    """Chooses workers for commands. Raises ServiceError and RedisError."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys, watch: Watch, queue_limit: int) -> None:
        self._redis: Any = client
        self._keys = keys
        self._watch = watch
        self._queue_limit = queue_limit
        self._choosing = asyncio.Lock()
        self._owner_of: dict[str, str] = {}
        """The owner of each graph at its last command, who most often still is."""

    def guess(self, graph: str) -> str:
        """The most likely owner; empty if nothing is known of the graph."""
        return self._owner_of.get(graph, "")

    def reads(self, graph: str, guess: str) -> tuple[Read, ...]:
        """What to read for `seen`, which is to get the same guess: by then `guess` may give another."""
        keys = self._keys
        return (
            ("HGET", keys.owners, graph),
            ("HEXISTS", keys.names, graph),
            ("EXISTS", keys.hold(graph)),
            ("EXISTS", keys.lease(guess)),
            ("XLEN", keys.commands(guess)),
        )

    def expected(self, guess: str, answers: Iterator[Any]) -> Seen | None:
        """What the next answers say of the graph's owner; None if it is not the guess, who is there."""
        found, exists, held, alive, waiting = islice(answers, 5)
        if found != guess.encode() or held or not (exists and alive):
            return None
        return Seen(guess, exists=True, alive=True, waiting=waiting)

    async def seen(self, pipe: Any, guess: str, answers: list[Any]) -> Seen:
        """What the answers say of the graph's owner. One more round trip if the guess was wrong, or the owner is away.

        Raises `redis.WatchError` while the graph is being moved: by the next try it may have been. Raises RedisError if
        Redis takes no writes, for which all owners seem to be away.
        """
        found, exists, held, alive, waiting = answers
        if held:
            raise redis.WatchError(f"{guess} is handing the graph over")
        owner = None if found is None else found.decode(errors="replace")
        if owner is not None and owner != guess:
            reads = (("EXISTS", self._keys.lease(owner)), ("XLEN", self._keys.commands(owner)))
            alive, waiting = await watched_async(pipe, [], *reads)
        if owner is not None and not alive:
            await watched_async(pipe, [], needs_writes(self._keys))
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

    async def choose(self, command: Command) -> WorkerInfo:
        """The live worker for the new graph of a load: of those where it fits, the one that is then the least full.

        What was placed since the last heartbeats counts, by whichever API process: the choice is noted with the graph's
        bytes, and is made again if another one was noted meanwhile. Cost: four round trips.
        """
        n_bytes = BYTES_PER_BYTE * command.n_bytes
        async with self._choosing:  # otherwise all loads that come together would read before any of them writes
            for tries_left in reversed(range(CHOICES)):
                workers = [worker for worker in await self._watch.workers() if worker.alive and not worker.draining]
                if not workers:
                    await self._redis.execute_command(*needs_writes(self._keys))
                    raise unavailable("no worker is there")
                async with self._redis.pipeline() as pipe:
                    (rows,) = await watched_async(pipe, [self._keys.placed], ("HGETALL", self._keys.placed))
                    places = read_places(rows, self._keys)
                    chosen = emptiest(workers, n_bytes, places)
                    pipe.multi()
                    place = Place(chosen.name, n_bytes, time.time())
                    write_place(
                        pipe, self._keys, command.graph, place, rows.keys() - {name.encode() for name in places}
                    )
                    try:
                        await pipe.execute()
                    except redis.WatchError:
                        if tries_left:
                            continue
                return chosen
        raise AssertionError("the last try returns")


def emptiest(workers: Sequence[WorkerInfo], n_bytes: int, places: Mapping[str, Place] | None = None) -> WorkerInfo:
    """The worker for a graph that takes ``n_bytes``, beside what was placed since the reports.

    A worker that will be ready within seconds counts like one that is: else whoever loads many graphs as soon as the
    service is ready would load them all into the worker that was the first, for good.
    """
    placed: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for place in (places or {}).values():
        placed[place.worker] += place.n_bytes
        count[place.worker] += 1

    def order(worker: WorkerInfo) -> tuple[bool, bool, bool, float, int, bool, str]:
        more = placed[worker.name] + n_bytes
        share = (worker.bytes + more) / (worker.budget_bytes or UNKNOWN_BUDGET)
        is_large = n_bytes >= BYTES_PER_BYTE * FOR_A_DEVICE_BYTES
        if worker.device_budget_bytes and is_large:
            share = max(share, (worker.device_bytes + more) / worker.device_budget_bytes)
        misses_device = is_large and not worker.device_budget_bytes
        is_late = not (worker.ready or worker.ready_soon)
        graphs = worker.graphs + count[worker.name]
        return is_late, share > 1, misses_device, share, graphs, not worker.ready, worker.name

    return min(workers, key=order)


def unavailable(detail: str) -> ServiceError:
    return ServiceError("worker_unavailable", detail, retry_after_s=RETRY_AFTER_S)
