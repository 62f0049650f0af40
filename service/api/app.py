"""The ASGI application, which `service.api.http.server` makes and serves; all state lives in its lifespan."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, TypedDict

import structlog
from fastapi import Depends, FastAPI

from service.api import direct, openapi
from service.api.backend import Backend, OpenBackend, open_backend
from service.api.ending import HURRY_S, Ending
from service.api.guards.access import authorise
from service.api.guards.parameters import refuse_unknown_parameters
from service.api.guards.refusals import EarlyRefusals
from service.api.guards.shields import Queries, SecurityHeaders, Shedding, Slashes
from service.api.guards.unread import refuse_unread
from service.api.metrics import Metrics
from service.api.middleware import Requests
from service.api.replies import problems, signposts
from service.api.replies.heads import Heads
from service.api.replies.sending import Sending
from service.api.routes import (
    capacities,
    capacity_expansion,
    circulation,
    closure_study,
    console,
    copies,
    costs,
    docs_page,
    edges,
    export,
    feed,
    flows,
    graphs,
    health,
    jobs,
    lower,
    matching,
    min_cost_flow,
    pairs,
    parametric,
    partition,
    sessions,
    snapshots,
    vertices,
    watches,
    webhooks,
    what_if,
    workers,
)
from service.settings import Settings, read_settings
from service.telemetry.tracing import open_tracing

DESCRIPTION = """Graphs stay resident, capacity changes are re-solved warm, every answer carries a certificate.
Errors are problem+json with a stable `code`."""


OTHER_SERVER: Final = (
    "a plain uvicorn or gunicorn has none of the bounds on heads, bodies, connections and slow readers that its own "
    "server has: run `headrace serve`, or one API process by `python -m service.api --host HOST --port PORT`"
)

log = structlog.get_logger(__name__)


class State(TypedDict):
    backend: Backend


def create_app(
    settings: Settings | None = None, *, open_backend: OpenBackend = open_backend, ending: Ending | None = None
) -> FastAPI:
    """The application. Without `settings` another server calls it, as its factory: they come from the environment, and
    the log says what that server has not."""
    if settings is None:
        log.warning("another_server", detail=OTHER_SERVER)
        settings = read_settings()
    ending = ending or Ending()
    metrics = Metrics()
    tracing = open_tracing("api")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[State]:
        try:
            async with open_backend(settings, metrics) as backend:
                ending.tell(lambda: backend.dispatcher.hurry(HURRY_S))
                yield {"backend": replace(backend, ending=ending)}
        finally:
            tracing.close()

    app = FastAPI(
        title="Headrace",
        version="1",
        description=DESCRIPTION,
        lifespan=lifespan,
        redirect_slashes=False,
        openapi_url=None,  # it would be made on the event loop: see `openapi`
        docs_url=None,  # they load their viewer from elsewhere: see `docs_page`
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        dependencies=[Depends(authorise), Depends(refuse_unknown_parameters), Depends(refuse_unread)],
        # `direct` sees to these as well
    )
    more = (what_if, closure_study, pairs, parametric, capacity_expansion, circulation, partition)
    questions = (flows, min_cost_flow, matching, *more)
    pages = (health, docs_page, sessions, console)
    told = (watches, feed, webhooks)
    columns = capacities, costs, lower, vertices, edges
    resources = (graphs, copies, workers, *columns, export, *questions, snapshots, *told, jobs, *pages)
    for resource in resources:
        app.include_router(resource.router)
    problems.install(app)
    openapi.install(app)
    routes = [route for resource in resources for route in resource.router.routes]
    signposts.install(app, routes)
    direct.install(app, routes)
    app.add_middleware(Heads)
    app.add_middleware(Shedding, limit=settings.max_requests)
    app.add_middleware(Sending, limit_bytes=settings.max_sending_bytes, sending_bytes=metrics.sending_bytes)
    app.add_middleware(Requests, metrics=metrics, ending=ending, access_log=settings.access_log, tracing=tracing)
    app.add_middleware(EarlyRefusals, settings=settings, metrics=metrics)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Queries)
    app.add_middleware(Slashes)
    return app
