"""Webhooks and their deliveries, as API processes read and write them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import redis
import redis.asyncio

from service.store.hooks.asked import KEPT_S, Asked
from service.store.hooks.record import Delivery, Standing, Webhook
from service.store.keys import Keys
from service.store.unreadable import each, readable, reading, texts
from service.store.watched import watched_async

MAX_TRIES: Final = 20
MOST_PENDING: Final = 200
"""Deliveries of one webhook that wait. Further events wait in the feeds of their graphs."""

MOST_DEAD: Final = 200
"""Deliveries of one webhook that were given up, and can be sent again; the oldest go first."""


class Hooks:
    """Raises RedisError, and `Unreadable` for a webhook or a delivery that is none."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys

    async def count(self) -> int:
        found: int = await self._redis.hlen(self._keys.webhooks)
        return found

    async def all(self) -> list[Webhook]:
        """By id."""
        rows = await self._redis.hgetall(self._keys.webhooks)
        return list(readable(sorted(rows.items()), self._keys.webhooks, _webhook))

    async def get(self, hook_id: str) -> Webhook | None:
        """None: there is none. Raises `Unreadable`."""
        return self._read(hook_id, await self._redis.hget(self._keys.webhooks, hook_id))

    def _read(self, hook_id: str, row: bytes | None) -> Webhook | None:
        with reading(f"webhook {hook_id!r}", self._keys.webhooks, hook_id):
            return None if row is None else Webhook.model_validate_json(row)

    async def asked(self, hook_id: str, asked: Asked) -> Asked | None:
        """What the same key stands for already."""
        found = await self._redis.get(key := self._keys.asked(hook_id, asked.key))
        with reading("the Idempotency-Key", key):
            return None if found is None else Asked.model_validate_json(found)

    def _keep(self, pipe: Any, hook_id: str, asked: Asked | None) -> None:
        if asked is not None:
            pipe.set(self._keys.asked(hook_id, asked.key), asked.model_dump_json(), ex=KEPT_S)

    async def put(
        self,
        hook: Webhook,
        before: Webhook | None,
        most: int,
        cursors: Mapping[str, str],
        asked: Asked | None = None,
    ) -> bool:
        """Write a webhook unless it has changed since it was `before`; False then, and where there are `most` others.

        `cursors` say where graphs begin that it has not read yet. Deliveries it does not want any more are forgotten.
        From then on a key stands for what was `asked`.
        """
        for _ in range(MAX_TRIES):
            async with self._redis.pipeline() as pipe:
                with suppress(redis.WatchError):
                    row, count, read, kept = await watched_async(
                        pipe,
                        [self._keys.webhooks, self._keys.cursors(hook.id)],
                        ("HGET", self._keys.webhooks, hook.id),
                        ("HLEN", self._keys.webhooks),
                        ("HKEYS", self._keys.cursors(hook.id)),
                        ("HGETALL", self._keys.deliveries(hook.id)),
                    )
                    if self._read(hook.id, row) != before or (row is None and count >= most):
                        return False
                    known = {name.decode(errors="replace") for name in read}
                    gone, new = known - set(hook.graphs), [name for name in hook.graphs if name not in known]
                    deliveries = readable(kept.items(), self._keys.deliveries(hook.id), _delivery)
                    unwanted = [delivery.id for delivery in deliveries if not hook.wants(delivery)]
                    pipe.multi()
                    pipe.hset(self._keys.webhooks, hook.id, hook.model_dump_json())
                    self._keep(pipe, hook.id, asked)
                    if unwanted:
                        pipe.hdel(self._keys.deliveries(hook.id), *unwanted)
                        pipe.zrem(self._keys.due(hook.id), *unwanted)
                        pipe.zrem(self._keys.dead(hook.id), *unwanted)
                    if gone:
                        pipe.hdel(self._keys.cursors(hook.id), *gone)
                    if new:
                        pipe.hset(self._keys.cursors(hook.id), mapping={name: cursors[name] for name in new})
                    await pipe.execute()
                    return True
        return False

    async def remove(self, hook_id: str, asked: Asked | None = None) -> None:
        """Forget a webhook, and all that was to be sent to it."""
        async with self._redis.pipeline() as pipe:
            pipe.hdel(self._keys.webhooks, hook_id)
            pipe.unlink(*self._own(hook_id))
            self._keep(pipe, hook_id, asked)
            await pipe.execute()

    async def cursors(self, hook_id: str) -> dict[str, str]:
        rows = await self._redis.hgetall(self._keys.cursors(hook_id))
        return texts(rows, self._keys.cursors(hook_id))

    async def counts(self, hook_id: str) -> tuple[int, int]:
        """How many deliveries are pending, and how many are dead."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.zcard(self._keys.due(hook_id))
            pipe.zcard(self._keys.dead(hook_id))
            pending, dead = await pipe.execute()
        return pending, dead

    async def standings(self, now: float) -> list[Standing]:
        """By id, in two questions for all of them; what is to be sent is counted, and not read."""
        hooks = await self.all()
        async with self._redis.pipeline(transaction=False) as pipe:
            for hook in hooks:
                pipe.zcard(self._keys.due(hook.id))
                pipe.zcount(self._keys.due(hook.id), f"({now!r}", "+inf")  # a first try is due at once, others later
                pipe.zcard(self._keys.dead(hook.id))
                pipe.zrange(self._keys.due(hook.id), 0, 0, withscores=True)
            asked = [
                read(hook.id) for hook in hooks for read in (*2 * [self._keys.due], self._keys.dead, self._keys.due)
            ]
            told = each(await pipe.execute(raise_on_error=False), asked)
        found, answers = [], iter(answer or 0 for answer in told)
        for hook, pending, failing, dead, next_due in zip(hooks, *4 * [answers], strict=True):
            due_at = next_due[0][1] if next_due and hook.disabled is None else now
            found.append(Standing(hook.id, pending, failing, dead, max(0.0, now - due_at)))
        return found

    async def queue(self, hook: Webhook, graph: str, before: str, after: str, deliveries: Sequence[Delivery]) -> bool:
        """Move on in the feed of a graph, from one entry to another, with what is to be sent of what is between them.

        False if the webhook has changed meanwhile, or another process was faster.
        """
        async with self._redis.pipeline() as pipe:
            with suppress(redis.WatchError):
                row, cursor = await watched_async(
                    pipe,
                    [self._keys.webhooks, self._keys.cursors(hook.id)],
                    ("HGET", self._keys.webhooks, hook.id),
                    ("HGET", self._keys.cursors(hook.id), graph),
                )
                if self._read(hook.id, row) != hook or cursor != before.encode():
                    return False
                pipe.multi()
                pipe.hset(self._keys.cursors(hook.id), graph, after)
                for place, delivery in enumerate(deliveries):
                    due_at = delivery.created_at + 1e-5 * place  # they are tried in the order of the feed
                    pipe.hset(self._keys.deliveries(hook.id), delivery.id, delivery.model_dump_json())
                    pipe.zadd(self._keys.due(hook.id), {delivery.id: due_at})
                    pipe.zrem(self._keys.dead(hook.id), delivery.id)
                await pipe.execute()
                return True
        return False

    async def next_due(self, hook_id: str, now: float, longest_s: float) -> tuple[Webhook, Delivery] | None:
        """What is to be tried next, if it is time, and the webhook as it is at the same moment. None as well where
        nothing is sent there any more.

        No try is put off by more than `longest_s`: what is due later was written while a clock was ahead, and is due.
        """
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.zrangebyscore(self._keys.due(hook_id), "-inf", now, start=0, num=1)
            pipe.zrangebyscore(self._keys.due(hook_id), now + longest_s, "+inf", start=0, num=1)
            in_time, ahead = await pipe.execute()
        found = in_time or ahead
        if not found:
            return None
        async with self._redis.pipeline() as pipe:
            pipe.hget(self._keys.webhooks, hook_id)
            pipe.hget(self._keys.deliveries(hook_id), found[0])
            row, kept = await pipe.execute()
        hook, rows = self._read(hook_id, row), [] if kept is None else [(found[0], kept)]
        waiting = next(readable(rows, self._keys.deliveries(hook_id), _delivery), None)
        if waiting is None:
            await self._redis.zrem(self._keys.due(hook_id), found[0])
        if hook is None or hook.disabled is not None or waiting is None:
            return None
        return hook, waiting

    async def delivery(self, hook_id: str, delivery_id: str) -> Delivery | None:
        row = await self._redis.hget(self._keys.deliveries(hook_id), delivery_id)
        with reading(f"delivery {delivery_id!r}", self._keys.deliveries(hook_id), delivery_id):
            return None if row is None else Delivery.model_validate_json(row)

    async def deliveries(self, hook_id: str, status: str) -> list[Delivery]:
        """The deliveries of this status: pending ones in the order of their next tries, dead ones the newest first."""
        listed = self._keys.due(hook_id) if status == "pending" else self._keys.dead(hook_id)
        found = await self._redis.zrange(listed, 0, -1, desc=status != "pending")
        rows = await self._redis.hmget(self._keys.deliveries(hook_id), found) if found else []
        there = ((delivery_id, row) for delivery_id, row in zip(found, rows, strict=True) if row is not None)
        return list(readable(there, self._keys.deliveries(hook_id), _delivery))

    async def delivered(self, hook_id: str, delivery_id: str) -> None:
        """Forget what has arrived."""
        async with self._redis.pipeline() as pipe:
            pipe.hdel(self._keys.deliveries(hook_id), delivery_id)
            pipe.zrem(self._keys.due(hook_id), delivery_id)
            await pipe.execute()

    async def failed(self, hook_id: str, delivery: Delivery) -> None:
        """Write what became of a try: it is tried again at `next_at`, or is dead if there is none."""
        async with self._redis.pipeline() as pipe:
            with suppress(redis.WatchError):  # the webhook was removed, or the delivery: then there is nothing to write
                (there,) = await watched_async(
                    pipe,
                    [self._keys.deliveries(hook_id)],
                    ("HEXISTS", self._keys.deliveries(hook_id), delivery.id),
                )
                if not there:
                    return
                over = await self._oldest_dead(pipe, hook_id) if delivery.next_at is None else []
                pipe.multi()
                pipe.hset(self._keys.deliveries(hook_id), delivery.id, delivery.model_dump_json())
                if delivery.next_at is not None:
                    pipe.zadd(self._keys.due(hook_id), {delivery.id: delivery.next_at})
                else:
                    pipe.zrem(self._keys.due(hook_id), delivery.id)
                    pipe.zadd(self._keys.dead(hook_id), {delivery.id: delivery.tried_at or delivery.created_at})
                if over:
                    pipe.zrem(self._keys.dead(hook_id), *over)
                    pipe.hdel(self._keys.deliveries(hook_id), *over)
                await pipe.execute()

    async def redeliver(self, hook_id: str, delivery: Delivery, asked: Asked | None = None) -> bool:
        """Send what waits or is dead once more, from now on; False if it is not there any more, or its webhook."""
        own = self._keys.deliveries(hook_id)
        for _ in range(MAX_TRIES):
            async with self._redis.pipeline() as pipe:
                with suppress(redis.WatchError):
                    hook, waiting = await watched_async(
                        pipe,
                        [self._keys.webhooks, own],
                        ("HEXISTS", self._keys.webhooks, hook_id),
                        ("HEXISTS", own, delivery.id),
                    )
                    if not hook or not waiting:
                        return False
                    pipe.multi()
                    self._keep(pipe, hook_id, asked)
                    pipe.hset(own, delivery.id, delivery.model_dump_json())
                    pipe.zrem(self._keys.dead(hook_id), delivery.id)
                    pipe.zadd(self._keys.due(hook_id), {delivery.id: delivery.next_at})
                    await pipe.execute()
                    return True
        return False

    async def _oldest_dead(self, pipe: Any, hook_id: str) -> list[bytes]:
        """The ids of the dead deliveries that are dropped when one more comes."""
        (found,) = await watched_async(pipe, [], ("ZREVRANGE", self._keys.dead(hook_id), str(MOST_DEAD - 1), "-1"))
        return list(found)

    def _own(self, hook_id: str) -> list[str]:
        keys = self._keys
        return [keys.cursors(hook_id), keys.deliveries(hook_id), keys.due(hook_id), keys.dead(hook_id)]


def _webhook(hook_id: str, row: bytes) -> Webhook:
    return Webhook.model_validate_json(row)


def _delivery(delivery_id: str, row: bytes) -> Delivery:
    return Delivery.model_validate_json(row)
