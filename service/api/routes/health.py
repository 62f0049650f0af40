"""/livez, /readyz, /health, /status, /metrics."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from service.api.accept import wants_page
from service.api.backend import Backend, Context
from service.api.guards.access import CallerOf
from service.api.metrics import scrape
from service.api.openapi import PROBLEMS, told
from service.api.replies.answers import json_response
from service.api.routes.status_page import GRAPHS_SHOWN, status_page
from service.errors import ServiceError
from service.queue.models import RedisInfo, WorkerInfo
from service.store.catalogue import GraphInfo
from service.store.connection import AWAY
from service.store.hooks.record import Standing
from service.store.lost_data import data_is_gone, refuse_if_lost

router = APIRouter(tags=["service"], responses=PROBLEMS)
LIMITS: Final = (
    *("max_body_bytes", "max_json_bytes", "max_edges", "max_vertices", "max_patch_rows", "queue_limit", "max_wait_s"),
    *("graph_queue_limit", "key_queue_limit", "max_requests", "max_event_streams"),
    *("max_sending_bytes", "max_question_rows", "body_memory_bytes", "max_watches", "max_webhooks", "event_history"),
    *("webhook_give_up_s", "graph_queue_short", "queue_target_s", "default_wait_s", "job_ttl_s"),
    *("threads", "question_threads", "row_threads"),
)
PATIENCE_S: Final = 2.0
"""How long Redis has to answer here: a probe, a person and a scrape want to know just then that it does not."""

PROMETHEUS_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


class ApiInfo(BaseModel):
    """The API process that answers."""

    pid: int
    started_at: float


class StatusInfo(BaseModel):
    """The whole service as this API process sees it."""

    version: str
    api: ApiInfo
    redis: RedisInfo
    workers: list[WorkerInfo]
    graphs: list[GraphInfo]
    """The first ones by name."""
    n_graphs: int
    last_update: datetime | None
    """Of the graphs that are listed."""
    limits: dict[str, float | None]
    """Settings by name."""


@router.get("/", include_in_schema=False)
async def front() -> Response:
    """Whoever opens the bare address wants to see that something is there."""
    return RedirectResponse("console", 307)


@router.get("/livez")
async def livez() -> dict[str, str]:
    """The event loop turns."""
    return {"status": "live"}


@router.get("/readyz")
async def readyz(backend: Context) -> dict[str, str]:
    """Redis answers, has its files, and at least one worker is ready; else 503 worker_unavailable or data_gone."""
    async with _patience():
        is_ready = await backend.dispatcher.watch.has_ready_worker()
    if not is_ready:
        detail = "no worker is ready yet: /status and the log say how far each one is"
        raise ServiceError("worker_unavailable", detail, retry_after_s=1)
    refuse_if_lost(backend.settings)
    return {"status": "ready"}


@router.get("/health")
async def health(backend: Context) -> dict[str, str | bool]:
    """What /livez and /readyz say, in one answer: 200 if both are well, else 503 as of /readyz."""
    return await readyz(backend) | {"live": True, "ready": True}


@router.get(
    "/status",
    response_model=StatusInfo,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}, **told("Vary")}},
)
async def status(request: Request, backend: Context, caller: CallerOf) -> Response:
    """Version, Redis and its durability, workers, graphs, the last update of these, the limits in force.

    Of more than 200 graphs it shows the first ones by name; `n_graphs` says how many there are.

    A page for people with `Accept: text/html`.
    """
    async with _patience():
        watch, catalogue = backend.dispatcher.watch, backend.catalogue
        redis, workers, page = await asyncio.gather(
            _redis(backend), watch.workers(), catalogue.page(caller.sees, limit=GRAPHS_SHOWN)
        )
    if caller.prefix:  # notes name graphs
        workers = [worker.model_copy(update={"notes": []}) for worker in workers]
    content: dict[str, Any] = {
        "version": version("headrace-server"),
        "api": {"pid": os.getpid(), "started_at": backend.started_at},
        "redis": redis,
        "workers": workers,
        "graphs": page.graphs,
        "n_graphs": page.total,
        "last_update": max((graph.updated_at for graph in page.graphs), default=None),
        "limits": {name: getattr(backend.settings, name) for name in LIMITS},
    }
    if wants_page(request.headers):
        return status_page(content, caller.key_id if caller.by_session else None)
    return json_response(content, headers={"Vary": "Accept"})


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(backend: Context) -> Response:
    """Prometheus text: of the API processes on this port, of Redis, of webhooks, and of all workers as of their last
    heartbeats.

    Who asks within a second of another gets the same text.
    """
    return Response(await backend.scrapes.text(partial(_scrape, backend)), media_type=PROMETHEUS_TEXT)


async def _scrape(backend: Backend) -> bytes:
    """Write the scrape in a thread, so that the event loop goes on meanwhile."""
    watch = backend.dispatcher.watch
    try:
        async with _patience():
            redis, workers, texts, webhooks = await asyncio.gather(
                _redis(backend), watch.workers(), watch.worker_metrics(), backend.hooks.standings(time.time())
            )
    except (ServiceError, *AWAY):  # the process's own figures are worth having just then
        redis, workers, texts, webhooks = None, [], {}, []
    return await asyncio.to_thread(_written, backend, redis, workers, texts, webhooks)


def _written(
    backend: Backend,
    redis: RedisInfo | None,
    workers: Sequence[WorkerInfo],
    texts: Mapping[str, bytes],
    webhooks: Sequence[Standing],
) -> bytes:
    return scrape(backend.metrics, redis, workers, texts, backend.siblings.families(), webhooks)


@asynccontextmanager
async def _patience() -> AsyncIterator[None]:
    """Raise worker_unavailable if what is inside takes longer than `PATIENCE_S`."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield
    except TimeoutError:
        detail = f"Redis has not answered for {PATIENCE_S:g} s"
        raise ServiceError("worker_unavailable", detail, retry_after_s=1) from None


async def _redis(backend: Backend) -> RedisInfo:
    """What Redis says of itself, but for files that nobody will find again: those are none."""
    redis = await backend.dispatcher.watch.ping()
    backend.metrics.redis_answered(1e-3 * redis.ping_ms)
    if data_is_gone(backend.settings):
        return redis.model_copy(update={"appendonly": False, "data_gone": True})
    return redis
