"""Two thin layers of ASGI around the application: too many requests are shed, every answer has its headers."""

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.replies.problems import problem_response
from service.errors import ServiceError

HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""On every answer that does not set its own."""

DOCS: Final = frozenset({"/docs", "/redoc", "/docs/oauth2-redirect"})
DOCS_POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' https://cdn.jsdelivr.net; "
    "style-src 'self' 'unsafe-inline' https://cdn.jsdelivr.net https://fonts.googleapis.com; "
    "font-src https://fonts.gstatic.com; img-src 'self' data: https://fastapi.tiangolo.com https://cdn.redoc.ly; "
    "worker-src blob:; frame-ancestors 'none'"
)
"""FastAPI's pages load their viewer from a CDN."""

HSTS: Final = "max-age=31536000"


class SecurityHeaders:
    """Adds `HEADERS`, and over TLS Strict-Transport-Security."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if scope["path"] in DOCS:
                    headers.setdefault("Content-Security-Policy", DOCS_POLICY)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if scope["scheme"] == "https":
                    headers["Strict-Transport-Security"] = HSTS
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Shedding:
    """Refuses what is over a number of requests at once, before any of it is looked at; probes pass."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._now = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in ("/livez", "/readyz"):
            await self._app(scope, receive, send)
            return
        if self._now >= self._limit:
            error = ServiceError("rate_limited", f"{self._now} requests are open already", retry_after_s=1)
            response = problem_response(error, scope["state"].get("request_id"))
            response.headers["Connection"] = "close"  # its body is not read
            await response(scope, receive, send)
            return
        self._now += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._now -= 1
