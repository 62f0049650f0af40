"""/v1/graphs/{name}/export and /snapshots/{version}: the whole graph as a file, for a PUT of it under any name."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from anyio import CancelScope
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from service.api.accept import VARY, preferred
from service.api.backend import Backend, Context, GraphName, unknown_graph
from service.api.headers import if_match
from service.api.openapi import BINARY, IF_MATCH, NOT_MODIFIED_FORM, PREFER, PROBLEMS, TEXT, UNLESS_HELD, told
from service.api.replies.answers import ask_in_place, etag, long_result
from service.api.replies.conditions import MARK_DIGITS, at_hand, head, unless_held
from service.api.replies.results import HeldResponse, Result
from service.errors import ServiceError
from service.protocol import ExportArgs, Kind, Reply
from service.store.connection import AWAY
from service.store.jobs.record import JobInfo

router = APIRouter(prefix="/v1/graphs/{name}", responses=PROBLEMS)

Format: TypeAlias = Literal["npz", "arrow", "dimacs", "dimacs-min"]

FILES: Final[Mapping[Format, tuple[str, str]]] = MappingProxyType(
    {
        "npz": ("application/x-npz", "npz"),
        "arrow": ("application/vnd.apache.arrow.stream", "arrow"),
        "dimacs": ("text/x-dimacs", "max"),
        "dimacs-min": ("text/x-dimacs", "min"),
    }
)
"""Media type, as PUT reads it, and the suffix of a file."""

OF_FILE: Final = told("ETag", "Vary", "Content-Disposition", "Repr-Digest")
CONTENT: Final = {FILES["npz"][0]: BINARY, FILES["arrow"][0]: BINARY, FILES["dimacs"][0]: TEXT}


BY_MEDIA_TYPE: Final[Mapping[str, Format]] = MappingProxyType(
    {FILES[format][0]: format for format in ("npz", "arrow", "dimacs")}
)
"""What `Accept` chooses among; the first of them for whoever accepts any."""

FormatQuery: TypeAlias = Annotated[
    Format | None,
    Query(description="npz and Arrow hold everything, DIMACS what it can. Left out: what `Accept` prefers, else npz."),
]
MAX_VERSION: Final = (1 << 60) - 1

Shown = TypeVar("Shown", Reply, JobInfo)


@router.get(
    "/export",
    tags=["graphs"],
    response_class=Response,
    responses={200: {"content": CONTENT, **OF_FILE}, **NOT_MODIFIED_FORM},
    openapi_extra={"parameters": [PREFER, IF_MATCH, UNLESS_HELD]},
)
async def export_graph(
    name: GraphName,
    request: Request,
    backend: Context,
    format: FormatQuery = None,
    version: Annotated[int | None, Query(ge=1, le=MAX_VERSION, description="An earlier version that is kept.")] = None,
) -> Response:
    """The graph at its present version, or as it was at an earlier one: all that a PUT needs, and never a 202."""
    return await _file(request, backend, name, format, version)


@router.get(
    "/snapshots/{version}",
    tags=["snapshots"],
    response_class=Response,
    responses={200: {"content": CONTENT, **OF_FILE}, **NOT_MODIFIED_FORM},
    openapi_extra={"parameters": [PREFER, IF_MATCH, UNLESS_HELD]},
)
async def download_snapshot(
    name: GraphName,
    version: Annotated[int, Path(ge=1, le=MAX_VERSION)],
    request: Request,
    backend: Context,
    format: FormatQuery = None,
) -> Response:
    """The whole graph as a snapshot has it, as the file that an export at that version answers."""
    listed = await backend.catalogue.snapshots(name)
    if listed is None:
        raise unknown_graph(name)
    versions = [snapshot.version for snapshot in listed]
    if version not in versions:
        there = f"there are those of {', '.join(map(str, versions))}" if versions else "there are none"
        raise ServiceError(
            "version_unavailable",
            f"there is no snapshot of version {version}; {there}. The log may reach it: export?version={version}",
        )
    return await _file(request, backend, name, format, version)


async def _file(request: Request, backend: Backend, name: str, asked: Format | None, version: int | None) -> Response:
    """Have the worker write the file, and send it, unless the caller has it or asks for its head. Raises
    not_acceptable, version_unavailable, and timeout where it takes too long.

    Whether a version that is named is still within reach only the worker knows, so its file is written to be compared,
    and has a digest in its ETag: another release may write it otherwise.
    """
    format = asked or BY_MEDIA_TYPE[preferred(request.headers, tuple(BY_MEDIA_TYPE))]
    args = ExportArgs(format=format, version=version, if_match=if_match(request.headers))
    media_type, suffix = FILES[format]
    stem = name if version is None else f"{name}-v{version}"
    named = {"Content-Disposition": f'attachment; filename="{stem}.{suffix}"'} | ({} if asked else VARY)
    mark = "" if asked or format == "npz" else format

    def made(present: int, generation: str | None) -> Response:
        return head(media_type, named if version is not None else named | etag(present, generation, mark))

    known = await at_hand(request, backend, name, args.if_match, made, "an export", version)
    if known is not None:
        return known
    reply = await ask_in_place(request, backend, Kind.EXPORT, name, args, "an export")
    written = read_export(reply)
    result = await long_result(backend, reply.id, blob := written["blob"])
    headers = {
        **etag(written["version"], reply.envelope.generation, mark if version is None else result.sha256[:MARK_DIGITS]),
        **named,
        "Repr-Digest": f"sha-256=:{base64.b64encode(bytes.fromhex(result.sha256)).decode()}:",
    }
    held = unless_held(request, head(media_type, headers))
    if held.status_code == 304:
        await _forget(backend, blob)
        return held
    pieces = _and_forget(backend, result, blob)
    return HeldResponse(pieces, result.n_bytes, media_type, headers, result.held_bytes)


def read_export(reply: Reply) -> dict[str, Any]:
    """What the worker says of the file it has written."""
    written: dict[str, Any] = json.loads(reply.result_json or "{}")
    return written


def shown_export(reply_or_job: Shown) -> Shown:
    """What callers are told of a file: not where it lies until it has been sent, which is for this process alone."""
    written = json.loads(reply_or_job.result_json or "{}")
    written.pop("blob", None)
    return reply_or_job.model_copy(update={"result_json": json.dumps(written)})


async def _and_forget(backend: Backend, result: Result, blob: str) -> AsyncIterator[bytes]:
    """The pieces of the file, which is removed when it has been sent."""
    try:
        async for piece in result.pieces():
            yield piece
    finally:
        await _forget(backend, blob)


async def _forget(backend: Backend, blob: str) -> None:
    """Remove a file; if that cannot be done, it expires."""
    with CancelScope(shield=True), suppress(*AWAY):
        await backend.blobs.delete(blob)
