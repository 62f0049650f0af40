"""At which version a graph is, and whether changes of it wait: asked of Redis for many callers at once.

All is read on one connection, and connections are numbered. As long as one stands, Redis has not been started again, so
versions have only grown: what was answered at a version while it stood is the answer at that version still.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from redis.asyncio.connection import AbstractConnection

from service.settings import Settings
from service.store.connection import RedisError, connect_numbered
from service.store.jobs.transitions import changes_waiting
from service.store.keys import Keys

AT_ONCE: Final = 256
"""The most graphs that are read in one round trip; others are read in the next one."""

PATIENCE_S: Final = 0.05
"""A caller who has waited this long gets no answer from here, since Redis may be hanging, and asks the worker."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a graph's name stood for at some time after it was asked, on the connection of this number."""

    connection: int
    graph_id: str
    version: int | None
    """The version; None if the guess of `graph_id` was wrong."""
    changes: int = 0
    """Commands of the graph, accepted and not yet ended, that may change it."""


@dataclass(eq=False, slots=True)
class _Asked:
    graph: str
    guess: Seen | None
    answer: asyncio.Future[Seen | None]


class Versions:
    """Reads versions for one API process, in one event loop."""

    def __init__(self, settings: Settings, keys: Keys) -> None:
        self._redis: Any = connect_numbered(settings, self._connected)
        self._keys = keys
        self._asked: list[_Asked] = []
        self._reading: asyncio.Task[None] | None = None
        self.connection = 0
        """The number of the connection that stands, or stood last; 0: there was none yet."""

    async def _connected(self, connection: AbstractConnection) -> None:
        self.connection += 1
        await connection.on_connect()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        await self._redis.aclose()

    async def at(self, graph: str, guess: Seen | None) -> Seen | None:
        """What the name stands for; with a guess that is right, at which version. None: there is no such graph, or
        Redis does not say.

        What is read, is read after the call. Callers share round trips: one for all who come while another is made.
        """
        asked = _Asked(graph, guess, asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_on())
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                return await asked.answer
        with suppress(ValueError):  # it is being read
            self._asked.remove(asked)
        return None

    async def settled(self, graph: str) -> Seen | None:
        """What the name stands for and at which version; None where no graph does, a change of it waits, or Redis does
        not say. Cost: two of the round trips that callers share."""
        guess = await self.at(graph, None)
        seen = None if guess is None else await self.at(graph, guess)
        return None if seen is None or seen.version is None or seen.changes else seen

    async def _read_on(self) -> None:
        some: list[_Asked] = []
        try:
            while self._asked:
                some, self._asked = self._asked[:AT_ONCE], self._asked[AT_ONCE:]
                try:
                    answers: Sequence[Seen | None] = await self._read(some)
                except RedisError:  # such a question is answered by the command that is sent instead
                    answers = [None] * len(some)
                for asked, answer in zip(some, answers, strict=True):
                    if not asked.answer.done():
                        asked.answer.set_result(answer)
        finally:
            self._reading = None
            for asked in some:  # if this was cancelled, or has failed
                if not asked.answer.done():
                    asked.answer.set_result(None)

    async def _read(self, some: Sequence[_Asked]) -> list[Seen | None]:
        keys = self._keys
        async with self._redis.pipeline(transaction=False) as pipe:
            for asked in some:
                # Changes are read first, so that the version below includes each that has ended by then.
                pipe.execute_command(*changes_waiting(keys, asked.graph))
                pipe.hget(keys.names, asked.graph)
                if asked.guess is not None:
                    pipe.hget(keys.graph(asked.guess.graph_id), "version")
            answers = iter(await pipe.execute())
        found: list[Seen | None] = []
        for asked in some:
            changes, graph_id = next(answers), next(answers)
            version = None if asked.guess is None else next(answers)
            if graph_id is None:
                found.append(None)
                continue
            current = graph_id.decode(errors="replace")
            is_right = asked.guess is not None and asked.guess.graph_id == current
            if is_right and version is not None and version.isdigit():
                found.append(Seen(self.connection, current, int(version), changes))
            else:
                found.append(Seen(self.connection, current, None))
        return found
