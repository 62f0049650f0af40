"""/v1/jobs: what is queued, running and done; cancel; progress as server-sent events."""

import re
from collections.abc import AsyncIterable
from contextlib import aclosing, suppress
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic_core import to_json
from starlette.responses import Response

from service.api.accept import VARY, asks_for_lines, preferred
from service.api.backend import Backend, Context
from service.api.guards.access import CallerOf, authorise
from service.api.guards.admission import stream_room
from service.api.headers import waiting
from service.api.openapi import ACCEPTED, NOT_MODIFIED_FORM, PREFER, PROBLEMS, RESULT_FORMS, UNLESS_HELD, told
from service.api.replies.answers import (
    LINES,
    accepted,
    json_response,
    long_result,
    refusal,
    rows_behind,
    success,
    told_of,
)
from service.api.replies.conditions import head, unless_held
from service.api.replies.heads import is_of_head
from service.api.replies.problems import problem_content
from service.api.replies.results import result_response
from service.api.replies.rows import reply_or_rows
from service.api.replies.streams import NothingFollows, has_left, while_allowed
from service.api.replies.waits import while_there
from service.api.routes.export import shown_export
from service.errors import ServiceError
from service.models.jobs import JobList, JobView
from service.protocol import JSON_TYPE, TERMINAL_STATUSES, Kind, Problem, Status
from service.store.jobs.listing import Mark
from service.store.jobs.record import JobInfo

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=PROBLEMS)

JobId: TypeAlias = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
MARK: Final = r"^[0-9]{1,12}(\.[0-9]{1,9})?_[A-Za-z0-9_-]{1,64}$"
"""How the mark of a job in the list is written: see `service.store.jobs.listing.Mark`."""

MOST_ROWS: Final = 2**31
"""No answer has as many rows."""

OF_ROWS: Final = frozenset({Kind.WHAT_IF, Kind.CLOSURE_STUDY, Kind.PAIRS})
"""Questions that may be answered in lines."""

RESULT: Final = {
    "content": {JSON_TYPE: {"schema": {}}, **RESULT_FORMS},
    **told("ETag", "Vary", "Content-Location"),
}
EVENT_ID: Final = re.compile(r"[0-9]{1,20}(-[0-9]{1,20})?")


async def _known_job(job_id: JobId, backend: Context, caller: CallerOf) -> JobInfo:
    job = await backend.dispatcher.job(job_id)
    if job is None or not caller.sees(job.graph):
        raise _unknown(job_id)
    return job


def _unknown(job_id: str) -> ServiceError:
    return ServiceError("unknown_job", f"there is no job {job_id!r}; results are kept for a while only")


def view(job: JobInfo) -> dict[str, Any]:
    """The job for a caller, without its result; its error is the problem the waiting call would have got."""
    shown = job.model_dump(mode="json", exclude={"result_json", "result_blob", "file_blob"})
    if job.error is not None:
        shown["error"] = problem_content(refusal(job.id, job.status, job.error))
    return shown


async def _answer(job: JobInfo, backend: Backend, headers: dict[str, str] | None = None) -> Response:
    """One job with its result, which is passed on as the worker wrote it."""
    result = None
    if job.kind is Kind.EXPORT and job.result_json is not None:
        job = shown_export(job)
    if job.result_blob is not None:
        try:
            result = await long_result(backend, job.id, job.result_blob)
        except ServiceError as error:
            if error.code != "unknown_job":
                raise
            job = job.model_copy(update={"error": Problem(code=error.code, detail=error.detail)})
    others = (to_json(name) + b":" + to_json(value) for name, value in view(job).items())
    before, after = b"{" + b",".join([*others, b'"result":']), b"}"
    if result is not None:
        return result_response(result, JSON_TYPE, headers, before, after)
    return Response(before + (job.result_json or "null").encode() + after, 200, headers, JSON_TYPE)


KnownJob: TypeAlias = Annotated[JobInfo, Depends(_known_job)]


@router.get("", response_model=JobList)
async def list_jobs(
    backend: Context,
    caller: CallerOf,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(pattern=MARK, description="`next` of the page before.")] = None,
) -> Response:
    """The latest jobs on graphs the key is good for, newest first, a page at a time."""
    page = await backend.dispatcher.jobs(limit, caller.sees, None if after is None else Mark.parse(after))
    return json_response(
        {"jobs": [view(job) | {"result": None} for job in page.jobs], "next": page.next and str(page.next)}
    )


@router.get(
    "/{job_id}",
    response_model=JobView,
    operation_id="get_job",
    responses={200: told("Preference-Applied")},
    openapi_extra={"parameters": [PREFER]},
)
async def get_job(job: KnownJob, request: Request, backend: Context) -> Response:
    """The job as it is now, or, with `Prefer: wait=SECONDS`, as soon as it is over."""
    patience = waiting(request.headers, backend.settings, default_s=0)
    if patience.wait_s > 0 and job.status not in TERMINAL_STATUSES:
        await while_there(request, backend.dispatcher.wait, job.id, patience.wait_s)
        job = await _known_job(job.id, backend, await authorise(request))  # the key may have ended meanwhile
    headers = None if patience.applied is None else {"Preference-Applied": patience.applied}
    return await _answer(job, backend, headers)


@router.get(
    "/{job_id}/result",
    response_class=Response,
    operation_id="get_job_result",
    responses={200: RESULT, **ACCEPTED, **NOT_MODIFIED_FORM},
    openapi_extra={"parameters": [PREFER, UNLESS_HELD]},
)
async def get_job_result(
    job: KnownJob,
    request: Request,
    backend: Context,
    after: Annotated[int | None, Query(ge=0, le=MOST_ROWS, description="Of lines, those behind this row.")] = None,
) -> Response:
    """What the waiting call would have answered, in the form that it asked for; 202 while there is nothing yet. Whoever
    prefers lines gets those that are there, and the others as they come."""
    patience = waiting(request.headers, backend.settings, default_s=0)
    if job.kind in OF_ROWS and job.status not in TERMINAL_STATUSES and asks_for_lines(request.headers):
        rows = partial(reply_or_rows, request, backend, job.graph, after=after)
        reply = await while_there(request, rows, job.id, patience.wait_s)
        if isinstance(reply, Response):
            return reply
    else:
        reply = await while_there(request, backend.dispatcher.wait, job.id, patience.wait_s)
    await _known_job(job.id, backend, await authorise(request))  # the key may have ended meanwhile
    if reply is None:
        return accepted(job.id, patience)
    if reply.status is not Status.SUCCEEDED:
        problem = reply.problem.in_batch() if job.in_batch and reply.problem is not None else reply.problem
        raise refusal(reply.id, reply.status, problem)
    media_type = reply.envelope.media_type
    preferred(request.headers, (media_type,))
    if after is None or media_type in LINES:
        known = unless_held(request, head(media_type, told_of(reply) | VARY))
        if known.status_code == 304 or is_of_head(request):
            return known
    if job.kind is Kind.EXPORT:
        reply = shown_export(reply)
    response = await (success(backend, reply) if after is None else rows_behind(backend, reply, after))
    response.headers.update(VARY)
    return response


@router.delete("/{job_id}", response_model=JobView)
async def cancel_job(job: KnownJob, backend: Context) -> Response:
    """Ask for its end and answer with the job as it is now; one that is over stays as it is."""
    cancelled = await backend.dispatcher.cancel(job.id)
    if cancelled is None:
        raise _unknown(job.id)
    return await _answer(cancelled, backend)


async def _after(job: KnownJob, backend: Context, last_event_id: Annotated[str | None, Header()] = None) -> str | None:
    """The event that the caller had last; None for all events. Raises `NothingFollows` if that was the end."""
    if last_event_id is None or not EVENT_ID.fullmatch(last_event_id):
        return None
    if job.status in TERMINAL_STATUSES and await backend.dispatcher.is_end(job.id, last_event_id):
        raise NothingFollows
    return last_event_id


@router.get(
    "/{job_id}/events",
    response_class=EventSourceResponse,
    responses={204: {"description": "Last-Event-ID is that of `done`: nothing follows"}},
    dependencies=[Depends(stream_room)],
)
async def job_events(
    job: KnownJob, request: Request, backend: Context, after: Annotated[str | None, Depends(_after)]
) -> AsyncIterable[ServerSentEvent]:
    """`progress` while it runs, then one `done` with the job; resumes after Last-Event-ID. Ends with its key."""

    async def may_follow() -> bool:
        with suppress(ServiceError):
            is_to_end = backend.ending.is_near or has_left(request)
            return not is_to_end and (await authorise(request)).sees(job.graph)
        return False

    with suppress(ServiceError):  # Redis is away: the stream ends without `done`; the caller comes back with its id
        async with aclosing(while_allowed(backend.dispatcher.events(job.id, after), may_follow)) as events:
            async for event in events:
                yield ServerSentEvent(data=event.data, event=event.event, id=event.id)
