"""What the API says of the rest of the service: its workers by their last reports, and Redis."""

import time
from contextlib import suppress
from typing import Any

import redis
import redis.asyncio
import structlog

from service.errors import RETRY_AFTER_S, ServiceError
from service.queue.models import RedisInfo, WorkerInfo, WorkerReport, read_reports
from service.store.connection import AWAY, why_away
from service.store.jobs.record import oldest_waiting
from service.store.keys import Keys
from service.store.unreadable import each
from service.store.watched import needs_writes

log = structlog.get_logger("headrace.api")


class Watch:
    """Reads what workers and Redis say of themselves. Methods raise ServiceError only."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys
        self._ready: list[str] = []
        """Names of the workers that were ready when a probe asked last: their leases are asked for with the reports."""

    async def workers(self) -> list[WorkerInfo]:
        """All workers ever seen and not replaced, by name."""
        try:
            reports = await self._reports()
            asked: list[str] = []
            async with self._redis.pipeline(transaction=False) as pipe:
                for report in reports:
                    lease, commands = self._keys.lease(report.name), self._keys.commands(report.name)
                    pipe.exists(lease)
                    pipe.xlen(commands)
                    asked += [lease, commands, oldest_waiting(pipe, self._keys, report.name)]
                pipe.hkeys(self._keys.draining)
                answers = each(await pipe.execute(raise_on_error=False), [*asked, self._keys.draining])
                draining = answers.pop() or ()
        except AWAY as error:
            raise away(error) from error
        now = time.time()
        return [
            WorkerInfo(
                **report.model_dump(),
                alive=bool(answers[3 * i]),
                draining=report.name.encode() in draining,
                heartbeat_age_s=max(0.0, now - report.beat_at),
                waiting=answers[3 * i + 1] or 0,
                oldest_s=max((now - created_at for _, created_at in answers[3 * i + 2] or ()), default=0.0),
            )
            for i, report in enumerate(reports)
        ]

    async def has_ready_worker(self) -> bool:
        """Whether Redis answers and a worker is alive and ready.

        Asks Redis once, or twice when other workers are ready than before: probes come all the time, and each question
        is one more wait for an event loop that may be busy. While no worker is there it asks for the reason as well.
        """
        try:
            asked = self._ready  # another probe may change it meanwhile
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.hgetall(self._keys.workers)
                if asked:
                    pipe.exists(*map(self._keys.lease, asked))
                rows, *alive = await pipe.execute()
            ready = [report.name for report in read_reports(rows, self._keys) if report.ready]
            if ready != asked:
                self._ready = ready
                alive = [await self._redis.exists(*map(self._keys.lease, ready))] if ready else []
            if not any(alive):
                await self._redis.execute_command(*needs_writes(self._keys))
            return any(alive)
        except AWAY as error:
            raise away(error) from error

    async def worker_metrics(self) -> dict[str, bytes]:
        """Prometheus text by worker, of those that sent some lately."""
        try:
            names = [report.name for report in await self._reports()]
            texts = await self._redis.mget([self._keys.metrics(name) for name in names]) if names else []
        except AWAY as error:
            raise away(error) from error
        return {name: text for name, text in zip(names, texts, strict=True) if text is not None}

    async def ping(self) -> RedisInfo:
        """Raises worker_unavailable when Redis is away, or takes no writes, which it says to a ping too."""
        try:
            began = time.perf_counter()
            await self._redis.ping()
            ping_ms = 1e3 * (time.perf_counter() - began)
            with suppress(redis.exceptions.NoPermissionError):
                info, fsync = await self._redis.info(), None
                with suppress(redis.exceptions.NoPermissionError):
                    fsync = (await self._redis.config_get("appendfsync")).get("appendfsync")
                return RedisInfo(
                    # Valkey says 7.2.4 as `redis_version`, for clients that ask what it can do.
                    version=str(info.get("valkey_version", info["redis_version"])),
                    appendonly=bool(info.get("aof_enabled")),
                    fsync=fsync,
                    used_memory_bytes=int(info["used_memory"]),
                    maxmemory_bytes=int(info.get("maxmemory", 0)),
                    maxmemory_policy=info.get("maxmemory_policy"),
                    ping_ms=ping_ms,
                )
        except AWAY as error:
            raise away(error) from error
        return RedisInfo(version="unknown", appendonly=None, fsync=None, used_memory_bytes=0, ping_ms=ping_ms)

    async def _reports(self) -> list[WorkerReport]:
        return read_reports(await self._redis.hgetall(self._keys.workers), self._keys)


def away(error: Exception) -> ServiceError:
    """The refusal for whoever asked while Redis did not answer. What Redis said names commands, keys and hosts: it goes
    to the log alone."""
    log.warning("redis_away", error=str(error))
    return ServiceError("worker_unavailable", why_away(error), retry_after_s=RETRY_AFTER_S)
