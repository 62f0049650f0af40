"""Refusals that cost next to nothing: what a graph's line has no room for is answered before routes, bodies and logs.

Under overload most requests are refused, and most come back. If a refusal cost as much as a question, the service would
do nothing but refuse; so these are decided from the path alone, and beyond `PER_S` a second they are held back a
little: a caller that asks again at once is slowed down, whether it heeds Retry-After or not.
"""

import asyncio
import math
import re
import time
from collections import Counter
from types import SimpleNamespace
from typing import Final

import structlog
from pydantic_core import to_json
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.backend import Backend
from service.api.guards.access import NEEDED, token_of
from service.api.headers import request_id_of, waiting
from service.api.metrics import Metrics
from service.api.replies.problems import PROBLEM_JSON, problem_content
from service.errors import ServiceError
from service.settings import Settings
from service.store.api_keys import TOKEN

QUEUED: Final = re.compile(
    r"/v1/graphs/([A-Za-z0-9][A-Za-z0-9._-]{0,127})"
    r"(/capacities|/costs|/lower|/vertices|/edges|/max-flow|/min-cut|/matching|/min-cost-flow|/what-if|/closure-study|/pairs"
    r"|/gomory-hu-tree|/global-min-cut|/parametric|/capacity-expansion|/circulation|/partition)"
)
"""Paths of commands that stand in a graph's line."""

PER_S: Final = 100.0
"""How many refusals a second are answered without delay."""

AT_ONCE: Final = 64
"""How many refusals may come at once before further ones are held back to `PER_S` a second."""

HELD_S: Final = 2.0
"""The longest time that a refusal is held back."""

HELD: Final = 1024
"""How many refusals are held back at a time; further ones are answered without delay."""

SMALL_BODY: Final = re.compile(r"[0-9]{1,4}")
"""The length of a body that may still be on its way when the answer is sent. With a longer one the connection ends."""

TOLD_EVERY_S: Final = 1.0

log = structlog.get_logger("headrace.api")


class Pace:
    """How long each refusal is held back, so that there are `PER_S` a second. One event loop, so without locks."""

    def __init__(self) -> None:
        self._next_at = 0.0
        self._held = 0

    async def keep(self) -> None:
        """Wait as long as a refusal is held back now."""
        now = time.monotonic()
        self._next_at = max(self._next_at, now - AT_ONCE / PER_S) + 1 / PER_S
        wait_s = min(self._next_at - now, HELD_S)
        if wait_s <= 0 or self._held >= HELD:
            return
        self._held += 1
        try:
            await asyncio.sleep(wait_s)
        finally:
            self._held -= 1


class EarlyRefusals:
    """Answers for graphs and keys that are full: 429, or 503 while Redis is away. All else, and whoever may not know,
    goes on to the application."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._pace = Pace()
        self._refused: Counter[tuple[str, str]] = Counter()
        """Refusals by graph and code since the last lines in the log."""
        self._telling: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = QUEUED.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if path is None:
            await self._app(scope, receive, send)
            return
        graph, route = path[1], "/v1/graphs/{name}" + path[2]
        refusal = await self._refusal(scope, graph, route)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        await self._pace.keep()
        headers, body = rendered(refusal, Headers(scope=scope))
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        scope["route"] = SimpleNamespace(path=route)
        self._metrics.observe(scope, refusal.status, time.perf_counter() - began)
        self._tell(graph, refusal.code)

    async def _refusal(self, scope: Scope, graph: str, route: str) -> ServiceError | None:
        """The refusal; None if there is room, or if this caller has no right to know that there is none."""
        needed = NEEDED.get((scope["method"], route))
        if needed is None:
            return None
        backend: Backend = scope["state"]["backend"]
        headers = Headers(scope=scope)
        waits = "prefer" not in headers or waiting(headers, self._settings).wait_s > 0
        token = token_of(headers)
        claimed = TOKEN.fullmatch(token or "")
        if not backend.admission.may_refuse(graph, claimed[1] if claimed else None, waits=waits):
            return None
        try:
            caller = await backend.key_table.caller(token)
        except ServiceError:
            return None
        if not (caller.scope.covers(needed) and caller.sees(graph)):
            return None
        return backend.admission.refusal(graph, caller.key_id, waits=waits)

    def _tell(self, graph: str, code: str) -> None:
        """Write one line a second to the log for each graph and code, with the number of refusals."""
        self._refused[graph, code] += 1
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(TOLD_EVERY_S, self._tell_now)

    def _tell_now(self) -> None:
        self._telling = None
        for (graph, code), count in self._refused.items():
            log.info("refused", graph=graph, code=code, requests=count)
        self._refused.clear()


def rendered(refusal: ServiceError, headers: Headers) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Headers and body of the problem that says so."""
    request_id = request_id_of(headers.get("x-request-id", ""))
    body = to_json(problem_content(refusal) | {"request_id": request_id})
    told = [
        (b"content-type", PROBLEM_JSON.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", str(math.ceil(refusal.retry_after_s or 1)).encode()),
        (b"x-request-id", request_id.encode()),
    ]
    if not SMALL_BODY.fullmatch(headers.get("content-length", "0" if "transfer-encoding" not in headers else "")):
        told.append((b"connection", b"close"))
    return told, body
