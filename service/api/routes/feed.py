"""/v1/graphs/{name}/events: what happens to a graph, as server-sent events."""

import json
from collections.abc import AsyncIterable
from contextlib import aclosing, suppress
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Depends, Header, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from service.api.accept import strings_of_events
from service.api.backend import Context, GraphName, known_graph
from service.api.guards.access import authorise
from service.api.guards.admission import stream_room
from service.api.openapi import EVENTS, PROBLEMS
from service.api.replies.streams import has_left, while_allowed
from service.errors import ServiceError
from service.protocol import STRING_EVENTS_TYPE
from service.store.connection import AWAY
from service.store.feed.reading import Placed
from service.store.feed.record import Event, reset_event

router = APIRouter(prefix="/v1/graphs/{name}", tags=["feed"], responses=PROBLEMS)

AMOUNTS: Final = ("old_value", "value")
"""Members of an event that are amounts."""

MAX_ID_CHARS: Final = 256
LastId: TypeAlias = Annotated[
    str | None, Header(max_length=MAX_ID_CHARS, description="The last event that was seen; `0`: all that are kept.")
]


async def _placed(name: GraphName, backend: Context, last_event_id: LastId = None) -> Placed:
    """Where the stream begins, before anything is answered: what is changed after that is in it.

    A graph that is gone has a feed for a while, in which its end stands. Raises unknown_graph.
    """
    if not await backend.feed.exists(name):
        await known_graph(backend, name)
    return await backend.feed.place(name, last_event_id)


def _strings(request: Request) -> bool:
    return strings_of_events(request.headers)


@router.get(
    "/events",
    response_class=EventSourceResponse,
    responses={200: {"content": {STRING_EVENTS_TYPE: EVENTS}}},
    dependencies=[Depends(stream_room)],
)
async def graph_events(
    name: GraphName,
    request: Request,
    backend: Context,
    strings: Annotated[bool, Depends(_strings)],
    placed: Annotated[Placed, Depends(_placed)],
) -> AsyncIterable[ServerSentEvent]:
    """`version`, `value.changed`, `cut.changed` and `graph.deleted` as they come, without end; resumes after
    Last-Event-ID. A first event `reset` says that some events since then are not kept any more. Ends with its key."""

    async def may_follow() -> bool:
        with suppress(ServiceError):
            is_to_end = backend.ending.is_near or has_left(request)
            return not is_to_end and (await authorise(request)).sees(name)
        return False

    yield ServerSentEvent(id=placed.event_id, comment="from here on")  # who is cut off before an event knows as well
    if placed.reset:
        yield _sent(reset_event(name), strings)
    with suppress(ServiceError, *AWAY):  # Redis is away: the stream ends; the caller comes back with its last id
        async with aclosing(while_allowed(backend.feed.follow(name, placed.after), may_follow)) as events:
            async for event in events:
                yield _sent(event, strings)


def _sent(event: Event, strings: bool) -> ServerSentEvent:
    """Its data stands as it was written, or with ``strings`` for amounts, which are exact either way."""
    data = _with_strings(event.data) if strings else event.data
    return ServerSentEvent(raw_data=data, event=event.type, id=event.id or None)


def _with_strings(data: str) -> str:
    """The same JSON object, whose amounts are decimal strings: none is read as a binary float on the way."""
    told = json.loads(data, parse_float=str)
    told |= {name: str(told[name]) for name in AMOUNTS if told.get(name) is not None}
    return json.dumps(told, separators=(",", ":"))
