"""/v1/graphs/{name}/export: the whole graph as a file, for a PUT of it under this or another name."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeAlias

from anyio import CancelScope
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.backend import Backend, Context, GraphName
from service.api.headers import waiting
from service.api.openapi import BINARY, PREFER, PROBLEMS, TEXT
from service.api.replies.answers import ask, etag, long_result
from service.api.replies.results import HeldResponse, Result
from service.errors import ServiceError
from service.protocol import ExportArgs, Kind, Reply
from service.store.connection import AWAY

router = APIRouter(prefix="/v1/graphs/{name}/export", tags=["graphs"], responses=PROBLEMS)

Format: TypeAlias = Literal["npz", "arrow", "dimacs"]

FILES: Final[Mapping[Format, tuple[str, str]]] = MappingProxyType(
    {
        "npz": ("application/x-npz", "npz"),
        "arrow": ("application/vnd.apache.arrow.stream", "arrow"),
        "dimacs": ("text/x-dimacs", "max"),
    }
)
"""Media type, as PUT reads it, and the suffix of a file."""

CONTENT: Final = {FILES["npz"][0]: BINARY, FILES["arrow"][0]: BINARY, FILES["dimacs"][0]: TEXT}


@router.get("", response_class=Response, responses={200: {"content": CONTENT}}, openapi_extra={"parameters": [PREFER]})
async def export_graph(
    name: GraphName,
    request: Request,
    backend: Context,
    format: Annotated[Format, Query(description="npz and Arrow hold everything, DIMACS what it can.")] = "npz",
) -> Response:
    """The graph at its present version: all that a PUT needs, and never a 202."""
    if waiting(request.headers, backend.settings).wait_s == 0:
        raise ServiceError("invalid_request", "an export is answered in place: ask with Prefer: wait=SECONDS")
    reply = await ask(request, backend, Kind.EXPORT, name, ExportArgs(format=format))
    if isinstance(reply, Response):
        await backend.dispatcher.cancel(request.state.job_id)
        raise ServiceError("timeout", "the file was not written in time: ask with Prefer: wait=SECONDS for more of it")
    written = read_export(reply)
    result = await long_result(backend, reply.id, written["blob"])
    media_type, suffix = FILES[format]
    headers = {
        **etag(written["version"]),
        "Content-Disposition": f'attachment; filename="{name}.{suffix}"',
        "Repr-Digest": f"sha-256=:{base64.b64encode(bytes.fromhex(result.sha256)).decode()}:",
    }
    pieces = _and_forget(backend, result, written["blob"])
    return HeldResponse(pieces, result.n_bytes, media_type, headers, result.held_bytes)


def read_export(reply: Reply) -> dict[str, Any]:
    """What the worker says of the file it has written."""
    written: dict[str, Any] = json.loads(reply.result_json or "{}")
    return written


async def _and_forget(backend: Backend, result: Result, blob: str) -> AsyncIterator[bytes]:
    """The pieces of the file, which is removed when it has been sent; if that cannot be done, it expires."""
    try:
        async for piece in result.pieces():
            yield piece
    finally:
        with CancelScope(shield=True), suppress(*AWAY):
            await backend.blobs.delete(blob)
