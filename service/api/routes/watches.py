"""/v1/graphs/{name}/watches: flows whose changes are told in the graph's feed."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Request
from pydantic_core import to_json
from starlette.responses import Response

from service.api.accept import VARY, texts_of
from service.api.backend import Backend, Context, GraphName, known_graph
from service.api.bodies.receive import read_body
from service.api.headers import require_json
from service.api.openapi import ACCEPTED, IDEMPOTENCY_KEY, PREFER, PROBLEMS, TEXT_FORMS, VERSION_FORMS, request_body
from service.api.replies.answers import ask, success
from service.api.routes.graphs import MAX_SMALL_BODY_BYTES
from service.errors import ServiceError
from service.models.body import parse_body
from service.models.watches import EXAMPLES, WATCH_NAME, WatchBody, WatchInfo, WatchList
from service.protocol import MEDIA_TYPES, Encoding, Kind, UnwatchArgs
from service.store.feed.reading import WatchSeen

router = APIRouter(prefix="/v1/graphs/{name}/watches", tags=["feed"], responses=PROBLEMS)

WatchName: TypeAlias = Annotated[str, Path(pattern=WATCH_NAME, examples=["main"])]


@router.put(
    "/{watch}",
    response_model=WatchInfo,
    responses={201: {"description": "Created", "model": WatchInfo, **VERSION_FORMS[200]}, **VERSION_FORMS, **ACCEPTED},
    openapi_extra=request_body(WatchBody, EXAMPLES, PREFER, IDEMPOTENCY_KEY, required=False),
)
async def put_watch(name: GraphName, watch: WatchName, request: Request, backend: Context) -> Response:
    """Keep this flow solved at each version, and tell when its value or its cut changes."""
    encoding = texts_of(request.headers)
    backend.admission.check(name, request.state.caller.key_id)
    async with read_body(request, MAX_SMALL_BODY_BYTES, backend.budget, backend.parsers.threads) as raw:
        if raw.n_bytes:
            require_json(request)
        args = parse_body(WatchBody, raw.view() if raw.n_bytes else b"{}").args(watch, encoding)
    reply = await ask(request, backend, Kind.WATCH, name, args)
    if isinstance(reply, Response):
        return reply
    response = await success(backend, reply, 200 if reply.envelope.replaced else 201)
    response.headers.update(VARY)
    return response


@router.get("", response_model=WatchList, responses=TEXT_FORMS)
async def list_watches(name: GraphName, request: Request, backend: Context) -> Response:
    """The watches of the graph by name, and what each saw last."""
    encoding = texts_of(request.headers)
    shown = [_shown(name, one, encoding) for one in await _watches(name, backend)]
    return Response(b'{"watches":[' + b",".join(shown) + b"]}", 200, VARY, MEDIA_TYPES[encoding])


@router.get("/{watch}", response_model=WatchInfo, responses=TEXT_FORMS)
async def get_watch(name: GraphName, watch: WatchName, request: Request, backend: Context) -> Response:
    """One watch, and what it saw last."""
    encoding = texts_of(request.headers)
    for one in await _watches(name, backend):
        if one.args.watch == watch:
            return Response(_shown(name, one, encoding), 200, VARY, MEDIA_TYPES[encoding])
    raise ServiceError("unknown_watch", f"graph {name!r} has no watch {watch!r}")


@router.delete("/{watch}", status_code=204, responses=ACCEPTED, openapi_extra={"parameters": [PREFER, IDEMPOTENCY_KEY]})
async def delete_watch(name: GraphName, watch: WatchName, request: Request, backend: Context) -> Response:
    """Forget a watch. What it has told stays in the feed."""
    reply = await ask(request, backend, Kind.UNWATCH, name, UnwatchArgs(watch=watch))
    return reply if isinstance(reply, Response) else Response(status_code=204)


async def _watches(name: str, backend: Backend) -> list[WatchSeen]:
    """Raises unknown_graph."""
    await known_graph(backend, name)
    return await backend.feed.watches(name)


def _shown(name: str, one: WatchSeen, encoding: Encoding) -> bytes:
    """A watch as JSON, with its value as the worker has written it: the value is exact, and never parsed here."""
    generation, _, version = (one.at or "-0").partition("-")
    value = "null" if one.seen is None or one.seen.value is None else one.seen.value
    if encoding == "strings" and value != "null":
        value = f'"{value}"'
    told = {"version": int(version), "generation": generation, "error": one.seen and one.seen.error}
    told |= {"lower": "ignored"} if one.seen is not None and one.seen.ignores_lower else {}
    before = to_json({"graph": name} | one.args.described() | told)
    return before[:-1] + b',"value":' + value.encode() + b"}"
