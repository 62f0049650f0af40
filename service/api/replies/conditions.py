"""What a caller has already, or asks the head of alone: answered without the work (RFC 9110, sections 9.3.2 and 13).

The ETag of an answer is the version that it is about, as `answers.etag` writes it. Where one address has several
answers of one version, a mark stands before it: the form of a page that is not JSON, or a digest of what changes by
itself, as the figures of a graph do.
`If-Match` reads the version alone (`service.api.headers`), so every ETag that was given out is good for it.
"""

import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from fastapi import Request
from starlette.responses import Response

from service.api.accept import VARY
from service.api.backend import Backend, known_graph
from service.api.headers import if_none_match
from service.api.replies.answers import ask_in_place, etag, refuse_no_wait, success
from service.api.replies.heads import is_of_head
from service.errors import ServiceError
from service.protocol import MEDIA_TYPES, CapacitiesArgs, Encoding, Kind
from service.store.catalogue import GraphInfo, IfMatch, check_version
from service.store.keys import generation_of
from service.store.listed import reaches

MARKS: Final[Mapping[Encoding, str]] = MappingProxyType(
    {"json": "", "npz": "npz", "arrow": "arrow", "strings": "strings"}
)
"""What tells the forms of a page apart."""

MARK_DIGITS: Final = 12
"""How many hexadecimal digits of a digest a mark has."""

TOLD: Final = ("ETag", "Vary", "Content-Location", "Cache-Control")
"""Headers of an answer that its 304 has as well."""

NONE: Final = ("*",)

Head: TypeAlias = Callable[[int, str | None], Response]
"""Makes the head of an answer about a version of the load of a generation."""


def etag_of_info(info: GraphInfo, body: bytes) -> dict[str, str]:
    """The ETag of what a graph says of itself: its bytes, its worker and its flow states change without a version."""
    return etag(info.version, info.generation, hashlib.blake2s(body, digest_size=MARK_DIGITS // 2).hexdigest())


def head(media_type: str, headers: Mapping[str, str]) -> Response:
    """An answer of which nothing but the head is known: not how long it would be either."""
    response = Response(None, 200, headers, media_type)
    del response.headers["content-length"]
    return response


def unless_held(request: Request, response: Response) -> Response:
    """The answer to a GET, or 304 in its place for who has it. Raises invalid_request for a malformed If-None-Match."""
    held = if_none_match(request.headers)
    if not held or (held != NONE and response.headers.get("etag") not in held):
        return response
    return Response(None, 304, {name: response.headers[name] for name in TOLD if name in response.headers})


async def at_hand(
    request: Request,
    backend: Backend,
    name: str,
    wanted: IfMatch,
    made: Head,
    what: str,
    version: int | None = None,
) -> Response | None:
    """What can be answered about a graph without a worker, which makes the whole answer: the head of it to HEAD, and
    304 to who has it; of a version that is named (``version``) the head alone. None where the worker has to be asked.

    Who has it is told so only while no change waits that was accepted before, as these come first; a HEAD is answered
    from the catalogue as it stands. Raises as the worker would: unknown_graph, version_conflict, version_unavailable.
    Cost: some round trips to Redis.
    """
    held, of_head = if_none_match(request.headers), is_of_head(request)
    if not of_head and (not held or held == NONE or version is not None):  # the worker may yet refuse any answer
        return None
    refuse_no_wait(request, backend, what)
    if of_head:
        info = await known_graph(backend, name)
        at, generation = info.version, info.generation
    else:
        seen = await backend.dispatcher.versions.settled(name)
        if seen is None or seen.version is None:
            return None
        at, generation = seen.version, generation_of(seen.graph_id)
    asked = at if version is None else version
    if asked != at and not reaches(await backend.catalogue.snapshots(name) or [], asked, at):
        raise ServiceError("version_unavailable", f"version {asked} is not kept: the graph is at version {at}")
    check_version(name, asked, wanted, generation)
    answer = unless_held(request, made(asked, generation))
    return answer if of_head or answer.status_code == 304 else None


async def answer_page(request: Request, backend: Backend, kind: Kind, name: str, args: CapacitiesArgs) -> Response:
    """A page of a graph, which a worker makes unless the caller has it or asks for its head."""
    media_type, mark = MEDIA_TYPES[args.encoding], MARKS[args.encoding]

    def made(version: int, generation: str | None) -> Response:
        return head(media_type, etag(version, generation, mark) | VARY)

    if (known := await at_hand(request, backend, name, args.if_match, made, "a page")) is not None:
        return known
    reply = await ask_in_place(request, backend, kind, name, args, "a page")
    response = await success(backend, reply)
    response.headers.update(VARY)
    if reply.envelope.version is not None:
        response.headers.update(etag(reply.envelope.version, reply.envelope.generation, mark))
    return unless_held(request, response)
