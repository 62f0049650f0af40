"""/livez, /readyz, /status, /metrics."""

import asyncio
import os
from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from service.api.access import CallerOf
from service.api.answers import json_response
from service.api.backend import Backend, Context
from service.api.metrics import Sample, family
from service.api.openapi import PROBLEMS
from service.errors import ServiceError
from service.queue.models import WorkerInfo

router = APIRouter(tags=["service"], responses=PROBLEMS)
LIMITS: Final = (
    *("max_body_bytes", "max_edges", "max_vertices", "max_patch_rows", "queue_limit", "max_wait_s"),
    *("graph_queue_limit", "key_queue_limit", "max_requests", "max_event_streams"),
)
PROMETHEUS_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/livez")
async def livez() -> dict[str, str]:
    """The event loop turns."""
    return {"status": "live"}


@router.get("/readyz")
async def readyz(backend: Context) -> dict[str, str]:
    """Redis answers and at least one worker is ready; else 503 worker_unavailable."""
    await backend.dispatcher.ping()
    workers = await backend.dispatcher.workers()
    if not any(worker.alive and worker.ready for worker in workers):
        raise ServiceError("worker_unavailable", "no worker is ready yet", retry_after_s=1)
    return {"status": "ready"}


@router.get("/status")
async def status(backend: Context, caller: CallerOf) -> Response:
    """Version, Redis and its durability, workers, graphs, the last update, the limits in force."""
    redis, workers, graphs = await asyncio.gather(
        backend.dispatcher.ping(), backend.dispatcher.workers(), backend.catalogue.list()
    )
    graphs = [graph for graph in graphs if caller.sees(graph.name)]
    content: dict[str, Any] = {
        "version": version("headrace-server"),
        "api": {"pid": os.getpid(), "started_at": backend.started_at},
        "redis": redis,
        "workers": workers,
        "graphs": graphs,
        "last_update": max((graph.updated_at for graph in graphs), default=None),
        "limits": {name: getattr(backend.settings, name) for name in LIMITS},
    }
    return json_response(content)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(backend: Context) -> Response:
    """Prometheus text; the counters of this process, and of the workers what they report."""
    try:
        workers = await backend.dispatcher.workers()
        up = 1
    except ServiceError:  # the process's own counters are worth having just then
        workers, up = [], 0
    return Response(_text(backend, workers, up), media_type=PROMETHEUS_TEXT)


def _text(backend: Backend, workers: list[WorkerInfo], redis_up: int) -> str:
    ready: list[Sample] = [({"worker": w.name}, float(w.alive and w.ready)) for w in workers]
    waiting: list[Sample] = [({"worker": w.name}, float(w.waiting)) for w in workers]
    used: list[Sample] = [({"worker": w.name}, float(w.bytes)) for w in workers]
    return (
        backend.metrics.families()
        + family("headrace_redis_up", "gauge", "Whether Redis answers.", [({}, redis_up)])
        + family("headrace_worker_ready", "gauge", "Whether a worker takes commands.", ready)
        + family("headrace_worker_commands_waiting", "gauge", "Commands not yet done.", waiting)
        + family("headrace_worker_bytes", "gauge", "Bytes of graphs and flow states.", used)
    )
