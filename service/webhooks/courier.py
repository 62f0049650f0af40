"""The courier: reads the feeds of graphs for all webhooks, and delivers.

It is a task of each API process, since these are what talks HTTP, wait for others without holding a thread, and keep
nothing of their own; a worker computes, and is never to wait for a stranger's server. One process at a time holds the
lease, and delivers. If it dies, another one goes on within seconds; what it was just sending is sent again.
"""

import asyncio
import hashlib
import random
import time
import uuid
from contextlib import suppress
from typing import Final

import redis.asyncio
import structlog

from service.store.connection import AWAY, RedisError
from service.store.feed.following import BEFORE_ALL
from service.store.feed.reading import FeedReader
from service.store.feed.record import reset_event
from service.store.hooks.hooks import MOST_PENDING, Hooks
from service.store.hooks.record import Delivery, Webhook
from service.store.keys import Keys
from service.webhooks.lease import Lease
from service.webhooks.posting import Poster
from service.webhooks.signing import signature_headers

LOOK_S: Final = 0.5
"""Time between two looks for events."""

IDLE_S: Final = 2.0
"""Time between two looks while there are no webhooks, or another process delivers."""

AT_ONCE: Final = 8
"""How many webhooks are sent to at a time."""

SLOW_AT_ONCE: Final = 4
"""How many of these may have been slow the last time, because otherwise eight that never answer would delay all
others."""

SLOW_S: Final = 1.0
"""A try that takes longer than this makes a webhook a slow one, until one takes less."""

IN_A_ROW: Final = 20
"""How many deliveries to one webhook are made before the turn of another one."""

PAGE: Final = 100
FIRST_RETRY_S: Final = 5.0
RETRY_FACTOR: Final = 4.0
LONGEST_RETRY_S: Final = 24 * 3600.0
JITTER: Final = 0.2
MOST_DELAY_S: Final = LONGEST_RETRY_S * (1 + JITTER)
GONE: Final = 410

log = structlog.get_logger("headrace.api")


class Courier:
    """Delivers in the event loop that starts it, as long as this process holds the lease."""

    def __init__(
        self,
        client: redis.asyncio.Redis,
        keys: Keys,
        hooks: Hooks,
        feed: FeedReader,
        poster: Poster,
        give_up_s: float,
        first_retry_s: float = FIRST_RETRY_S,
    ) -> None:
        self._hooks = hooks
        self._feed = feed
        self._poster = poster
        self._give_up_s = give_up_s
        self._first_retry_s = first_retry_s
        self._lease = Lease(client, keys.courier, uuid.uuid4().hex)
        self._places = asyncio.Semaphore(AT_ONCE)
        self._slow_places = asyncio.Semaphore(SLOW_AT_ONCE)
        self._slow: set[str] = set()
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="courier")

    async def close(self) -> None:
        """Stop, and let another process go on at once."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._stand_down()
        with suppress(RedisError):  # it expires by itself
            await self._lease.release()
        await self._poster.close()

    async def _run(self) -> None:
        while True:
            pause_s = IDLE_S
            try:
                if await self._hooks.count() and await self._lease.hold():
                    await self._look()
                    pause_s = LOOK_S
                else:
                    await self._stand_down()
            except AWAY as error:
                log.info("courier_waits", error=str(error))
            except Exception:
                log.exception("courier_failed")
            await asyncio.sleep(pause_s)

    async def _stand_down(self) -> None:
        """End all deliveries: another process makes them."""
        tasks = [*self._busy.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        """Begin to deliver to each webhook that nobody delivers to just now."""
        hooks = await self._hooks.all()
        self._slow &= {hook.id for hook in hooks}
        for hook in hooks:
            if hook.disabled is None and hook.id not in self._busy:
                task = asyncio.create_task(self._serve(hook))
                self._busy[hook.id] = task
                task.add_done_callback(lambda _, hook_id=hook.id: self._busy.pop(hook_id, None))  # type: ignore[misc]  # a default in a lambda has no type

    async def _serve(self, hook: Webhook) -> None:
        """Take what is new of its graphs, and try what is due."""
        try:
            await self._take(hook)
            for _ in range(IN_A_ROW):
                async with self._slow_places if hook.id in self._slow else self._places:
                    due = await self._hooks.next_due(hook.id, time.time(), MOST_DELAY_S)  # it may be another one now
                    if due is None or not await self._try(*due):
                        return
        except AWAY as error:
            log.info("courier_waits", webhook=hook.id, error=str(error))
        except Exception:
            log.exception("courier_failed", webhook=hook.id)

    async def _take(self, hook: Webhook) -> None:
        """Queue the new events of the webhook's graphs, as many as there is room for."""
        pending, _ = await self._hooks.counts(hook.id)
        room = MOST_PENDING - pending
        if room <= 0:
            return
        cursors = await self._hooks.cursors(hook.id)
        for graph in await self._feed.with_news(cursors):
            if room <= 0:
                return
            entry = cursors[graph]
            page = await self._feed.after(graph, entry, min(room, PAGE))
            if not page:
                continue
            found = [Delivery.of(graph, event, _moment(at)) for at, event in page if event.type in hook.types]
            if entry != BEFORE_ALL and not await self._feed.has(graph, entry):  # some before these are gone
                first = page[0][0]
                found.insert(0, Delivery.of(graph, reset_event(graph, _reset_id(graph, first)), _moment(first)))
            if not await self._hooks.queue(hook, graph, entry, page[-1][0], found):
                return
            room -= len(found)

    async def _try(self, hook: Webhook, delivery: Delivery) -> bool:
        """Send once, and write what became of it. False: the webhook wants nothing more."""
        now = time.time()
        headers = signature_headers(delivery.id, delivery.body, hook.secrets_at(now), now)
        began = time.monotonic()
        outcome = await self._poster.post(hook.url, delivery.body, headers)
        if time.monotonic() - began > SLOW_S:
            self._slow.add(hook.id)
        else:
            self._slow.discard(hook.id)
        if outcome.arrived:
            await self._hooks.delivered(hook.id, delivery.id)
            return True
        tried = delivery.model_copy(
            update={
                "attempts": delivery.attempts + 1,
                "tried_at": now,
                "answer": outcome.answer,
                "error": outcome.error,
                "next_at": now + self._delay_s(delivery.attempts),
            }
        )
        if now - delivery.created_at >= self._give_up_s or outcome.answer == GONE:
            tried = tried.model_copy(update={"status": "dead", "next_at": None})
        log.info("not_delivered", webhook=hook.id, delivery=delivery.id, error=outcome.error, status=tried.status)
        await self._hooks.failed(hook.id, tried)
        if outcome.answer == GONE:
            await self._hooks.put(hook.model_copy(update={"disabled": "its address answered 410, gone"}), hook, 0, {})
            return False
        return True

    def _delay_s(self, attempts: int) -> float:
        """How long to wait after so many failures before this one: four times as long each time, with jitter."""
        delay_s = min(self._first_retry_s * RETRY_FACTOR ** min(attempts, 20), LONGEST_RETRY_S)
        return delay_s * random.uniform(1 - JITTER, 1 + JITTER)


def _moment(entry: str) -> float:
    """When an entry of a stream was written, in unix seconds."""
    return int(entry.partition("-")[0]) / 1e3


def _reset_id(graph: str, first: str) -> str:
    """Another for each graph: entries of two feeds may have the same id. Names of graphs have dots, ids have none."""
    return f"reset-{hashlib.sha256(graph.encode()).hexdigest()[:8]}-{first}"
