"""Around every request: its id, its log line, its counters, and the 500 of last resort. Plain ASGI: cheap."""

import re
import time
import uuid
from typing import Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.metrics import Metrics
from service.api.problems import problem_response
from service.errors import ServiceError

REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
"""What we take over as a request id; anything else is replaced, so that it cannot forge log lines."""

CLIENT_CLOSED_REQUEST: Final = 499
"""Not of any RFC, but what proxies count under; it is never sent."""

log = structlog.get_logger("headrace.api")


class Requests:
    """Gives each request an id, counts and times it, and turns an unexpected exception into a problem."""

    def __init__(self, app: ASGIApp, metrics: Metrics, access_log: bool = False) -> None:
        self._app = app
        self._metrics = metrics
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = Headers(scope=scope).get("x-request-id", "")
        request_id = asked if REQUEST_ID.fullmatch(asked) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        start = time.perf_counter()
        self._metrics.in_flight += 1
        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            status = status or CLIENT_CLOSED_REQUEST  # in the middle of its own body: nobody is there to answer
        except Exception:
            log.exception("unexpected error", request_id=request_id, path=scope["path"])
            if status:  # the answer has begun: all that is left is to break it off
                raise
            error = ServiceError("internal_error", f"unexpected; the log has it under request id {request_id}")
            await problem_response(error, request_id)(scope, receive, send_with_id)
        finally:
            elapsed_s = time.perf_counter() - start
            self._metrics.in_flight -= 1
            self._metrics.observe(scope, status, elapsed_s)
            if self._access_log:
                log.info(
                    "request",
                    method=scope["method"],
                    path=scope["path"],
                    status=status,
                    ms=round(elapsed_s * 1e3, 2),
                    request_id=request_id,
                )
