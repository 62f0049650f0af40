"""What the routes share: made once per process by the lifespan, read from the request's state."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, TypeAlias

from fastapi import Depends, Path, Request

from service.api.bodies.budget import ByteBudget
from service.api.bodies.parsing import Parsers
from service.api.ending import Ending
from service.api.guards.access import KeyTable
from service.api.guards.admission import Admission
from service.api.guards.wrong_keys import WrongKeys
from service.api.metrics import Metrics, Scrapes
from service.api.replies.repeats import Repeats
from service.api.siblings import Siblings
from service.errors import ServiceError
from service.models.graphs import NAME
from service.queue.dispatcher import Dispatcher
from service.settings import Settings
from service.store.api_keys import fetch_keys
from service.store.blobs import AsyncBlobs
from service.store.catalogue import GraphInfo
from service.store.feed.reading import FeedReader
from service.store.graphs import Catalogue
from service.store.hooks.hooks import Hooks
from service.store.keys_seen import KeysSeen
from service.store.sessions import Sessions
from service.webhooks.courier import Courier
from service.webhooks.posting import Poster
from service.webhooks.targets import Names, hosts_of


@dataclass(frozen=True, slots=True)
class Backend:
    """The state of one API process."""

    settings: Settings
    dispatcher: Dispatcher
    catalogue: Catalogue
    blobs: AsyncBlobs
    metrics: Metrics
    budget: ByteBudget
    key_table: KeyTable
    sessions: Sessions
    admission: Admission
    parsers: Parsers
    feed: FeedReader
    hooks: Hooks
    siblings: Siblings
    repeats: Repeats
    names: Names = field(default_factory=Names)
    ending: Ending = field(default_factory=Ending)
    wrong_keys: WrongKeys = field(default_factory=WrongKeys)
    scrapes: Scrapes = field(default_factory=Scrapes)
    started_at: float = field(default_factory=time.time)


OpenBackend: TypeAlias = Callable[[Settings, Metrics], AbstractAsyncContextManager[Backend]]


@asynccontextmanager
async def open_backend(settings: Settings, metrics: Metrics) -> AsyncIterator[Backend]:
    """Connect to Redis and start reading replies; closed in order at the end."""
    dispatcher = Dispatcher(settings)
    await dispatcher.start()
    try:
        catalogue = Catalogue(dispatcher.client, dispatcher.keys)
        budget = ByteBudget(settings.body_memory_bytes)
        fetch = partial(fetch_keys, dispatcher.client, dispatcher.keys)
        key_table = KeyTable(fetch, settings.require_keys, KeysSeen(settings.keys_seen_file))
        sessions = Sessions(dispatcher.client, dispatcher.keys)
        admission = Admission(settings)
        dispatcher.replies.when_away(admission.note_absence)
        hooks = Hooks(dispatcher.client, dispatcher.keys)
        names = Names()
        poster = Poster(hosts_of(settings.webhook_hosts), names=names)
        sending = hooks, dispatcher.feed, poster, settings.webhook_give_up_s
        courier = Courier(dispatcher.client, dispatcher.keys, *sending)
        siblings = Siblings(settings.metrics_file, metrics)
        repeats = Repeats(dispatcher.versions)
        metrics.show_bytes(bodies=budget, replies=dispatcher.replies.latest, repeats=repeats)
        async with Parsers() as parsers:
            guards, told = (key_table, sessions, admission), (dispatcher.feed, hooks)
            if settings.send_webhooks:
                courier.start()
            siblings.start()
            try:
                at_redis = dispatcher, catalogue, dispatcher.blobs
                yield Backend(settings, *at_redis, metrics, budget, *guards, parsers, *told, siblings, repeats, names)
            finally:
                await siblings.close()
                await courier.close()
    finally:
        await dispatcher.close()


async def _backend(request: Request) -> Backend:
    backend: Backend = request.state.backend
    return backend


Context: TypeAlias = Annotated[Backend, Depends(_backend)]
GraphName: TypeAlias = Annotated[str, Path(pattern=NAME, examples=["city"])]


async def known_graph(backend: Backend, name: str) -> GraphInfo:
    """The graph's entry in the catalogue; raises unknown_graph."""
    info = await backend.catalogue.get(name)
    if info is None:
        raise unknown_graph(name)
    return info


def unknown_graph(name: str) -> ServiceError:
    return ServiceError("unknown_graph", f"there is no graph {name!r}: GET /v1/graphs lists those there are")
