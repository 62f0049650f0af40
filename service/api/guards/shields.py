"""Thin layers of ASGI around the application: requests over a number are shed, answers have headers, QUERY is POST, and
an encoded slash divides no path."""

import re
from collections import Counter
from typing import Final
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.guards.access import claimed_key
from service.api.guards.shares import share_of_key
from service.api.replies.problems import problem_response
from service.api.replies.signposts import QUESTION
from service.api.turns import Turns
from service.errors import ServiceError

HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every answer that does not set its own."""

ENCODED: Final = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

PROBES: Final = frozenset({"/livez", "/readyz", "/health"})

SCRAPED: Final = "/metrics"

SCRAPES: Final = 4
"""Scrapes that pass at a time as probes do: of a process that refuses all else somebody wants to see just that, and
Prometheus would take one that does not answer it for dead."""

SLASH: Final = re.compile(rb"%2f", re.IGNORECASE)

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
                names = {name for name, _ in message["headers"]}
                rest = [header for header in ENCODED if header[0] not in names]
                message["headers"] = [*message["headers"], *rest]
                if scope["scheme"] == "https":
                    MutableHeaders(scope=message)["Strict-Transport-Security"] = HSTS
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Queries:
    """Takes the method QUERY (RFC 10008) for POST where POST asks a question, so that all behind it know one method."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "QUERY" and QUESTION.fullmatch(scope["path"]):
            scope = {**scope, "method": "POST"}
        await self._app(scope, receive, send)


class Slashes:
    """Leaves `%2F` in a path as it is: there it belongs to a name, and a client that encodes names says so. Undone, the
    graph `city/watches/main` would be a watch; a proxy that lets some paths through may read it as a graph too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and SLASH.search(scope["raw_path"]):
            scope = {**scope, "path": unquote(SLASH.sub(b"%252F", scope["raw_path"]))}
        await self._app(scope, receive, send)


class Shedding:
    """Refuses what is over a number of requests at once, and over a key's share of them, before any of it is looked at;
    probes and a few scrapes pass."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._now = self._scrapes = 0
        self._turns = Turns()
        self._of_key: Counter[str] = Counter()
        """Open requests by the key id that they claim. Whether the key is good is decided behind this layer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        if scope["path"] == SCRAPED and self._scrapes < SCRAPES:
            self._scrapes += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._scrapes -= 1
            return
        key_id = claimed_key(scope, Headers(scope=scope))
        detail = ""
        if self._now >= self._limit:
            detail = f"{self._now} requests are open already"
        elif key_id and self._of_key[key_id] >= share_of_key(self._limit):
            detail = f"{self._of_key[key_id]} requests of this API key are open already"
        if detail:
            error = ServiceError("rate_limited", detail, retry_after_s=1)
            response = problem_response(error, scope["state"].get("request_id"))
            response.headers["Connection"] = "close"  # its body is not read
            await response(scope, receive, send)
            return
        self._now += 1
        self._of_key[key_id] += 1
        try:
            await self._turns.mine()
            await self._app(scope, receive, send)
        finally:
            self._now -= 1
            self._of_key[key_id] -= 1
            if not self._of_key[key_id]:
                del self._of_key[key_id]
