"""Every refusal as RFC 9457 problem+json: the service's, the engine's, the framework's and the unexpected."""

import math
from collections.abc import Mapping
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from gpu_engine.errors import EngineError
from service.api.bodies.encodings import DECODERS
from service.api.guards.access import SESSION_OVER
from service.api.replies import signposts
from service.api.replies.heads import is_of_head
from service.api.replies.login_page import asked_to_log_in
from service.api.replies.refused_page import refused_page, wants_login_page, wants_refused_page
from service.api.replies.streams import NothingFollows
from service.errors import RETRY_AFTER_S, STATUS, TITLES, ServiceError
from service.models.faults import text_of
from service.models.graphs import NO_NAME
from service.store.connection import AWAY, RedisError, why_away

PROBLEM_JSON = "application/problem+json"
FORMS: Final = {
    ("path", "name"): NO_NAME,
    ("path", "job_id"): "is no id of a job: those are as a 202, or the list of jobs, has them",
    ("path", "watch"): "is no name of a watch: that is 1 to 64 of a-z, A-Z, 0-9, '_' and '-'",
    ("path", "webhook"): "is no name of a webhook: that is 1 to 64 of a-z, A-Z, 0-9, '_' and '-'",
    ("query", "after"): "is no mark in the list of jobs: send the `next` of the page before",
}
"""What is said in place of "does not match the pattern", by where the parameter stands and its name."""

HTTP_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type"}

log = structlog.get_logger("headrace.api")


def problem_content(error: ServiceError) -> dict[str, Any]:
    """The members of RFC 9457, `code`, and what is at fault: `rows` always, the others where they say something."""
    return {
        "type": "about:blank",
        "title": TITLES[error.code],
        "status": error.status,
        "code": error.code,
        "detail": error.detail,
        "rows": error.rows,
    } | error.where.members()


def problem_response(error: ServiceError, request_id: str | None) -> Response:
    """The answer to a refusal, with Retry-After where waiting helps."""
    body = problem_content(error)
    if request_id is not None:
        body["request_id"] = request_id
    headers = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    if error.code == "unauthorised":
        headers["WWW-Authenticate"] = "Bearer"
    if error.code == "unsupported_media_type" and error.where.header == "Content-Encoding":
        headers["Accept-Encoding"] = ", ".join(DECODERS)  # RFC 7694: which says that the media type is not at fault
    if error.unread or error.code == "too_large":
        headers["Connection"] = "close"
    return Response(to_json(body, serialize_unknown=True), error.status, headers, PROBLEM_JSON)


def engine_problem(error: EngineError) -> ServiceError:
    """The engine's refusals share their codes with the API; one without a code of ours is our bug."""
    if error.code not in STATUS:
        log.error("engine error without an API code", code=error.code, detail=error.message)
        return ServiceError("internal_error", "the engine refused this in a way the API has no code for")
    return ServiceError(error.code, error.message, **error.where.members())


def parameter_problem(error: RequestValidationError) -> ServiceError:
    """Path, query and header values out of their bounds."""
    items = error.errors()[:10]
    kind, *rest = items[0]["loc"]
    name = str(rest[0]) if rest else ""
    header, parameter = (name, None) if kind == "header" else (None, name)
    for item in items:
        forms = FORMS.get(tuple(item["loc"]))
        if forms is not None and item["type"] == "string_pattern_mismatch":
            detail = f"{str(item.get('input'))[:100]!r} {forms}"
            return ServiceError("invalid_request", detail, parameter=str(item["loc"][1]))
    told = "; ".join(f"{'.'.join(map(str, item['loc']))}: {_text(item)}" for item in items)
    return ServiceError("invalid_request", told, header=header, parameter=parameter)


def _text(item: Any) -> str:
    return text_of(item["type"], item["msg"], item.get("input")).partition(", unable to parse")[0]


def _answer(request: Request, error: ServiceError) -> Response:
    """The refusal, with its code left for the log."""
    state = request.scope.setdefault("state", {})
    state["code"] = error.code
    response = problem_response(error, state.get("request_id"))
    if not wants_refused_page(request):
        return response
    page = refused_page(request.scope["path"], error)
    page.headers.update({name: value for name, value in response.headers.items() if name not in page.headers})
    return page


def install(app: FastAPI) -> None:
    """Register the handlers. What none of them knows is caught by `middleware.Requests`, with a 500."""

    async def nothing_follows(request: Request, error: Exception) -> Response:
        return Response(status_code=204)

    async def service_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, ServiceError)
        if error.code == "unauthorised" and wants_login_page(request):
            request.state.code = error.code
            return asked_to_log_in(request, SESSION_OVER if error.detail == SESSION_OVER else "")
        return _answer(request, error)

    async def engine_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, EngineError)
        return _answer(request, engine_problem(error))

    def not_allowed(request: Request, headers: Mapping[str, str] | None = None) -> Response:
        """`headers` are those of a path that is no part of the API."""
        method = "HEAD" if is_of_head(request) else request.method
        detail, methods = signposts.not_allowed(app, method, request.scope["path"])
        response = _answer(request, ServiceError("method_not_allowed", detail))
        response.headers.update({"Allow": ", ".join(methods)} if methods else headers or {})
        return response

    async def invalid_request(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        template = signposts.meant(app, request.scope["path"])
        if template is not None and template != request.scope["route"].path_format:
            return not_allowed(request)  # the route of a name took what is an action of another method
        return _answer(request, parameter_problem(error))

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code, path = HTTP_CODES.get(error.status_code, "invalid_request"), request.scope["path"]
        if code == "not_found":
            return _answer(request, ServiceError(code, signposts.not_found(app, path)))
        if code == "method_not_allowed":
            return not_allowed(request, error.headers)
        return _answer(request, ServiceError(code, str(error.detail)))

    async def redis_away(request: Request, error: Exception) -> Response:
        if isinstance(error, AWAY):
            log.warning("redis_away", error=str(error))
        else:
            log.error("redis_refused", error=str(error))
        away = ServiceError("worker_unavailable", why_away(error), retry_after_s=RETRY_AFTER_S)
        return _answer(request, away)

    app.add_exception_handler(NothingFollows, nothing_follows)
    app.add_exception_handler(RedisError, redis_away)  # a full disk, say
    app.add_exception_handler(ServiceError, service_error)
    app.add_exception_handler(EngineError, engine_error)
    app.add_exception_handler(RequestValidationError, invalid_request)
    app.add_exception_handler(HTTPException, http_error)
