"""From a command to the HTTP answer: submit, wait as long as the caller asked, then 200, 202 or a problem."""

import hashlib
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

from fastapi import Request
from pydantic_core import to_json
from starlette.responses import Response

from service.api.accept import VARY
from service.api.backend import Backend
from service.api.bodies.receive import Body
from service.api.headers import Waiting, idempotency_key, waiting
from service.api.replies.repeats import REPEATED, Question
from service.api.replies.results import Result, lines_response, open_result, result_response
from service.api.replies.waits import while_there
from service.errors import RETRY_AFTER_S, STATUS, ServiceError
from service.protocol import (
    ARGS,
    LINES_TYPE,
    STRING_LINES_TYPE,
    Arguments,
    Envelope,
    Kind,
    Message,
    Problem,
    QuestionArgs,
    Reply,
    Status,
)
from service.queue.beside import beside
from service.store.jobs.events import LOST

KEYED: Final = frozenset(
    {
        *(Kind.LOAD, Kind.DELETE, Kind.PATCH, Kind.PATCH_COSTS, Kind.PATCH_LOWER, Kind.PATCH_VERTICES),
        *(Kind.PATCH_EDGES, Kind.RESTORE),
        *(Kind.SNAPSHOT, Kind.WATCH, Kind.UNWATCH, Kind.MOVE),
    }
)
"""Commands that an Idempotency-Key stands for: those that leave something behind. The others, questions and dry runs,
may be asked again as they are, and the key is not looked at."""

NEVER_CUT_OFF: Final = frozenset({Kind.LOAD, Kind.DELETE})
"""Commands that stand in no line that may be cut: a load has been uploaded by then, and a delete makes room."""


LINES: Final = frozenset({LINES_TYPE, STRING_LINES_TYPE})

Wait: TypeAlias = Callable[[str, float], Awaitable[Reply | Response | None]]
"""Waits for a job for so many seconds: its reply, or an answer that has begun; None if there is neither."""


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON by pydantic-core: models, dicts and lists alike, several times faster than `json`."""
    return Response(to_json(content), status, headers, "application/json")


def etag(version: int, generation: str | None, mark: str = "") -> dict[str, str]:
    """A version, and before it a mark that tells apart the answers of one version: see `replies.conditions`."""
    told = f"{generation}-{version}" if generation else str(version)
    return {"ETag": f'"{mark}.{told}"' if mark else f'"{told}"'}


async def ask(
    request: Request,
    backend: Backend,
    kind: Kind,
    graph: str,
    args: Arguments,
    body_digest: str | None = None,
    on_sent: Callable[[], None] = lambda: None,
    in_place: bool = False,
    wait: Wait | None = None,
    in_batch: bool = False,
) -> Reply | Response:
    """Queue the command and wait: the worker's `Reply`, or the 202 to answer when the time is over.

    `wait` is how it is waited for, `Dispatcher.wait` by default. `in_batch`: see `Command.in_batch`.

    `in_place` is for a command that is only a part of what was asked: the caller's Idempotency-Key does not stand for
    it, and its reply is waited for as long as anybody may wait, else it is cancelled, and timeout is raised.

    A reply that is a refusal is raised as its `ServiceError`. A caller that goes away does not end the job. `on_sent`
    is called before the wait begins: the arguments are not needed any more.
    """
    key = idempotency_key(request.headers) if kind in KEYED and not in_place else None
    patience = Waiting(backend.settings.max_wait_s) if in_place else waiting(request.headers, backend.settings)
    if key is not None and body_digest is None:
        body_digest = await beside(args, partial(digest_of_args, kind, args))
    stands = patience.wait_s > 0 and kind not in NEVER_CUT_OFF
    n_bytes = args.n_bytes if isinstance(args, Body) else 0
    ticket = backend.admission.enter(graph, request.state.caller.key_id, waits=stands, n_bytes=n_bytes)
    try:
        stood_s = await ticket.turn(patience.wait_s)
        began = time.perf_counter()
        job_id = await backend.dispatcher.submit(
            kind,
            graph,
            args,
            idempotency_key=key,
            body_digest=body_digest,
            request_id=request.state.request_id,
            traceparent=request.state.traceparent,
            in_batch=in_batch,
        )
    except BaseException:
        ticket.leave(was_sent=False)
        raise
    backend.dispatcher.when_done(job_id, ticket.leave)
    backend.metrics.submitted(kind, time.perf_counter() - began)
    request.state.job_id = job_id  # for the log
    on_sent()
    left_s = max(0.0, patience.wait_s - stood_s)
    reply, wait = None, wait or backend.dispatcher.wait
    if in_place:  # whoever asked may be gone: the other parts of what was asked go on as well
        reply = await wait(job_id, left_s)
    elif patience.wait_s > 0:
        reply = await while_there(request, wait, job_id, left_s)
    if isinstance(reply, Response):
        return reply
    if reply is None and in_place:
        await backend.dispatcher.cancel(job_id)
        refuse_at_end(backend)
        raise ServiceError("timeout", f"it could not be done within {patience.wait_s:g} s")
    if reply is None:
        await backend.dispatcher.until_job_written(job_id)
        return accepted(job_id, patience)
    if reply.status is not Status.SUCCEEDED:
        problem = reply.problem.in_batch() if in_batch and reply.problem is not None else reply.problem
        raise refusal(reply.id, reply.status, problem)
    return reply


async def ask_in_place(request: Request, backend: Backend, kind: Kind, graph: str, args: Arguments, what: str) -> Reply:
    """As `ask` for a GET, which is never answered with 202. Raises timeout where it takes longer than is waited."""
    refuse_no_wait(request, backend, what)
    reply = await ask(request, backend, kind, graph, args)
    if isinstance(reply, Response):
        await backend.dispatcher.cancel(request.state.job_id)
        refuse_at_end(backend)
        raise ServiceError("timeout", f"{what} was not there in time: ask with Prefer: wait=SECONDS for more of it")
    return reply


def refuse_at_end(backend: Backend) -> None:
    """Raises worker_unavailable if the wait was cut short as this process ends, and not over."""
    if backend.ending.is_near:
        raise ServiceError(
            "worker_unavailable",
            "this API process is shutting down: send the request again",
            retry_after_s=RETRY_AFTER_S,
        )


def refuse_no_wait(request: Request, backend: Backend, what: str) -> None:
    """Raises invalid_request for a caller who does not wait for what has no job."""
    if waiting(request.headers, backend.settings).wait_s == 0:
        detail = f"{what} is answered in place, and no job goes on with it: ask with Prefer: wait=SECONDS, from 1 on"
        raise ServiceError("invalid_request", detail, header="Prefer")


async def answer(
    request: Request,
    backend: Backend,
    kind: Kind,
    graph: str,
    args: Arguments,
    on_sent: Callable[[], None] = lambda: None,
    wait: Wait | None = None,
    in_batch: bool = False,
) -> Response:
    """Ask, and answer with the worker's result as the body and its version as ETag. What was answered a moment ago, and
    is the answer still, is given again."""
    repeats, question = backend.repeats, None
    if kind in REPEATED and waiting(request.headers, backend.settings).wait_s > 0:
        digested = await beside(args, partial(digest_of_args, kind, args))
        question, connection = Question(kind, graph, digested), repeats.connection
        if (again := await repeats.find(question)) is not None:
            backend.metrics.repeated(kind)
            return again
    reply = await ask(request, backend, kind, graph, args, on_sent=on_sent, wait=wait, in_batch=in_batch)
    if isinstance(reply, Response):
        return reply
    response = await success(backend, reply)
    if issubclass(ARGS[kind], QuestionArgs):
        response.headers.update(VARY)
    if question is not None:
        repeats.keep(question, connection, reply.envelope, response)
    return response


async def success(backend: Backend, reply: Reply, status: int = 200) -> Response:
    """What the worker answered, passed on as it wrote it: exact, and never parsed here."""
    headers, media_type = told_of(reply), reply.envelope.media_type
    if blob := reply.result_blob or reply.file_blob:
        return result_response(await long_result(backend, reply.id, blob), media_type, headers)
    body = reply.result_json or "{}" if reply.file is None else reply.file
    return Response(body, status, headers, media_type)


async def rows_behind(backend: Backend, reply: Reply, after: int) -> Response:
    """The rows behind one of an answer in lines, and its last line. Raises not_acceptable for other answers."""
    headers, media_type = told_of(reply), reply.envelope.media_type
    if media_type not in LINES:
        raise ServiceError("not_acceptable", f"`after` is for answers in lines, as {LINES_TYPE}; this one has none")
    if blob := reply.file_blob:
        return lines_response(await long_result(backend, reply.id, blob), after, media_type, headers)
    lines = (reply.file or b"").splitlines(keepends=True)
    return Response(b"".join(lines[min(after + 2, len(lines) - 1) :]), 200, headers, media_type)


async def long_result(backend: Backend, job_id: str, blob: str) -> Result:
    """The result of a job, which lies in a blob.

    Raises unknown_job if it has been dropped. Raises worker_unavailable if the job does not name it any more, because
    Redis has lost the end of the job, or all of it: then the command can be sent again.
    """
    try:
        return await open_result(backend.blobs, blob)
    except ServiceError:
        job = await backend.dispatcher.job(job_id)
        if job is not None and (blob in (job.result_blob, job.file_blob) or blob in (job.result_json or "")):
            raise
        raise ServiceError("worker_unavailable", LOST, retry_after_s=RETRY_AFTER_S) from None


def told_of(reply: Reply) -> dict[str, str]:
    """The ETag of an answer, and of one in lines where whoever is cut off goes on."""
    place = {"Content-Location": f"/v1/jobs/{reply.id}/result"} if reply.envelope.media_type in LINES else {}
    return version_of(reply.envelope) | place


def version_of(envelope: Envelope) -> dict[str, str]:
    """The ETag of an answer that is about a version."""
    return {} if envelope.version is None else etag(envelope.version, envelope.generation)


def digest(kind: Kind, *parts: bytes | memoryview) -> str:
    """SHA-256 of what an Idempotency-Key stands for."""
    sha256 = hashlib.sha256(kind.encode())
    for part in parts:
        sha256.update(len(part).to_bytes(8, "little"))
        sha256.update(part)
    return sha256.hexdigest()


def digest_of_args(kind: Kind, args: Arguments) -> str:
    """The digest of what a command is to do, which is the same in every process."""
    if isinstance(args, Message):
        return digest(kind, args.model_dump_json(exclude_defaults=True).encode())
    return digest(kind, args.to_json())


def accepted(job_id: str, patience: Waiting) -> Response:
    """The 202 of a job that goes on."""
    location = f"/v1/jobs/{job_id}"
    headers = {"Location": location, "Retry-After": "1"}
    if patience.applied is not None:
        headers["Preference-Applied"] = patience.applied
    return json_response({"id": job_id, "location": location}, 202, headers)


def refusal(job_id: str, status: Status, problem: Problem | None) -> ServiceError:
    """What a job that did not succeed is answered with."""
    if problem is None:
        return ServiceError("cancelled", f"job {job_id} was {status}")
    if problem.code not in STATUS:
        return ServiceError("internal_error", f"the worker failed; see its log for job {job_id}")
    retry_after_s = 1.0 if problem.code in ("rate_limited", "worker_unavailable") else None
    return ServiceError(problem.code, problem.detail, retry_after_s=retry_after_s, **problem.where)
