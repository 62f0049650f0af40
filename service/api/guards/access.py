"""Who may call what: API keys, their scopes and their graph-name prefixes.

One dependency of the whole application, with one table of what each route needs: a route that is not in it needs
`admin`. Without any key the service is open, to this machine alone.
"""

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final, TypeAlias

import structlog
from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.types import Scope as RequestScope

from service.api.guards.cookie import session_of
from service.api.guards.origin import refuse_other_origins
from service.errors import ServiceError
from service.store.api_keys import TOKEN, ApiKey, KeyRing, Scope, find, is_unknown
from service.store.connection import AWAY, why_away
from service.store.keys_seen import KeysSeen
from service.store.sessions import Sessions

FRESH_S: Final = 2.0
"""How long the keys are used before they are read again; a revoked key is refused at the latest after `STALE_S`."""

NEW_S: Final = 0.25
"""How old the keys may be before they are read again for a key that is not among them: it may have been made since."""

STALE_S: Final = 5.0
"""How long the keys are used while Redis does not answer. After that every caller is refused."""

FETCH_S: Final = 2.0
"""How long Redis may take to answer with the keys."""

RETRY_S: Final = 0.25
"""How long to wait before Redis is asked for the keys again when it did not answer."""

NAMES_KEPT: Final = 64
"""How many host names are cached with the answer whether a page of another site could have them; callers choose the
names."""

OPEN: Final = frozenset({"/", "/docs", "/livez", "/readyz", "/health"})
"""Paths that need no key: the front page, the description of the API, and probes, which only answer yes or no."""

DOORS: Final = frozenset({"/login", "/logout"})
"""Paths that need no key either, but are refused to pages of another origin, which could log a person in or out
unnoticed."""

log = structlog.get_logger(__name__)

NEEDED: Final[Mapping[tuple[str, str], Scope]] = {
    ("GET", "/status"): Scope.READ,
    ("GET", "/metrics"): Scope.READ,
    ("GET", "/v1/graphs"): Scope.READ,
    ("POST", "/v1/graphs:estimate"): Scope.READ,
    ("GET", "/v1/graphs/{name}"): Scope.READ,
    ("PUT", "/v1/graphs/{name}"): Scope.ADMIN,
    ("DELETE", "/v1/graphs/{name}"): Scope.ADMIN,
    ("POST", "/v1/graphs/{name}:copy"): Scope.ADMIN,
    ("POST", "/v1/graphs/{name}:restore"): Scope.ADMIN,
    ("POST", "/v1/graphs/{name}:move"): Scope.ADMIN,
    ("GET", "/v1/workers"): Scope.READ,
    ("GET", "/v1/workers/{worker}"): Scope.READ,
    ("PUT", "/v1/workers/{worker}/drain"): Scope.ADMIN,
    ("DELETE", "/v1/workers/{worker}/drain"): Scope.ADMIN,
    ("GET", "/v1/graphs/{name}/capacities"): Scope.READ,
    ("PATCH", "/v1/graphs/{name}/capacities"): Scope.UPDATE,
    ("PATCH", "/v1/graphs/{name}/costs"): Scope.UPDATE,
    ("PATCH", "/v1/graphs/{name}/lower"): Scope.UPDATE,
    ("PATCH", "/v1/graphs/{name}/edges"): Scope.UPDATE,
    ("GET", "/v1/graphs/{name}/vertices"): Scope.READ,
    ("PATCH", "/v1/graphs/{name}/vertices"): Scope.UPDATE,
    ("GET", "/v1/graphs/{name}/export"): Scope.READ,
    ("POST", "/v1/graphs/{name}/max-flow"): Scope.READ,
    ("POST", "/v1/graphs/{name}/min-cut"): Scope.READ,
    ("POST", "/v1/graphs/{name}/matching"): Scope.READ,
    ("POST", "/v1/graphs/{name}/min-cost-flow"): Scope.READ,
    ("POST", "/v1/graphs/{name}/what-if"): Scope.READ,
    ("POST", "/v1/graphs/{name}/closure-study"): Scope.READ,
    ("POST", "/v1/graphs/{name}/pairs"): Scope.READ,
    ("POST", "/v1/graphs/{name}/gomory-hu-tree"): Scope.READ,
    ("POST", "/v1/graphs/{name}/global-min-cut"): Scope.READ,
    ("POST", "/v1/graphs/{name}/parametric"): Scope.READ,
    ("POST", "/v1/graphs/{name}/capacity-expansion"): Scope.READ,
    ("POST", "/v1/graphs/{name}/circulation"): Scope.READ,
    ("POST", "/v1/graphs/{name}/partition"): Scope.READ,
    ("GET", "/v1/graphs/{name}/snapshots"): Scope.READ,
    ("POST", "/v1/graphs/{name}/snapshots"): Scope.UPDATE,
    ("GET", "/v1/graphs/{name}/snapshots/{version}"): Scope.READ,
    ("PUT", "/v1/graphs/{name}/watches/{watch}"): Scope.UPDATE,
    ("GET", "/v1/graphs/{name}/watches"): Scope.READ,
    ("GET", "/v1/graphs/{name}/watches/{watch}"): Scope.READ,
    ("DELETE", "/v1/graphs/{name}/watches/{watch}"): Scope.UPDATE,
    ("GET", "/v1/graphs/{name}/events"): Scope.READ,
    ("PUT", "/v1/webhooks/{webhook}"): Scope.UPDATE,
    ("GET", "/v1/webhooks"): Scope.UPDATE,
    ("GET", "/v1/webhooks/{webhook}"): Scope.UPDATE,
    ("DELETE", "/v1/webhooks/{webhook}"): Scope.UPDATE,
    ("POST", "/v1/webhooks/{webhook}:rotate"): Scope.UPDATE,
    ("GET", "/v1/webhooks/{webhook}/deliveries"): Scope.UPDATE,
    ("POST", "/v1/webhooks/{webhook}/deliveries/{delivery}:redeliver"): Scope.UPDATE,
    ("GET", "/v1/jobs"): Scope.READ,
    ("GET", "/v1/jobs/{job_id}"): Scope.READ,
    ("GET", "/v1/jobs/{job_id}/events"): Scope.READ,
    ("GET", "/v1/jobs/{job_id}/result"): Scope.READ,
    ("DELETE", "/v1/jobs/{job_id}"): Scope.UPDATE,
}

PAGES: Final[Mapping[tuple[str, str], Scope]] = {
    ("GET", "/console"): Scope.READ,
    ("GET", "/console/graphs/{name}"): Scope.READ,
    ("GET", "/console/assets/{file}"): Scope.READ,
}
"""Pages for people, which are no part of the API."""

OF_ALL_GRAPHS: Final = frozenset(
    {
        ("POST", "/v1/graphs/{name}:move"),
        ("PUT", "/v1/workers/{worker}/drain"),
        ("DELETE", "/v1/workers/{worker}/drain"),
    }
)
"""Routes that are refused to a key for some graphs only: the place where graphs are served concerns all of them."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The rights of the caller of a request."""

    key_id: str | None
    """The id of the API key; None if the service has no keys."""
    scope: Scope
    prefix: str = ""
    by_session: bool = False
    """The cookie of a session was shown in place of the key."""

    def sees(self, graph: str) -> bool:
        return graph.startswith(self.prefix)


ANYONE: Final = Caller(None, Scope.ADMIN)

FetchKeys: TypeAlias = Callable[[], Awaitable[KeyRing]]

GONE: Final = "the API keys of this service are gone: nobody is let in until they are back, or its operator opens it"


SESSION_OVER: Final = "this session is over: log in again"


class KeyTable:
    """The keys as one API process knows them. Once there were keys, it never lets a caller in without one."""

    def __init__(self, fetch: FetchKeys, required: bool, seen: KeysSeen | None = None) -> None:
        self._fetch = fetch
        self._required = required
        self._seen = seen or KeysSeen()
        self._gone = False
        """Whether there were keys and are none now."""
        self._keys: Mapping[str, ApiKey] | None = None
        self._read_at = 0.0
        self._try_at = 0.0
        self._why = ""
        """Why they could not be read when that was tried last."""
        self._lock = asyncio.Lock()

    async def caller(self, token: str | None, *, stale_ok: bool = False) -> Caller:
        """The caller who shows this token. Raises unauthorised; worker_unavailable if the keys cannot be read, or are
        gone."""
        keys = await self._asked_for(stale_ok)
        if token is not None and keys is not None and is_unknown(token, keys):
            keys = await self._asked_for(stale_ok, NEW_S)
        if keys is None:
            return ANYONE
        if token is None:
            raise ServiceError("unauthorised", "send an API key: Authorization: Bearer hr_...")
        key = find(token, keys)
        if key is None:
            raise ServiceError("unauthorised", "this API key is unknown or revoked")
        return Caller(key.id, key.scope, key.prefix)

    async def holder(self, key_id: str) -> Caller:
        """The caller who has the key of this id, for a session that stands for the key. Raises as `caller`."""
        keys = await self._asked_for()
        if keys is None:
            return ANYONE
        key = keys.get(key_id)
        if key is None or key.revoked_at is not None:
            raise ServiceError("unauthorised", SESSION_OVER)
        return Caller(key.id, key.scope, key.prefix, by_session=True)

    async def _asked_for(self, stale_ok: bool = False, fresh_s: float = FRESH_S) -> Mapping[str, ApiKey] | None:
        """The keys of which one has to be shown; None: the service is open."""
        keys = await self._current(stale_ok, fresh_s)
        if self._gone:
            raise ServiceError("worker_unavailable", GONE, retry_after_s=FRESH_S)
        return keys if keys or self._required else None

    async def _current(self, stale_ok: bool, fresh_s: float) -> Mapping[str, ApiKey]:
        if self._keys is not None and time.monotonic() - self._read_at < fresh_s:
            return self._keys
        async with self._lock:
            if self._keys is not None and time.monotonic() - self._read_at < fresh_s:
                return self._keys  # read by another request meanwhile
            asked_at = time.monotonic()
            if asked_at >= self._try_at:
                try:
                    async with asyncio.timeout(FETCH_S):
                        ring = await self._fetch()
                    self._note(ring)
                    self._keys, self._read_at = ring.keys, asked_at
                except (*AWAY, TimeoutError) as error:
                    self._why = why_away(error)
                    self._try_at = time.monotonic() + RETRY_S  # those who wait here need not find out one by one
            if self._keys is None or not (stale_ok or time.monotonic() - self._read_at < STALE_S):
                detail = f"the API keys cannot be read: {self._why}"
                raise ServiceError("worker_unavailable", detail, retry_after_s=1)
            return self._keys

    def _note(self, ring: KeyRing) -> None:
        """Remember that there are keys; notice when they are gone, which no command of ours does unless it says so."""
        was_gone, self._gone = self._gone, False
        if ring.keys:
            self._seen.remember()
            return
        seen_at = self._seen.at()
        if seen_at is None:
            return
        if ring.opened_at is not None and ring.opened_at >= seen_at:
            log.warning("opened_without_api_keys")
            self._seen.forget()
            return
        self._gone = True
        if not was_gone:
            log.error("api_keys_gone", hint="bring Redis back with its data, or: headrace keys forget --open")


async def authorise(request: Request) -> Caller:
    """The caller, who may do this; raises unauthorised or forbidden. May be asked again, for an answer that lasts."""
    path = request.scope["route"].path
    if path in OPEN:
        return ANYONE
    refuse_other_origins(request.method, request.headers)
    if path in DOORS:
        return ANYONE
    backend = request.state.backend
    caller = await caller_of(request, stale_ok=path == "/metrics")
    any_host: bool = backend.settings.insecure_any_host
    if caller.key_id is None and not _may_be_asked_for(request.scope, request.headers, any_host):
        raise ServiceError("forbidden", "without API keys the service answers to the name of this machine alone")
    route = request.method, path
    needed = NEEDED.get(route) or PAGES.get(route, Scope.ADMIN)
    if not caller.scope.covers(needed):
        raise ServiceError("forbidden", f"this needs the scope {needed}; the key has {caller.scope}")
    if caller.prefix and route in OF_ALL_GRAPHS:
        raise ServiceError("forbidden", "this is for keys that are good for all graphs")
    name = request.path_params.get("name")
    if name is not None and not caller.sees(name):
        raise ServiceError("forbidden", f"the key is good for graphs named {caller.prefix}...")
    request.state.caller = caller
    return caller


async def caller_of(request: Request, *, stale_ok: bool = False) -> Caller:
    """Who shows a key, or the cookie of a session. Raises as `KeyTable.caller`; a key counts for more than a cookie."""
    table: KeyTable = request.state.backend.key_table
    token = token_of(request.headers)
    session = session_of(request.scope, request.headers) if token is None else None
    if session is None:
        return await table.caller(token, stale_ok=stale_ok)
    caller = await table.holder(session.split("_")[1])
    if caller.key_id is not None and not await _is_open(request.state.backend.sessions, session):
        raise ServiceError("unauthorised", SESSION_OVER)
    return caller


async def _is_open(sessions: Sessions, token: str) -> bool:
    try:
        async with asyncio.timeout(FETCH_S):
            return await sessions.is_open(token)
    except (*AWAY, TimeoutError) as error:
        detail = f"the session cannot be read: {why_away(error)}"
        raise ServiceError("worker_unavailable", detail, retry_after_s=1) from None


CallerOf: TypeAlias = Annotated[Caller, Depends(authorise)]


def token_of(headers: Headers) -> str | None:
    """The token of `Authorization: Bearer` or `X-API-Key`; of both, the first that has the form of ours.

    A proxy that asks for credentials of its own may pass these on.
    """
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    shown = [bearer.strip()] if scheme.lower() == "bearer" else []
    shown += headers.getlist("x-api-key")
    return next((token for token in shown if TOKEN.fullmatch(token)), shown[0] if shown else None)


def claimed_key(scope: RequestScope, headers: Headers) -> str:
    """The id of the API key that a request claims to have, itself or by a session; "" if it claims none."""
    token = token_of(headers)
    if token is None:
        session = session_of(scope, headers)
        return "" if session is None else session.split("_")[1]
    claimed = TOKEN.fullmatch(token)
    return claimed[1] if claimed else ""


def _may_be_asked_for(scope: RequestScope, headers: Headers, any_host: bool) -> bool:
    """Whether the name that a request without a key gives in Host is one that no web page can have.

    A web page whose host name was pointed at this machine (DNS rebinding) still sends its own name as Host. What came
    in on loopback names loopback. A container's port may be published on loopback as well, which it cannot see: it is
    asked for by a number or by a name without a dot, unless `any_host` says that something else guards it.
    """
    local = (scope.get("server") or ("", None))[0]
    names = [_bare(host) for host in headers.getlist("host") or [""]]
    if _is_loopback(local):
        return all(name == "localhost" or _is_loopback(name) for name in names)
    return any_host or all("." not in name or _is_address(name) for name in names)


def _bare(host: str) -> str:
    """The host in lower case, without its port and the brackets of IPv6."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return name.strip("[]").lower()


@lru_cache(NAMES_KEPT)
def _is_loopback(address: str) -> bool:
    return _is_address(address) and ipaddress.ip_address(address).is_loopback


@lru_cache(NAMES_KEPT)
def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
