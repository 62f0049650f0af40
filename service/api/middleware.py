"""Around every request: its id, its log line, its span, its counters, and the 500 of last resort. Plain ASGI: cheap."""

import asyncio
import time
from typing import Any, Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.ending import Ending
from service.api.headers import request_id_of
from service.api.metrics import Metrics
from service.api.replies.problems import problem_response
from service.errors import RETRY_AFTER_S, ServiceError
from service.telemetry.probing import SUPERVISOR
from service.telemetry.tracing import NoTracing, Span, Tracing, read_traceparent

CLIENT_CLOSED_REQUEST: Final = 499
"""The status that proxies count such requests under. No RFC has it, and it is never sent."""

LONGEST_PATH: Final = 512
"""Characters of a path, or of a name in it, that the log and the traces get."""

PROBES: Final = ("/livez", "/readyz", "/health", "/metrics")
"""Asked over and over by machines; logged only when they fail, and then not each of them."""

PROBE_TOLD_EVERY_S: Final = 60.0
"""How often the log gets a probe that goes on to fail in the same way, as those of a first start do for a minute."""

NO_THREAD: Final = "can't start new thread"
"""What Python says where the system starts no more threads; it has no class of its own for that."""

log = structlog.get_logger("headrace.api")


class FailingProbes:
    """Which failing probes the log gets: the first one of each path and status, and then one each minute; none of those
    with which `headrace serve` waits for its own first start."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, float]] = {}
        """By path, of `PROBES`: the status that the log knows, and since when."""

    def is_news(self, path: str, status: int, agent: str | None) -> bool:
        """Whether the log gets the answer of a probe with this status."""
        if agent == SUPERVISOR:
            return False
        if status < 400:
            self._told.pop(path, None)
            return False
        known, told_at = self._told.get(path, (0, 0.0))
        now = time.monotonic()
        if status == known and now - told_at < PROBE_TOLD_EVERY_S:
            return False
        self._told[path] = (status, now)
        return True


class Requests:
    """Gives each request an id, counts and times it, and turns an unexpected exception into a problem.

    Routes leave what they know for the log in the request's state: `job_id`, and `code` of a problem.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        access_log: bool = False,
        tracing: Tracing | None = None,
        ending: Ending | None = None,
    ) -> None:
        self._app = app
        self._ending = ending or Ending()
        self._metrics = metrics
        self._access_log = access_log
        self._tracing = tracing or NoTracing()
        self._failing_probes = FailingProbes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = request_id_of(headers.get("x-request-id", ""))
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        start = time.perf_counter()
        self._metrics.in_flight.inc()
        parent = read_traceparent(headers.get("traceparent"))
        with (
            structlog.contextvars.bound_contextvars(request_id=request_id),
            self._tracing.span(scope["method"], "server", parent) as span,
        ):
            state["traceparent"] = span.traceparent
            try:
                await self._app(scope, receive, send_with_id)
            except ClientDisconnect:
                status = status or CLIENT_CLOSED_REQUEST  # in the middle of its own body: nobody is there to answer
            except asyncio.CancelledError:
                if status or "job_id" in state or not self._ending.is_near:
                    raise
                state["code"] = "worker_unavailable"  # nothing was asked of a worker yet, as while its body came slowly
                said = "this process ended before the request was there, and nothing was done; send it again"
                error = ServiceError("worker_unavailable", said, retry_after_s=RETRY_AFTER_S)
                await problem_response(error, request_id)(scope, receive, send_with_id)
            except Exception as unexpected:
                error = _refusal(unexpected, request_id, legible(scope["path"]))
                if status:  # the answer has begun: all that is left is to break it off
                    raise
                state["code"] = error.code
                await problem_response(error, request_id)(scope, receive, send_with_id)
            finally:
                elapsed_s = time.perf_counter() - start
                self._metrics.in_flight.dec()
                self._metrics.observe(scope, status, elapsed_s)
                self._tell(scope, span, status, elapsed_s)

    def _tell(self, scope: Scope, span: Span, status: int, elapsed_s: float) -> None:
        """The log line and what the span is to know."""
        state: dict[str, Any] = scope["state"]
        named = {name: legible(str(value)) for name, value in scope.get("path_params", {}).items()}
        known = {
            "graph": named.get("name"),
            "job_id": state.get("job_id") or named.get("job_id"),
            "code": state.get("code"),
        }
        route = getattr(scope.get("route"), "path", None)
        span.rename(f"{scope['method']} {route}" if route else scope["method"])
        span.note(request_id=state["request_id"], route=route, status=status, **known)
        if status >= 500:
            span.failed(known["code"] or str(status))
        path = scope["path"]
        if not self._access_log:
            return
        if path in PROBES and not self._failing_probes.is_news(path, status, Headers(scope=scope).get("user-agent")):
            return
        told = {name: value for name, value in known.items() if value is not None}
        ms = round(elapsed_s * 1e3, 2)
        log.info("request", method=scope["method"], path=legible(path), status=status, ms=ms, **told)


def _refusal(error: Exception, request_id: str, path: str) -> ServiceError:
    """What an exception that nothing else knows is answered with, once the log has it."""
    if isinstance(error, RuntimeError) and str(error).startswith(NO_THREAD):
        log.error("no_thread", path=path, hint="the machine has as many threads as it may: see its limit of processes")
        detail = "this process can start no thread now, as its machine has as many as it may"
        return ServiceError("worker_unavailable", detail, retry_after_s=RETRY_AFTER_S)
    log.exception("unexpected error", path=path)
    return ServiceError("internal_error", f"unexpected; the log has it under request id {request_id}")


def legible(text: str) -> str:
    """What the log gets of a text that a caller chose: not all of a long one, and nothing that a terminal obeys."""
    left_out = len(text) - LONGEST_PATH
    if left_out > 0:
        text = f"{text[:LONGEST_PATH]}... ({left_out} characters left out)"
    return text if text.isprintable() else text.encode("unicode_escape").decode()
