"""/login and /logout: an API key is typed once, and the browser shows the cookie of a session from then on."""

from typing import Final
from urllib.parse import parse_qsl

import structlog
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from service.api.backend import Backend, Context
from service.api.bodies.receive import read_body
from service.api.guards.access import caller_of
from service.api.guards.cookie import forget_session, is_secure, session_of, set_session
from service.api.headers import FORM, require_media_type
from service.api.replies.login_page import local_path, login_page, open_page, session_page
from service.api.replies.pages import HOME
from service.errors import ServiceError

router = APIRouter(include_in_schema=False)

MAX_FORM_BYTES: Final = 4096
MAX_FORM_FIELDS: Final = 8

log = structlog.get_logger("headrace.api")


@router.get("/login")
async def login_form(request: Request, next: str = HOME) -> Response:
    """The form, or with which key the browser is logged in."""
    try:
        caller = await caller_of(request)
    except ServiceError as error:
        if error.code != "unauthorised":
            raise
        return login_page(next)
    return open_page() if caller.key_id is None else session_page(caller.key_id, caller.scope)


@router.post("/login")
async def log_in(request: Request, backend: Context) -> Response:
    """Open a session for the key that was typed, in place of one that the browser had."""
    form = await _read_form(request, backend)
    wanted = local_path(form.get("next", HOME))
    try:
        caller = await backend.key_table.caller(form.get("key", "").strip())
    except ServiceError as error:
        if error.code != "unauthorised":
            raise
        return _refused(request, backend, wanted)
    response = RedirectResponse(f".{wanted}", 303)
    if caller.key_id is not None:
        await _close(request, backend)
        token = await backend.sessions.open(caller.key_id)
        set_session(response, token, secure=is_secure(request.scope, request.headers))
        log.info("logged_in", key=caller.key_id)
    return response


@router.post("/logout")
async def log_out(request: Request, backend: Context) -> Response:
    """Close the session, here and in the browser. One that is over is no error."""
    await _close(request, backend)
    response = RedirectResponse("./login", 303)
    forget_session(response)
    return response


async def _close(request: Request, backend: Backend) -> None:
    session = session_of(request.scope, request.headers)
    if session is not None:
        await backend.sessions.close(session)


def _refused(request: Request, backend: Backend, wanted: str) -> Response:
    """The form again, with what was wrong; 429 once too many wrong keys were typed."""
    try:
        backend.wrong_keys.count()
    except ServiceError as error:
        request.state.code = error.code
        slower = "Too many wrong keys were typed lately. A right one is let in all the same."
        response = login_page(wanted, status=error.status, said=slower)
        response.headers["Retry-After"] = f"{error.retry_after_s or 1:.0f}"
        return response
    request.state.code = "unauthorised"
    response = login_page(wanted, status=401, said="This key is unknown or revoked.")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


async def _read_form(request: Request, backend: Backend) -> dict[str, str]:
    """The fields of the form; of several with one name, the last. Raises unsupported_media_type, or invalid_body."""
    require_media_type(request.headers, (FORM,))
    async with read_body(request, MAX_FORM_BYTES, backend.budget, backend.parsers.threads) as raw:
        try:
            text = bytes(raw.view()).decode("ascii")
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS))
        except ValueError:
            raise ServiceError("invalid_body", "this is no form as browsers send it") from None
