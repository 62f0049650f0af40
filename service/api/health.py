"""/livez, /readyz, /status, /metrics."""

import asyncio
import os
from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from service.api.access import CallerOf
from service.api.answers import json_response
from service.api.backend import Backend, Context
from service.api.headers import accepts
from service.api.metrics import scrape
from service.api.openapi import PROBLEMS
from service.api.status_page import status_page
from service.errors import ServiceError
from service.queue.models import RedisInfo

router = APIRouter(tags=["service"], responses=PROBLEMS)
LIMITS: Final = (
    *("max_body_bytes", "max_edges", "max_vertices", "max_patch_rows", "queue_limit", "max_wait_s"),
    *("graph_queue_limit", "key_queue_limit", "max_requests", "max_event_streams"),
)
SCRAPE_S: Final = 3.0
"""How long a scrape waits for Redis; Prometheus itself gives up after ten seconds."""

PROMETHEUS_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/livez")
async def livez() -> dict[str, str]:
    """The event loop turns."""
    return {"status": "live"}


@router.get("/readyz")
async def readyz(backend: Context) -> dict[str, str]:
    """Redis answers and at least one worker is ready; else 503 worker_unavailable."""
    await _ping(backend)
    workers = await backend.dispatcher.workers()
    if not any(worker.alive and worker.ready for worker in workers):
        raise ServiceError("worker_unavailable", "no worker is ready yet", retry_after_s=1)
    return {"status": "ready"}


@router.get("/status", responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}})
async def status(request: Request, backend: Context, caller: CallerOf) -> Response:
    """Version, Redis and its durability, workers, graphs, the last update, the limits in force.

    A page for people with `Accept: text/html`.
    """
    redis, workers, graphs = await asyncio.gather(
        backend.dispatcher.ping(), backend.dispatcher.workers(), backend.catalogue.list()
    )
    graphs = [graph for graph in graphs if caller.sees(graph.name)]
    if caller.prefix:  # notes name graphs
        workers = [worker.model_copy(update={"notes": []}) for worker in workers]
    content: dict[str, Any] = {
        "version": version("headrace-server"),
        "api": {"pid": os.getpid(), "started_at": backend.started_at},
        "redis": redis,
        "workers": workers,
        "graphs": graphs,
        "last_update": max((graph.updated_at for graph in graphs), default=None),
        "limits": {name: getattr(backend.settings, name) for name in LIMITS},
    }
    if accepts(request.headers, "text/html"):
        return status_page(content)
    return json_response(content, headers={"Vary": "Accept"})


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(backend: Context) -> Response:
    """Prometheus text: of this process, of Redis, and of all workers as of their last heartbeats."""
    try:
        async with asyncio.timeout(SCRAPE_S):
            redis, workers, texts = await asyncio.gather(
                _ping(backend), backend.dispatcher.workers(), backend.dispatcher.worker_metrics()
            )
        text = scrape(backend.metrics, redis, workers, texts)
    except (ServiceError, TimeoutError):  # the process's own figures are worth having just then
        text = scrape(backend.metrics, None, [], {})
    return Response(text, media_type=PROMETHEUS_TEXT)


async def _ping(backend: Backend) -> RedisInfo:
    redis = await backend.dispatcher.ping()
    backend.metrics.redis_answered(1e-3 * redis.ping_ms)
    return redis
