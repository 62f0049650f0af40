"""Short commands of many callers are queued together, so that all which come during two round trips share the next two.

The owner of each graph is watched and read once for all of them, and all are written in one MULTI, in the order in
which they came. If a graph is not as it was for its last command, its commands are left to their callers, each of whom
looks and tries alone.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import redis
import redis.asyncio

from service.protocol import Command
from service.queue.placement import Placement, Seen
from service.store.jobs.transitions import Queued, enqueue
from service.store.keys import Keys

SHORT_BYTES: Final = 16 << 10
"""A longer command is queued alone, because others would wait for its bytes."""

AT_ONCE: Final = 64
"""The most commands that are queued together."""

SLOW_S: Final = 0.05
"""A command that comes when a round has taken this long does not wait for it, because Redis may be hanging."""

Ask = Callable[..., Awaitable[list[Any]]]
"""Watches keys on a pipeline, and reads."""


@dataclass(eq=False, slots=True)
class Waiting:
    """A command that is being queued. Its caller waits to hear whether it is queued, or has to be tried alone."""

    command: Command
    text: bytes
    queued: asyncio.Future[bool]

    def refuse(self, error: Exception) -> None:
        if not self.queued.done():
            self.queued.set_exception(error)

    def decide(self, is_queued: bool) -> None:
        if not self.queued.done():
            self.queued.set_result(is_queued)


class Group:
    """Puts commands into the streams of workers, several at a time. In one event loop, so without locks."""

    def __init__(
        self,
        client: redis.asyncio.Redis,
        keys: Keys,
        placement: Placement,
        ask: Ask,
        take: Callable[[Command, int], None],
    ) -> None:
        """`take` counts the bytes of a command before it is written, or refuses it."""
        self._redis: Any = client
        self._keys = keys
        self._placement = placement
        self._ask = ask
        self._take = take
        self._waiting: list[Waiting] = []
        self._rounds: dict[asyncio.Task[Any] | None, float] = {}
        """The rounds under way, with the time at which each last took some commands, on the clock of the event loop."""

    def takes(self, command: Command, text: bytes) -> bool:
        """Whether the command may be queued together with others: it is short, new, and of a graph that is known."""
        known = self._placement.guess(command.graph)
        return bool(known) and command.idempotency_key is None and len(text) <= SHORT_BYTES

    async def put(self, command: Command, text: bytes) -> bool:
        """Queue the command. False if it is not known to be queued: then it is to be tried alone.

        Raises ServiceError for what is refused, and RedisError.
        """
        loop = asyncio.get_running_loop()
        waiting = Waiting(command, text, loop.create_future())
        self._waiting.append(waiting)
        if all(loop.time() - begun_at > SLOW_S for begun_at in self._rounds.values()):
            self._rounds[loop.create_task(self._go_round(loop))] = loop.time()
        return await waiting.queued

    async def _go_round(self, loop: asyncio.AbstractEventLoop) -> None:
        some: list[Waiting] = []
        this = asyncio.current_task(loop)
        try:
            while self._waiting:
                self._rounds[this] = loop.time()
                some, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                try:
                    await self._round(some)
                except (redis.WatchError, redis.ConnectionError):  # a lost answer of Redis raises this too
                    for waiting in some:
                        waiting.decide(False)
                except Exception as error:
                    for waiting in some:
                        waiting.refuse(error)
        finally:
            self._rounds.pop(this, None)  # at once, so that the next command begins another round
            for waiting in some:  # if this was cancelled, as the process ends
                waiting.queued.cancel()

    async def _round(self, some: list[Waiting]) -> None:
        """Queue these commands, all or none of those that are as expected. Raises RedisError."""
        guesses = {waiting.command.graph: self._placement.guess(waiting.command.graph) for waiting in some}
        reads = [read for graph, guess in guesses.items() for read in self._placement.reads(graph, guess)]
        placed: list[tuple[Waiting, Queued]] = []
        async with self._redis.pipeline() as pipe:
            answers = iter(await self._ask(pipe, [self._keys.claim(graph) for graph in guesses], *reads))
            seen = {graph: self._placement.expected(guess, answers) for graph, guess in guesses.items()}
            for waiting in some:
                if (queued := self._place(waiting, seen)) is not None:
                    placed.append((waiting, queued))
            if placed:
                pipe.multi()
                enqueue(pipe, self._keys, [queued for _, queued in placed])
                await pipe.execute()
        for waiting, _ in placed:
            waiting.decide(True)

    def _place(self, waiting: Waiting, seen: dict[str, Seen | None]) -> Queued | None:
        """Where the command is to be queued; None if its caller was refused, or is to try alone."""
        command = waiting.command
        place = seen[command.graph]
        if place is None:
            waiting.decide(False)
            return None
        try:
            self._take(command, len(waiting.text))
            owner = self._placement.checked(command.graph, place)
        except Exception as error:
            waiting.refuse(error)
            return None
        for graph, other in seen.items():
            if other is not None and other.owner == owner:
                seen[graph] = other.with_one_more()
        return Queued(command, waiting.text, owner)
